"""Plans of products whose sides are no multiples of anything: they fit, and they are right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, compile_ast, interpret, linearize
from tg_codegen.actions import apply, parse
from tg_codegen.cycles import cycles
from tg_codegen.emit import emit
from tg_codegen.lower import lower
from tg_codegen.nest import Nest
from tg_codegen.plan import heuristic
from tg_codegen.render_llvm import LLVMRenderer
from tg_codegen.uop import UOp, UOps
from tg_codegen.verify import verify
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

ST = ShapeTracker.from_shape
F32 = dtypes.float32
LARGE = Target(vector_bytes=64, registers=32, threads=2, l1_bytes=32 << 10, l2_bytes=1 << 20)
SMALL = Target(vector_bytes=16, registers=16, threads=3, l1_bytes=1 << 8, l2_bytes=1 << 11)
"""Caches so small that products which take no time are cut, packed and divided as large ones are."""
Array = np.ndarray[Any, np.dtype[Any]]


def product(m: int, n: int, k: int, left_turned: bool = False, right_turned: bool = False) -> LazyOp:
    """(m, k) times (k, n); an operand that is turned lies in memory the other way round."""
    shape = (m, n, k)
    left = ST((k, m)).permute((1, 0)) if left_turned else ST((m, k))
    right = ST((n, k)) if right_turned else ST((k, n)).permute((1, 0))
    x = A.load(1, F32, left.reshape((m, 1, k)).expand(shape))
    y = A.load(2, F32, right.reshape((1, n, k)).expand(shape))
    total = A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (2,))
    return A.sink((A.store(0, ST((m, n, 1)), total),), tuple(BufferArg(F32, s) for s in (m * n, m * k, k * n)))


def planned(ast: LazyOp, target: Target) -> Nest:
    nest = lower(ast)
    return apply(nest, heuristic(nest, target))


def stages(sink: UOp) -> list[int]:
    """How many elements are kept in scratch, place by place."""
    return [u.arg[1] for u in sink.toposort() if u.op is UOps.SCRATCH]


def layouts(test: Any) -> Any:
    """Runs a test with either operand as it is and turned."""
    for side in ("left_turned", "right_turned"):
        test = pytest.mark.parametrize(side, [False, True])(test)
    return test


@layouts
@pytest.mark.parametrize("shape", [(13, 29, 23), (11, 8, 101), (8, 11, 101), (31, 3, 47), (31, 37, 3)])
@pytest.mark.parametrize("threads", [1, 3])
def test_products(shape: tuple[int, int, int], threads: int, left_turned: bool, right_turned: bool) -> None:
    m, n, k = shape
    target = replace(SMALL, threads=threads)
    sink = emit(planned(product(m, n, k, left_turned, right_turned), target), target)
    verify(sink)
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
    out: Array = np.zeros((m, n), np.float32)
    stored = [np.ascontiguousarray(a.T if turned else a) for a, turned in ((x, left_turned), (y, right_turned))]
    interpret(linearize(sink), [a.data.cast("B") for a in (out, *stored)], {})
    np.testing.assert_allclose(out, x @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [600, 601])
def test_what_is_packed_in_a_threads_loop_is_a_panel_of_its_last_iteration_too(rows: int) -> None:
    """The last panel of 600 columns is a partial one, which the last thread does; so is the last tile of 601 rows.

    Nothing that such a tile reads is a loop's counter: it was computed, and its operand packed whole, before all loops.
    """
    sink = emit(planned(product(rows, 600, 600), LARGE), LARGE)
    assert stages(sink), "an operand is packed"
    assert max(stages(sink)) <= 64 * 600 + 16


def test_a_partial_iteration_of_the_threads_is_computed_by_the_thread_that_has_it() -> None:
    sink = emit(planned(product(67, 601, 64), LARGE), LARGE)
    conditional = {u for u in sink.toposort() if u.op is UOps.IF}
    assert conditional, "one thread has a panel more"
    loops = [u for u in sink.src if u.op is UOps.LOOP]
    assert len(loops) == 1, "what is outside of the condition is the whole panels alone"


@layouts
@pytest.mark.parametrize("columns", [16, 64])
@pytest.mark.parametrize("depth", [1088, 1531])
def test_a_long_reduction_beside_columns_that_are_one_tile(
    columns: int, depth: int, left_turned: bool, right_turned: bool
) -> None:
    """All columns are in registers: there is no loop over them that could be cut in panels."""
    nest = planned(product(256, columns, depth, left_turned, right_turned), LARGE)
    emit(nest, LARGE)
    if left_turned and not right_turned:
        assert any(line.startswith("partial(0") for line in nest.log)


@pytest.mark.parametrize(
    "shape", [(256, 64, 1088, True, False), (601, 600, 600, False, False), (97, 79, 603, True, True)])
@pytest.mark.parametrize("threads", [2, 3, 4])
def test_threads_have_the_same_to_do(shape: tuple[int, int, int, bool, bool], threads: int) -> None:
    """The thread with a partial last iteration has no whole one more than the others, where there are few."""
    alone, together = (
        cycles(compile_ast(product(*shape), LLVMRenderer(target)), target)
        for target in (replace(LARGE, threads=1), replace(LARGE, threads=threads)))
    assert together < alone / threads * 1.5


@pytest.mark.parametrize(("extent", "step"), [(2, 3), (5, 3), (7, 3), (8, 3), (20, 4), (23, 4), (12, 4), (3, 3)])
@pytest.mark.parametrize("threads", [2, 3, 5])
def test_every_iteration_has_one_thread(extent: int, step: int, threads: int) -> None:
    """Sums of rows that are added to what is there: an iteration that two threads had would count twice."""
    target = replace(SMALL, threads=threads)
    ones = A.load(1, F32, ST((extent, 4)))
    total = A.alu(Ops.ADD, A.load(0, F32, ST((extent, 1))), A.reduce(ones, Ops.ADD, (1,)))
    ast = A.sink((A.store(0, ST((extent, 1)), total),), (BufferArg(F32, extent), BufferArg(F32, 4 * extent)))
    actions = [parse(f"split(i0, {step}, UPCAST)")] if step < extent else []
    spec = compile_ast(ast, LLVMRenderer(target), actions=[*actions, parse("mark(i0, THREAD)")])
    out, x = np.ones(extent, np.float32), np.ones((extent, 4), np.float32)
    interpret(spec.uops, [out.data.cast("B"), x.data.cast("B")], {})
    assert (out == 5).all()
