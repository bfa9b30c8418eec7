"""Methods that take or put elements at computed places."""

from __future__ import annotations

import math

import numpy as np

from .table import Array, Call, Pool, Ref, Value, row


def _index(pool: Pool, array: Array, axis: int) -> int:
    shape = [pool.pick.randint(1, d) for d in array.shape]
    shape[axis] = pool.pick.randint(1, 6)
    return pool.ints(0, array.shape[axis], *shape)


def _gather(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size or array.size > 3000:
        return None
    axis = pool.axis(array)

    def reference(x: Array, dim: int, index: Array) -> Array:
        cut = tuple(slice(None) if k == dim % x.ndim else slice(0, n) for k, n in enumerate(index.shape))
        return np.take_along_axis(x[cut], index, dim)

    return Call("gather", (Ref(i), axis, Ref(_index(pool, array, axis))), {}, reference)


row("gather", _gather, exact=True)


def _scattered(x: Array, dim: int, index: Array, src: Array, reduce: str | None, include_self: bool = True) -> Array:
    out, touched, counts = x.copy(), np.zeros(x.shape, bool), np.zeros(x.shape)
    for place in np.ndindex(*index.shape):
        to = list(place)
        to[dim] = int(index[place])
        at = tuple(to)
        new, first = src[place], not touched[at] and not include_self
        touched[at] = True
        counts[at] += 1
        if reduce is None or first:
            out[at] = new
        elif reduce in ("add", "sum", "mean"):
            out[at] += new
        elif reduce in ("multiply", "prod"):
            out[at] *= new
        else:
            out[at] = max(out[at], new) if reduce == "amax" else min(out[at], new)
    if reduce == "mean":
        out = np.where(touched, out / np.maximum(counts + include_self, 1), out)
    return out


def _scatter(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not 0 < value.array.size <= 500:
        return None
    axis, reduce = pool.axis(value.array) % value.array.ndim, pool.pick.choice([None, "add", "multiply"])
    index = _index(pool, value.array, axis)
    if reduce is None:  # which of several writes stays is nobody's promise: no place is written twice
        shape, size = list(pool.values[index].array.shape), value.array.shape[axis]
        shape[axis] = min(shape[axis], size)
        rows = [pool.pick.sample(range(size), shape[axis]) for _ in range(math.prod(shape) // shape[axis])]
        others = [n for k, n in enumerate(shape) if k != axis]
        pool.values[index] = Value(np.moveaxis(np.array(rows).reshape(*others, shape[axis]), -1, axis), True)
    src = pool.floats(*pool.values[index].array.shape)
    return Call("scatter", (Ref(i), axis, Ref(index), Ref(src)), {"reduce": reduce}, _scattered)


row("scatter", _scatter, exact=True)


def _scatter_reduce(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not 0 < value.array.size <= 500:
        return None
    axis = pool.axis(value.array) % value.array.ndim
    index = _index(pool, value.array, axis)
    src = pool.floats(*pool.values[index].array.shape)
    reduce = pool.pick.choice(["sum", "prod", "mean", "amax", "amin"])
    kwargs = {"reduce": reduce, "include_self": pool.pick.random() < 0.5}
    return Call("scatter_reduce", (Ref(i), axis, Ref(index), Ref(src)), kwargs, _scattered)


row("scatter_reduce", _scatter_reduce)


def _one_hot(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "i" or not 0 < value.array.size <= 900 or value.array.min() < 0 or value.array.max() > 11:
        return None
    return Call("one_hot", (Ref(i), 12), {}, lambda x, n: (x[..., None] == np.arange(n)).astype(np.int64))


row("one_hot", _one_hot, exact=True)


def _masked_select(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.size or array.size > 500:
        return None
    mask = pool.make(np.array([pool.pick.random() < 0.5 for _ in range(array.size)], bool).reshape(array.shape))
    return Call("masked_select", (Ref(i), Ref(mask)), {}, lambda x, m: x[m])


row("masked_select", _masked_select, exact=True)


def _nonzero(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if not array.ndim or not array.size or array.size > 500:
        return None
    return Call("nonzero", (Ref(i),), {}, np.argwhere)


row("nonzero", _nonzero, exact=True, wants_exact=True)
