"""Scatters, updates of slices and histograms against loops, and their gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor

COMBINE: dict[str, Callable[..., Any]] = {
    "sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum, "mean": np.add,
}  # fmt: skip
SHAPES = [
    ((7,), (11,), 0), ((5, 3), (4, 3), 0), ((5, 13), (7, 11), 0), ((3, 5), (2, 9), 1), ((2, 3, 5), (2, 17, 4), 1),
    ((1, 1), (1, 1), 0), ((4, 3), (0, 3), 0), ((31, 7), (97, 5), 0),
]  # fmt: skip


def loop(table: Any, index: Any, value: Any, reduce: str, axis: int, include_self: bool) -> Any:
    """What a scatter does, one value after the other."""
    out = table.copy()
    count = np.full(table.shape, int(include_self))
    fresh = np.full(table.shape, not include_self)
    for at in np.ndindex(*index.shape):
        if 0 <= index[at] < table.shape[axis]:
            place = (*at[:axis], int(index[at]), *at[axis + 1 :])
            out[place] = value[at] if fresh[place] else COMBINE[reduce](out[place], value[at])
            fresh[place] = False
            count[place] += 1
    if reduce == "mean":
        count = np.maximum(count, 1)
        out = out / count if out.dtype.kind == "f" else out // count
    return out.astype(table.dtype)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", COMBINE)
@pytest.mark.parametrize("shape, given, axis", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_scatter_reduce(include_self: bool, reduce: str, shape: Any, given: Any, axis: int, dtype: str) -> None:
    rng = np.random.default_rng(sum(given))
    index = rng.integers(-2, shape[axis] + 2, given).astype(np.int32)
    table, value = (rng.integers(0 if dtype == "uint8" else -3, 4, dims).astype(dtype) for dims in (shape, given))
    want = loop(table, index, value, reduce, axis, include_self)
    got = Tensor(table).scatter_reduce(axis, Tensor(index), Tensor(value), reduce, include_self=include_self)
    assert got.dtype.name == dtype and np.allclose(got.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("method", ["scatter", "scatter_add", "prod", "amax", "amin", "mean"])
def test_gradients(method: str) -> None:
    rng = np.random.default_rng(3)
    index = np.array([[2, 0, 1], [2, 2, 7], [0, 0, 1], [-1, 2, 1]], np.int32)
    table, value, weight = rng.standard_normal((3, 3)), rng.standard_normal((4, 3)), rng.standard_normal((3, 3))

    def result(x: Any, v: Any) -> Any:
        if method == "scatter":
            return x.scatter(0, Tensor(index), v)
        return x.scatter_reduce(0, Tensor(index), v, "sum" if method == "scatter_add" else method)

    def number(x: Any, v: Any) -> float:
        return float((result(Tensor(x), Tensor(v)) * Tensor(weight)).sum().item())

    x, v = Tensor(table, requires_grad=True), Tensor(value, requires_grad=True)
    (result(x, v) * Tensor(weight)).sum().backward()
    for parameter, content, other in ((x, table, 0), (v, value, 1)):
        want = np.zeros_like(content)
        for at in np.ndindex(*content.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = content.copy()
                moved[at] += step
                ends.append(number(moved, value) if other == 0 else number(table, moved))
            want[at] = (ends[0] - ends[1]) / 2e-6
        assert parameter.grad is not None
        assert np.allclose(parameter.grad.numpy(), want, atol=1e-5), method


def test_gradients_of_products_with_zeros() -> None:
    x, v = Tensor([0.0, 2.0, 0.0], requires_grad=True), Tensor([3.0, 0.0, 5.0, 0.0], requires_grad=True)
    x.scatter_reduce(0, Tensor([0, 1, 1, 2]), v, "prod").sum().backward()
    assert x.grad is not None and v.grad is not None
    assert x.grad.tolist() == [3.0, 0.0, 0.0] and v.grad.tolist() == [0.0, 10.0, 0.0, 0.0]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_second_gradients_of_products_are_those_of_a_product_of_parts(axis: int, backend: str) -> None:
    """Beside products of whole axes with ones for what goes elsewhere; a quarter of the factors are 0."""
    rng = np.random.default_rng(axis)
    table, part = rng.standard_normal((5, 7, 3)), rng.standard_normal((4, 6, 2))
    at = rng.integers(0, table.shape[axis], part.shape)
    table[rng.random(table.shape) < 0.25] = 0
    part[rng.random(part.shape) < 0.25] = 0

    def scattered(x: Tensor, v: Tensor) -> Tensor:
        return x.scatter_reduce(axis, Tensor(at), v, "prod")

    def by_axes(x: Tensor, v: Tensor) -> Tensor:
        n = table.shape[axis]
        goes = Tensor(np.expand_dims(at, axis) == np.arange(n).reshape(n, *(1,) * (3 - axis)))  # (…, n, values, …)
        product = goes.where(v.unsqueeze(axis), 1.0).prod(axis + 1)
        rest = [(0, whole - int(str(d))) for whole, d in zip(table.shape, product.shape, strict=True)]
        return x * product.pad(tuple(rest), value=1.0)

    def slopes(function: Callable[..., Tensor]) -> list[Any]:
        tensors = [Tensor(a, requires_grad=True) for a in (table, part)]
        first = function(*tensors).sin().sum().gradient(*tensors)
        second = (first[0].square().sum() + (first[1] * 3).cos().sum()).gradient(*tensors)
        return [one.numpy() for one in (*first, *second)]

    for one, other in zip(slopes(scattered), slopes(by_axes), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_equal_maxima_share_the_gradient() -> None:
    x, v = Tensor([2.0, 5.0], requires_grad=True), Tensor([2.0, 1.0, 2.0, 5.0], requires_grad=True)
    x.scatter_reduce(0, Tensor([0, 0, 0, 1]), v, "amax").sum().backward()
    assert x.grad is not None and v.grad is not None
    third = 1 / 3
    assert np.allclose(x.grad.numpy(), [third, 0.5]) and np.allclose(v.grad.numpy(), [third, 0, third, 0.5])


@pytest.mark.parametrize("m", [1, 2, 3, 17])
def test_gradient_of_an_embedding(m: int) -> None:
    rng = np.random.default_rng(m)
    index, up = rng.integers(0, 5, (m, 2)), rng.integers(-3, 4, (m, 2, 7)).astype(np.float32)
    table = Tensor(rng.standard_normal((5, 7)).astype(np.float32), requires_grad=True)
    (table[Tensor(index)] * Tensor(up)).sum().backward()
    want = np.zeros((5, 7), np.float32)
    np.add.at(want, index.ravel(), up.reshape(-1, 7))
    assert table.grad is not None and np.array_equal(table.grad.numpy(), want)


def test_narrow_sums_are_rounded_once() -> None:
    ones = Tensor(np.full(3000, 1, np.float16))
    assert Tensor(np.zeros(1, np.float16)).scatter_add(0, Tensor(np.zeros(3000, np.int32)), ones).tolist() == [3000.0]


def test_slices() -> None:
    rng = np.random.default_rng(1)
    for shape, axis, m in (((5, 3), 0, 7), ((3, 5), 1, 4), ((2, 4, 3), 1, 9), ((6,), 0, 6), ((4, 2), 0, 0)):
        index = rng.integers(-1, shape[axis] + 1, m)
        part = tuple(m if i == axis else d for i, d in enumerate(shape))
        x, source = rng.integers(-3, 4, shape).astype(np.float32), rng.integers(-3, 4, part).astype(np.float32)
        added, copied, filled = x.copy(), x.copy(), x.copy()
        for n, i in enumerate(index):
            if 0 <= i < shape[axis]:
                at: Any = (slice(None),) * axis + (int(i),)
                here: Any = (slice(None),) * axis + (n,)
                added[at] += 2 * source[here]
                copied[at], filled[at] = source[here], 9
        place = Tensor(index)
        assert np.array_equal(Tensor(x).index_add(axis, place, Tensor(source), alpha=2).numpy(), added)
        assert np.array_equal(Tensor(x).index_copy(axis, place, Tensor(source)).numpy(), copied)
        assert np.array_equal(Tensor(x).index_fill(axis, place, 9).numpy(), filled)
        want = loop(x, np.broadcast_to(index.reshape([-1 if i == axis else 1 for i in range(x.ndim)]), part), source,
                    "amin", axis, True)
        assert np.array_equal(Tensor(x).index_reduce(axis, place, Tensor(source), "amin").numpy(), want)


def test_index_put() -> None:
    rng = np.random.default_rng(2)
    x, source = rng.integers(-3, 4, (4, 5, 3)).astype(np.float32), rng.integers(-3, 4, (2, 6, 3)).astype(np.float32)
    one, two = rng.integers(-4, 4, (2, 1)), rng.integers(0, 5, (6,))
    want, put = x.copy(), x.copy()
    np.add.at(want, (one, two), source)
    put[one, two] = source
    indices = (Tensor(one), Tensor(two))
    assert np.array_equal(Tensor(x).index_put(indices, Tensor(source), accumulate=True).numpy(), want)
    assert np.array_equal(Tensor(x).index_put(indices, Tensor(source)).numpy(), put)
    assert Tensor([1, 2]).index_put((Tensor([5, 0]),), 7).tolist() == [7, 2]


def test_bincount() -> None:
    rng = np.random.default_rng(5)
    for n in (0, 1, 7, 1009):
        x, weights = rng.integers(0, 23, n), rng.standard_normal(n)
        for least in (0, 40):
            assert Tensor(x).bincount(minlength=least).tolist() == np.bincount(x, minlength=least).tolist()
            got = Tensor(x).bincount(Tensor(weights), minlength=least).numpy()
            assert np.allclose(got, np.bincount(x, weights, minlength=least))


@pytest.mark.parametrize("n", [1, 16 * 37 - 1, 16 * 37, 16 * 37 + 3, 5003])
def test_counts_of_many_elements_for_few_positions(n: int) -> None:
    """They are counted in parts, of which the last may be shorter."""
    rng = np.random.default_rng(n)
    values = rng.integers(0, 37, n).astype(np.uint8)
    values[-1] = 36
    weights = rng.standard_normal(n)
    assert Tensor(values).bincount().tolist() == np.bincount(values).tolist()
    found = Tensor(values).bincount(weights=Tensor(weights))
    assert found.dtype.name == "float64"
    np.testing.assert_allclose(found.numpy(), np.bincount(values, weights), atol=1e-12)
    floats = (rng.standard_normal(n) * 3).astype(np.float32)
    expected = np.histogram(floats, 37, (-4.0, 4.0))[0]
    assert np.abs(Tensor(floats).histogram(37, range=(-4.0, 4.0))[0].numpy() - expected).sum() <= 2, "at edges"


def test_histograms() -> None:
    rng = np.random.default_rng(7)
    x = rng.standard_normal(1009).astype(np.float32)
    for bins, low, high in ((10, -2.0, 2.0), (1, -1.0, 1.0), (7, 0.0, 0.5), (100, 0.0, 0.0)):
        span = (float(x.min()), float(x.max())) if low == high else (low, high)
        want, edges = np.histogram(x.astype(np.float64), bins, span)
        assert abs(Tensor(x).histc(bins, low, high).numpy() - want).sum() <= 2  # an edge may be rounded otherwise
        counts, found = Tensor(x).histogram(bins, range=None if low == high else (low, high))
        assert abs(counts.numpy() - want).sum() <= 2 and np.allclose(found.numpy(), edges, atol=1e-5)
    assert Tensor([float("nan"), 1.0, 4.0, -1.0]).histc(2, 0, 4).tolist() == [1.0, 1.0]
    counts, _ = Tensor([0.5, 1.5, 1.6]).histogram(2, range=(0.0, 2.0), weight=Tensor([1.0, 2.0, 4.0]))
    assert counts.tolist() == [1.0, 6.0]
    assert Tensor([0.5, 1.5]).histogram(2, range=(0.0, 1.0), density=True)[0].tolist() == [0.0, 2.0]
    assert Tensor([3.0, 3.0]).histc(2).tolist() == [0.0, 2.0]


def test_bad_input() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match="an index of shape .1, 1. for slices"):
        x.index_add(0, Tensor([[0]]), x)
    with pytest.raises(ValueError, match="a source of shape .2, 2.; slices at these positions have .3, 2."):
        x.index_copy(0, Tensor([0, 1, 1]), x)
    with pytest.raises(TypeError, match="indices are integers"):
        x.index_fill(0, Tensor([0.5]), 1.0)
    with pytest.raises(ValueError, match="there are sum, prod, mean, amax, amin"):
        x.index_reduce(0, Tensor([0, 1]), x, "median")
    with pytest.raises(ValueError, match="3 indices for a tensor of shape"):
        x.index_put((Tensor([0]),) * 3, 1.0)
    with pytest.raises(ValueError, match="element -1 is negative"):
        Tensor([1, -1]).bincount()
    with pytest.raises(TypeError, match="integers are wanted, got a tensor of float32"):
        Tensor([1.0]).bincount()
    with pytest.raises(ValueError, match="0 bins"):
        x.histc(0)
    with pytest.raises(ValueError, match="no range of finite numbers"):
        x.histc(3, 2, 1)
