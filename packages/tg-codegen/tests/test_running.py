"""Running reductions over short rows: terms that do not count are left out, and results share what they begin with."""

from __future__ import annotations

import numpy as np
import pytest

from tg_codegen import Target, interpret, linearize
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.ir.uop import UOps
from tg_codegen.nest.lower import lower
from tg_codegen.plan.actions import apply
from tg_codegen.plan.cpu.planner import cpu_loops
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.rewrite.rules.pipeline import full_rewrite
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops, identity
from tg_lazy import ast as A
from tg_shape import ShapeTracker

ST = ShapeTracker.from_shape
TARGETS = [Target(vector_bytes=32, registers=16, threads=2), Target(vector_bytes=64, registers=32)]
ON_NUMPY = {Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum}


def running(op: Ops, rows: int, n: int, strict: bool = False) -> LazyOp:
    """Of each row, the reduction of the elements up to each, or of those before it."""
    shape = (rows, n, n)
    x = A.load(1, dtypes.float32, ST((rows, 1, n)).expand(shape))
    term, result = (A.iota(ST(dims).expand(shape)) for dims in ((1, 1, n), (1, n, 1)))
    counts = A.alu(Ops.CMPLT, term, result) if strict else A.alu(Ops.NOT, A.alu(Ops.CMPLT, result, term))
    kept = A.alu(Ops.WHERE, counts, x, A.const(identity(op, dtypes.float32), dtypes.float32, shape))
    buffers = (BufferArg(dtypes.float32, rows * n),) * 2
    return A.sink((A.store(0, ST((rows, n, 1)), A.reduce(kept, op, (2,))),), buffers)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("op", ON_NUMPY)
@pytest.mark.parametrize("target", TARGETS, ids=["8 lanes", "16 lanes"])
def test_results_share_what_they_begin_with(op: Ops, target: Target, strict: bool) -> None:
    rows, n = 37, 16
    ast = running(op, rows, n, strict)
    nest = lower(ast)
    actions = cpu_loops(nest, target)
    assert {"mark(i1, UPCAST)", "mark(r0, UNROLL)"} < set(map(str, actions))
    sink = full_rewrite(emit_nest(apply(nest, actions), target), LLVMRenderer(target))
    body = [u for u in sink.toposort() if u.op is op and u.dtype.count == target.vector_bytes // 4
            and dtypes.is_float(u.dtype)]
    copies = 2  # whole vectors of rows, and the last one
    assert len(body) <= copies * n and not any(u.op is Ops.WHERE for u in sink.toposort() if u.dtype.count > 1)
    x = np.random.default_rng(0).standard_normal((rows, n)).astype(np.float32)
    out = np.zeros((rows, n), np.float32)
    interpret(linearize(emit_nest(apply(nest, actions), target)), [out.data.cast("B"), x.data.cast("B")], {})
    wanted = ON_NUMPY[op].accumulate(x, 1)
    if strict:
        first = np.full((rows, 1), identity(op, dtypes.float32), np.float32)
        wanted = np.concatenate((first, wanted[:, :-1]), 1)
    np.testing.assert_allclose(out, wanted, rtol=1e-6)


def test_what_is_not_short_has_a_loop() -> None:
    actions = cpu_loops(lower(running(Ops.ADD, 37, 40)), TARGETS[0])
    assert not any("mark(r0, UNROLL)" == str(action) for action in actions)
    sink = emit_nest(apply(lower(running(Ops.ADD, 37, 40)), actions), TARGETS[0])
    assert any(u.op is UOps.LOOP for u in sink.toposort())
