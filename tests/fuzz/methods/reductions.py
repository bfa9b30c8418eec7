"""Reductions, running results, and sorting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .table import Array, Call, Pool, Ref, along, reduction, row


def _numpy_axes(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis, keepdim: fn(x, axis=axis, keepdims=keepdim)


reduction("sum", _numpy_axes(np.sum), exact=True, smooth=True)
reduction("max", _numpy_axes(np.max), exact=True)
reduction("min", _numpy_axes(np.min), exact=True)
reduction("mean", _numpy_axes(np.mean), "f", smooth=True)
reduction("all", _numpy_axes(np.all), "fib", exact=True, wants_exact=True)
reduction("any", _numpy_axes(np.any), "fib", exact=True, wants_exact=True)


def _prod(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not 0 < value.array.size <= 64 or np.abs(value.array).max() > 4:
        return None
    kwargs = {"axis": pool.axes(value.array), "keepdim": pool.pick.random() < 0.5}
    return Call("prod", (Ref(i),), kwargs, _numpy_axes(np.prod))


row("prod", _prod, smooth=True)


def _spread(name: str, reference: Callable[..., Any]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind != "f" or not value.array.size:
            return None
        axes = pool.axes(value.array)
        chosen = range(value.array.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
        if math.prod(value.array.shape[a] for a in chosen) < 2 or np.ptp(value.array, axis=axes).min() < 0.1:
            return None
        kwargs = {"axis": axes, "keepdim": pool.pick.random() < 0.5, "correction": pool.pick.choice([0, 1])}
        return Call(name, (Ref(i),), kwargs, reference)

    row(name, draw, smooth=True)


def _var(x: Array, axis: Any, keepdim: bool, correction: int) -> Any:
    return np.var(x, axis=axis, keepdims=keepdim, ddof=correction)


_spread("var", _var)
_spread("std", lambda x, **k: np.sqrt(_var(x, **k)))
_spread("var_mean", lambda x, **k: (_var(x, **k), np.mean(x, axis=k["axis"], keepdims=k["keepdim"])))
_spread("std_mean", lambda x, **k: (np.sqrt(_var(x, **k)), np.mean(x, axis=k["axis"], keepdims=k["keepdim"])))


def logsumexp(x: Array, axis: Any = None, keepdim: bool = False) -> Any:
    top = x.max(axis=axis, keepdims=True)
    total = np.log(np.exp(x - top).sum(axis=axis, keepdims=True)) + top
    return total if keepdim else np.squeeze(total, axis)


along("logsumexp", logsumexp, smooth=True)
along("softmax", lambda x, axis: np.exp(x - logsumexp(x, axis, True)), smooth=True)
along("softmin", lambda x, axis: np.exp(-x - logsumexp(-x, axis, True)), smooth=True)
along("log_softmax", lambda x, axis: x - logsumexp(x, axis, True), smooth=True)
along("argmax", lambda x, axis: np.argmax(x, axis), kinds="fi", exact=True, wants_exact=True)
along("argmin", lambda x, axis: np.argmin(x, axis), kinds="fi", exact=True, wants_exact=True)
along("cumsum", lambda x, axis: np.cumsum(x, axis), kinds="fi", exact=True, smooth=True)
along("logcumsumexp", lambda x, axis: np.logaddexp.accumulate(x, axis), most=200, smooth=True)


def _cumprod(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not value.array.ndim or not 0 < value.array.size <= 200 or np.abs(value.array).max() > 2.5:
        return None
    axis = pool.axis(value.array)
    if value.array.shape[axis] > 24:
        return None
    return Call("cumprod", (Ref(i), axis), {}, np.cumprod)


row("cumprod", _cumprod, smooth=True)


def _running(ufunc: Any, better: Callable[[Array, Array], Any]) -> Callable[..., Any]:
    def reference(x: Array, axis: int) -> Any:
        values = ufunc.accumulate(x, axis)
        moved, best = np.moveaxis(x, axis, 0), np.zeros(np.moveaxis(x, axis, 0).shape, np.int64)
        for k in range(1, len(moved)):
            seen = np.take_along_axis(moved, best[k - 1 : k], 0)[0]
            best[k] = np.where(better(moved[k], seen), k, best[k - 1])  # the last of equal ones, as in PyTorch
        return values, np.moveaxis(best, 0, axis)

    return reference


along("cummax", _running(np.maximum, np.greater_equal), kinds="fi", most=200, exact=True, wants_exact=True)
along("cummin", _running(np.minimum, np.less_equal), kinds="fi", most=200, exact=True, wants_exact=True)


def _sorting(name: str, reference: Callable[..., Any]) -> None:
    def draw(pool: Pool, i: int) -> Call | None:
        value = pool.values[i]
        if value.kind == "b" or not value.array.ndim or not 0 < value.array.size <= 3000:
            return None
        kwargs = {"dim": pool.axis(value.array), "descending": pool.pick.random() < 0.5}
        return Call(name, (Ref(i),), kwargs, reference)

    row(name, draw, exact=True, wants_exact=True)


def _argsort(x: Array, dim: int, descending: bool) -> Array:
    return np.argsort(-x if descending else x, dim, kind="stable")


_sorting("argsort", _argsort)
_sorting("sort", lambda x, **k: (np.take_along_axis(x, _argsort(x, **k), k["dim"]), _argsort(x, **k)))


def _topk(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind == "b" or not value.array.ndim or not 0 < value.array.size <= 3000:
        return None
    axis = pool.axis(value.array)
    kwargs = {"dim": axis, "largest": pool.pick.random() < 0.5}

    def reference(x: Array, k: int, dim: int, largest: bool) -> Any:
        order = np.take(_argsort(x, dim, largest), range(k), dim)
        return np.take_along_axis(x, order, dim), order

    return Call("topk", (Ref(i), pool.pick.randint(1, value.array.shape[axis])), kwargs, reference)


row("topk", _topk, exact=True, wants_exact=True)
