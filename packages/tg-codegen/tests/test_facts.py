"""What is said of a kernel before it is written."""

from __future__ import annotations

import pytest

from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.ir.facts import kernel_facts
from tg_codegen.ir.uop import UOp
from tg_dtype import DType, dtypes
from tg_lazy import Ops


def test_addresses_are_integers_made_of_coordinates() -> None:
    """What is computed from a coordinate as a float is data, and so is what is stored."""
    k = LinearBuilder()
    out, a = k.param(0, dtypes.int32), k.param(1, dtypes.int32)
    two, seven = k.const(2), k.const(7.0, dtypes.float32)
    with k.range(16) as i:
        place = k.alu(Ops.MUL, i, two)
        measure = k.alu(Ops.MUL, k.cast(i, dtypes.float32), seven)
        near = k.alu(Ops.CMPLT, measure, seven)
        stored = k.alu(Ops.ADD, i, two)
        loaded = k.load(a, place, gate=near, alt=k.const(0))
        k.store(out, i, k.alu(Ops.ADD, loaded, stored))
    found: frozenset[UOp] = kernel_facts(k.uops).address
    assert place in found
    assert found.isdisjoint({measure, near, stored, loaded})


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("op", [Ops.ADD, Ops.SUB, Ops.MUL])
def test_positions_that_may_wrap_are_no_addresses(op: Ops, dtype: DType) -> None:
    """A program may compute the index of a gather from counters alone, and leave the dtype: what wraps is defined."""
    k = LinearBuilder()
    out, a = k.param(0, dtypes.int32), k.param(1, dtypes.int32)
    far = dtypes.min(dtype) if op is Ops.SUB else dtypes.max(dtype)
    with k.range(16) as i:
        counter = i if dtype is dtypes.int32 else k.cast(i, dtype)
        wraps, holds = k.alu(op, counter, k.const(far, dtype)), k.alu(op, counter, k.const(2, dtype))
        zero = k.const(0, dtype)
        for place in (wraps, holds):
            loaded = k.load(a, k.cast(place, dtypes.int64), gate=k.alu(Ops.CMPLT, zero, place), alt=k.const(0))
            k.store(out, i, loaded)
    found = kernel_facts(k.uops).address
    assert holds in found
    assert wraps not in found
