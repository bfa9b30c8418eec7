"""The cost model: what costs more than what."""

from __future__ import annotations

import pytest

from tg_codegen import Target, compile_ast
from tg_codegen.cycles import cycles
from tg_codegen.render_c import ClangRenderer
from tg_dtype import dtypes
from tg_lazy import BufferArg, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

ST = ShapeTracker.from_shape
TARGET = Target(vector_bytes=32)


def divided(op: Ops, known: bool) -> float:
    """Cycles of 1000 integers by 7, or each by one of its own."""
    shape, i32 = (1000,), dtypes.int32
    by = A.const(7, i32, shape) if known else A.load(2, i32, ST(shape))
    value = A.alu(op, A.load(1, i32, ST(shape)), by)
    spec = compile_ast(A.sink((A.store(0, ST(shape), value),), (BufferArg(i32, 1000),) * 3), ClangRenderer(TARGET))
    assert not spec.fallback
    return cycles(spec, TARGET)


@pytest.mark.parametrize("op", [Ops.IDIV, Ops.MOD])
def test_a_division_by_a_constant_is_a_multiplication_and_shifts(op: Ops) -> None:
    assert divided(op, known=True) < divided(op, known=False) / 2
