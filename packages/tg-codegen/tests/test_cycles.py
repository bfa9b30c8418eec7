"""The cost model: what costs more than what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tg_codegen import Target, compile_ast
from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.ir.uop import UOp, UOps
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.render.ptx import PTXRenderer
from tg_codegen.search.cycles import _chain, cycles
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


def test_what_is_done_once_costs_itself_alone() -> None:
    k = LinearBuilder()
    out, a, zero = k.param(0, dtypes.float32), k.param(1, dtypes.float32), k.const(0)
    k.store(out, zero, k.load(a, zero))
    spec = replace(compile_ast(A.sink((A.store(0, ST((1,)), A.load(1, dtypes.float32, ST((1,)))),),
                                      (BufferArg(dtypes.float32, 1),) * 2), ClangRenderer(TARGET)), uops=tuple(k.uops))
    assert cycles(spec, TARGET) == TARGET.cpu.load + TARGET.cpu.store


@pytest.mark.parametrize("op", [Ops.IDIV, Ops.MOD])
def test_a_division_by_a_constant_is_a_multiplication_and_shifts(op: Ops) -> None:
    assert divided(op, known=True) < divided(op, known=False) / 2


@pytest.mark.parametrize("wide", [False, True])
def test_a_chain_is_what_a_register_waits_for(wide: bool) -> None:
    """What is computed beside, such as whether an element is there, is ready before the register is."""
    register, other = UOp(UOps.ACC, dtypes.float32, (), (0, 0.0)), UOp(UOps.ACC, dtypes.float32, (), (1, 0.0))
    beside = other
    for _ in range(9):
        beside = UOp(Ops.MUL, dtypes.float32, (beside, other))
    for operands in ((register, beside), (beside, register)):
        value = UOp(Ops.ADD, dtypes.float32, operands)
        assert _chain(value, register) == 1 and _chain(value, other) == 10
        if wide:
            twice = UOp(Ops.ADD, dtypes.float32, (beside, UOp(Ops.MAX, dtypes.float32, (value, beside))))
            assert _chain(twice, register) == 3
    assert _chain(beside, register) == 0


def test_a_mask_in_a_sum_costs_about_what_it_computes() -> None:
    """Parts that are not all of one length, each with a work-item of its own: the last elements are not there."""
    gpu = PTXRenderer("sm_80")

    def largest(rows: int) -> float:
        value = A.reduce(A.load(1, dtypes.float32, ST((rows, 583))), Ops.MAX, (0,))
        buffers = BufferArg(dtypes.float32, 583), BufferArg(dtypes.float32, rows * 583)
        ast = A.sink((A.store(0, ST((1, 583)), value),), buffers)
        return cycles(compile_ast(ast, gpu), gpu.target)

    assert largest(385250) < 2 * largest(385248)
