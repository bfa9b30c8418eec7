"""Axes moved and added, tensors joined and taken apart by the names that say along which axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .table import MOST, Array, Call, Pool, Ref, row, unary

unary("ravel", np.ravel, "fib", exact=True)
unary("atleast_1d", np.atleast_1d, "fib", exact=True)
unary("atleast_2d", np.atleast_2d, "fib", exact=True)
unary("atleast_3d", np.atleast_3d, "fib", exact=True)


def _drawn(name: str, axes: int, arguments: Callable[[Pool, Array], tuple[Any, ...] | None], reference: Any) -> None:
    """A method of tensors of so many axes at least, which moves elements."""

    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        if array.ndim < axes or (args := arguments(pool, array)) is None:
            return None
        return Call(name, (Ref(i), *args), {}, reference)

    row(name, draw, exact=True)


def _range(pool: Pool, array: Array) -> tuple[int, int, int]:
    axis = pool.axis(array)
    start = pool.pick.randint(0, array.shape[axis])
    return axis, start, pool.pick.randint(0, array.shape[axis] - start)


def _narrow(x: Array, axis: int, start: int, length: int) -> Array:
    return np.take(x, np.arange(start, start + length), axis)


def _position(pool: Pool, array: Array) -> tuple[int, int] | None:
    axis = pool.axis(array)
    size = array.shape[axis]
    return (axis, pool.pick.randrange(-size, size)) if size else None


def _tiles(pool: Pool, array: Array) -> tuple[Any, ...] | None:
    counts = tuple(pool.pick.randint(0, 3) for _ in range(pool.pick.randint(1, array.ndim + 1)))
    return (counts,) if array.size * max(1, int(np.prod(counts))) <= MOST else None


def _larger(pool: Pool, array: Array) -> tuple[Any, ...] | None:
    shape = tuple(pool.pick.choice([1, 3]) if d == 1 else d for d in array.shape)
    shape = (pool.pick.choice([1, 2]), *shape) if pool.pick.random() < 0.5 or not shape else shape
    return (shape,) if int(np.prod(shape)) <= MOST else None


_drawn("movedim", 1, lambda pool, x: (pool.axis(x), pool.axis(x)), np.moveaxis)
_drawn("narrow", 1, _range, _narrow)
_drawn("select", 1, _position, lambda x, axis, index: np.take(x, index, axis))
_drawn("tile", 0, _tiles, np.tile)
_drawn("broadcast_to", 0, _larger, np.broadcast_to)
_drawn("flipud", 1, lambda pool, x: (), np.flipud)
_drawn("fliplr", 2, lambda pool, x: (), np.fliplr)
_drawn("rot90", 2, lambda pool, x: (pool.pick.randint(-3, 6), tuple(pool.pick.sample(range(x.ndim), 2))), np.rot90)


def _parts(pool: Pool, array: Array) -> tuple[Any, ...]:
    cuts = pool.pick.randint(1, 5) if pool.pick.random() < 0.5 else sorted(pool.pick.sample(range(8), 2))
    return cuts, pool.axis(array)


_drawn("tensor_split", 1, _parts, lambda x, cuts, axis: tuple(np.array_split(x, cuts, axis)))


def _cut(axis: int) -> Callable[[Pool, Array], tuple[Any, ...]]:
    return lambda pool, x: (sorted(pool.pick.sample(range(x.shape[axis if x.ndim > axis else 0] + 1), 1)),)


_drawn("hsplit", 1, _cut(1), lambda x, cuts: tuple(np.hsplit(x, cuts)))
_drawn("vsplit", 2, _cut(0), lambda x, cuts: tuple(np.vsplit(x, cuts)))
_drawn("dsplit", 3, _cut(2), lambda x, cuts: tuple(np.dsplit(x, cuts)))


def _joined(name: str, reference: Callable[..., Any]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        same = [n for n, v in enumerate(pool.values) if v.array.shape == value.array.shape and v.kind == value.kind]
        if value.array.size * 2 > MOST:
            return None
        return Call(name, (Ref(i), Ref(pool.pick.choice(same))), {}, lambda *parts: reference(parts))

    row(name, draw, exact=True)


_joined("hstack", np.hstack)
_joined("vstack", np.vstack)
_joined("dstack", np.dstack)
_joined("column_stack", lambda parts: np.column_stack([p.reshape(-1, 1) if p.ndim < 2 else p for p in parts]))


def _block_diag(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    small = [n for n, v in enumerate(pool.values) if v.array.ndim == 2 and v.array.size < 100]
    matrices = [n for n in small if pool.values[n].kind == value.kind]
    if i not in matrices:
        return None

    def reference(a: Array, b: Array) -> Array:
        out = np.zeros((a.shape[0] + b.shape[0], a.shape[1] + b.shape[1]), np.result_type(a, b))
        out[: a.shape[0], : a.shape[1]], out[a.shape[0] :, a.shape[1] :] = a, b
        return out

    return Call("block_diag", (Ref(i), Ref(pool.pick.choice(matrices))), {}, reference)


row("block_diag", _block_diag, exact=True)


def _alike(name: str, fits: Callable[[Array, Array], bool], reference: Callable[[Array, Array], Any]) -> None:
    """A method that takes a property of another tensor."""

    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        fitting = [n for n, v in enumerate(pool.values) if v.array.size <= MOST and fits(array, v.array)]
        return Call(name, (Ref(i), Ref(pool.pick.choice(fitting))), {}, reference) if fitting else None

    row(name, draw, exact=True)


def _broadcasts(x: Array, like: Array) -> bool:
    try:
        return bool(np.broadcast_shapes(x.shape, like.shape) == like.shape)
    except ValueError:
        return False


_alike("expand_as", _broadcasts, lambda x, like: np.broadcast_to(x, like.shape))
_alike("view_as", lambda x, like: x.shape == like.shape, lambda x, like: x)
_alike("reshape_as", lambda x, like: x.size == like.size, lambda x, like: x.reshape(like.shape))
_alike("type_as", lambda x, like: x.dtype == like.dtype, lambda x, like: x)
