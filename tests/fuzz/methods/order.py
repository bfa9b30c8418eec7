"""Order statistics, and updates at computed places by their own names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .indexing import _index, _scattered
from .table import Array, Call, Pool, Ref, row, unary


def _distinct(array: Array, axis: int | None) -> bool:
    """Whether positions of order statistics are told by the values."""
    ordered = np.sort(array, axis)
    return bool(np.all(np.diff(ordered, axis=-1 if axis is None else axis) != 0))


def _chosen(name: str, rank: Callable[[int], int] | None) -> None:
    """The element of a rank along an axis, and where it is; ``rank`` is None for one that is drawn."""

    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind == "b" or not value.array.ndim or not 0 < value.array.size <= 2000:
            return None
        axis = pool.axis(value.array)
        n = value.array.shape[axis]
        if not _distinct(value.array, axis):
            return None
        k = pool.pick.randrange(n) if rank is None else rank(n)

        def reference(x: Array, *_: int) -> tuple[Array, Array]:
            at = np.argsort(x, axis).take([k], axis)
            return np.take_along_axis(x, at, axis).squeeze(axis), at.squeeze(axis)

        return Call(name, (Ref(i), *((k + 1,) if rank is None else ()), axis), {}, reference)

    row(name, draw, exact=True, wants_exact=True)


_chosen("kthvalue", None)
_chosen("median", lambda n: (n - 1) // 2)
_chosen("nanmedian", lambda n: (n - 1) // 2)
unary("msort", lambda x: np.sort(x, 0), "fi", lambda x: x.ndim > 0 and x.size <= 3000, exact=True)


def _quantile(name: str, reference: Callable[..., Any]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind != "f" or not value.array.ndim or not 0 < value.array.size <= 2000:
            return None
        axis = None if pool.pick.random() < 0.3 else pool.axis(value.array)
        q = pool.pick.choice([0.0, 0.25, 0.5, 1.0])
        return Call(name, (Ref(i), q), {"axis": axis}, lambda x, q, axis: reference(x, q, axis))

    row(name, draw)


_quantile("quantile", np.quantile)
_quantile("nanquantile", np.nanquantile)


def _scatter_add(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not 0 < value.array.size <= 500:
        return None
    axis = pool.axis(value.array) % value.array.ndim
    index = _index(pool, value.array, axis)
    src = pool.floats(*pool.values[index].array.shape)

    def reference(x: Array, dim: int, index: Array, src: Array) -> Array:
        return _scattered(x, dim, index, src, "add")

    return Call("scatter_add", (Ref(i), axis, Ref(index), Ref(src)), {}, reference)


row("scatter_add", _scatter_add, exact=True)


def _rows(name: str, reference: Callable[..., Any], distinct: bool, *more: Any, **facts: bool) -> None:
    """A method that updates whole rows along an axis, which a vector of positions names."""

    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind != "f" or not value.array.ndim or not 0 < value.array.size <= 500:
            return None
        axis = pool.axis(value.array)
        n = value.array.shape[axis]
        count = pool.pick.randint(1, n if distinct else 6)
        places = pool.pick.sample(range(n), count) if distinct else [pool.pick.randrange(n) for _ in range(count)]
        index = pool.make(np.array(places, np.int64))
        if name == "index_fill":
            return Call(name, (Ref(i), axis, Ref(index), 2.5), {}, reference)
        shape = list(value.array.shape)
        shape[axis] = count
        return Call(name, (Ref(i), axis, Ref(index), Ref(pool.floats(*shape)), *more), {}, reference)

    row(name, draw, **facts)


def _by_rows(x: Array, axis: int, index: Array, source: Any, step: Callable[[Array, Any], Any]) -> Array:
    out = np.moveaxis(x.copy(), axis, 0)
    rows = np.moveaxis(np.broadcast_to(source, np.take(x, index, axis).shape), axis, 0)
    for place, new in zip(index, rows, strict=True):
        out[place] = step(out[place], new)
    return np.moveaxis(out, 0, axis)


_rows("index_add", lambda x, d, n, s: _by_rows(x, d, n, s, np.add), False, exact=True, smooth=True)
_rows("index_copy", lambda x, d, n, s: _by_rows(x, d, n, s, lambda old, new: new), True, exact=True, smooth=True)
_rows("index_fill", lambda x, d, n, v: _by_rows(x, d, n, v, lambda old, new: new), True, exact=True)
_rows("index_reduce", lambda x, d, n, s, _: _by_rows(x, d, n, s, np.maximum), False, "amax", exact=True)


def _index_put(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not 0 < value.array.size <= 500:
        return None
    index = pool.ints(0, value.array.shape[0], pool.pick.randint(1, 6))
    new = pool.floats(*pool.values[index].array.shape, *value.array.shape[1:])

    def reference(x: Array, indices: tuple[Array], values: Array, accumulate: bool) -> Array:
        return _by_rows(x, 0, indices[0], values, np.add)

    return Call("index_put", (Ref(i), (Ref(index),), Ref(new)), {"accumulate": True}, reference)


def _bincount(pool: Pool, i: int) -> Call:
    counts = pool.ints(0, pool.pick.randint(1, 9), pool.pick.randint(1, 40))
    return Call("bincount", (Ref(counts),), {"minlength": pool.pick.randint(0, 12)},
                lambda x, minlength: np.bincount(x, minlength=minlength))  # fmt: skip


def _histogram(name: str, kwargs: dict[str, Any], reference: Callable[..., Any]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        return Call(name, (Ref(i), 8), kwargs, reference) if value.kind == "f" and value.array.size else None

    row(name, draw, exact=True, wants_exact=True)


row("index_put", _index_put, exact=True, smooth=True)
row("bincount", _bincount, exact=True)
_histogram("histc", {"min": -2.0, "max": 2.0}, lambda x, bins, min, max: np.histogram(x, bins, (min, max))[0])
_histogram("histogram", {"range": (-2.0, 2.0)}, lambda x, bins, range: np.histogram(x, bins, range))


def _mode(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind == "b" or not value.array.ndim or not 0 < value.array.size <= 500:
        return None
    if not _distinct(value.array, axis := pool.axis(value.array)):  # which of equals is told is nobody's promise
        return None
    return Call("mode", (Ref(i), axis), {}, lambda x, axis: (x.min(axis), x.argmin(axis)))


def _sorted(pool: Pool, kind: str) -> int:
    count = pool.pick.randint(1, 20)
    number = pool.floats(count) if kind == "f" else pool.ints(0, 30, count)
    array = pool.values[number].array
    del pool.values[number]
    return pool.make(np.sort(array))


def _searchsorted(pool: Pool, i: int) -> Call | None:
    kind = pool.values[i].kind
    if kind == "b" or pool.values[i].array.ndim == 0:
        return None
    side = pool.pick.choice(["left", "right"])
    return Call("searchsorted", (Ref(_sorted(pool, kind)), Ref(i)), {"side": side},
                lambda x, v, side: np.searchsorted(x, v, side))  # fmt: skip


def _bucketize(pool: Pool, i: int) -> Call | None:
    kind = pool.values[i].kind
    if kind == "b":
        return None
    right = pool.pick.random() < 0.5
    return Call("bucketize", (Ref(i), Ref(_sorted(pool, kind))), {"right": right},
                lambda v, x, right: np.searchsorted(x, v, "right" if right else "left"))  # fmt: skip


def _isin(pool: Pool, i: int) -> Call | None:
    kind = pool.values[i].kind
    return None if kind == "b" else Call("isin", (Ref(i), Ref(_sorted(pool, kind))), {}, np.isin)


def _unique(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind == "b" or not 0 < value.array.size <= 500:
        return None
    return Call("unique", (Ref(i),), {"return_counts": True}, lambda x, return_counts: np.unique(x, return_counts=True))


def _runs(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind == "b" or not 0 < value.array.size <= 500:
        return None

    def reference(x: Array) -> Any:
        flat = x.ravel()
        return flat[np.concatenate([[True], flat[1:] != flat[:-1]])]

    return Call("unique_consecutive", (Ref(i),), {}, reference)


for _name, _draw in (("mode", _mode), ("searchsorted", _searchsorted), ("bucketize", _bucketize), ("isin", _isin),
                     ("unique", _unique), ("unique_consecutive", _runs)):  # fmt: skip
    row(_name, _draw, exact=True, wants_exact=True)


def _lookup(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if array.ndim < 2 or not 0 < array.size <= 500:
        return None
    shape = [pool.pick.randint(0, 4) for _ in range(pool.pick.randint(0, 2))]
    index = pool.ints(-array.shape[0], array.shape[0], *shape)
    return Call("embedding", (Ref(i), Ref(index)), {}, lambda x, index: x[index])


row("embedding", _lookup, exact=True)
