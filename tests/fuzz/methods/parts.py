"""Parts looked up by position, parts replaced, differences of neighbours, and choices of elements."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np

from .table import MOST, Array, Call, Pool, Ref, binary, row, unary

unary("isposinf", np.isposinf, "f", exact=True)
unary("isneginf", np.isneginf, "f", exact=True)
unary("byte", lambda x: x.astype(np.uint8), "i", within=lambda x: (x >= 0) & (x < 256), exact=True)
unary("char", lambda x: x.astype(np.int8), "i", within=lambda x: (x >= -128) & (x < 128), exact=True)
binary("logaddexp2", np.logaddexp2, "f", within=lambda x, y: np.all(np.abs(x) < 1000) & np.all(np.abs(y) < 1000))


def _index_select(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size or array.size > 3000:
        return None
    axis = pool.axis(array)
    index = pool.ints(-array.shape[axis], array.shape[axis], pool.pick.randint(0, 6))
    return Call("index_select", (Ref(i), axis, Ref(index)), {}, lambda x, axis, index: np.take(x, index, axis))


def _take(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.size or array.size > 1000:
        return None
    axis = pool.axis(array) if array.ndim and pool.pick.random() < 0.5 else None
    size = array.size if axis is None else array.shape[axis]
    shape = [pool.pick.randint(1, 3) for _ in range(pool.pick.randint(0, 2))]
    return Call("take", (Ref(i), Ref(pool.ints(-size, size, *shape)), axis), {}, np.take)


def _take_along_dim(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size or array.size > 3000:
        return None
    axis = pool.axis(array)
    shape = [pool.pick.choice([1, d]) for d in array.shape]
    shape[axis] = pool.pick.randint(1, 5)
    return Call("take_along_dim", (Ref(i), Ref(pool.ints(0, array.shape[axis], *shape)), axis), {}, np.take_along_axis)


def _put(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not 0 < value.array.size <= 500:
        return None
    n, size, adds = pool.pick.randint(1, 6), value.array.size, pool.pick.random() < 0.5

    def reference(x: Array, index: Array, source: Array, accumulate: bool) -> Array:
        out = x.copy()
        for at, new in zip(index, source, strict=True):
            out.flat[at] = out.flat[at] + new if accumulate else new
        return out

    return Call("put", (Ref(i), Ref(pool.ints(-size, size, n)), Ref(pool.floats(n)), adds), {}, reference)


def _masked_scatter(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    masks = [n for n, v in enumerate(pool.values) if v.kind == "b" and v.array.shape == value.array.shape]
    if value.kind != "f" or not masks or not value.array.size:
        return None

    def reference(x: Array, mask: Array, source: Array) -> Array:
        out = x.copy()
        out[mask] = source[: mask.sum()]
        return out

    size = value.array.size
    return Call("masked_scatter", (Ref(i), Ref(pool.pick.choice(masks)), Ref(pool.floats(size))), {}, reference)


def _select_scatter(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not 0 < value.array.size <= 3000:
        return None
    axis = pool.axis(value.array) % value.array.ndim
    at = pool.pick.randrange(-value.array.shape[axis], value.array.shape[axis])

    def reference(x: Array, source: Array, axis: int, at: int) -> Array:
        out = x.copy()
        np.moveaxis(out, axis, 0)[at] = source
        return out

    part = np.take(value.array, at, axis).shape
    return Call("select_scatter", (Ref(i), Ref(pool.floats(*part)), axis, at), {}, reference)


def _slice_scatter(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not 0 < value.array.size <= 3000:
        return None
    axis = pool.axis(value.array) % value.array.ndim
    size = value.array.shape[axis]
    start, step = pool.pick.randint(0, size), pool.pick.randint(1, 3)
    end = pool.pick.choice([None, pool.pick.randint(0, size)])
    part = (*[slice(None)] * axis, slice(start, end, step))

    def reference(x: Array, source: Array, *more: Any) -> Array:
        out = x.copy()
        out[part] = source
        return out

    source = pool.floats(*value.array[part].shape)
    return Call("slice_scatter", (Ref(i), Ref(source), axis, start, end, step), {}, reference)


def _diagonal_scatter(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or value.array.ndim < 2 or not 0 < value.array.size <= 3000:
        return None
    a, b = pool.pick.sample(range(value.array.ndim), 2)
    offset = pool.pick.randint(-2, 2)
    places = np.diagonal(np.arange(value.array.size).reshape(value.array.shape), offset, a, b)

    def reference(x: Array, source: Array, *more: Any) -> Array:
        out = x.copy()
        out.flat[places.reshape(-1)] = source.reshape(-1)
        return out

    return Call("diagonal_scatter", (Ref(i), Ref(pool.floats(*places.shape)), offset, a, b), {}, reference)


def _diff(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if not value.array.ndim or value.kind == "i":
        return None
    return Call("diff", (Ref(i), pool.pick.randint(0, 3), pool.axis(value.array)), {}, np.diff)


def _strips(x: Array, axis: int) -> Array:
    x = np.moveaxis(x, axis, -1)
    return (x[..., 1:] + x[..., :-1]) / 2


def _trapezoid(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not value.array.size:
        return None
    return Call("trapezoid", (Ref(i),), {"axis": pool.axis(value.array)}, lambda x, axis: _strips(x, axis).sum(-1))


def _cumulative_trapezoid(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not value.array.size:
        return None
    kwargs = {"axis": pool.axis(value.array)}
    return Call("cumulative_trapezoid", (Ref(i),), kwargs,
                lambda x, axis: np.moveaxis(np.cumsum(_strips(x, axis), -1), -1, axis))  # fmt: skip


def _cov(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not 0 < value.array.ndim <= 2 or value.array.shape[-1] < 2 or not value.array.size:
        return None
    kwargs = {"correction": pool.pick.choice([0, 1])}
    return Call("cov", (Ref(i),), kwargs, lambda x, correction: np.cov(x, ddof=correction))


def _corrcoef(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    fits = value.kind == "f" and value.array.ndim == 2 and value.array.size and np.all(value.array.var(1) > 0.1)
    return Call("corrcoef", (Ref(i),), {}, np.corrcoef) if fits and len(value.array) > 1 else None


def _diag_embed(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not 0 < array.size * (array.shape[-1] + 2) <= MOST // 4:
        return None
    offset = pool.pick.randint(-2, 2)
    a, b = pool.pick.sample(range(array.ndim + 1), 2)

    def reference(x: Array, offset: int, a: int, b: int) -> Array:
        n = x.shape[-1] + abs(offset)
        out = np.zeros((*x.shape[:-1], n, n), x.dtype)
        for k in range(x.shape[-1]):
            out[..., k + max(0, -offset), k + max(0, offset)] = x[..., k]
        return np.moveaxis(out, (-2, -1), (a, b))

    return Call("diag_embed", (Ref(i), offset, a, b), {}, reference)


def _diagflat(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    return Call("diagflat", (Ref(i), pool.pick.randint(-2, 2)), {}, np.diagflat) if 0 < array.size <= 60 else None


def _vector(pool: Pool, i: int) -> Array | None:
    array = pool.values[i].array
    return array if array.ndim == 1 and 0 < array.size <= 12 else None


def _combinations(pool: Pool, i: int) -> Call | None:
    if _vector(pool, i) is None:
        return None

    def reference(x: Array, r: int, again: bool) -> Any:
        places = list((combinations_with_replacement if again else combinations)(range(len(x)), r))
        return x[np.array(places, int).reshape(-1, r)]

    return Call("combinations", (Ref(i), pool.pick.randint(1, 3), pool.pick.random() < 0.5), {}, reference)


def _cartesian_prod(pool: Pool, i: int) -> Call | None:
    kind = pool.values[i].kind
    vectors = [n for n, v in enumerate(pool.values) if v.kind == kind and _vector(pool, n) is not None]
    if i not in vectors:
        return None
    other = pool.pick.choice(vectors)
    return Call("cartesian_prod", (Ref(i), Ref(other)), {}, lambda *parts: np.array(list(product(*parts))))


def _vander(pool: Pool, i: int) -> Call | None:
    array = _vector(pool, i)
    if array is None or pool.values[i].kind != "f" or np.any(np.abs(array) > 4) or np.any(np.abs(array) < 0.1):
        return None
    return Call("vander", (Ref(i), pool.pick.randint(1, 4), pool.pick.random() < 0.5), {}, np.vander)


def _pixel_shuffle(x: Array, r: int) -> Array:
    *lead, c, h, w = x.shape
    out = np.moveaxis(x.reshape(*lead, c // (r * r), r, r, h, w), (-5, -2, -4, -1, -3), (-5, -4, -3, -2, -1))
    return out.reshape(*lead, c // (r * r), h * r, w * r)


def _pixel_unshuffle(x: Array, r: int) -> Array:
    *lead, c, h, w = x.shape
    out = np.moveaxis(x.reshape(*lead, c, h // r, r, w // r, r), (-5, -3, -1, -4, -2), (-5, -4, -3, -2, -1))
    return out.reshape(*lead, c * r * r, h // r, w // r)


def _channel_shuffle(x: Array, groups: int) -> Array:
    return np.moveaxis(x.reshape(x.shape[0], groups, -1, *x.shape[2:]), 1, 2).reshape(x.shape)


def _shuffled(name: str, reference: Any, fits: Any) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        array, r = pool.values[i].array, pool.pick.randint(1, 3)
        if array.ndim < 3 or not array.size or not fits(array.shape, r):
            return None
        return Call(name, (Ref(i), r), {}, reference)

    row(name, draw, exact=True)


def _norm(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.size:
        return None
    p = pool.pick.choice([0, 1, 2, 3, np.inf, -np.inf])
    axes = pool.axes(value.array)

    def reference(x: Array, p: float, axes: Any, keepdim: bool) -> Any:
        axes = tuple(range(x.ndim)) if axes is None else axes
        size = np.abs(x)
        if p == 0:
            return np.sum(x != 0, axis=axes, keepdims=keepdim).astype(np.float64)
        if np.isinf(p):
            return (np.max if p > 0 else np.min)(size, axis=axes, keepdims=keepdim)
        return np.sum(size**p, axis=axes, keepdims=keepdim) ** (1 / p)

    return Call("norm", (Ref(i), p, axes, pool.pick.random() < 0.5), {}, reference)


def _pdist(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or value.array.ndim != 2 or not 1 < len(value.array) <= 12 or not value.array.size:
        return None
    return Call("pdist", (Ref(i),), {}, lambda x: np.array([np.linalg.norm(a - b) for a, b in combinations(x, 2)]))


def _renorm(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or value.array.ndim < 2 or not value.array.size:
        return None
    axis = pool.axis(value.array) % value.array.ndim

    def length(x: Array) -> Any:
        return np.sqrt((x**2).sum(tuple(k for k in range(x.ndim) if k != axis), keepdims=True))

    def reference(x: Array, *more: Any) -> Array:
        return np.where(length(x) > 1.5, x * 1.5 / (length(x) + 1e-7), x)

    near = np.any(np.abs(length(value.array) - 1.5) < 1e-3)
    return None if near else Call("renorm", (Ref(i), 2, axis, 1.5), {}, reference)


def _bounded(name: str, reference: Any) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        bound: Any = pool.pick.choice([-2, 0, 3]) if value.kind == "i" else pool.pick.choice([-2.5, 0.5, 1.0])
        return Call(name, (Ref(i), bound), {}, reference) if value.kind in "fi" else None

    row(name, draw, exact=True)


def _broadcast_tensors(pool: Pool, i: int) -> Call | None:
    other = pool.like(i, "fib")
    if other is None:
        return None
    return Call("broadcast_tensors", (Ref(i), Ref(other)), {}, lambda *x: tuple(np.broadcast_arrays(*x)))


def _indices(triangle: Any) -> Any:
    return lambda row, column, offset: np.array(np.nonzero(triangle(np.ones((row, column)), offset)))


def _new(name: str, reference: Any, *more: Any) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        if pool.values[i].kind == "b":
            return None
        return Call(name, (Ref(i), (2, 3), *more), {}, made)

    def made(x: Array, shape: tuple[int, ...], *value: Any) -> Any:
        return reference(shape, *value).astype(x.dtype)

    row(name, draw, exact=True)


for _name, _draw in (("index_select", _index_select), ("take", _take), ("take_along_dim", _take_along_dim),
                     ("put", _put), ("masked_scatter", _masked_scatter), ("select_scatter", _select_scatter),
                     ("slice_scatter", _slice_scatter), ("diagonal_scatter", _diagonal_scatter), ("diff", _diff),
                     ("diag_embed", _diag_embed), ("diagflat", _diagflat), ("combinations", _combinations),
                     ("cartesian_prod", _cartesian_prod), ("broadcast_tensors", _broadcast_tensors)):  # fmt: skip
    row(_name, _draw, exact=True)
for _name, _draw in (("trapezoid", _trapezoid), ("cumulative_trapezoid", _cumulative_trapezoid), ("cov", _cov),
                     ("vander", _vander), ("norm", _norm), ("pdist", _pdist), ("renorm", _renorm)):  # fmt: skip
    row(_name, _draw)
_shuffled("pixel_shuffle", _pixel_shuffle, lambda shape, r: shape[-3] % (r * r) == 0)
_shuffled("pixel_unshuffle", _pixel_unshuffle, lambda shape, r: shape[-1] % r == 0 and shape[-2] % r == 0)
_shuffled("channel_shuffle", _channel_shuffle, lambda shape, g: shape[1] % g == 0)
_bounded("clamp_min", np.maximum)
_bounded("clamp_max", np.minimum)
_new("new_zeros", np.zeros)
_new("new_ones", np.ones)
_new("new_full", np.full, 3)
row("logspace", lambda pool, i: Call("logspace", (-1, 2, pool.pick.randint(1, 5)), {}, np.logspace))
for _name, _triangle in (("tril_indices", np.tril), ("triu_indices", np.triu)):
    row(_name, lambda pool, i, name=_name, triangle=_triangle: Call(  # type: ignore[misc]
        name, (3, 5, pool.pick.randint(-2, 2)), {}, _indices(triangle)), exact=True)  # fmt: skip
row("corrcoef", _corrcoef)
row("t", lambda pool, i: Call("t", (Ref(i),), {}, np.transpose) if pool.values[i].array.ndim <= 2 else None, exact=True)
