"""Copies of views, elements at strides, filling, and sums to a size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrangement import _drawn, _larger, _narrow, _range
from .table import Array, Call, Pool, Ref, binary, row, unary

_drawn("expand_copy", 0, _larger, np.broadcast_to)
_drawn("narrow_copy", 1, _range, _narrow)
_drawn("permute_copy", 1, lambda pool, x: (tuple(pool.pick.sample(range(x.ndim), x.ndim)),), np.transpose)
_drawn("transpose_copy", 1, lambda pool, x: (pool.axis(x), pool.axis(x)), np.swapaxes)
_drawn("unsqueeze_copy", 0, lambda pool, x: (pool.pick.randint(0, x.ndim),), np.expand_dims)
_drawn("view_copy", 0, lambda pool, x: ((1, x.size),), np.reshape)
_drawn("diagonal_copy", 2, lambda pool, x: (pool.pick.randint(-2, 2),), np.diagonal)
_drawn("unbind_copy", 1, lambda pool, x: (0,) if x.shape[0] < 9 else None, lambda x, axis: tuple(x))
_drawn("split_with_sizes_copy", 1, lambda pool, x: ([1, x.shape[0] - 1],) if x.shape[0] else None,
       lambda x, sizes: tuple(np.split(x, [sizes[0]])))  # fmt: skip
unary("squeeze_copy", np.squeeze, "fib", exact=True)
_drawn("fill", 0, lambda pool, x: (1,), np.full_like)
binary("rsub", lambda x, y: y - x, exact=True)


def _of(name: str, fits: Callable[[Array], bool], arguments: Callable[[Pool, Array], tuple[Any, ...]],
        reference: Callable[..., Any], **kwargs: Any) -> None:  # fmt: skip
    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        return Call(name, (Ref(i), *arguments(pool, array)), kwargs, reference) if fits(array) else None

    row(name, draw, exact=True, wants_exact=name == "nonzero_static")


def _strided(x: Array, size: Any, stride: Any, offset: int) -> Array:
    steps = tuple(step * x.itemsize for step in stride)
    return np.lib.stride_tricks.as_strided(np.ascontiguousarray(x).reshape(-1)[offset:], size, steps).copy()


def _static(x: Array, size: int) -> Array:
    found = np.argwhere(x)[:size]
    return np.concatenate([found, np.full((size - len(found), x.ndim), -1)])


def _summed(x: Array, size: Any) -> Any:
    return x.sum(tuple(axis for axis, n in enumerate(size) if n == 1), keepdims=True)


_of("t_copy", lambda x: x.ndim <= 2, lambda pool, x: (), np.transpose)
_of("unfold_copy", lambda x: x.ndim == 1 and x.size > 2, lambda pool, x: (0, 2, 1),
    lambda x, dim, size, step: np.lib.stride_tricks.sliding_window_view(x, size))  # fmt: skip
_of("as_strided", lambda x: x.size > 8, lambda pool, x: ((2, 3), (pool.pick.randint(0, 3), 1), 2), _strided)
_of("nonzero_static", lambda x: 0 < x.ndim and 0 < x.size < 500, lambda pool, x: (), _static, size=5)
_of("sum_to_size", lambda x: x.dtype.kind != "b", lambda pool, x: (tuple(pool.pick.choice([1, n]) for n in x.shape),),
    _summed)  # fmt: skip


def _strided_scatter(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not 8 < value.array.size <= 500:
        return None

    def reference(x: Array, src: Array, size: Any, stride: Any, offset: int) -> Array:
        out = x.copy()
        for k in range(size[0]):
            out.flat[offset + k * stride[0]] = src[k]
        return out

    return Call("as_strided_scatter", (Ref(i), Ref(pool.floats(3)), (3,), (2,), 1), {}, reference)


row("as_strided_scatter", _strided_scatter, exact=True)
