"""Shapes as they are given, and the shape in which several meet."""

from __future__ import annotations

from functools import lru_cache

from tg_shape import Expr, sint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def args_to_tuple(args: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    """``f(1, 2)`` and ``f((1, 2))`` alike.

    Raises:
      TypeError: if something is neither an integer nor a symbolic integer.
    """
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = tuple(args[0])
    for value in args:
        if not isinstance(value, (int, Expr)) or isinstance(value, bool):
            raise TypeError(f"{what}: sizes and axes are integers, got {value!r} of type {type(value).__name__}")
    return args


def broadcast_shape(what: str, *shapes: tuple[sint, ...]) -> tuple[sint, ...]:
    """The shape in which all of ``shapes`` meet: aligned at the end, size 1 stretches.

    Raises:
      ValueError: if they do not meet; the message names the operation and the shapes.
    """
    met = _met(shapes)
    if met is None:
        raise ValueError(f"{what}: the shapes {' and '.join(str(s) for s in shapes)} do not broadcast")
    return met


@lru_cache(maxsize=4096)
def _met(shapes: tuple[tuple[sint, ...], ...]) -> tuple[sint, ...] | None:
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    out: list[sint] = []
    for position in range(max(len(shape) for shape in shapes), 0, -1):
        dims = {shape[-position] for shape in shapes if len(shape) >= position} - {1}
        if len(dims) > 1:
            return None
        out.append(dims.pop() if dims else 1)
    return tuple(out)
