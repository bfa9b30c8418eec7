"""Conversions between dtypes at their borders: overflow, NaN, infinities, halves, and what Python numbers do."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tg_dtype import DType, cast_scalar, dtypes, interop, least_upper_dtype, truncate
from tg_frontend import Tensor

FLOATS = ["fp8e4m3", "fp8e5m2", "fp8e4m3fnuz", "fp8e5m2fnuz", "float16", "bfloat16", "float32", "float64"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
ALL = ["bool", *INTEGERS, *FLOATS]
VALUES = [
    0.0, -0.0, 0.5, -0.5, 0.999, 1.0, 1.5, 2.5, -1.5, 100.25, -100.25, 127.0, 128.0, -128.0, -129.0, 255.0, 256.0,
    300.0, 448.0,
    464.0, 65504.0, 65519.0, 65520.0, 1e-8, 6e-8, 1e10, -1e10, 2.0**31, 2.0**63, 3e38, -3e38, 1e-45, 1e300,
    math.inf, -math.inf, math.nan, 1 + 2**-9, 1 + 2**-8, 1 + 3 * 2**-9, 1 / 3,
]  # fmt: skip


def same(got: Any, want: Any) -> bool:
    if isinstance(want, float):
        return (math.isnan(got) and math.isnan(want)) or (
            got == want and math.copysign(1, got) == math.copysign(1, want)
        )
    return type(got) is type(want) and got == want


def numbers(name: str) -> tuple[list[Any], DType]:
    dtype = dtypes.from_name(name)
    if name == "bool":
        return [False, True], dtype
    if dtype.kind != "float":
        low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
        picked = {low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 100, 127, 128, 255, 256, 2049, 65535, 2**24 + 1, 2**31}
        picked |= {-1, -2, -200}
        return sorted(v for v in picked if low <= v <= high), dtype
    return [truncate(v, dtype) for v in VALUES], dtype


@pytest.mark.parametrize("source", ALL)
def test_every_dtype_to_every_other(source: str, backend: str) -> None:
    values, dtype = numbers(source)
    t = Tensor(values, dtype=dtype).contiguous().realize()
    results = [(name, t.cast(name)) for name in ALL]
    results[0][1].realize(*(r for _, r in results))
    for name, result in results:
        want = [cast_scalar(v, dtype, dtypes.from_name(name)) for v in values]
        found = result.tolist()
        wrong = [(v, g, w) for v, g, w in zip(values, found, want, strict=True) if not same(g, w)]
        assert not wrong, f"{source} to {name}: {wrong[:5]}"
        kind = interop.to_numpy_name(dtypes.from_name(name))
        if kind is not None and dtype.kind != "float" and name not in FLOATS:
            numpy = np.array(values, interop.to_numpy_name(dtype)).astype(kind)
            assert result.tolist() == numpy.tolist()


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_floats_round_as_numpy_rounds(name: str, backend: str) -> None:
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        x = (rng.standard_normal(2000) * 10.0 ** rng.integers(-30, 30, 2000)).astype(np.float64)
        for wide in ("float64", "float32"):
            source = x.astype(wide)
            np.testing.assert_array_equal(Tensor(source).cast(name).numpy(), source.astype(name))


def test_float_to_integer_truncates_and_saturates(backend: str) -> None:
    t = Tensor([1.9, -1.9, 300.5, -300.5, math.inf, -math.inf, math.nan])
    assert t.cast("int8").tolist() == [1, -1, 127, -128, 127, -128, 0]
    assert t.cast("uint8").tolist() == [1, 0, 255, 0, 255, 0, 0]
    assert t.cast("bool").tolist() == [True] * 7 and Tensor([0.0, -0.0]).cast("bool").tolist() == [False, False]


@pytest.mark.parametrize("a", ALL)
def test_operands_meet_where_promotion_says(a: str) -> None:
    first = dtypes.from_name(a)
    for b in ALL:
        second = dtypes.from_name(b)
        common = least_upper_dtype(first, second)
        x, y = Tensor([1], dtype=a), Tensor([1], dtype=b)
        for z in (x + y, y * x, x.maximum(y), Tensor([True]).where(x, y), x.cat(y)):
            assert z.dtype is common, f"{a} with {b}"
        assert common is least_upper_dtype(second, first) and (x < y).dtype is dtypes.bool
        kinds = {first.kind, second.kind}
        if "float" in kinds:
            assert common.kind == "float" and common.itemsize >= max(
                d.itemsize for d in (first, second) if d.kind == "float"
            )
        elif interop.to_numpy_name(common) != "float32":  # uint64 beside signed integers, as in JAX
            wanted = np.result_type(interop.to_numpy_name(first), interop.to_numpy_name(second))
            assert interop.to_numpy_name(common) == wanted.name


@pytest.mark.parametrize("name", ALL)
def test_python_numbers_are_weak(name: str) -> None:
    t = Tensor([1], dtype=name)
    assert (t * True).dtype is t.dtype and (True * t).dtype is t.dtype
    assert (t + 1).dtype is (dtypes.default_int if name == "bool" else t.dtype) is (1 + t).dtype
    assert (t + 1.0).dtype is (t.dtype if t.dtype.kind == "float" else dtypes.default_float) is (1.0 + t).dtype
    assert (t < 2.5).dtype is dtypes.bool and (t / 2).dtype.kind == "float"
    assert Tensor([True]).where(t, 1).dtype is (t + 1).dtype


def test_sums_accumulate_in_wide_dtypes(backend: str) -> None:
    assert Tensor([255] * 1000, dtype="uint8").sum().item() == 255000
    assert Tensor([127] * 1000, dtype="int8").sum().item() == 127000 and Tensor([True] * 999).sum().item() == 999
    half = Tensor([1.0] * 4096, dtype="float16")
    assert half.sum().item() == 4096.0 and half.mean().item() == 1.0
    assert Tensor([60000.0] * 8, dtype="float16").mean().item() == 60000.0
    assert Tensor([256.0] * 1000, dtype="bfloat16").sum().item() == 256000.0


@pytest.mark.parametrize(("a", "b"), [*itertools.product(["float16", "bfloat16", "float32"], repeat=2)])
def test_matmul_of_narrow_floats_accumulates_wide(a: str, b: str, backend: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(-4, 5, (3, 200)).astype(np.float32), rng.integers(-4, 5, (200, 5)).astype(np.float32)
    got = Tensor(x).cast(a) @ Tensor(y).cast(b)
    assert got.dtype is least_upper_dtype(dtypes.from_name(a), dtypes.from_name(b))
    want = [[truncate(float(v), got.dtype) for v in row] for row in x @ y]
    assert got.tolist() == want


@pytest.mark.parametrize("name", ["exp", "log", "sin", "sqrt", "tanh", "sigmoid", "reciprocal", "exp2"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_functions_of_narrow_floats_are_rounded_once(name: str, dtype: str, backend: str) -> None:
    kind = dtypes.from_name(dtype)
    x = np.linspace(0.1, 4, 97, dtype=np.float32)
    narrow = Tensor(x).cast(dtype).realize()
    exact = getattr(Tensor(narrow.numpy().astype(np.float64)), name)().numpy()
    got = getattr(narrow, name)()
    assert got.dtype is kind
    step = 2.0 ** -dtypes.finfo(kind)[1]
    np.testing.assert_allclose(got.numpy().astype(np.float64), exact, rtol=step * 0.51)
