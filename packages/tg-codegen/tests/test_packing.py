"""Packing: where an operand is copied, and what the loops around it become."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, UOps, interpret, linearize
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.ir.verify import verify
from tg_codegen.machine.costs import CPUCosts
from tg_codegen.nest.lower import lower
from tg_codegen.nest.spec import Kind
from tg_codegen.plan.actions import apply
from tg_codegen.plan.cpu.packing import even_group
from tg_codegen.plan.cpu.panels import panel_bytes, widest
from tg_codegen.plan.cpu.planner import CPUPlanner, cpu_loops
from tg_codegen.plan.cpu.thread_loops import part_for_each_thread
from tg_codegen.plan.vocabulary import parse_loop
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker, upper

ST = ShapeTracker.from_shape
F32 = dtypes.float32
CPU = Target(vector_bytes=32, registers=16, threads=2, l1_bytes=1 << 13, l2_bytes=1 << 16,
             cpu=replace(CPUCosts(), thread_cycles=0))  # which divides among its threads what is as small as here
Array = np.ndarray[Any, np.dtype[Any]]


def convolution(b: int, c: int, h: int, o: int, k: int) -> LazyOp:
    """(b, c, h, h) with weights (o, c, k, k), without padding."""
    left, times = h - k + 1, -(-k * (h + 1) // h)
    view = ST((b, c, h, h)).reshape((b, c, 1, h, 1, h)).expand((b, c, times, h, times, h))
    view = view.reshape((b, c, times * h, times * h)).shrink(((0, b), (0, c), (0, k * (h + 1)), (0, k * (h + 1))))
    view = view.reshape((b, c, k, h + 1, k, h + 1)).shrink(((0, b), (0, c), (0, k), (0, left), (0, k), (0, left)))
    full = (b, o, left, left, c, k, k)
    x = view.permute((0, 3, 5, 1, 2, 4)).reshape((b, 1, left, left, c, k, k)).expand(full)
    w = ST((1, o, 1, 1, c, k, k)).expand(full)
    total = A.reduce(A.alu(Ops.MUL, A.load(1, F32, x), A.load(2, F32, w)), Ops.ADD, (4, 5, 6))
    sizes = (b * o * left * left, b * c * h * h, o * c * k * k)
    return A.sink((A.store(0, ST((b, o, left, left, 1, 1, 1)), total),), tuple(BufferArg(F32, n) for n in sizes))


def product(m: int, k: int, n: int, turned: bool = False, beside: bool = True) -> LazyOp:
    """(m, k) times (k, n), the second operand turned if so marked; stored as (n, m) unless ``beside``."""
    left = ST((m, 1, k)).expand((m, n, k))
    right = ST((1, n, k)) if turned else ST((1, k, n)).permute((0, 2, 1))
    total = A.reduce(A.alu(Ops.MUL, A.load(1, F32, left), A.load(2, F32, right.expand((m, n, k)))), Ops.ADD, (2,))
    out = ST((m, n, 1)) if beside else ST((n, m, 1)).permute((1, 0, 2))
    return A.sink((A.store(0, out, total),), tuple(BufferArg(F32, s) for s in (m * n, m * k, k * n)))


def packs(log: list[str]) -> list[str]:
    return [line for line in log if line.startswith("pack")]


def planned(shape: tuple[int, int, int, int, int], target: Target = CPU) -> list[str]:
    return [str(action) for action in cpu_loops(lower(convolution(*shape)), target)]


def test_small_weights_are_packed_whole_and_images_divided() -> None:
    log = planned((64, 4, 7, 64, 3))
    assert packs(log) == ["pack(1, -)"]
    assert "mark(i0, THREAD)" in log
    assert not any(line.startswith("outermost") for line in log)


@pytest.mark.parametrize("shape", [(64, 16, 7, 64, 3), (2, 4, 7, 64, 3)])
def test_large_or_seldom_read_ones_panel_by_panel(shape: tuple[int, int, int, int, int]) -> None:
    log = planned(shape)
    assert packs(log) == ["pack(1, i1)"]
    assert "mark(i1, THREAD)" in log


@pytest.mark.parametrize("place", ["-", "i1"])
@pytest.mark.parametrize("shape", [(2, 3, 6, 32, 3), (3, 2, 7, 24, 2)])
def test_results(shape: tuple[int, int, int, int, int], place: str) -> None:
    text = f"split(i1, 8, VECTOR); split(i3, 4, UPCAST); split(i1, 2, UPCAST); pack(1, {place}); mark(r2, UNROLL)"
    actions = [parse_loop(line) for line in text.split("; ")]
    sink = emit_nest(apply(lower(convolution(*shape)), actions), replace(CPU, threads=1))
    verify(sink)
    b, c, h, o, k = shape
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((b, c, h, h), (o, c, k, k)))
    out: Array = np.zeros((b, o, h - k + 1, h - k + 1), np.float32)
    interpret(linearize(sink), [a.data.cast("B") for a in (out, x, w)], {})
    seen = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(2, 3))
    np.testing.assert_allclose(out, np.einsum("bchwij,ocij->bohw", seen, w), rtol=1e-4, atol=1e-4)


def test_what_windows_reach_counts_where_a_panel_is_packed() -> None:
    # lanes over images: a panel of one vector, over all windows, has 8 x 40 x 13 x 13 elements
    target = Target(vector_bytes=32, registers=32, threads=2, l1_bytes=48 << 10, l2_bytes=1 << 20)
    nest = lower(convolution(96, 40, 13, 20, 3))
    lanes = next(r for r in nest.roots.values() if r.var.name == "i0")
    load = next(n for n in nest.nodes() if n.op.name == "LOAD" and n.arg[0] == 1)
    planner = CPUPlanner(apply(nest, [parse_loop("split(i0, 8, VECTOR)")]), target)
    reduced = [r for r in nest.roots.values() if r.reduce]
    assert panel_bytes(planner, load, reduced) == 4 * 8 * 40 * 13 * 13
    assert panel_bytes(planner, load, reduced[1:]) == 4 * 8 * 13 * 13
    assert widest(planner, lanes, [load]) == (1 << 20) // (4 * 8 * 40 * 13 * 13)


@pytest.mark.parametrize(
    ("shape", "pieces"),
    [((96, 90, 15, 40, 3), True), ((96, 90, 15, 12, 3), False), ((96, 90, 15, 200, 3), True),
     ((96, 90, 36, 9, 3), True)],
)  # fmt: skip
def test_what_does_not_fit_is_done_in_pieces_or_as_it_is(shape: tuple[int, int, int, int, int], pieces: bool) -> None:
    target = Target(vector_bytes=64, registers=32, threads=2, l1_bytes=48 << 10, l2_bytes=1 << 20)
    nest = lower(convolution(*shape))  # lanes over images: one vector over all windows is 1.3 MB
    actions = CPUPlanner(nest, target).planned()
    log = [str(action) for action in actions]
    sink = emit_nest(apply(nest, actions), target)
    verify(sink)
    panels = [u.dtype.itemsize * u.arg[1] for u in sink.toposort() if u.op is UOps.SCRATCH]
    assert sum(panels) <= target.l2_bytes and bool(panels) is pieces
    assert any(line.startswith("pack") for line in log) is pieces
    assert any(line.startswith("split_reduction") for line in log) is pieces


@pytest.mark.parametrize("outputs", [40, 200])
def test_of_lanes_that_seem_alike_those_are_taken_whose_plan_costs_least(outputs: int) -> None:
    """Images and channels waste as little, but a panel of images is so large that it takes pieces and partial sums."""
    target = Target(vector_bytes=64, registers=32, threads=2, l1_bytes=48 << 10, l2_bytes=1 << 20)
    nest = lower(convolution(96, 90, 15, outputs, 3))
    first = CPUPlanner(nest, target)
    log = [str(action) for action in first.planned()]
    assert "split(i0, 16, VECTOR)" in log and "i1" in [root.var.name for root in first.alike]
    chosen = [str(action) for action in cpu_loops(nest, target)]
    assert "split(i1, 16, VECTOR)" in chosen and not any(line.startswith("split_reduction") for line in chosen)


def test_the_first_loop_of_as_many_iterations_as_there_are_threads_is_divided() -> None:
    nest = lower(convolution(4, 2, 9, 6, 2))
    loops = [a for a in nest.axes if not nest.roots[a.root].reduce]
    assert [a.extent for a in loops[:2]] == [4, 6] and len(loops) > 2
    for threads, left in ((4, loops[1:]), (6, [loops[0], *loops[2:]])):
        planner = CPUPlanner(nest, replace(CPU, threads=threads))
        assert part_for_each_thread(planner, loops) == left
    planner = CPUPlanner(nest, replace(CPU, threads=3))
    assert [a.extent for a in part_for_each_thread(planner, loops)] == [2, *(a.extent for a in loops[1:])]


@pytest.mark.parametrize(
    ("rows", "l2_kb", "copied"), [(32, 512, False), (64, 512, False), (256, 512, True), (32, 256, True)]
)  # fmt: skip
def test_what_stays_in_the_cache_is_packed_if_many_tiles_read_it(rows: int, l2_kb: int, copied: bool) -> None:
    """128 terms of 512 columns are half of the second-level cache, or all of it."""
    columns = 512
    left = ST((rows, 1, 128)).expand((rows, columns, 128))
    right = ST((1, 128, columns)).permute((0, 2, 1)).expand((rows, columns, 128))
    total = A.reduce(A.alu(Ops.MUL, A.load(1, F32, left), A.load(2, F32, right)), Ops.ADD, (2,))
    sizes = (rows * columns, rows * 128, 128 * columns)
    stored = A.sink((A.store(0, ST((rows, columns, 1)), total),), tuple(BufferArg(F32, n) for n in sizes))
    target = Target(vector_bytes=64, registers=32, threads=2, l1_bytes=48 << 10, l2_bytes=l2_kb << 10)
    assert bool(packs([str(action) for action in cpu_loops(lower(stored), target)])) is copied


FAR = Target(vector_bytes=32, registers=16, threads=2, l1_bytes=48 << 10, l1_ways=12, l2_bytes=1 << 21,
             last_bytes=1 << 26)  # fmt: skip


def loops(ast: LazyOp, target: Target, root: str) -> list[int]:
    """Iterations of a dimension's serial loops in the plan for a product, the outermost first."""
    nest = lower(ast)
    nest = apply(nest, cpu_loops(nest, target))
    serial = [a for a in nest.axes if a.root.name == root and a.kind in (Kind.LOOP, Kind.THREAD)]
    return [upper(a.extent) for a in serial]


def test_panels_are_packed_together_where_rows_come_from_far() -> None:
    """Of 1024 x 1024, 4 MB, a cache of 2 MB keeps too little from one panel to the next; of 512 x 512, everything."""
    assert loops(product(1024, 1024, 1024), FAR, "i1") == [8, 8]
    assert loops(product(1024, 1024, 1024, turned=True), FAR, "i1") == [8, 8]
    assert loops(product(512, 512, 512), FAR, "i1") == [32]
    assert loops(product(1024, 1024, 1024), replace(FAR, l2_bytes=1 << 23), "i1") == [64]
    assert loops(product(1024, 1024, 1024), replace(FAR, threads=64), "i1") == [64]  # a panel for each
    apart = product(1024, 1024, 1024, beside=False)  # neighbours in the output are in the next tile of rows
    assert loops(apart, FAR, "i1") == [64]


def test_no_thread_has_more_to_do_for_panels_that_are_packed_together() -> None:
    rng = random.Random(5)
    for _ in range(300):
        count, threads, far = rng.randint(1, 300), rng.choice((1, 2, 3, 8, 60)), rng.uniform(0.01, 0.2)
        nbytes = rng.randint(1 << 12, 1 << 20)
        planner = CPUPlanner(lower(product(1024, 1024, 1024)), replace(FAR, threads=threads))

        def busiest(together: int, count: int = count, threads: int = threads) -> int:
            groups = [min(together, count - first) for first in range(0, count, together)]
            share = -(-len(groups) // threads)
            return max(sum(groups[first : first + share]) for first in range(0, len(groups), share))

        together = even_group(planner, count, nbytes, far)
        assert together == 1 or together * nbytes <= FAR.resident_bytes
        assert busiest(together) <= busiest(1) * (1 + far)
        assert even_group(planner, count, nbytes, 0.0) == 1
        alone = even_group(planner, count, nbytes, far, divided=True)  # threads have a loop of their own
        assert alone == max(1, min(count // 2, FAR.resident_bytes // nbytes))


def test_results_of_panels_that_are_packed_together() -> None:
    """Tiles that are left over along rows, columns and groups; a cache so small that the product is short."""
    rng = random.Random(6)
    small = Target(vector_bytes=16, registers=16, threads=2, l1_bytes=1 << 13, l2_bytes=1 << 14,
                   cpu=replace(CPUCosts(), thread_cycles=0))  # fmt: skip
    partial = 0
    for _ in range(6):
        m, k, n = rng.randint(90, 120), rng.randint(35, 45), rng.randint(40, 90)
        ast = product(m, k, n, turned=True)
        if len(loops(ast, small, "i1")) < 2:
            continue
        nest = lower(ast)
        nest = apply(nest, cpu_loops(nest, small))
        partial += n % next(a.stride for a in nest.axes if a.root.name == "i1") > 0
        sink = emit_nest(nest, small)
        verify(sink)
        values = np.random.default_rng(0)
        x, y = (values.standard_normal(s).astype(np.float32) for s in ((m, k), (n, k)))
        out: Array = np.zeros((m, n), np.float32)
        for core in range(2):
            interpret(linearize(sink), [a.data.cast("B") for a in (out, x, y)], {"core_id": core})
        np.testing.assert_allclose(out, x @ y.T, rtol=1e-4, atol=1e-4)
    assert partial > 1, "groups with fewer panels than the others are tried"
