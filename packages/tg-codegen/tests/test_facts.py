"""What is said of a kernel before it is written."""

from __future__ import annotations

from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.ir.facts import kernel_facts
from tg_codegen.ir.uop import UOp
from tg_dtype import dtypes
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
