"""sort, argsort and msort, against numpy's stable sort: by comparing, by radix, of every dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tg_dtype import DType, dtypes
from tg_frontend import Tensor, TinyJit
from tg_frontend.ops.row_order import FEW
from tg_lazy import Context
from tg_lazy.cost import LIMITS, Limits, update_parts
from tg_runtime import Device, parse_dev
from tg_shape import Variable

Array = np.ndarray[Any, Any]
DTYPES = [dtypes.bool, *dtypes.ints, *dtypes.floats]


def drawn(shape: tuple[int, ...], dtype: DType, seed: int) -> Tensor:
    """Elements of the whole range of a dtype, some of them often; of floats every pattern of bits, NaN included."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "bool":
        return Tensor(rng.random(shape) < 0.5)
    words = rng.integers(0, 1 << 63, shape, np.uint64) << np.uint64(1)
    bits = (words >> np.uint64(64 - dtype.bits)).astype(f"uint{dtype.bits}")
    if dtype.kind != "float":
        few = [int(dtypes.min(dtype)), int(dtypes.max(dtype)), 0, 1]
        some = np.array(few, dtype.name)[rng.integers(0, 4, shape)]
        return Tensor(np.where(rng.random(shape) < 0.4, some, bits.astype(dtype.name)))
    any_bits = Tensor(bits).realize().bitcast(dtype)
    special = rng.choice([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0], shape).astype(np.float32)
    return Tensor(rng.random(shape) < 0.4).where(Tensor(special).cast(dtype), any_bits)


def order(x: Array, axis: int, descending: bool) -> Array:
    """Positions in a stable order, NaN above all numbers."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def check(t: Tensor, axis: int, descending: bool) -> None:
    """Positions and values are numpy's, the signs of zeros included."""
    x = t.numpy()
    wanted = order(x, axis, descending)
    values, at = t.sort(axis, descending=descending)
    np.testing.assert_array_equal(at.numpy(), wanted)
    ranked = np.take_along_axis(x, wanted, axis)
    found = values.numpy()
    assert at.dtype is dtypes.int32 and values.dtype is t.dtype
    np.testing.assert_array_equal(found, ranked)
    if x.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(found), np.signbit(ranked))
    np.testing.assert_array_equal(t.argsort(axis, descending=descending).numpy(), wanted)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_dtype(dtype: DType, backend: str) -> None:
    for seed, (shape, axis) in enumerate((((3, 31), 1), ((2, FEW + 9), -1), ((307, 1, 2), 0))):
        t = drawn(shape, dtype, seed).realize()
        for descending in (False, True):
            check(t, axis, descending)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("n", [0, 1, 2, FEW - 1, FEW, FEW + 1, 1021, 4093, 4099])
@pytest.mark.parametrize("name", ["uint8", "int16", "float32", "int64"])
def test_lengths(n: int, name: str) -> None:
    """On both sides of every limit between two ways to do it."""
    check(Tensor(np.random.default_rng(n).integers(-99, 99, (3, n)).astype(name)), 1, descending=False)
    check(Tensor(np.random.default_rng(n).integers(-2, 2, (n, 2)).astype(name)), 0, descending=True)


def test_positions_of_more_than_16_bits() -> None:
    """The position of a key of 16 bits no longer fits beside it in a word of 32."""
    x = np.random.default_rng(0).integers(-300, 300, 70001).astype(np.int16)
    with Context(DEV="CPU"):
        check(Tensor(x), 0, descending=False)


def test_what_is_sorted_already_and_what_is_all_alike() -> None:
    for rows in ((np.arange(1000), np.arange(1000)[::-1]), (np.zeros(1000), np.full(1000, math.nan))):
        check(Tensor(np.stack(rows)), 1, descending=False)
        check(Tensor(np.stack(rows)), 1, descending=True)


def test_a_number_and_the_first_axis() -> None:
    assert Tensor(3).sort()[0].item() == 3 and Tensor(3).argsort().item() == 0
    x = np.random.default_rng(1).standard_normal((5, 3))
    assert Tensor(x).msort().tolist() == np.sort(x, 0).tolist()


def test_the_gradient_goes_back_where_the_elements_were() -> None:
    x = Tensor(np.random.default_rng(2).standard_normal(FEW + 3), requires_grad=True)
    weight = Tensor(np.arange(FEW + 3.0))
    (x.sort()[0] * weight).sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), np.argsort(np.argsort(x.numpy())))


def test_symbolic_rows_and_lengths() -> None:
    """One record sorts as many rows, or rows of as many elements, as there are each time."""
    data = np.random.default_rng(3).standard_normal((300, 300)).astype(np.float32)
    held = Tensor(data).realize()
    long, wide = TinyJit(lambda t: t.sort(0)[0].realize()), TinyJit(lambda t: t.sort(1)[0].realize())
    for count in (150, 300, 129, 200):
        n = Variable("n", 1, 300).bind(count)
        part = held.shrink(((0, n), (0, 5)))
        assert long(part).numpy().tolist() == np.sort(data[:count, :5], 0).tolist()
        part = held.shrink(((0, n), (0, 300)))
        assert wide(part).numpy().tolist() == np.sort(data[:count], 1).tolist()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", ["float32", "int64", "uint16"])
def test_a_gpu(name: str) -> None:
    """What is of an order, on an emulated GPU."""
    setting = "MOCK+CUDA:PTX"
    problem = Device.load("CUDA").unavailable(parse_dev(setting)[0])
    if problem is not None:
        pytest.skip(f"CUDA: {problem}")
    x = np.random.default_rng(4).integers(-20 if name != "uint16" else 0, 20, (2, FEW + 22)).astype(name)
    wanted = order(x, 1, descending=False)
    ranked = np.sort(x, 1)
    with Context(DEV=setting):
        t = Tensor(x)
        check(t, 1, descending=True)
        np.testing.assert_array_equal(t.topk(5, largest=False)[1].numpy(), wanted[:, :5])
        np.testing.assert_array_equal(t.median(1)[0].numpy(), ranked[:, (x.shape[1] - 1) // 2])
        found = t.unique(return_inverse=True, return_counts=True)
        for ours, theirs in zip(found, np.unique(x, return_inverse=True, return_counts=True), strict=True):
            np.testing.assert_array_equal(ours.numpy().flatten(), theirs.flatten())
        at = t.sort(1)[0][0].searchsorted(t)
        np.testing.assert_array_equal(at.numpy(), np.searchsorted(ranked[0], x))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("units", [64, 1 << 16])
@pytest.mark.parametrize("shape, dtype", [
    ((5003,), dtypes.float32), ((4999,), dtypes.uint8), ((2, 3001), dtypes.int64), ((1024,), dtypes.float16),
    ((3, 2048), dtypes.int16),
])  # fmt: skip
def test_a_long_row_is_sorted_in_parts(monkeypatch: pytest.MonkeyPatch, units: int, shape: Any, dtype: DType) -> None:
    monkeypatch.setitem(LIMITS, "CPU", Limits(units=units))
    assert update_parts(shape[-1], 256, shape[0] if len(shape) > 1 else 1, Limits(units=units)) > 1
    with Context(DEV="CPU"):
        for descending in (False, True):
            check(drawn(shape, dtype, units), -1, descending)
        few = Tensor(np.random.default_rng(units).integers(0, 3, shape).astype(np.int32))
        check(few, -1, False)
        check(Tensor(np.full(shape, dtypes.max(dtypes.uint32), np.uint32)), -1, False)
