"""Windows: what a convolution's gradients read is copied once for each place, and reductions over several loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, interpret, linearize
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.ir.uop import UOp, UOps
from tg_codegen.ir.verify import verify
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Nest
from tg_codegen.nest.windows import overlapping, windowed
from tg_codegen.plan.actions import apply
from tg_codegen.plan.cpu.planner import CPUPlanner, cpu_loops
from tg_codegen.plan.vocabulary import parse_loop
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

ST = ShapeTracker.from_shape
F32 = dtypes.float32
CPU = Target(vector_bytes=16, registers=16, l1_bytes=1 << 13, l2_bytes=1 << 14)
Array = np.ndarray[Any, np.dtype[Any]]


def windows(b: int, c: int, h: int, k: int) -> ShapeTracker:
    """(b, c, h, h) as (b, c, k, h-k+1, k, h-k+1), without padding."""
    times = -(-k * (h + 1) // h)
    view = ST((b, c, h, h)).reshape((b, c, 1, h, 1, h)).expand((b, c, times, h, times, h))
    view = view.reshape((b, c, times * h, times * h)).shrink(((0, b), (0, c), (0, k * (h + 1)), (0, k * (h + 1))))
    view = view.reshape((b, c, k, h + 1, k, h + 1))
    return view.shrink(((0, b), (0, c), (0, k), (0, h - k + 1), (0, k), (0, h - k + 1)))


def gradient(b: int, c: int, h: int, o: int, k: int) -> LazyOp:
    """The gradient of a convolution's weights (o, c, k, k)."""
    left = h - k + 1
    full = (o, c, k, k, b, left, left)
    x = windows(b, c, h, k).permute((1, 2, 4, 0, 3, 5)).reshape((1, c, k, k, b, left, left)).expand(full)
    y = ST((b, o, left, left)).permute((1, 0, 2, 3)).reshape((o, 1, 1, 1, b, left, left)).expand(full)
    total = A.reduce(A.alu(Ops.MUL, A.load(1, F32, x), A.load(2, F32, y)), Ops.ADD, (4, 5, 6))
    sizes = (o * c * k * k, b * c * h * h, b * o * left * left)
    return A.sink((A.store(0, ST((o, c, k, k, 1, 1, 1)), total),), tuple(BufferArg(F32, n) for n in sizes))


def run(sink: UOp, b: int, c: int, h: int, o: int, k: int) -> None:
    rng = np.random.default_rng(0)
    left = h - k + 1
    x, y = (rng.standard_normal((b, n, s, s)).astype(np.float32) for n, s in ((c, h), (o, left)))
    out = np.zeros((o, c, k, k), np.float32)
    verify(sink)
    interpret(linearize(sink), [a.data.cast("B") for a in (out, x, y)], {})
    seen = np.lib.stride_tricks.sliding_window_view(x, (left, left), axis=(2, 3))
    np.testing.assert_allclose(out, np.einsum("bcijhw,bohw->ocij", seen, y), rtol=1e-4, atol=1e-4)


def planned(ast: LazyOp) -> Nest:
    nest = lower(ast)
    return apply(nest, cpu_loops(nest, CPU))


def stages(sink: UOp) -> list[int]:
    return [u.arg[1] for u in sink.toposort() if u.op is UOps.SCRATCH]


def test_what_overlaps() -> None:
    nest = lower(gradient(2, 8, 9, 8, 3))
    load = next(n for n in nest.nodes() if n.op.name == "LOAD" and n.arg[0] == 1)
    pairs = [(near.name, far.name, factor) for near, far, factor in overlapping(load, nest)]
    assert len(pairs) == 2, "each once, though either moves by the steps of the other"
    assert {frozenset(p[:2]) for p in pairs} == {frozenset(("i2", "r1")), frozenset(("i3", "r2"))}
    found = windowed(load, nest)
    assert sorted(w.root.vmax + 1 for w in found.windows) == [9, 9]
    assert len(found.load.free) == 4  # batch, channel and two coordinates


def test_dimensions_that_do_not_overlap_stay() -> None:
    x = A.load(1, F32, ST((4, 6, 8)))
    store = A.store(0, ST((4, 1, 8)), A.reduce(x, Ops.ADD, (1,)))
    nest = lower(A.sink((store,), (BufferArg(F32, 32), BufferArg(F32, 192))))
    load = next(n for n in nest.nodes() if n.op.name == "LOAD")
    assert windowed(load, nest).load is load


@pytest.mark.parametrize("text", [
    "split(i1, 4, VECTOR); split(i0, 2, UPCAST); split_reduction(0, -); pack(0, r0)",
    "split(i1, 4, VECTOR); split(i0, 2, UPCAST); split(i0, 2, LOOP); split_reduction(0, i0); pack(0, r0)",
    "split(i1, 4, VECTOR); split(r0, 2, REDUCE); split_reduction(0, -); pack(0, r0)",
    "split(i1, 4, VECTOR); mark(i3, UPCAST); split_reduction(0, -); pack(0, r0)",
    "split(i1, 4, VECTOR); split(i0, 2, UPCAST); mark(i3, UPCAST); split(r2, 2, UNROLL); split_reduction(0, -); "
    "pack(0, r0)",
    "split(i1, 4, VECTOR); mark(i2, UPCAST); mark(i3, UPCAST); split(r0, 2, REDUCE); split_reduction(0, -); "
    "pack(0, r0)",
    "split(i1, 4, VECTOR); outermost(i2); pack(0, i2)",
    "split(i1, 4, VECTOR); mark(r2, UNROLL); split_reduction(0, -); pack(0, r0)",
])  # fmt: skip
def test_packed_by_coordinate(text: str) -> None:
    shape = (3, 8, 7, 8, 3)
    actions = [parse_loop(line) for line in text.split("; ")]
    run(emit_nest(apply(lower(gradient(*shape)), actions), CPU), *shape)


@pytest.mark.parametrize("text", ["", "mark(i3, UPCAST); "])
def test_each_element_is_copied_once(text: str) -> None:
    lines = f"split(i1, 4, VECTOR); {text}split_reduction(0, -); pack(0, r0)".split("; ")
    actions = [parse_loop(line) for line in lines]
    sink = emit_nest(apply(lower(gradient(3, 4, 8, 4, 3)), actions), CPU)
    assert min(stages(sink)) <= 4 * 8 * 8 + 16  # and not 4 * (3 * 6) * (3 * 6)


@pytest.mark.parametrize("shape", [(40, 8, 9, 8, 3), (40, 1, 9, 8, 3), (2, 8, 6, 4, 3)])
def test_the_heuristic(shape: tuple[int, int, int, int, int]) -> None:
    run(emit_nest(planned(gradient(*shape)), CPU), *shape)


def test_the_heuristic_cuts_the_batch() -> None:
    log = [str(action) for action in CPUPlanner(lower(gradient(200, 8, 9, 64, 3)), CPU).planned()]
    assert any(line.startswith("split_reduction") for line in log)
    assert any(line.startswith("pack(0, r0") for line in log)


@pytest.mark.parametrize("shape", [(200, 8, 9, 64, 3), (200, 4, 9, 32, 3)])
def test_the_pieces_are_divided_among_threads(shape: tuple[int, int, int, int, int]) -> None:
    target = replace(CPU, threads=2)
    nest = lower(gradient(*shape))
    log = CPUPlanner(nest, target).planned()
    assert any(str(action).startswith("split_reduction") for action in log)
    assert any(str(action).endswith("THREAD)") for action in log)


def test_few_rows_of_several_dimensions_are_in_one_tile() -> None:
    target = replace(CPU, threads=2, registers=32)
    shape = (6, 1, 14, 8, 5)
    log = [str(action) for action in cpu_loops(lower(gradient(*shape)), target)]
    assert {"mark(i1, UPCAST)", "mark(i2, UPCAST)", "mark(i0, THREAD)"} <= set(log)
    assert any(line.startswith("split(r2, ") and line.endswith("UNROLL)") for line in log)
    assert not any(line.startswith(("pack", "split_reduction")) for line in log)
    actions = [parse_loop(line) for line in log if "THREAD" not in line]
    run(emit_nest(apply(lower(gradient(*shape)), actions), CPU), *shape)


@pytest.mark.parametrize(("target", "shape"), [
    (replace(CPU, threads=2, registers=16), (6, 1, 14, 8, 5)),  # more rows than registers
    (replace(CPU, threads=4, registers=32), (6, 1, 14, 8, 5)),  # fewer vectors than threads
    (replace(CPU, threads=2, registers=32), (6, 2, 14, 8, 5)),  # another dimension of rows
])  # fmt: skip
def test_rows_that_do_not_fit_are_not(target: Target, shape: tuple[int, int, int, int, int]) -> None:
    log = {str(action) for action in cpu_loops(lower(gradient(*shape)), target)}
    assert not {"mark(i1, UPCAST)", "mark(i2, UPCAST)"} <= log


def test_a_tile_has_the_window_that_moves_along_the_reduction() -> None:
    target, shape = replace(CPU, threads=2, registers=32), (200, 8, 8, 32, 3)
    log = [str(action) for action in CPUPlanner(lower(gradient(*shape)), target).planned()]
    assert {"split(i0, 8, UPCAST)", "mark(i3, UPCAST)", "split(r2, 3, UNROLL)", "mark(i1, THREAD)"} <= set(log)
    small = (3, *shape[1:])
    actions = [parse_loop(line) for line in log if "THREAD" not in line and "r0" not in line]
    run(emit_nest(apply(lower(gradient(*small)), actions), CPU), *small)


def test_where_nothing_of_the_window_can_be_shared_rows_and_vectors_are_the_tile() -> None:
    log = {str(action) for action in cpu_loops(lower(gradient(200, 8, 9, 64, 3)), replace(CPU, registers=32))}
    assert "mark(i3, UPCAST)" not in log  # seven terms in a row are not unrolled evenly
