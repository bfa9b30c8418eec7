"""Reductions, scans and sorting, against numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tg_dtype import dtypes
from tg_frontend import Tensor
from tg_lazy import Context
from tg_runtime import Device, GlobalCounters, parse_dev

Array = NDArray[Any]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def sample(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def same(got: Tensor, want: Any) -> None:
    expected = np.asarray(want)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5, atol=1e-5)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean, "any": np.any, "all": np.all,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_along_axes(name: str, backend: str) -> None:
    for x in (sample(3, 4, 5), (sample(3, 4, 5) * 3).astype(np.int32), sample(3, 4, 5) > 0.5):
        for axis in (None, 0, 1, -1, (0, 2), (0, 1, 2), ()):
            for keepdim in (False, True):
                got = getattr(Tensor(x), name)(axis, keepdim=keepdim)
                want = REDUCTIONS[name](x, axis=axis, keepdims=keepdim)
                if name == "prod" and x.dtype == np.int32:
                    want = want.astype(np.int32)
                same(got, want)


def test_dtypes_of_sums(backend: str) -> None:
    names = {"bool": "int64", "int8": "int64", "uint8": "int64", "uint64": "uint64", "float16": "float16"}
    for dtype, want in names.items():
        t = Tensor.ones(300, dtype=dtype)
        assert t.sum().dtype.name == want and t.sum().item() == 300
        assert t.cumsum().dtype.name == want
    assert Tensor.ones(5000, dtype="float16").sum().item() == 5000.0
    assert Tensor.ones(70000, dtype="float16").mean().item() == 1.0
    assert Tensor([1, 2], dtype="int8").sum(dtype="float64").dtype is dtypes.float64
    assert Tensor([1, 2]).mean().item() == 1.5


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_means_of_integers_are_of_exact_sums(dtype: str, backend: str) -> None:
    """However large the numbers are, and wherever they cancel: sums in float32 would be far off."""
    least, most = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    drawn = np.random.default_rng(0).integers(least, most, (33, 8), np.dtype(dtype).type, endpoint=True)
    edges = [[[most] * 4] * 3, [[least] * 4] * 3, [[most], [least], [1]]]
    for x in (drawn, *(np.array(edge, dtype) for edge in edges)):
        for axis in (None, 0, 1):
            count = x.size if axis is None else x.shape[axis]
            want = np.array(x.astype(object).sum(axis), object) / count
            got = Tensor(x).mean(axis)
            assert got.dtype is dtypes.float32
            np.testing.assert_allclose(got.numpy(), np.asarray(want, float), rtol=2**-22)


def test_moments(backend: str) -> None:
    x = sample(4, 5, 3)
    for axis in (None, 1, (0, 2)):
        same(Tensor(x).var(axis), x.var(axis, ddof=1))
        same(Tensor(x).std(axis, keepdim=True, correction=0), x.std(axis, ddof=0, keepdims=True))
        var, mean = Tensor(x).var_mean(axis)
        same(var, x.var(axis, ddof=1))
        same(mean, x.mean(axis))
        same(Tensor(x).std_mean(axis)[0], x.std(axis, ddof=1))


def test_extrema_of_integers_and_nan(backend: str) -> None:
    for dtype in ("int8", "uint8", "int32", "int64"):
        info = np.iinfo(dtype)
        x = np.array([info.min, 0, info.max], dtype)
        assert Tensor(x).max().item() == info.max and Tensor(x).min().item() == info.min
    assert math.isnan(float(Tensor([1.0, math.nan]).max())) and math.isnan(float(Tensor([math.nan, 1.0]).min()))


def test_arguments_of_extrema(backend: str) -> None:
    x = np.array([[3, 1, 3, 1], [0, 5, 5, -2]], np.float32)
    for array in (x, x.astype(np.int32), (x * 0 + 1).astype(bool), (x + 2).astype(np.uint8)):
        for axis in (None, 0, 1, -1):
            assert Tensor(array).argmax(axis).tolist() == np.argmax(array, axis).tolist()
            assert Tensor(array).argmin(axis).tolist() == np.argmin(array, axis).tolist()
    assert Tensor(x).argmax(1, keepdim=True).shape == (2, 1) and Tensor(x).argmax(keepdim=True).shape == (1, 1)
    assert Tensor([1.0, math.nan, 3.0]).argmax().item() == 1 and Tensor(4.0).argmax().item() == 0
    assert Tensor(x).argmax().dtype is dtypes.int32


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    out: Array = e / e.sum(axis, keepdims=True)
    return out


def test_softmax_and_kin(backend: str) -> None:
    x = sample(3, 4, 5) * 10
    for axis in (0, 1, -1):
        same(Tensor(x).softmax(axis), softmax(x, axis))
        same(Tensor(x).softmin(axis), softmax(-x, axis))
        same(Tensor(x).log_softmax(axis), np.log(softmax(x.astype(np.float64), axis)))
        same(Tensor(x).logsumexp(axis), np.log(np.exp(x.astype(np.float64)).sum(axis)))
    big = Tensor([1000.0, 1000.0])
    same(big.softmax(), [0.5, 0.5])
    same(big.logsumexp(), 1000 + math.log(2))
    same(Tensor([-math.inf, -math.inf]).logsumexp(), -math.inf)
    same(Tensor([0.0, -math.inf]).softmax(), [1.0, 0.0])
    assert Tensor(5.0).softmax().item() == 1.0 and Tensor(5.0).log_softmax().item() == 0.0
    assert Tensor([1, 2]).softmax().dtype is dtypes.float32
    same(Tensor(x).normalize(), x / np.linalg.norm(x, axis=1, keepdims=True))
    same(Tensor(x).normalize(p=1, dim=0), x / np.abs(x).sum(0, keepdims=True))


def test_scans(backend: str) -> None:
    x = sample(2, 5, 3)
    for axis in (0, 1, -1):
        same(Tensor(x).cumsum(axis), x.cumsum(axis))
        same(Tensor(x).cumprod(axis), x.cumprod(axis))
        same(Tensor(x).cummax(axis)[0], np.maximum.accumulate(x, axis))
        same(Tensor(x).cummin(axis)[0], np.minimum.accumulate(x, axis))
        same(Tensor(x).logcumsumexp(axis), np.log(np.exp(x).cumsum(axis)))
    values, at = Tensor([3, 1, 3, 5, 2]).cummax()
    assert values.tolist() == [3, 3, 3, 5, 5] and at.tolist() == [0, 0, 2, 3, 3]
    values, at = Tensor([3, 1, 3, 1, 2], dtype="uint8").cummin()
    assert values.tolist() == [3, 1, 1, 1, 1] and at.tolist() == [0, 1, 1, 3, 3]
    long = np.arange(1000) % 7
    assert Tensor(long).cumsum().tolist() == long.cumsum().tolist()
    assert Tensor(long).cummax()[0].tolist() == np.maximum.accumulate(long).tolist()
    assert Tensor(4).cumsum().item() == 4 and Tensor.zeros(2, 0).cumsum(1).shape == (2, 0)
    same(Tensor([1000.0, 1000.0]).logcumsumexp(), [1000.0, 1000 + math.log(2)])


INFINITE = [-math.inf] * 20 + [1.0, math.inf, 2.0, -math.inf] + [3.0] * 300


@pytest.mark.drawn(2)
@pytest.mark.parametrize("n", [15, 16, 17, 131, 257, 1009, 4099])
@pytest.mark.parametrize("spread", [1.0, 300.0])
def test_long_scans(n: int, spread: float, backend: str) -> None:
    """Of more than a block, and of blocks that are no whole number: along both axes, with numbers far apart."""
    x = np.random.default_rng(n).standard_normal((2, n)).astype(np.float32) * np.float32(spread)
    wide = x.astype(np.float64)
    want = np.logaddexp.accumulate(wide, 1)
    for got in (Tensor(x).logcumsumexp(1), Tensor(x.T.copy()).logcumsumexp(0).T):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(Tensor(wide).logcumsumexp(1).numpy(), want, rtol=1e-12)
    for axis, data in ((1, x), (0, x.T)):
        t = Tensor(np.ascontiguousarray(data))
        values, at = t.cummax(axis)
        most = np.maximum.accumulate(data, axis)
        np.testing.assert_array_equal(values.numpy(), most)
        np.testing.assert_array_equal(np.take_along_axis(data, at.numpy(), axis), most)
        np.testing.assert_array_equal(t.cummin(axis)[0].numpy(), np.minimum.accumulate(data, axis))
        np.testing.assert_allclose(t.cumsum(axis).numpy(), wide.cumsum(1) if axis else wide.T.cumsum(0),
                                   rtol=1e-4, atol=1e-3 * spread)  # fmt: skip
    near = 1 + x / (40 * spread)
    np.testing.assert_allclose(Tensor(near).cumprod(1).numpy(), near.astype(np.float64).cumprod(1), rtol=2e-4)
    whole = np.random.default_rng(n).integers(-9, 9, (2, n)).astype(np.int32)
    assert Tensor(whole).cumsum(1).tolist() == whole.cumsum(1).tolist()
    assert Tensor(whole).cumsum(1, dtype="int8").tolist() == whole.cumsum(1).astype(np.int8).tolist()


def slopes_of_running_products(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Along axis 1, one after the other."""
    found = np.zeros_like(x)
    flow = np.zeros_like(x[:, 0])
    before = np.concatenate([np.ones_like(x[:, :1]), x.cumprod(1)[:, :-1]], 1)
    for i in reversed(range(x.shape[1])):
        flow = grad[:, i] + (x[:, i + 1] * flow if i + 1 < x.shape[1] else 0)
        found[:, i] = before[:, i] * flow
    return found


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("shape", [(1003, 17), (307, 211), (1003, 63), (61, 4001), (300007,), (3, 257)], ids=str)
def test_a_running_sum_takes_work_in_proportion_to_its_elements(shape: tuple[int, ...], dtype: str) -> None:
    """Pairs of elements are added only within blocks, or where there are few; elements pass memory few times."""
    whole = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
    x = Tensor(whole).realize()
    GlobalCounters.reset()
    got = x.cumsum(-1).realize()
    assert GlobalCounters.global_ops < 80 * x.numel()
    assert GlobalCounters.global_mem < 6 * x.nbytes()
    np.testing.assert_array_equal(got.numpy(), whole.cumsum(-1, dtype=got.numpy().dtype))


@pytest.mark.drawn(4)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 61, 64, 65, 257, 1009])
def test_slopes_of_running_products(n: int, backend: str) -> None:
    """Of some blocks, and of zeros: any of them, and products too small to be divided by."""
    rng = np.random.default_rng(n)
    x, grad = rng.standard_normal((3, n, 2)), rng.standard_normal((3, n, 2))
    x[0, rng.integers(n, size=2)] = 0
    x[1] *= 1e-30
    want = slopes_of_running_products(x, grad)
    for axis in (0, 1, 2):
        t = Tensor(np.moveaxis(x, 1, axis), dtype="float64", requires_grad=True)
        (slope,) = (t.cumprod(axis) * Tensor(np.moveaxis(grad, 1, axis), dtype="float64")).sum().gradient(t)
        np.testing.assert_allclose(np.moveaxis(slope.numpy(), axis, 1), want, rtol=1e-9, atol=1e-12)
    half = Tensor(1 + x[2] / 99, dtype="float16", requires_grad=True)
    (half.cumprod(0) * Tensor(grad[2], dtype="float16")).sum().backward()
    assert half.grad is not None and half.grad.dtype is dtypes.float16
    want = slopes_of_running_products(half.detach().numpy().astype(np.float64)[None], grad[2:])[0]
    np.testing.assert_allclose(half.grad.numpy(), want, rtol=2e-2, atol=0.03 * np.abs(want).max())


def test_a_slope_of_running_products_takes_linear_work() -> None:
    work = []
    for n in (1 << 12, 1 << 14):
        t = Tensor.ones(n).contiguous().realize()
        for _ in range(2):
            GlobalCounters.reset()
            t.cumprod(0).sum().gradient(t)[0].realize()
        work.append(GlobalCounters.global_ops)
    assert work[1] < 5 * work[0]


def test_scans_of_infinities_and_nan(backend: str) -> None:
    x = np.array(INFINITE)
    with np.errstate(invalid="ignore"):
        same(Tensor(x).logcumsumexp(), np.logaddexp.accumulate(x))
        same(Tensor(-x).logcumsumexp(), np.logaddexp.accumulate(-x))
        same(Tensor(x).cumsum(), x.cumsum())
        same(Tensor(x).cumprod(0), x.cumprod())
        same(Tensor(x).cummax()[0], np.maximum.accumulate(x))
        x[150] = math.nan
        same(Tensor(x).logcumsumexp(), np.logaddexp.accumulate(x))
    same(Tensor(x).cummax()[0], np.maximum.accumulate(x))
    same(Tensor(x).cummin()[0], np.minimum.accumulate(x))


def test_a_running_sum_of_exponentials_takes_linear_work() -> None:
    work = []
    for n in (1 << 12, 1 << 14):
        x = Tensor.ones(n).contiguous().realize()
        x.logcumsumexp().realize()
        GlobalCounters.reset()
        x.logcumsumexp().realize()
        work.append(GlobalCounters.global_ops)
    assert work[1] < 5 * work[0]


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0), (0, 3), (1, 1), (3, 0, 2)])
def test_scans_of_a_number_and_of_nothing(shape: tuple[int, ...], backend: str) -> None:
    """As PyTorch has it: a number is a vector of one; where there is nothing, nothing is the result."""
    x = sample(*shape)
    t = Tensor(x)
    for axis in range(-max(1, len(shape)), max(1, len(shape))):
        for found in (t.cumsum(axis), t.cumprod(axis), t.cummax(axis)[0], t.cummin(axis)[0], t.logcumsumexp(axis)):
            assert found.dtype is dtypes.float32
            same(found, x)  # none has more than one element along an axis
        for at in (t.cummax(axis)[1], t.cummin(axis)[1]):
            assert at.shape == shape and not at.numpy().any()
        with pytest.raises(IndexError, match=r"^Tensor\.logcumsumexp: axis"):
            t.logcumsumexp(axis + 2 * max(1, len(shape)))


def test_sorting(backend: str) -> None:
    x = np.random.default_rng(0).integers(-5, 5, (3, 8)).astype(np.float32)
    for axis in (0, 1, -1):
        values, at = Tensor(x).sort(axis)
        assert values.tolist() == np.sort(x, axis).tolist()
        assert at.tolist() == np.argsort(x, axis, kind="stable").tolist()
        values, at = Tensor(x).sort(axis, descending=True)
        assert values.tolist() == np.flip(np.sort(x, axis), axis).tolist()
        assert at.tolist() == np.argsort(-x, axis, kind="stable").tolist()
    assert Tensor(x).argsort().tolist() == np.argsort(x, kind="stable").tolist()
    top, where = Tensor(x).topk(3)
    assert top.tolist() == np.flip(np.sort(x), -1)[:, :3].tolist() and where.shape == (3, 3)
    assert Tensor(x).topk(2, dim=0, largest=False)[0].tolist() == np.sort(x, 0)[:2].tolist()
    nan = Tensor([2.0, math.nan, 1.0])
    assert nan.argsort().tolist() == [2, 0, 1] and nan.argsort(descending=True).tolist() == [1, 0, 2]
    assert Tensor([True, False]).sort()[0].tolist() == [False, True] and Tensor(3).sort()[0].item() == 3
    assert Tensor.zeros(2, 0).sort()[0].shape == (2, 0) and Tensor(x).topk(0)[0].shape == (3, 0)


def test_zero_sizes() -> None:
    empty = Tensor.zeros(0, 3)
    assert empty.sum().item() == 0 and empty.prod().item() == 1 and empty.sum(0).tolist() == [0, 0, 0]
    assert empty.any().item() is False and empty.all().item() is True
    assert math.isnan(float(empty.mean())) and empty.sum(1).shape == (0,) and empty.max(1).shape == (0,)
    assert empty.softmax(1).shape == (0, 3)
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ValueError, match="no element"):
            getattr(empty, name)(0)


BAD: dict[str, tuple[Callable[[Tensor], object], type[Exception], str]] = {
    "sum": (lambda t: t.sum(2), IndexError, r"sum: axis 2 is out of range for shape \(2, 3\) \(-2 to 1\)"),
    "max": (lambda t: t.max(-3), IndexError, "max: axis -3"),
    "twice": (lambda t: t.mean((0, -2)), ValueError, "an axis is given twice"),
    "softmax": (lambda t: t.softmax(2), IndexError, "softmax: axis 2"),
    "cumsum": (lambda t: t.cumsum(2), IndexError, "cumsum: axis 2"),
    "sort": (lambda t: t.sort(5), IndexError, "sort: axis 5"),
    "topk": (lambda t: t.topk(4), ValueError, "topk: 4 of 3"),
    "argmax": (lambda t: t.argmax(2), IndexError, "argmax: axis 2"),
    "axis type": (lambda t: t.sum(1.0), TypeError, "axis is an integer"),  # type: ignore[arg-type]
    "var": (lambda t: t.var(2), IndexError, "var: axis 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_named(name: str) -> None:
    function, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        function(Tensor([[1.0, 2, 3], [4, 5, 6]]))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 0.0, math.inf, -math.inf])
def test_normalize_of_narrow_floats(p: float) -> None:
    """Norms and ``eps`` may be outside of what the dtype has."""
    for data in ([0.0, 0.0], [300.0, 400.0], [2e-5, 1e-5]):
        wide = Tensor([data], dtype="float64").normalize(p)
        got = Tensor([data], dtype="float16").normalize(p)
        assert got.dtype.name == "float16"
        np.testing.assert_allclose(got.numpy(), wide.numpy(), rtol=4e-3)


def test_normalize_by_the_extremes(backend: str) -> None:
    x = np.array([[1.0, -4.0, 2.0], [0.5, 0.0, -0.25]], np.float32)
    same(Tensor(x).normalize(p=math.inf), x / np.abs(x).max(1, keepdims=True))
    same(Tensor(x[:1]).normalize(p=-math.inf, dim=1), x[:1])
    same(Tensor(x).normalize(p=math.inf, dim=0), x / np.abs(x).max(0, keepdims=True))


WIDE = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"]


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
def test_sums_and_products_of_integers_do_not_wrap(backend: str, dtype: str, name: str) -> None:
    top = np.dtype(dtype) == bool or np.iinfo(dtype).max
    count = 3 if "sum" in name else 2 if np.dtype(dtype).itemsize < 4 else 1
    x = np.full((2, count + 1), top, dtype)
    x[:, 1:] = 2 if dtype in ("int32", "uint32") and "prod" in name else 1 if dtype == "int64" else top
    if dtype == "int64":
        x[:, 0] -= count
    got = getattr(Tensor(x), name)(1)
    assert got.dtype == dtypes.int64 and got.tolist() == getattr(np, name)(x, axis=1, dtype=np.int64).tolist()


def test_a_sum_of_many_small_integers_does_not_wrap() -> None:
    with Context(DEV="CPU"):
        x = Tensor.full((2**24 + 5,), 127, dtype="int8")
        assert x.sum().item() == 127 * (2**24 + 5)
        assert x.cast("uint8").reshape(1, -1).sum(1).item() == 127 * (2**24 + 5)


@pytest.mark.parametrize("setting", ["CPU:LLVM", "CPU:CLANG", "NUMPY"])
@pytest.mark.parametrize(("shape", "axis"), [((10_000_000,), 0), ((100_000, 100), 0), ((3, 3_333_333), 1)])
def test_sums_of_many_floats_are_exact(setting: str, shape: tuple[int, ...], axis: int) -> None:
    """As near to the true sum as libraries that add in pairs: torch is off by 2e-8 to 4e-7, one accumulator by 2e-5.

    Along columns numpy has one accumulator for each, and so may a plan for vectors of 256 bits.
    """
    if (lacking := Device.load(parse_dev(setting)[0].device).unavailable(parse_dev(setting)[0])) is not None:
        pytest.skip(lacking)
    x = np.random.default_rng(7).random(shape, np.float32)
    want = x.sum(axis, np.float64)
    with Context(DEV=setting):
        got = Tensor(x).sum(axis).numpy()
    simple = np.abs(x.sum(axis) / want - 1).max()
    assert np.abs(got / want - 1).max() < max(2e-6, 1.01 * simple)


@pytest.mark.parametrize("n", [512, 1021, 4096])
def test_a_block_of_a_running_reduction_begins_with_what_the_one_before_ended_with(n: int) -> None:
    """Infinities stay, and sums of what is not negative never fall, where blocks meet. NUMPY adds in pairs."""
    rng = np.random.default_rng(n)
    weights = rng.random((4, n)).astype(np.float32)
    weights[:, ::16] = 0
    for dtype in ("float32", "float64"):
        sums = Tensor(weights.astype(dtype), device="CPU").cumsum(1).numpy()
        assert (np.diff(sums) >= 0).all(), "a sum fell"
        assert (np.diff(sums)[:, 15::16] == 0).all(), "a zero was counted"
    for begin in ([1e30] * 8 + [1e-30] * 8, [1e-30] * 8 + [1e30] * 8):
        factors = np.concatenate([begin, np.ones(n - 16)]).astype(np.float32)
        with np.errstate(over="ignore", under="ignore"):
            np.testing.assert_array_equal(Tensor(factors, device="CPU").cumprod(0).numpy(), np.cumprod(factors))
    terms = np.concatenate([[3e38] * 8, [-3e38] * 8, np.ones(n - 16)]).astype(np.float32)
    assert np.isinf(Tensor(terms, device="CPU").cumsum(0).numpy()[8:]).all()
