"""What is looked at when a kernel has run: here of kernels that no graph of tensors leads to."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from tg_dtype import DType, dtypes
from tg_lazy import Context, Ops, ast
from tg_runtime import AnomalyError, Buffer, Device, get_runner
from tg_runtime.anomaly.watch import Watch
from tg_runtime.testing.kernels import buffer_with, kernel
from tg_shape import ShapeTracker

f32 = dtypes.float32


def test_an_infinity_that_a_cast_makes_is_not_blamed_on_what_was_compared() -> None:
    """A float that only decides which integer is cast is no operand of the cast, be it NaN or not."""
    shape = ShapeTracker.from_shape((4,))
    x = ast.load(1, f32, shape)
    chosen = ast.cast(ast.alu(Ops.CMPNE, x, x), dtypes.int32)  # 1 where x is NaN
    large = ast.alu(Ops.MUL, chosen, ast.const(70000, dtypes.int32, (4,)))
    sink = kernel([(ast.cast(large, dtypes.float16), 4)], [(f32, 4)])
    bufs = [Buffer("NUMPY", 4, dtypes.float16).allocate(), buffer_with("NUMPY", [1.0, -2.0, math.nan, 3.0], f32)]
    with Context(ANOMALY=2):
        watch = Watch("chosen", sink, bufs, {}, None)
        get_runner(Device["NUMPY"], sink).exec(bufs)
        with pytest.raises(AnomalyError) as found:
            watch.check()
    assert (found.value.op, found.value.index, found.value.count) == ("CAST", (2,), 1)
    assert "CAST made inf" in str(found.value)


@pytest.mark.parametrize("shape", [(3, 5), (5, 2), (1, 7), (4, 4)])
def test_rows_that_one_part_hands_to_the_next_in_another_order(shape: tuple[int, int]) -> None:
    """What is handed over lies in memory as the store says, and is read as the load says."""
    rows, columns = shape
    count = rows * columns
    numbers = np.array([float(n + 1) for n in range(count)], np.float32)
    numbers[random.randrange(count)] *= -1
    turned = ShapeTracker.from_shape((columns, rows)).permute((1, 0))
    doubled = ast.load(1, f32, ShapeTracker.from_shape(shape))
    root = ast.alu(Ops.SQRT, ast.load(2, f32, ShapeTracker.from_shape((columns, rows))))
    stores = (
        ast.store(2, turned, ast.alu(Ops.ADD, doubled, doubled)),
        ast.store(0, ShapeTracker.from_shape((columns, rows)), root),
    )
    sink = ast.sink(stores, tuple(ast.BufferArg(f32, count, internal) for internal in (False, False, True)))
    bufs = [Buffer("NUMPY", count, f32).allocate(), buffer_with("NUMPY", numbers.tolist(), f32)]
    watch = Watch("handing", sink, bufs, {}, None)
    with np.errstate(invalid="ignore"):
        want = np.sqrt(2 * numbers.reshape(shape).T)
    bufs[0].copyin(memoryview(want.tobytes()))  # as a device leaves it that runs the kernel in blocks of rows
    with pytest.raises(AnomalyError) as found:
        watch.check()
    (place,) = np.argwhere(np.isnan(want)).tolist()
    assert (found.value.op, found.value.index, found.value.count) == ("SQRT", tuple(place), 1)
    assert f"of {2 * numbers.min():g}" in str(found.value)


@pytest.mark.parametrize("dtype", [d for d in dtypes.all if not dtypes.is_float(d)], ids=lambda d: d.name)
def test_outputs_that_hold_no_floats_are_passed_over(dtype: DType) -> None:
    count = 4
    whole = ShapeTracker.from_shape((count,))
    root = ast.alu(Ops.SQRT, ast.load(2, f32, whole))
    stores = (ast.store(0, whole, ast.cast(ast.load(2, f32, whole), dtype)), ast.store(1, whole, root))
    sink = ast.sink(stores, tuple(ast.BufferArg(kind, count) for kind in (dtype, f32, f32)))
    first, second = buffer_with("NUMPY", [1] * count, dtype), Buffer("NUMPY", count, f32).allocate()
    source = buffer_with("NUMPY", [4.0, 1.0, -1.0, 0.0], f32)
    watch = Watch("of two kinds", sink, [first, second, source], {}, None)
    second.copyin(memoryview(np.array([2.0, 1.0, 0.0, 0.0], np.float32).tobytes()))
    watch.check()
    second.copyin(memoryview(np.array([2.0, 1.0, np.nan, 0.0], np.float32).tobytes()))
    with pytest.raises(AnomalyError, match="SQRT of -1 made NaN"):
        watch.check()
