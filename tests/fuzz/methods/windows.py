"""Convolutions and pools of one and three axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .table import Array, Call, Pool, Ref, row


def _image(pool: Pool, axes: int) -> tuple[int, Array]:
    shape = [pool.pick.randint(1, 2), pool.pick.choice([1, 2, 4]), *(pool.pick.randint(2, 7) for _ in range(axes))]
    i = pool.floats(*shape)
    return i, pool.values[i].array


def _windows(x: Array, kernel: Sequence[int], stride: int, padding: int, value: float) -> Array:
    """shape (batch, channels, *counts, *kernel)."""
    n = len(kernel)
    x = np.pad(x, ((0, 0), (0, 0), *((padding, padding),) * n), constant_values=value)
    seen = np.lib.stride_tricks.sliding_window_view(x, kernel, tuple(range(2, 2 + n)))
    every: Any = (..., *(slice(None, None, stride),) * n, *(slice(None),) * n)
    taken: Array = seen[every]
    return taken


def _convolution(x: Array, w: Array, b: Array, groups: int, stride: int, padding: int) -> Array:
    n = w.ndim - 2
    seen = _windows(x, w.shape[2:], stride, padding, 0)
    places, kernel = "pqr"[:n], "ijk"[:n]
    parts = [np.einsum(f"nc{places}{kernel},oc{kernel}->no{places}", s, k)
             for s, k in zip(np.split(seen, groups, 1), np.split(w, groups, 0), strict=True)]  # fmt: skip
    return np.concatenate(parts, 1) + b.reshape((-1, *(1,) * n))


def _transposed(x: Array, w: Array, stride: int, padding: int) -> Array:
    kernel = w.shape[2:]
    sizes = [(side - 1) * stride + k for side, k in zip(x.shape[2:], kernel, strict=True)]
    out = np.zeros((x.shape[0], w.shape[1], *sizes), np.result_type(x, w))
    for at in np.ndindex(*x.shape[2:]):
        part = tuple(slice(i * stride, i * stride + k) for i, k in zip(at, kernel, strict=True))
        out[(slice(None), slice(None), *part)] += np.tensordot(x[(..., *at)], w, 1)
    inner: Any = (..., *(slice(padding, size - padding) for size in sizes))
    taken: Array = out[inner]
    return taken


def _convolutions(axes: int) -> None:
    def forward(pool: Pool, i: int) -> Call | None:
        j, x = _image(pool, axes)
        groups = pool.pick.choice([g for g in (1, 2) if x.shape[1] % g == 0])
        outputs = groups * pool.pick.randint(1, 2)
        w = pool.floats(outputs, x.shape[1] // groups, *(pool.pick.randint(1, min(3, d)) for d in x.shape[2:]))
        kwargs = {"groups": groups, "stride": pool.pick.randint(1, 2), "padding": pool.pick.randint(0, 2)}
        return Call(f"conv{axes}d", (Ref(j), Ref(w), Ref(pool.floats(outputs))), kwargs, _convolution)

    def back(pool: Pool, i: int) -> Call | None:
        j, x = _image(pool, axes)
        w = pool.floats(x.shape[1], pool.pick.randint(1, 2), *(pool.pick.randint(1, 3) for _ in range(axes)))
        least = min(pool.values[w].array.shape[2:])
        kwargs = {"stride": pool.pick.randint(1, 2), "padding": min(pool.pick.randint(0, 2), (least - 1) // 2)}
        return Call(f"conv_transpose{axes}d", (Ref(j), Ref(w)), kwargs, _transposed)

    row(f"conv{axes}d", forward, exact=True, smooth=True)
    row(f"conv_transpose{axes}d", back, exact=True, smooth=True)


def _pooling(name: str, axes: int, value: float, reference: Callable[..., Any], **facts: bool) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        j, x = _image(pool, axes)
        kernel = pool.pick.randint(1, min(3, *x.shape[2:]))
        stride, padding = pool.pick.randint(1, 3), pool.pick.randint(0, kernel // 2)
        kwargs = {"kernel_size": kernel, "stride": stride, "padding": padding}

        def pooled(x: Array, kernel_size: int, stride: int, padding: int) -> Any:
            return reference(_windows(x, (kernel_size,) * axes, stride, padding, value), tuple(range(-axes, 0)))

        return Call(name, (Ref(j),), kwargs, pooled)

    row(name, draw, **facts)


def _unpooling(axes: int) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        shape = (pool.pick.randint(1, 2), pool.pick.randint(1, 2), *(pool.pick.randint(1, 3) for _ in range(axes)))
        x, inside = pool.floats(*shape), math.prod(shape[2:])
        places = [pool.pick.sample(range(inside * 2**axes), inside) for _ in range(shape[0] * shape[1])]
        index = pool.make(np.array(places, np.int64).reshape(shape))

        def reference(x: Array, index: Array, kernel_size: int) -> Array:
            out = np.zeros((*x.shape[:2], inside * 2**axes))
            np.put_along_axis(out, index.reshape(*x.shape[:2], -1), x.reshape(*x.shape[:2], -1), 2)
            return out.reshape(*x.shape[:2], *(2 * side for side in x.shape[2:]))

        return Call(f"max_unpool{axes}d", (Ref(x), Ref(index)), {"kernel_size": 2}, reference)

    row(f"max_unpool{axes}d", draw, exact=True)


for _axes in (1, 3):
    _convolutions(_axes)
    _pooling(f"avg_pool{_axes}d", _axes, 0.0, np.mean, smooth=True)
    _pooling(f"max_pool{_axes}d", _axes, -np.inf, np.max, exact=True)
    _unpooling(_axes)
