"""Nested tuples, lists and dicts of tensors, taken apart and put together."""

from __future__ import annotations

from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


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
    return _rebuild(tree, iter(values))


def _rebuild(tree: Any, values: Iterator[Any]) -> Any:
    if tree is None:
        return None
    if isinstance(tree, dict):
        return type(tree)((key, _rebuild(value, values)) for key, value in tree.items())
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(_rebuild(value, values) for value in tree))
    if isinstance(tree, (tuple, list)):
        return type(tree)(_rebuild(value, values) for value in tree)
    return next(values)


def form(tree: Any) -> str:
    """The nesting of a tree in words, ``.`` for a leaf."""
    if tree is None:
        return "None"
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
