"""Tensors in lists, tuples and dicts: what functions take and return."""

from __future__ import annotations

from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


def leaves(tree: Any) -> list[Tensor]:
    """The tensors in nested lists, tuples and dicts, in order.

    Example:
      >>> from tg_frontend import Tensor
      >>> [leaf.item() for leaf in leaves({"a": Tensor(1), "b": (Tensor(2), "no tensor")})]
      [1, 2]
    """
    found: list[Tensor] = []
    mapped(tree, found.append)
    return found


def mapped(tree: Any, function: Callable[[Tensor], Any]) -> Any:
    """The same nesting, with ``function`` of each tensor in its place; what is no tensor stays."""
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, dict):
        return {key: mapped(value, function) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        parts = [mapped(value, function) for value in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return tree


def filled(tree: Any, values: Sequence[Any]) -> Any:
    """The same nesting, with other values in the places of the tensors."""
    rest: Iterator[Any] = iter(values)
    return mapped(tree, lambda _: next(rest))


def named(function: Any) -> str:
    """The name of a function, for messages."""
    return getattr(function, "__qualname__", type(function).__name__)
