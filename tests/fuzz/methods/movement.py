"""Methods that arrange elements anew."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .table import MOST, Array, Call, Draw, Pool, Ref, row


def _factors(pick: Draw, size: int) -> tuple[int, ...]:
    dims = []
    for _ in range(pick.randint(0, 2)):
        divisors = [d for d in range(1, size + 1) if size % d == 0] if size <= 5000 else [1]
        dims.append(pick.choice(divisors or [1]))
        size //= dims[-1]
    return (*dims, size)


def _reshape(name: str) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        size = pool.values[i].array.size
        if not size:
            return None
        shape = _factors(pool.pick, size)
        if pool.pick.random() < 0.3:
            hole = pool.pick.randrange(len(shape))
            shape = (*shape[:hole], -1, *shape[hole + 1 :])
        return Call(name, (Ref(i), shape), {}, np.reshape)

    row(name, draw, exact=True)


_reshape("reshape")
_reshape("view")


def _permute(pool: Pool, i: int) -> Call:
    order = list(range(pool.values[i].array.ndim))
    pool.pick.shuffle(order)
    return Call("permute", (Ref(i), tuple(order)), {}, np.transpose)


def _transpose(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim:
        return None
    return Call("transpose", (Ref(i), pool.axis(array), pool.axis(array)), {}, np.swapaxes)


def _expand(pool: Pool, i: int) -> Call | None:
    shape = tuple(pool.pick.choice([2, 3]) if d == 1 else d for d in pool.values[i].array.shape)
    if pool.pick.random() < 0.4:
        shape = (pool.pick.choice([1, 2, 5]), *shape)
    if not shape or math.prod(shape) > MOST:
        return None
    return Call("expand", (Ref(i), shape), {}, np.broadcast_to)


def _shrink(pool: Pool, i: int) -> Call:
    bounds = []
    for d in pool.values[i].array.shape:
        low = pool.pick.randint(0, max(d - 1, 0))
        bounds.append((low, pool.pick.randint(low, d)))
    return Call("shrink", (Ref(i), tuple(bounds)), {}, lambda x, b: x[tuple(slice(*pair) for pair in b)])


def _shrink_to(pool: Pool, i: int) -> Call:
    shape = tuple(pool.pick.randint(min(1, d), d) for d in pool.values[i].array.shape)
    return Call("shrink_to", (Ref(i), shape), {}, lambda x, s: x[tuple(slice(0, n) for n in s)])


def _pad(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size or array.size > 3000 or pool.values[i].kind == "b":
        return None
    axes = pool.pick.randint(1, array.ndim)
    pairs = [(pool.pick.randint(0, 3), pool.pick.randint(0, 3)) for _ in range(axes)]  # the last axis first, as PyTorch
    mode = pool.pick.choice(["constant", "constant", "reflect", "replicate", "circular"])
    for (low, high), d in zip(pairs, array.shape[::-1], strict=False):
        if (mode == "reflect" and max(low, high) >= d) or (mode == "circular" and max(low, high) > d):
            mode = "constant"
    flat = tuple(n for pair in pairs for n in pair)
    value = pool.pick.choice([0, 0, 2])

    def reference(x: Array, padding: Sequence[int], mode: str, value: float) -> Array:
        widths = [(0, 0)] * x.ndim
        for k in range(len(padding) // 2):
            widths[x.ndim - 1 - k] = (padding[2 * k], padding[2 * k + 1])
        if mode == "constant":
            return np.pad(x, widths, constant_values=value)
        return np.pad(x, widths, {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])  # type: ignore[call-overload,no-any-return]

    return Call("pad", (Ref(i), flat), {"mode": mode, "value": value}, reference)


def _pad_to(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    shape = tuple(d + pool.pick.randint(0, 3) for d in array.shape)
    if not shape or math.prod(shape) > MOST:
        return None
    return Call("pad_to", (Ref(i), shape), {},
                lambda x, s: np.pad(x, [(0, n - d) for n, d in zip(s, x.shape, strict=True)]))  # fmt: skip


def _flip(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim:
        return None
    some = tuple(pool.pick.sample(range(array.ndim), pool.pick.randint(1, array.ndim)))
    return Call("flip", (Ref(i), some), {}, np.flip)


def _roll(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size:
        return None
    axis = pool.pick.choice([None, pool.axis(array)])
    return Call("roll", (Ref(i), pool.pick.randint(-7, 7), axis), {}, np.roll)


def _repeat(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    times = tuple(pool.pick.choice([1, 1, 2, 3]) for _ in range(max(array.ndim, 1)))
    if array.size * math.prod(times) > MOST:
        return None
    return Call("repeat", (Ref(i), times), {}, np.tile)


def _repeat_interleave(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or array.size > 3000:
        return None
    axis = pool.pick.choice([None, pool.axis(array)])
    return Call("repeat_interleave", (Ref(i), pool.pick.randint(1, 3), axis), {}, np.repeat)


def _joined(name: str, reference: Callable[..., Any]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if not value.array.ndim or value.array.size > 3000:
            return None
        fitting = [j for j, v in enumerate(pool.values) if v.array.shape == value.array.shape and v.kind == value.kind]
        others = [pool.pick.choice(fitting) for _ in range(pool.pick.randint(0, 2))]
        axis = pool.axis(value.array)
        return Call(name, (Ref(i), *map(Ref, others)), {"dim": axis}, lambda *a, dim: reference(a, axis=dim))

    row(name, draw, exact=True)


_joined("cat", np.concatenate)


def _stack(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.array.size > 3000:
        return None
    fitting = [j for j, v in enumerate(pool.values) if v.array.shape == value.array.shape and v.kind == value.kind]
    others = [pool.pick.choice(fitting) for _ in range(pool.pick.randint(0, 2))]
    axis = pool.pick.randint(0, value.array.ndim)
    return Call("stack", (Ref(i), *map(Ref, others)), {"dim": axis}, lambda *a, dim: np.stack(a, dim))


def _some_axis(pool: Pool, array: Array) -> int | None:
    """An axis, if the array has one along which there is something."""
    axis = pool.axis(array) if array.ndim else None
    return axis if axis is None or array.shape[axis] else None


def _split(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    axis = _some_axis(pool, array)
    if axis is None:
        return None
    size = pool.pick.randint(1, array.shape[axis])
    return Call("split", (Ref(i), size), {"dim": axis},
                lambda x, n, dim: np.split(x, list(range(n, x.shape[dim], n)), dim)[:4])  # fmt: skip


def _unbind(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    axis = _some_axis(pool, array)
    if axis is None or array.shape[axis] > 4:
        return None
    return Call("unbind", (Ref(i),), {"dim": axis}, lambda x, dim: list(np.moveaxis(x, dim, 0)))


def _chunk(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    axis = _some_axis(pool, array)
    if axis is None:
        return None

    def reference(x: Array, count: int, dim: int) -> Any:
        size = -(-x.shape[dim] // count)
        return np.split(x, list(range(size, x.shape[dim], size)), dim)[:4]

    return Call("chunk", (Ref(i), pool.pick.randint(1, 4)), {"dim": axis}, reference)


def _squeeze(pool: Pool, i: int) -> Call:
    array = pool.values[i].array
    ones = [k for k, d in enumerate(array.shape) if d == 1]
    if ones and pool.pick.random() < 0.6:
        return Call("squeeze", (Ref(i), pool.pick.choice(ones)), {}, np.squeeze)
    return Call("squeeze", (Ref(i),), {}, np.squeeze)


def _unsqueeze(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if array.ndim > 4:
        return None
    return Call("unsqueeze", (Ref(i), pool.pick.randint(-array.ndim - 1, array.ndim)), {}, np.expand_dims)


def _flatten(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if array.ndim < 2:
        return None
    start = pool.pick.randrange(array.ndim)
    end = pool.pick.randrange(start, array.ndim)
    return Call("flatten", (Ref(i), start, end), {},
                lambda x, s, e: x.reshape(*x.shape[:s], math.prod(x.shape[s : e + 1]), *x.shape[e + 1 :]))  # fmt: skip


def _unflatten(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size:
        return None
    axis = pool.pick.randrange(array.ndim)
    sizes = _factors(pool.pick, array.shape[axis])
    return Call("unflatten", (Ref(i), axis, sizes), {},
                lambda x, a, s: x.reshape(*x.shape[:a], *s, *x.shape[a + 1 :]))  # fmt: skip


def _unfold(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size:
        return None
    axis = pool.axis(array)
    size, step = pool.pick.randint(1, array.shape[axis]), pool.pick.randint(1, 3)
    if array.size * size > MOST:
        return None

    def reference(x: Array, axis: int, size: int, step: int) -> Array:
        windows = np.lib.stride_tricks.sliding_window_view(x, size, axis)
        return windows[(slice(None),) * (axis % x.ndim) + (slice(None, None, step),)]

    return Call("unfold", (Ref(i), axis, size, step), {}, reference)


def _triangle(name: str, reference: Callable[..., Any]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        if pool.values[i].array.ndim < 2:
            return None
        return Call(name, (Ref(i), pool.pick.randint(-3, 3)), {}, reference)

    row(name, draw, exact=True)


def _diagonal(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if array.ndim < 2:
        return None
    a, b = pool.pick.sample(range(array.ndim), 2)
    if not min(array.shape[a], array.shape[b]):
        return None
    offset = pool.pick.randint(1 - array.shape[a], array.shape[b] - 1)
    return Call("diagonal", (Ref(i), offset, a, b), {}, np.diagonal)


def _diag(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if array.ndim not in (1, 2) or array.size > 100 or 0 in array.shape:
        return None
    most = 3 if array.ndim == 1 else min(array.shape) - 1
    return Call("diag", (Ref(i), pool.pick.randint(-most, most)), {}, np.diag)


for _name, _draw in (("permute", _permute), ("transpose", _transpose), ("expand", _expand), ("shrink", _shrink),
                     ("shrink_to", _shrink_to), ("pad", _pad), ("pad_to", _pad_to), ("flip", _flip), ("roll", _roll),
                     ("repeat", _repeat), ("repeat_interleave", _repeat_interleave), ("stack", _stack),
                     ("split", _split), ("chunk", _chunk), ("unbind", _unbind),
                     ("squeeze", _squeeze), ("unsqueeze", _unsqueeze),
                     ("flatten", _flatten), ("unflatten", _unflatten), ("unfold", _unfold), ("diagonal", _diagonal),
                     ("diag", _diag)):  # fmt: skip
    row(_name, _draw, exact=True)
_triangle("tril", np.tril)
_triangle("triu", np.triu)


def _rearrange(pool: Pool, i: int) -> Call | None:
    if pool.values[i].array.ndim != 3:
        return None
    return Call("rearrange", (Ref(i), "a b c -> c (b a)"), {},
                lambda x, _: x.transpose(2, 1, 0).reshape(x.shape[2], -1))  # fmt: skip


row("rearrange", _rearrange, exact=True)


def _meshgrid(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if array.ndim != 1 or array.size > 40:
        return None
    j = pool.floats(pool.pick.randint(1, 5))
    return Call("meshgrid", (Ref(i), Ref(j)), {"indexing": pool.pick.choice(["ij", "xy"])},
                lambda x, y, indexing: tuple(np.meshgrid(x, y, indexing=indexing)))  # fmt: skip


row("meshgrid", _meshgrid, exact=True)
