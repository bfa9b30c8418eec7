"""Nested tuples, lists and dicts of tensors, taken apart and put together: what transforms take and return."""

from __future__ import annotations

from copy import copy

from ..complex.parts import Parts
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any


def mapped(tree: Any, function: Callable[[Any], Any]) -> Any:
    """The same nesting, with ``function`` of each leaf in its place; None is a tree without leaves."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        new = copy(tree)  # of its own kind
        new.update({key: mapped(value, function) for key, value in tree.items()})
        return new
    if isinstance(tree, (list, tuple)):
        parts = [mapped(value, function) for value in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return function(tree)


def leaves(tree: Any, name: str) -> list[tuple[str, Any]]:
    """What is in a tree and no container, each with a name for messages, such as ``carry[0]['h']``.

    Args:
      tree: a tensor or a number; or tuples, lists and dicts of trees; None is a tree without leaves.
      name: what messages call the tree.
    """
    return list(_walk(tree, name))


def _walk(tree: Any, name: str) -> Iterator[tuple[str, Any]]:
    if tree is None:
        return
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _walk(value, f"{name}[{key!r}]")
    elif isinstance(tree, (tuple, list)):
        for place, value in enumerate(tree):
            yield from _walk(value, f"{name}[{place}]")
    else:
        yield name, tree


def rebuild(tree: Any, values: Iterable[Any]) -> Any:
    """A tree of the same form with other leaves, given in the order of :func:`leaves`."""
    rest = iter(values)
    return mapped(tree, lambda _: next(rest))


def tensors_in(tree: Any) -> list[Tensor]:
    """The leaves that are tensors, in order; the parts of one that is complex.

    Example:
      >>> from tg_frontend import Tensor
      >>> [leaf.item() for leaf in tensors_in({"a": Tensor(1), "b": (Tensor(2), "no tensor")})]
      [1, 2]
    """
    return [part for _, leaf in _walk(tree, "") if isinstance(leaf, Tensor) for part in leaf._floats()]


def map_tensors(tree: Any, function: Callable[[Tensor], Any]) -> Any:
    """The same nesting, with ``function`` of each tensor in its place, of the parts of complex ones; others stay."""

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        return leaf._of_floats([function(part) for part in leaf._floats()])

    return mapped(tree, one)


def fill_tensors(tree: Any, values: Iterable[Any]) -> Any:
    """The same nesting, with other values in the places of the tensors."""
    rest = iter(values)
    return map_tensors(tree, lambda _: next(rest))


def in_parts(tree: Any) -> Any:
    """The same nesting, with the parts in the place of each complex tensor or number: trees of nodes of the graph.

    Example:
      >>> from tg_frontend import Tensor
      >>> form(in_parts([Tensor(1.0), Tensor(1j)]))
      '[., complex]'
    """

    def one(leaf: Any) -> Any:
        if isinstance(leaf, complex):
            return Parts(leaf.real, leaf.imag)
        return Parts(*leaf._floats()) if isinstance(leaf, Tensor) and leaf.is_complex() else leaf

    return mapped(tree, one)


def of_parts(tree: Any) -> Any:
    """What :func:`in_parts` took apart."""
    if isinstance(tree, Parts):
        return tree.re._composed(tree.re, tree.im)
    if isinstance(tree, dict):
        new = copy(tree)
        new.update({key: of_parts(value) for key, value in tree.items()})
        return new
    if isinstance(tree, (list, tuple)):
        parts = [of_parts(value) for value in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return tree


def form(tree: Any) -> str:
    """The nesting of a tree in words, ``.`` for a leaf, and ``complex`` for the parts of one."""
    if tree is None:
        return "None"
    if isinstance(tree, Parts):
        return "complex"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {form(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, (tuple, list)):
        inside = ", ".join(form(value) for value in tree)
        return f"[{inside}]" if isinstance(tree, list) else f"({inside}{',' if len(tree) == 1 else ''})"
    return "."


def tensor_of(value: Any, name: str, what: str, device: str | None = None) -> Tensor:
    """A leaf as a tensor.

    Raises:
      TypeError: if it is neither a tensor nor a number.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (bool, int, float)):
        return Tensor(value, device=device)
    raise TypeError(f"{what}: {name} is a tensor or a number, got a {type(value).__name__}")
