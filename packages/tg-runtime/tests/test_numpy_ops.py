"""Casts and narrow floats of the interpreted device against tg_dtype's scalar functions, and its executor."""

from __future__ import annotations

import math
import random

import pytest

from tg_dtype import ConstType, DType, cast_scalar, dtypes, truncate

np = pytest.importorskip("numpy", reason="numpy is not installed")

from tg_lazy import ALU, SPEC, Ops, ast  # noqa: E402 - only where numpy is
from tg_runtime.backends.numpy import ops as numpy_ops  # noqa: E402
from tg_runtime.backends.numpy.executor import Executor  # noqa: E402
from tg_runtime.testing.kernels import run, same  # noqa: E402
from tg_shape import ShapeTracker, View  # noqa: E402

NARROW = (dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2, dtypes.fp8e4m3fnuz, dtypes.fp8e5m2fnuz)
EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, 448.0, 464.0, 464.1, 480.0, 57344.0, 61440.0, 61439.0, 3.4e38, 1e-40]


def reals(dtype: DType, count: int = 2000) -> list[float]:
    r = random.Random(3)
    drawn = [r.uniform(-1, 1) * 2.0 ** r.randint(-22, 22) for _ in range(count)]
    return [float(truncate(v, dtype)) for v in EDGES + drawn]


def test_every_elementwise_op_has_a_function() -> None:
    assert set(numpy_ops.fxn_for_op) >= ALU | {Ops.REDUCE}
    assert all(SPEC[op] for op in numpy_ops.fxn_for_op)


@pytest.mark.parametrize("dtype", NARROW)
def test_rounding(dtype: DType) -> None:
    values = reals(dtypes.float32)
    if dtype.itemsize == 1:  # ties
        table = numpy_ops.decode(np.arange(256, dtype=np.uint8), dtype)
        values += [float((table[i] + table[i + 1]) / 2) for i in range(120)]
    got = numpy_ops.decode(numpy_ops.encode(np.array(values, np.float32), dtype), dtype)
    for value, g in zip(values, got.tolist(), strict=True):
        want = truncate(value, dtype)
        assert same(g, want), (value, g, want)
        assert want != want or math.copysign(1, g) == math.copysign(1, want)


@pytest.mark.parametrize("dtype", NARROW)
def test_every_pattern_survives(dtype: DType) -> None:
    bits = np.arange(1 << dtype.bits, dtype=numpy_ops.storage_dtype(dtype))
    values = numpy_ops.decode(bits, dtype)
    again = numpy_ops.encode(values, dtype)
    assert np.array_equal(bits[~np.isnan(values)], again[~np.isnan(values)])
    assert np.isnan(numpy_ops.decode(again, dtype)[np.isnan(values)]).all()


@pytest.mark.parametrize("src", [dtypes.float32, dtypes.float64, dtypes.int64, dtypes.uint64, dtypes.float16])
@pytest.mark.parametrize("dst", dtypes.all)
def test_cast(src: DType, dst: DType) -> None:
    r = random.Random(5)
    values: list[ConstType]
    if dtypes.is_float(src):
        values = [*reals(src, 300), *(float(truncate(v, src)) for v in (2.0**31, 2.0**63, -(2.0**63), 2.0**64, 127.9))]
    else:
        values = [truncate(r.getrandbits(r.randint(1, 64)) * r.choice((1, -1)), src) for _ in range(300)]
    with np.errstate(all="ignore"):
        got = numpy_ops.cast(np.array(values, numpy_ops.compute_dtype(src)), src, dst)
    assert got.dtype == numpy_ops.compute_dtype(dst)
    for value, g in zip(values, got.tolist(), strict=True):
        want = cast_scalar(value, src, dst)
        assert same(g, want), (value, g, want)


def test_reduction_over_an_empty_axis() -> None:
    x = ast.load(3, dtypes.float32, ShapeTracker.from_shape((2, 0)))
    values = [ast.reduce(x, op, (1,)) for op in (Ops.ADD, Ops.MUL, Ops.MAX)]
    st = ShapeTracker.from_shape((2, 1))
    stores = tuple(ast.store(slot, st, v) for slot, v in enumerate(values))
    arguments = (*(ast.BufferArg(dtypes.float32, 2) for _ in values), ast.BufferArg(dtypes.float32, 0))
    slots = [np.zeros(8, np.uint8) for _ in values] + [np.zeros(0, np.uint8)]
    Executor(ast.sink(stores, arguments))(slots, {})
    assert [s.view(np.float32).tolist() for s in slots[:3]] == [[0, 0], [1, 1], [-math.inf, -math.inf]]


def test_a_view_outside_its_buffer_is_refused() -> None:
    x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((8,)))
    st = ShapeTracker.from_shape((8,))
    sink = ast.sink((ast.store(0, st, x),), (ast.BufferArg(dtypes.float32, 8), ast.BufferArg(dtypes.float32, 7)))
    with pytest.raises((ValueError, TypeError)):
        Executor(sink)([np.zeros(32, np.uint8), np.zeros(28, np.uint8)], {})


def test_only_what_is_looked_at_has_to_be_there() -> None:
    """The lower of several views may reach further than its buffer, where the upper one shows none of that."""
    rows = View((4, 4, 2), (4, 1, 0))
    for first, there in ((0, True), (16, True), (24, False), (-8, False)):
        st = ShapeTracker((rows, View((1, 8), (0, 1), first)))
        x = ast.load(1, dtypes.int32, st)
        sink = ast.sink((ast.store(0, ShapeTracker.from_shape((1, 8)), x),),
                        (ast.BufferArg(dtypes.int32, 8), ast.BufferArg(dtypes.int32, 12)))  # fmt: skip
        out, data = np.zeros(8, np.int32), np.arange(12, dtype=np.int32)
        if there:
            Executor(sink)([out.view(np.uint8), data.view(np.uint8)], {})
            assert out.tolist() == np.arange(16).repeat(2)[first : first + 8].tolist()
        else:
            with pytest.raises(ValueError):
                Executor(sink)([out.view(np.uint8), data.view(np.uint8)], {})


def test_stores_see_the_values_from_before_the_kernel() -> None:
    """A kernel that swaps two buffers reads both before it writes either."""
    st = ShapeTracker.from_shape((3,))
    a, b = ast.load(0, dtypes.int32, st), ast.load(1, dtypes.int32, st)
    sink = ast.sink((ast.store(0, st, b), ast.store(1, st, a)), (ast.BufferArg(dtypes.int32, 3),) * 2)
    slots = [np.array([1, 2, 3], np.int32).view(np.uint8), np.array([4, 5, 6], np.int32).view(np.uint8)]
    Executor(sink)(slots, {})
    assert [s.view(np.int32).tolist() for s in slots] == [[4, 5, 6], [1, 2, 3]]


def test_long_chain_is_not_recursive() -> None:
    st = ShapeTracker.from_shape((2,))
    x = one = ast.const(1, dtypes.int32, (2,))
    for _ in range(20_000):
        x = ast.alu(Ops.ADD, x, one)
    sink = ast.sink((ast.store(0, st, x),), (ast.BufferArg(dtypes.int32, 2),))
    assert run("NUMPY", sink, []) == [[20_001, 20_001]]
