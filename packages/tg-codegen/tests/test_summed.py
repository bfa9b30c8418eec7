"""Which products are rounded together with what is added to them: those that end in sums alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tg_codegen import Target, interpret, linearize
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.nest.lower import lower
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

F32 = dtypes.float32
CPU = Target(vector_bytes=16, registers=16)
ROWS, TERMS = 5, 7
WIDE, NARROW = ShapeTracker.from_shape((ROWS, TERMS)), ShapeTracker.from_shape((ROWS, 1))


def line(dtype: DType = F32) -> LazyOp:
    """a * b + c"""
    a, b, c = (A.load(slot, dtype, WIDE) for slot in (1, 2, 3))
    return A.alu(Ops.ADD, A.alu(Ops.MUL, a, b), c)


def total(x: LazyOp, op: Ops = Ops.ADD) -> LazyOp:
    return A.sink((A.store(0, NARROW, A.reduce(x, op, (1,))),), buffers(x.dtype))


def buffers(dtype: DType = F32) -> tuple[BufferArg, ...]:
    return (BufferArg(dtype, ROWS), *[BufferArg(dtype, ROWS * TERMS)] * 4)


def ops(ast: LazyOp, target: Target = CPU) -> tuple[int, int]:
    """How many products are rounded with a sum, and how many by themselves."""
    found = [u.op for u in emit_nest(lower(ast), target).toposort() if dtypes.is_float(u.dtype)]
    return found.count(Ops.MULACC), found.count(Ops.MUL)


def jump(x: LazyOp) -> LazyOp:
    """1 where x is greater than d, else 0."""
    return A.cast(A.alu(Ops.CMPLT, A.load(4, F32, WIDE), x), F32)


@pytest.mark.parametrize(
    ("ast", "found"),
    [
        (total(line()), (1, 0)),
        (total(A.alu(Ops.MUL, line(), A.load(4, F32, WIDE))), (2, 0)),
        (total(A.alu(Ops.MUL, line(), line())), (2, 0)),
        (total(line(), Ops.MAX), (0, 1)),
        (total(jump(line())), (0, 1)),
        (total(A.alu(Ops.MUL, line(), jump(line()))), (1, 1)),
        (total(line(dtypes.float16)), (0, 1)),
    ],
    ids=["sum", "product", "square", "greatest", "jump", "product with a jump", "half"],
)
def test_what_is_only_added_up(ast: LazyOp, found: tuple[int, int]) -> None:
    assert ops(ast) == found
    assert ops(ast, replace(CPU, strict=True))[0] == ops(ast, replace(CPU, fused_multiply_add=False))[0] == 0


def test_what_is_stored_is_rounded_as_elsewhere() -> None:
    """The sum computes its own."""
    stores = (A.store(0, NARROW, A.reduce(line(), Ops.ADD, (1,))), A.store(4, WIDE, line()))
    assert ops(A.sink(stores, buffers())) == (1, 1)
    assert ops(A.sink(stores[1:], buffers())) == (0, 1)


def test_values() -> None:
    rng = np.random.default_rng(0)
    out, given = np.zeros(ROWS, np.float32), [rng.standard_normal((ROWS, TERMS)).astype(np.float32) for _ in range(4)]
    ast = total(A.alu(Ops.MUL, line(), A.load(4, F32, WIDE)))
    interpret(linearize(emit_nest(lower(ast), CPU)), [x.data.cast("B") for x in (out, *given)], {})
    a, b, c, d = given
    np.testing.assert_allclose(out, ((a * b + c) * d).sum(1), rtol=1e-5)


def test_what_a_graph_rounds_once_is_rounded_twice_by_strict_kernels() -> None:
    a, b, c = (A.load(slot, F32, WIDE) for slot in (1, 2, 3))
    ast = A.sink((A.store(4, WIDE, A.alu(Ops.MULACC, a, b, c)),), buffers())
    assert ops(ast) == (1, 0)
    assert ops(ast, replace(CPU, strict=True)) == (0, 1)
