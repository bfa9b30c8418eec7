"""topk, kthvalue, median and quantile, against numpy's stable sort."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_dtype import DType, dtypes
from tg_frontend import Tensor, TinyJit, vmap

Array = np.ndarray[Any, Any]
DTYPES = [dtypes.bool, *dtypes.ints, *dtypes.floats]


def drawn(shape: tuple[int, ...], dtype: DType, seed: int) -> Tensor:
    """Elements with ties, extremes, both zeros, infinities and NaN, as far as the dtype has them."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "float":
        values = rng.integers(-6, 7, shape).astype(np.float32) / 4
        special = rng.choice([math.nan, math.inf, -math.inf, -0.0, 0.0], shape)
        return Tensor(np.where(rng.random(shape) < 0.3, special, values).astype(np.float32)).cast(dtype)
    if dtype.kind == "bool":
        return Tensor(rng.random(shape) < 0.5)
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    few = [low, low + 1, high, high - 1, high // 2, 0, 1, 2, 3]
    return Tensor(np.array(few, dtype.name)[rng.integers(0, len(few), shape)])


def order(x: Array, axis: int, descending: bool) -> Array:
    """Positions in a stable order, NaN above all numbers."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def same(found: Tensor, wanted: Array) -> None:
    """The same elements, NaN included."""
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_results_have_the_names_of_pytorch(backend: str) -> None:
    """Those of a recorded function, of ``vmap`` and of single numbers, too."""
    x = Tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    of: dict[str, Callable[[Tensor], Any]] = {
        "sort": lambda t: t.sort(-1), "topk": lambda t: t.topk(1, -1), "kthvalue": lambda t: t.kthvalue(1, -1),
        "median": lambda t: t.median(-1), "nanmedian": lambda t: t.nanmedian(-1), "mode": lambda t: t.mode(-1),
        "cummax": lambda t: t.cummax(-1), "cummin": lambda t: t.cummin(-1),
    }  # fmt: skip
    for name, f in of.items():
        found, step = f(x), TinyJit(f)
        values, at = found
        assert found.values is values and found.indices is at, name
        for other in (vmap(f)(x), [step(x.clone().realize()) for _ in range(3)][-1]):
            assert other.values.tolist() == values.tolist() and other.indices.tolist() == at.tolist(), name
        assert f(x[0, 0]).indices.item() == 0 or name == "topk"
    assert x.aminmax().min.item() == 1 and x.aminmax(axis=1).max.tolist() == [3, 6]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_elements_by_rank(dtype: DType, backend: str) -> None:
    for seed, (shape, axis) in enumerate((((3, 37), 1), ((151, 2), 0), ((2, 3, 1), -1), ((1, 521), -1))):
        t = drawn(shape, dtype, seed)
        x, n = t.numpy(), shape[axis]
        for descending in (False, True):
            places = order(x, axis, descending)
            ranked = np.take_along_axis(x, places, axis)
            for k in {1, (n + 3) // 4}:
                values, at = t.topk(k, axis, largest=descending)
                assert values.dtype is dtype and at.dtype is dtypes.int32
                same(at, np.take(places, range(k), axis))
                same(values, np.take(ranked, range(k), axis))
            if not descending:
                k = (2 * n + 2) // 3
                values, at = t.kthvalue(k, axis)
                same(values, np.take(ranked, k - 1, axis))
                same(values, np.take_along_axis(x, np.expand_dims(at.numpy(), axis), axis).squeeze(axis))


@pytest.mark.parametrize("n", [1, 2, 129, 1000])
def test_blocks_of_candidates(n: int) -> None:
    """The first of equals, whichever way the row is long enough for."""
    x = np.random.default_rng(n).integers(0, 3, (2, n))
    for k in {1, min(n, 2), max(1, n // 20), max(1, n // 3), n}:
        same(Tensor(x).topk(k, largest=False)[1], order(x, 1, False)[:, :k])


@pytest.mark.parametrize("n", [129, 255, 515])
def test_the_best_stand_in_the_last_block_which_is_not_full(n: int) -> None:
    """What follows a row in a block of candidates is no candidate, whatever the row has."""
    rising = np.arange(n)
    rows = np.stack([rising, -rising, rising - n, n - rising, 0 * rising, *np.full((2, n), [[-np.inf], [np.nan]])])
    rows = rows.astype(np.float32)
    for k in (1, 3, 5):
        for largest in (True, False):
            values, at = Tensor(rows).topk(k, largest=largest)
            same(at, order(rows, 1, largest)[:, :k])
            same(values, np.take_along_axis(rows, order(rows, 1, largest)[:, :k], 1))


def test_medians(backend: str) -> None:
    for seed, shape in enumerate(((4, 6), (3, 131), (2, 1))):
        t = drawn(shape, dtypes.float32, seed)
        x = t.numpy()
        for axis in (0, 1):
            count = x.shape[axis]
            ordered = np.sort(x, axis)
            middle = np.take(ordered, (count - 1) // 2, axis)
            values, at = t.median(axis)
            same(values, np.where(np.isnan(x).any(axis), math.nan, middle))
            same(values, np.take_along_axis(x, np.expand_dims(at.numpy(), axis), axis).squeeze(axis))
            numbers = np.maximum(count - np.isnan(x).sum(axis, keepdims=True) - 1, 0) // 2
            same(t.nanmedian(axis, keepdim=True)[0], np.take_along_axis(ordered, numbers, axis))
        flat = np.sort(x.flatten())
        same(t.nanmedian(), flat[(x.size - np.isnan(x).sum() - 1) // 2])
    assert Tensor([4, 1, 3, 2]).median().item() == 2 and Tensor([[3, 1, 2]]).median(1)[1].tolist() == [2]
    assert Tensor(5.0).median(0)[0].item() == 5 and Tensor([[1.0]]).median(keepdim=True).shape == (1, 1)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles(method: Any, backend: str) -> None:
    rng = np.random.default_rng(1)
    fractions = [0.0, 0.25, 0.3, 0.5, 1.0]
    for shape in ((5, 7), (2, 139), (1, 1)):
        x = rng.standard_normal(shape)
        holes = np.where(rng.random(shape) < 0.2, math.nan, x)
        holes[0, 0] = 0.5
        for axis in (None, 0, 1):
            with warnings.catch_warnings(action="ignore"):  # of slices that are all NaN
                wanted = np.quantile(x, fractions, axis, method=method)
                some = np.nanquantile(holes, fractions, axis, method=method)
                marked = np.quantile(holes, 0.3, axis, method=method, keepdims=True)
            found = Tensor(x).quantile(fractions, axis, interpolation=method)
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)
            found = Tensor(holes).nanquantile(Tensor(np.array(fractions)), axis, interpolation=method)
            np.testing.assert_allclose(found.numpy(), some, rtol=1e-12)
            found = Tensor(holes).quantile(0.3, axis, keepdim=True, interpolation=method)
            np.testing.assert_allclose(found.numpy(), marked, rtol=1e-12)
    assert Tensor([math.inf, math.inf, 1.0]).quantile(0.5).item() == math.inf
    assert Tensor([1, 2]).quantile(0.5).item() == 1.5 and Tensor(3.0).quantile([0.5]).tolist() == [3.0]
    half = Tensor([1.0, 2.0, 4.0]).half().quantile(0.75)
    assert half.dtype is dtypes.float16 and half.item() == 3
    assert math.isnan(float(Tensor([1.0, 2.0]).quantile(Tensor(1.5)))) and Tensor.zeros(2, 0).topk(0)[0].shape == (2, 0)


def test_the_gradient_goes_to_the_element() -> None:
    x = Tensor([3.0, 1.0, 2.0, 5.0], requires_grad=True)
    (x.topk(1)[0].sum() + x.kthvalue(1)[0] * 10 + x.median() * 100 + x.quantile(0.5) * 1000).backward()
    assert x.grad is not None and x.grad.tolist() == [500, 10, 600, 1]


BAD: dict[str, tuple[Callable[[Tensor], object], type[Exception], str]] = {
    "topk of more": (lambda t: t.topk(4), ValueError, r"Tensor.topk: 4 of 3 elements along axis -1 of shape \(2, 3\)"),
    "topk of less": (lambda t: t.topk(-1), ValueError, "Tensor.topk: -1 of 3"),
    "topk of a bool": (lambda t: t.topk(True), TypeError, "Tensor.topk: k is an integer"),
    "topk of a fraction": (lambda t: t.topk(1.5), TypeError, "Tensor.topk: k is an integer"),  # type: ignore[arg-type]
    "kthvalue": (lambda t: t.kthvalue(0), ValueError, "Tensor.kthvalue: 0 of 3"),
    "axis": (lambda t: t.kthvalue(1, 2), IndexError, "Tensor.kthvalue: axis 2"),
    "median": (lambda t: t.median(2), IndexError, "Tensor.median: axis 2"),
    "nothing": (lambda t: t[:0].median(), ValueError, "Tensor.median: there is no element"),
    "fraction": (lambda t: t.quantile(1.5), ValueError, r"Tensor.quantile: 1.5 is no fraction from 0 to 1"),
    "text": (lambda t: t.quantile("a"), TypeError, "quantile: q is a number"),  # type: ignore[arg-type]
    "method": (lambda t: t.quantile(0.5, 0, False, "mean"), ValueError,  # type: ignore[arg-type]
               "Tensor.quantile: interpolation 'mean'"),
    "whole numbers": (lambda t: t.quantile(Tensor([0, 1])), ValueError, "Tensor.quantile: q is one float"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_named(name: str) -> None:
    function, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        function(Tensor([[1.0, 2, 3], [4, 5, 6]]))
