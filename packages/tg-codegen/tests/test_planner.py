"""Plans of products whose sides are no multiples of anything: they fit, and they are right."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
import pytest

from tg_codegen import EmitError, Target, compile_ast, interpret, linearize
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.ir.uop import UOp, UOps
from tg_codegen.ir.verify import verify
from tg_codegen.machine.costs import CPUCosts
from tg_codegen.machine.limits import accumulators
from tg_codegen.machine.target import SCRATCH_BYTES
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Nest
from tg_codegen.nest.spec import UNROLLED, Kind, NodeOp
from tg_codegen.nest.text import parse_nest
from tg_codegen.plan.actions import Mark, SplitReduction, apply
from tg_codegen.plan.cpu.planner import CPUPlanner
from tg_codegen.plan.cpu.unrolling import BESIDE_SUMS, FEWEST_COPIES, FEWEST_TURNS, ITERATION_SHARE
from tg_codegen.plan.heuristic import loop_actions
from tg_codegen.plan.vocabulary import parse_loop
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.search.cycles import cycles
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker, Variable, sint, upper

ST = ShapeTracker.from_shape
F32 = dtypes.float32
EAGER = replace(CPUCosts(), thread_cycles=0)
"""Costs of a machine that divides among its threads what is as small as here."""
LARGE = Target(vector_bytes=64, registers=32, threads=2, l1_bytes=32 << 10, l2_bytes=1 << 20, cpu=EAGER)
SMALL = Target(vector_bytes=16, registers=16, threads=3, l1_bytes=1 << 8, l2_bytes=1 << 11, cpu=EAGER)
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
    return apply(nest, loop_actions(nest, target))


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
    sink = emit_nest(planned(product(m, n, k, left_turned, right_turned), target), target)
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
    sink = emit_nest(planned(product(rows, 600, 600), LARGE), LARGE)
    assert stages(sink), "an operand is packed"
    assert max(stages(sink)) <= 64 * 600 + 16


def test_a_partial_iteration_of_the_threads_is_computed_by_the_thread_that_has_it() -> None:
    sink = emit_nest(planned(product(67, 601, 64), LARGE), LARGE)
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
    nest = lower(product(256, columns, depth, left_turned, right_turned))
    actions = CPUPlanner(nest, LARGE).planned()
    emit_nest(apply(nest, actions), LARGE)
    if left_turned and not right_turned:
        assert any(str(action).startswith("split_reduction(0") for action in actions)


@pytest.mark.parametrize(
    "shape", [(256, 64, 1088, True, False), (601, 600, 600, False, False), (97, 79, 603, True, True)])
@pytest.mark.parametrize("threads", [2, 3, 4])
def test_threads_have_the_same_to_do(shape: tuple[int, int, int, bool, bool], threads: int) -> None:
    """The thread with a partial last iteration has no whole one more than the others, where there are few."""
    alone, together = (
        cycles(compile_ast(product(*shape), LLVMRenderer(target)), target)
        for target in (replace(LARGE, threads=1), replace(LARGE, threads=threads)))
    assert together < alone / threads * 1.5


@pytest.mark.parametrize(("outer", "inner", "divided"), [
    (3, 64, "i1"), (2, 1000, "i1"), (4, 64, "i0"), (101, 64, "i0"), (64, 2, "i0"), (3, 2, "i0"), (2, 3, "i1"),
])  # fmt: skip
def test_threads_divide_the_outermost_loop(outer: int, inner: int, divided: str) -> None:
    """It is the first that has an iteration for each, or the longest; else each thread begins again and again."""
    x = A.load(1, F32, ST((inner, outer, 20000)).permute((1, 0, 2)))
    total = A.reduce(x, Ops.ADD, (2,))
    sizes = (BufferArg(F32, outer * inner), BufferArg(F32, outer * inner * 20000))
    nest = planned(A.sink((A.store(0, ST((outer, inner, 1)), total),), sizes), replace(SMALL, threads=4))
    serial = [a for a in nest.axes if a.kind in (Kind.LOOP, Kind.THREAD)]
    assert [a.kind for a in serial] == [Kind.THREAD, Kind.LOOP] and serial[0].name == divided


@pytest.mark.parametrize(("apart", "order"), [(True, ["i0", "i1"]), (False, ["i1", "i0"])])
def test_a_thread_reads_long_runs(apart: bool, order: list[str]) -> None:
    """Where rows of several tables are divided, each thread has a run of each table; not if tables are interleaved."""
    tables, rows, width = 3, 1001, 200
    where = ST((tables, rows, width)) if apart else ST((rows, tables, width)).permute((1, 0, 2))
    total = A.reduce(A.load(1, F32, where), Ops.ADD, (2,))
    out = ST((rows, tables, 1)).permute((1, 0, 2))  # so that they are not one dimension
    sizes = (BufferArg(F32, tables * rows), BufferArg(F32, tables * rows * width))
    nest = planned(A.sink((A.store(0, out, total),), sizes), replace(SMALL, threads=4))
    serial = [a for a in nest.axes if a.kind in (Kind.LOOP, Kind.THREAD)]
    divided = next(a.root.name for a in serial if a.kind is Kind.THREAD)
    assert [a.root.name for a in serial][:2] == order and divided == "i1"


@pytest.mark.parametrize(("shape", "threads", "divided"), [
    ((7, 60, 1517), 2, "i1"), ((8, 61, 1517), 2, "i0"), ((3, 61, 1517), 2, "i1"), ((27, 61, 1517), 2, "i0"),
    ((3, 2, 20011), 2, "i1"), ((9, 20, 1517), 4, "i1"), ((3, 64, 4), 2, "i0"),
])  # fmt: skip
def test_threads_divide_a_loop_further_in_if_its_shares_are_more_even(
    shape: tuple[int, int, int], threads: int, divided: str
) -> None:
    """Unless they are so short that threads write the same lines; where it stands, a share is a run of memory."""
    x = A.load(1, F32, ST(shape))
    factor = A.load(2, F32, ST((1, shape[1], 1)).expand(shape))
    ast = A.sink((A.store(0, ST(shape), A.alu(Ops.MUL, x, factor)),),
                 tuple(BufferArg(F32, n) for n in (prod(shape), prod(shape), shape[1])))
    nest = planned(ast, replace(LARGE, threads=threads))
    loops = [a for a in nest.axes if a.kind in (Kind.LOOP, Kind.THREAD)]
    assert [a.name for a in loops if a.kind is Kind.THREAD] == [divided]
    assert [a.name for a in loops] == sorted(a.name for a in loops)


def test_threads_divide_no_loop_along_which_a_load_is_masked_for_even_shares() -> None:
    shape = (7, 60, 1517)
    x = A.load(1, F32, ST((7, 58, 1517)).pad(((0, 0), (1, 1), (0, 0))))
    factor = A.load(2, F32, ST((1, 60, 1)).expand(shape))
    ast = A.sink((A.store(0, ST(shape), A.alu(Ops.MUL, x, factor)),),
                 tuple(BufferArg(F32, n) for n in (prod(shape), 7 * 58 * 1517, 60)))
    assert next(a.name for a in planned(ast, LARGE).axes if a.kind is Kind.THREAD) == "i0"


def weighted(batch: int, channels: int, places: int, busy: int) -> LazyOp:
    """Channels times weights that all of them share, each of which takes so many operations."""
    shape = (batch, channels, places)
    x, w = A.load(1, F32, ST(shape)), A.load(2, F32, ST((batch, 1, places)).expand(shape))
    for _ in range(busy):
        w = A.alu(Ops.ADD, A.alu(Ops.MUL, w, w), w)
    return A.sink((A.store(0, ST(shape), A.alu(Ops.MUL, x, w)),),
                  tuple(BufferArg(F32, n) for n in (prod(shape), prod(shape), batch * places)))


@pytest.mark.parametrize(("channels", "busy", "copies"), [
    (8, 9, 4), (6, 9, 3), (7, 9, 4), (3, 9, 3), (2, 9, 2), (1, 9, 1)])
def test_copies_share_what_is_the_same_for_all_of_them(channels: int, busy: int, copies: int) -> None:
    """If that is much: it is computed once for several channels, and each lane of it once for a place."""
    ast = weighted(3, channels, 100, busy)
    nest = planned(ast, LARGE)
    made = prod(int(str(a.extent)) for a in nest.axes if a.kind is Kind.UPCAST and len(nest.roots) == 3)
    assert made == copies
    rng = np.random.default_rng(0)
    x, w = (rng.uniform(0, 0.5, (3, n, 100)).astype(np.float32) for n in (channels, 1))
    out: Array = np.zeros_like(x)
    interpret(linearize(emit_nest(nest, replace(LARGE, threads=1))), [a.data.cast("B") for a in (out, x, w)], {})
    want = w.copy()
    for _ in range(busy):
        want = want * want + want
    np.testing.assert_allclose(out, x * want, rtol=1e-5)


@pytest.mark.parametrize("busy", [0, 3])
def test_copies_do_not_share_what_takes_little(busy: int) -> None:
    """Vectors beside one another are processed together instead, as where there is nothing to share."""
    nest = planned(weighted(3, 8, 512, busy), LARGE)
    lanes = next(a.root for a in nest.axes if a.kind is Kind.VECTOR)
    assert [a.root for a in nest.axes if a.kind is Kind.UPCAST] == [lanes]


def batched(b: int, m: sint, n: int, k: int) -> LazyOp:
    """``b`` products of (m, k) with (n, k), which is turned: what is read of it is packed."""
    shape, most = (b, m, n, k), m if isinstance(m, int) else m.vmax
    left = ST((b, most, k)).shrink(((0, b), (0, m), (0, k)))
    x = A.load(1, F32, left.reshape((b, m, 1, k)).expand(shape))
    y = A.load(2, F32, ST((b, n, k)).reshape((b, 1, n, k)).expand(shape))
    total = A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (3,))
    sizes = tuple(BufferArg(F32, size) for size in (b * most * n, b * most * k, b * n * k))
    return A.sink((A.store(0, ST((b, m, n, 1)), total),), sizes)


@pytest.mark.parametrize(
    ("shape", "threads"),
    [((2, 24, 130, 8), 16), ((2, 48, 97, 8), 8), ((3, 33, 97, 301), 32), ((2, 100, 16, 256), 8), ((5, 37, 61, 64), 7)])
@pytest.mark.parametrize("target", [SMALL, LARGE], ids=["small", "large"])
def test_threads_divide_no_loop_inside_another_where_something_is_packed(
    shape: tuple[int, int, int, int], threads: int, target: Target
) -> None:
    """Each thread would begin, and pack, again and again, however many more iterations the inner loop has."""
    nest = planned(batched(*shape), replace(target, threads=threads))
    loops = [a for a in nest.axes if a.kind in (Kind.LOOP, Kind.THREAD)]
    assert nest.stages and len(loops) > 1
    assert [a.kind is Kind.THREAD for a in loops] == [True] + [False] * (len(loops) - 1)


@pytest.mark.parametrize(
    ("rows", "columns", "k", "threads", "target"),
    [(8, 97, 64, 3, SMALL), (16, 97, 256, 8, LARGE), (48, 97, 256, 3, LARGE)])
def test_threads_divide_the_loop_inside_one_that_has_a_single_iteration(
    rows: int, columns: int, k: int, threads: int, target: Target
) -> None:
    """One block holds as many rows as there may be; how many there are is not known, so the loop over blocks stays."""
    nest = planned(batched(1, Variable("m", 1, rows), columns, k), replace(target, threads=threads))
    first, second, *_ = (a for a in nest.axes if a.kind in (Kind.LOOP, Kind.THREAD))
    assert nest.stages and first.extent == 1 and (first.kind, second.kind) == (Kind.LOOP, Kind.THREAD)


@pytest.mark.parametrize("target", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("views", [*permutations([(1, 1), (1, 0), (0, 1), (0, 0)], 2)], ids=str)
def test_reductions_of_different_rows_all_have_several_accumulators(
    views: tuple[tuple[int, int], ...], target: Target
) -> None:
    """What belongs to a row of one of them only gives no accumulators to the other, which would wait for itself."""
    rng = random.Random(str(views))
    for _ in range(3):
        i, j, k, busy = rng.randrange(2, 40), rng.randrange(2, 40), rng.randrange(129, 1100), rng.choice([0, 3])
        sums, sizes = [], [i * j]
        for slot, (on_i, on_j) in enumerate(views, 1):
            kept = (i if on_i else 1, j if on_j else 1)
            x = A.load(slot, F32, ST((*kept, k)))
            for _ in range(busy):
                x = A.alu(Ops.SIN, x)
            sums.append(A.view(A.reduce(x, Ops.ADD, (2,)), ST((*kept, 1)).expand((i, j, 1))))
            sizes.append(prod(kept) * k)
        ast = A.sink((A.store(0, ST((i, j, 1)), A.alu(Ops.ADD, *sums)),), tuple(BufferArg(F32, n) for n in sizes))
        nest = planned(ast, target)
        for node in nest.nodes():
            if node.op is NodeOp.REDUCE:
                own = {Kind.SPREAD: set(node.arg[1]), Kind.UPCAST: node.free, Kind.ROWS: node.free}
                assert any(a.root in own.get(a.kind, ()) for a in nest.axes), (i, j, k, busy)


@pytest.mark.parametrize(("extent", "step"), [(2, 3), (5, 3), (7, 3), (8, 3), (20, 4), (23, 4), (12, 4), (3, 3)])
@pytest.mark.parametrize("threads", [2, 3, 5])
def test_every_iteration_has_one_thread(extent: int, step: int, threads: int) -> None:
    """Sums of rows that are added to what is there: an iteration that two threads had would count twice."""
    target = replace(SMALL, threads=threads)
    ones = A.load(1, F32, ST((extent, 4)))
    total = A.alu(Ops.ADD, A.load(0, F32, ST((extent, 1))), A.reduce(ones, Ops.ADD, (1,)))
    ast = A.sink((A.store(0, ST((extent, 1)), total),), (BufferArg(F32, extent), BufferArg(F32, 4 * extent)))
    actions = [parse_loop(f"split(i0, {step}, UPCAST)")] if step < extent else []
    spec = compile_ast(ast, LLVMRenderer(target), actions=[*actions, parse_loop("mark(i0, THREAD)")])
    out, x = np.ones(extent, np.float32), np.ones((extent, 4), np.float32)
    interpret(spec.uops, [out.data.cast("B"), x.data.cast("B")], {})
    assert (out == 5).all()


@pytest.mark.parametrize("vector_bytes", [16, 64])
@pytest.mark.parametrize("rows", [1_509_826, 40_961])
def test_column_sums_whose_tiles_are_each_a_piece(vector_bytes: int, rows: int) -> None:
    """Few columns, and many threads to divide them among."""
    target = replace(LARGE, vector_bytes=vector_bytes, threads=8, registers=16)
    total = A.reduce(A.load(1, F32, ST((rows, 105)).permute((1, 0))), Ops.ADD, (1,))
    ast = A.sink((A.store(0, ST((105, 1)), total),), (BufferArg(F32, 105), BufferArg(F32, 105 * rows)))
    assert not compile_ast(ast, LLVMRenderer(target)).fallback


# Every shape with every cache and with every number of threads; all of them together are for the slow tests.
@pytest.mark.drawn(5)
@pytest.mark.parametrize(
    ("shape", "l2_kib", "threads"),
    [
        pytest.param(shape, l2_kib, threads, marks=() if (i + j + k) % 2 == 0 else pytest.mark.slow)
        for i, shape in enumerate([(2675, 2704, 1585), (1531, 1000, 2999), (3000, 97, 3000)])
        for j, l2_kib in enumerate([256, 1024, 2048, 16384])
        for k, threads in enumerate([1, 8])
    ],
)
def test_partial_results_and_panels_fit_a_stack(shape: tuple[int, int, int], threads: int, l2_kib: int) -> None:
    """Rows and columns both have a partial tile: there are four copies of the code, each with scratch of its own."""
    target = replace(LARGE, threads=threads, l2_bytes=l2_kib << 10)
    spec = compile_ast(product(*shape, left_turned=True), LLVMRenderer(target))
    assert not spec.fallback
    assert all(4 * u.arg[1] <= SCRATCH_BYTES for u in spec.uops if u.op is UOps.SCRATCH)


def test_partial_results_are_those_of_as_many_tiles_as_fit() -> None:
    """A panel of the other operand serves all of them: it is not read again for each tile."""
    target = Target(vector_bytes=16, registers=32, threads=4, l1_bytes=1 << 8, l2_bytes=1 << 14)
    log = [str(action) for action in loop_actions(lower(product(1213, 2119, 191)), target)]
    assert "split(i0, 19, LOOP)" in log and "split_reduction(0, i1)" in log
    assert [line for line in log if line.startswith("outermost")] == ["outermost(i1)", "outermost(i0)"]


def test_a_stage_that_is_too_large_is_refused_when_it_is_filled() -> None:
    """One that is exactly as large as may be is not."""
    actions = [parse_loop(a) for a in ("split(i1, 16, VECTOR)", "pack(1, i1)")]
    for depth, fits in ((SCRATCH_BYTES // 4 // 16 - 64, True), (SCRATCH_BYTES // 4 // 16 + 1, False)):
        nest = apply(lower(product(4, 64, depth)), actions)
        if fits:
            assert stages(emit_nest(nest, LARGE))
        else:
            with pytest.raises(EmitError, match="is larger than 1114112 bytes"):
                emit_nest(nest, LARGE)


@pytest.mark.parametrize("target", [LARGE, replace(LARGE, vector_bytes=16, registers=16, threads=8)])
@pytest.mark.parametrize("shape", [
    (5, 159, 262, 69, 122, 7), (62, 187, 292, 52, 70, 3), (10, 43, 9, 116, 4, 3),
])  # fmt: skip
@pytest.mark.parametrize("gradient", [False, True])
def test_convolutions_fit(shape: tuple[int, ...], target: Target, gradient: bool) -> None:
    """Panels that have all windows of a row of pixels, and tiles that have neighbours of what is stored apart."""
    spec = compile_ast(convolution(shape, gradient), LLVMRenderer(target))
    assert not spec.fallback
    assert 0 < accumulators(spec.uops, target.vector_bytes) <= target.registers


@pytest.mark.parametrize(("rows", "terms", "cut"), [(32, 4096, True), (32, 1024, False), (61, 3001, True)])
def test_what_every_panel_walks_across_stays_in_the_cache(rows: int, terms: int, cut: bool) -> None:
    """Scores by values, as in attention: the scores and a panel of values take most of the cache, or little of it."""
    target = Target(vector_bytes=32, registers=16, threads=1, l1_bytes=32 << 10, l2_bytes=1 << 20)
    actions = loop_actions(lower(product(rows, 64, terms, left_turned=True)), target)
    assert any(isinstance(action, SplitReduction) for action in actions) is cut


STRIDED = """
buffer float32*{outputs}
buffer float32*3885
buffer float32*1344
dim[16] i0
dim[2] i1
dim[{wide}] i2
dim[3] r0 reduced
dim[4] r1 reduced
dim[7] r2 reduced
for[16] i0 of i0 by 1: loop
for[2] i1 of i1 by 1: loop
for[{wide}] i2 of i2 by 1: loop
for[3] r0 of r0 by 1: reduce
for[4] r1 of r1 by 1: reduce
for[7] r2 of r2 by 1: reduce
%0 = load[1, i1*370 + r0*1295 + r1*185 + i2*2 + r2] float32
%1 = load[2, i0*84 + r0*28 + r1*7 + r2] float32
%2 = mul float32 (%0, %1)
%3 = reduce[add, r0, r1, r2] float32 (%2)
store[0, i0*{plane} + i1*{wide} + i2] %3 over i0, i1, i2
"""
"""A convolution of three channels by a window of 4 by 7, two pixels apart, to 16 channels."""


@pytest.mark.parametrize(("registers", "unrolled"), [(16, False), (32, True)])
def test_a_window_is_unrolled_where_its_vectors_stay_in_registers(registers: int, unrolled: bool) -> None:
    """Or else its innermost dimension stays a loop, around a tile with several vectors."""
    target = Target(vector_bytes=32, registers=registers, threads=1, folds=True)
    nest = parse_nest(STRIDED.format(wide=90, plane=180, outputs=16 * 180))
    lanes = next(root for root in nest.roots.values() if root.var.name == "i0")
    nest = apply(nest, CPUPlanner(nest, target, wanted=lanes).planned())
    assert [a.kind for a in nest.axes if a.root.name == "r2"] == [Kind.UNROLL if unrolled else Kind.REDUCE]
    assert unrolled or [a for a in nest.axes if a.root.name == "i0" and a.kind is Kind.UPCAST], "one vector"
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(3885).astype(np.float32), rng.standard_normal(1344).astype(np.float32)
    out = bytearray(16 * 180 * 4)
    interpret(linearize(emit_nest(nest, target)), [out, bytearray(x.tobytes()), bytearray(w.tobytes())], {})
    windows = np.lib.stride_tricks.sliding_window_view(x.reshape(3, 7, 185), (4, 7), axis=(1, 2))[:, ::2, ::2]
    want = np.einsum("chwij,ocij->ohw", windows[:, :2, :90], w.reshape(16, 3, 4, 7))
    np.testing.assert_allclose(np.frombuffer(out, np.float32).reshape(want.shape), want, rtol=1e-4, atol=1e-4)


def test_a_kernel_that_is_far_too_long_is_planned_again_with_fewer_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    b, c, o, h, w, k = shape = (2, 4, 4, 8, 8, 3)
    ast = convolution(shape, False)
    whole = compile_ast(ast, LLVMRenderer(LARGE))
    assert "mark(r2, UNROLL)" in whole.actions and "mark(r1, UNROLL)" in whole.actions
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(n).astype(np.float32) for n in (b * c * h * w, o * c * k * k))
    windows = np.lib.stride_tricks.sliding_window_view(x.reshape(b, c, h, w), (k, k), axis=(2, 3))
    want = np.einsum("bchwij,ocij->bohw", windows, y.reshape(o, c, k, k))
    lengths = [len(whole.uops)]
    while True:
        monkeypatch.setattr("tg_codegen.compile.MAX_UOPS", lengths[-1] - 1)
        spec = compile_ast(ast, LLVMRenderer(LARGE))
        out = bytearray(want.size * 4)
        interpret(spec.uops, [out, bytearray(x.tobytes()), bytearray(y.tobytes())], threads=spec.threads)
        np.testing.assert_allclose(np.frombuffer(out, np.float32).reshape(want.shape), want, rtol=1e-4, atol=1e-5)
        if len(spec.uops) >= lengths[-1]:
            break  # as short as can be
        lengths.append(len(spec.uops))
    assert len(lengths) >= 3 and lengths[-1] < lengths[0] / 2, lengths


def convolution(shape: tuple[int, ...], gradient: bool) -> LazyOp:
    """An image's windows, one pixel apart, times a kernel; or its gradient, summed over the images and pixels."""
    b, c, o, h, w, k = shape
    up, across = h - k + 1, w - k + 1
    times = (-(-k * (h + 1) // h), -(-k * (w + 1) // w))
    view = ST((b, c, h, w)).reshape((b, c, 1, h, 1, w)).expand((b, c, times[0], h, times[1], w))
    view = view.reshape((b, c, times[0] * h, times[1] * w)).shrink(((0, b), (0, c), (0, k * (h + 1)), (0, k * (w + 1))))
    view = view.reshape((b, c, k, h + 1, k, w + 1)).shrink(((0, b), (0, c), (0, k), (0, up), (0, k), (0, across)))
    sizes = (b * o * up * across, b * c * h * w, o * c * k * k)
    if gradient:
        full = (o, c, k, k, b, up, across)
        x = view.permute((1, 2, 4, 0, 3, 5)).reshape((1, c, k, k, b, up, across)).expand(full)
        y = ST((b, o, up, across)).permute((1, 0, 2, 3)).reshape((o, 1, 1, 1, b, up, across)).expand(full)
        result, axes, sizes = ST((o, c, k, k, 1, 1, 1)), (4, 5, 6), (sizes[2], sizes[1], sizes[0])
    else:
        full = (b, o, up, across, c, k, k)
        x = view.permute((0, 3, 5, 1, 2, 4)).reshape((b, 1, up, across, c, k, k)).expand(full)
        y = ST((1, o, 1, 1, c, k, k)).expand(full)
        result, axes = ST((b, o, up, across, 1, 1, 1)), (4, 5, 6)
    total = A.reduce(A.alu(Ops.MUL, A.load(1, F32, x), A.load(2, F32, y)), Ops.ADD, axes)
    return A.sink((A.store(0, result, total),), tuple(BufferArg(F32, n) for n in sizes))


@pytest.mark.parametrize("registers", [32, 16])
@pytest.mark.parametrize("seed", range(12))
def test_short_loops_are_unrolled_with_all_copies_counted(seed: int, registers: int) -> None:
    """As those of few images, of whose gradient tiles that are transposed in registers have many copies already."""
    draw = random.Random(seed)
    target = replace(LARGE, vector_bytes=2 * registers, registers=registers)
    for gradient in (True, True, False):
        b, c, o, k = draw.randint(1, 4), draw.randint(3, 24), draw.randint(2, 12), draw.randint(1, 3)
        nest = lower(convolution((b, c, o, draw.randint(9, 30), draw.randint(9, 30), k), gradient))
        actions = loop_actions(nest, target)
        short = [a for a in actions if isinstance(a, Mark) and a.kind is Kind.UNROLL]
        copies = prod(upper(a.extent) for a in apply(nest, actions).axes if a.kind in UNROLLED)
        assert not short or copies <= target.copies, (b, c, o, k, *map(str, actions))


@pytest.mark.parametrize("registers", [32, 16])
@pytest.mark.parametrize("shape", [(512, 512, 512), (91, 67, 1001), (40, 1009, 640), (1000, 999, 97), (17, 2048, 131)])
def test_counting_takes_little_of_a_tile(shape: tuple[int, int, int], registers: int) -> None:
    """Of what an iteration of the innermost loop takes, beside its multiply-adds; small tiles wait for other things."""
    target = replace(LARGE, vector_bytes=2 * registers, registers=registers, folds=True)
    nest = planned(product(*shape), target)
    copies = prod(a.extent for a in nest.axes if a.kind is Kind.UPCAST and isinstance(a.extent, int))
    terms = prod(a.extent for a in nest.axes if a.kind is Kind.UNROLL and isinstance(a.extent, int))
    room = min(target.copies // copies, shape[2] // FEWEST_TURNS)
    few = copies < FEWEST_COPIES or copies > target.registers - BESIDE_SUMS or terms >= room
    steps = terms * next(upper(a.extent) for a in reversed(nest.axes) if a.kind is Kind.REDUCE)
    more = [n for n in range(terms + 1, min(2 * terms, room) + 1) if steps % n == 0]
    assert few or target.cpu.iteration <= ITERATION_SHARE * copies * terms / target.cpu.units or not more


@layouts
@pytest.mark.parametrize("k", [64, 101])
def test_terms_that_are_left_over(k: int, left_turned: bool, right_turned: bool) -> None:
    target = replace(LARGE, vector_bytes=16, registers=16, l1_bytes=1 << 10, l2_bytes=1 << 13)
    nest = planned(product(14, 27, k, left_turned, right_turned), target)
    sink = emit_nest(nest, target)
    rng = np.random.default_rng(k)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((14, k), (k, 27)))
    out: Array = np.zeros((14, 27), np.float32)
    stored = [np.ascontiguousarray(a.T if turned else a) for a, turned in ((x, left_turned), (y, right_turned))]
    interpret(linearize(sink), [a.data.cast("B") for a in (out, *stored)], {})
    np.testing.assert_allclose(out, x @ y, rtol=1e-4, atol=1e-4)
