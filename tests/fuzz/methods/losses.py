"""Losses of regression and ranking, distances, and products by their own names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .products import _reduced
from .table import Array, Call, Pool, Ref, row


def _loss(name: str, of: Callable[[Array, Array], Array], signs: bool = False, counts: bool = False) -> None:
    """A loss of two tensors of one shape; the target is drawn."""

    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        if pool.values[i].kind != "f" or not array.size or np.abs(array).max() > 8:
            return None
        target = pool.floats(*array.shape)
        if signs or counts:
            drawn = [pool.pick.choice([-1.0, 1.0]) if signs else pool.pick.randint(1, 9) / 8 for _ in range(array.size)]
            target = pool.make(np.array(drawn).reshape(array.shape))
        kwargs = {"reduction": pool.pick.choice(["mean", "sum", "none"])}
        return Call(name, (Ref(i), Ref(target)), kwargs, lambda x, y, reduction: _reduced(of(x, y), reduction))

    row(name, draw)


def _hinge(x: Array, y: Array) -> Array:
    return np.where(y == 1, x, np.maximum(0, 1 - x))


def _huber(x: Array, y: Array) -> Any:
    size = np.abs(x - y)
    return np.where(size < 1, size * size / 2, size - 0.5)


_loss("l1_loss", lambda x, y: np.abs(x - y))
_loss("mse_loss", lambda x, y: (x - y) ** 2)
_loss("huber_loss", _huber)
_loss("smooth_l1_loss", _huber)
_loss("poisson_nll_loss", lambda x, y: np.exp(x) - y * x, counts=True)
_loss("kl_div", lambda x, y: y * (np.log(y) - x), counts=True)
_loss("hinge_embedding_loss", _hinge, signs=True)
_loss("soft_margin_loss", lambda x, y: np.logaddexp(0, -x * y), signs=True)


def _three(name: str, third: str, reference: Callable[[Array, Array, Array], Array], axes: int = 1) -> None:
    """A loss of a tensor, one like it and a third."""

    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        if pool.values[i].kind != "f" or array.ndim < axes or not array.size or np.abs(array).max() > 8:
            return None
        if array.ndim > 1 and np.sqrt((array**2).sum(-1)).min() < 0.1:
            return None
        other = pool.floats(*array.shape)
        if axes == 2 and np.abs(pool.values[other].array).sum(-1).min() < 0.1:
            return None
        shape = array.shape[:-1] if third == "row" else array.shape
        drawn = [pool.pick.choice([-1.0, 1.0]) for _ in range(int(np.prod(shape)))]
        last = pool.make(np.abs(pool.values[pool.floats(*shape)].array) + 0.125 if third == "positive"
                         else np.array(drawn).reshape(shape))  # fmt: skip
        kwargs = {"reduction": pool.pick.choice(["mean", "sum", "none"])}
        return Call(name, (Ref(i), Ref(other), Ref(last)), kwargs,
                    lambda x, y, z, reduction: _reduced(reference(x, y, z), reduction))  # fmt: skip

    row(name, draw)


def _cosine(x: Array, y: Array) -> Any:
    return (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))


def _distance(x: Array, y: Array) -> Any:
    return np.sqrt((np.abs(x - y + 1e-6) ** 2).sum(-1))


_three("gaussian_nll_loss", "positive", lambda x, y, v: (np.log(v) + (x - y) ** 2 / v) / 2)
_three("margin_ranking_loss", "sign", lambda x, y, s: np.maximum(0, -s * (x - y)))
_three("cosine_embedding_loss", "row",
       lambda x, y, s: np.where(s == 1, 1 - _cosine(x, y), np.maximum(0, _cosine(x, y))), 2)  # fmt: skip
_three("triplet_margin_loss", "sign", lambda x, y, z: np.maximum(0, _distance(x, y) - _distance(x, z) + 1), 2)


def _pairs(name: str, reference: Callable[..., Any], rows: bool = False) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        if pool.values[i].kind != "f" or array.ndim != 2 or not 0 < array.size < 2000:
            return None
        other = pool.floats(pool.pick.randint(1, 5) if rows else array.shape[0], array.shape[1])
        smallest = np.abs(array).max(1).min(), np.abs(pool.values[other].array).max(1).min()
        return Call(name, (Ref(i), Ref(other)), {}, reference) if min(smallest) >= 0.1 else None

    row(name, draw)


_pairs("cosine_similarity", _cosine)
_pairs("pairwise_distance", _distance)
_pairs("dist", lambda x, y: np.sqrt((np.abs(x - y) ** 2).sum()))
_pairs("cdist", lambda x, y: np.sqrt(((x[:, None] - y[None]) ** 2).sum(-1)), rows=True)


def _multi_margin(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if pool.values[i].kind != "f" or array.ndim != 2 or not array.size or np.abs(array).max() > 30:
        return None
    target = pool.ints(0, array.shape[1], array.shape[0])

    def reference(x: Array, y: Array) -> Any:
        at = np.arange(len(y)), y
        gap = np.maximum(0, 1 - x[at][:, None] + x)
        gap[at] = 0
        return (gap.sum(1) / x.shape[1]).mean()

    return Call("multi_margin_loss", (Ref(i), Ref(target)), {}, reference)


def _multilabel(pool: Pool, i: int) -> Call | None:
    array = pool.values[i].array
    if pool.values[i].kind != "f" or not array.ndim or not array.size or np.abs(array).max() > 9:
        return None
    target = pool.make(np.array([pool.pick.random() < 0.5 for _ in range(array.size)], float).reshape(array.shape))
    return Call("multilabel_soft_margin_loss", (Ref(i), Ref(target)), {},
                lambda x, y: (np.logaddexp(x, 0) - x * y).mean(-1).mean())  # fmt: skip


row("multi_margin_loss", _multi_margin)
row("multilabel_soft_margin_loss", _multilabel, smooth=True)


def _product(name: str, axes: int, shapes: Callable[[Pool, tuple[int, ...]], list[tuple[int, ...]]],
             reference: Callable[..., Any]) -> None:  # fmt: skip
    """A product of a tensor of so many axes and others of drawn shapes."""

    def draw(pool: Pool, i: int) -> Call | None:
        array = pool.values[i].array
        if pool.values[i].kind != "f" or array.ndim != axes or not 0 < array.size < 500:
            return None
        others = [Ref(pool.floats(*shape)) for shape in shapes(pool, array.shape)]
        return Call(name, (Ref(i), *others), {}, reference)

    row(name, draw, exact=True, smooth=True)


def _side(pool: Pool) -> int:
    return pool.pick.randint(1, 7)


_product("outer", 1, lambda pool, s: [(_side(pool),)], np.outer)
_product("inner", 2, lambda pool, s: [(_side(pool), s[1])], np.inner)
_product("vdot", 1, lambda pool, s: [s], np.vdot)
_product("tensordot", 3, lambda pool, s: [(s[1], s[2], _side(pool))], np.tensordot)
_product("kron", 2, lambda pool, s: [(_side(pool), _side(pool))], np.kron)
_product("mm", 2, lambda pool, s: [(s[1], _side(pool))], np.matmul)
_product("mv", 2, lambda pool, s: [(s[1],)], np.matmul)
_product("bmm", 3, lambda pool, s: [(s[0], s[2], _side(pool))], np.matmul)
_product("addmm", 2, lambda pool, s: [(s[0], k := _side(pool)), (k, s[1])], lambda x, a, b: x + a @ b)
_product("addmv", 1, lambda pool, s: [(s[0], k := _side(pool)), (k,)], lambda x, a, b: x + a @ b)
_product("addr", 2, lambda pool, s: [(s[0],), (s[1],)], lambda x, a, b: x + np.outer(a, b))
_product("baddbmm", 3, lambda pool, s: [(s[0], s[1], k := _side(pool)), (s[0], k, s[2])], lambda x, a, b: x + a @ b)
_product("addbmm", 2, lambda pool, s: [(3, s[0], k := _side(pool)), (3, k, s[1])], lambda x, a, b: x + (a @ b).sum(0))


def _cross(pool: Pool, i: int) -> Call:
    shape = (_side(pool), 3)
    return Call("cross", (Ref(pool.floats(*shape)), Ref(pool.floats(*shape))), {}, np.cross)


def _trace(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    return Call("trace", (Ref(i),), {}, np.trace) if value.kind != "b" and value.array.ndim == 2 else None


row("cross", _cross, exact=True, smooth=True)
row("trace", _trace, exact=True, smooth=True)
