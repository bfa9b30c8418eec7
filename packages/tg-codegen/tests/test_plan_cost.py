"""What plans cost: it follows their tiles, what they pack and how evenly they are divided, as cycles do later."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations

import pytest

from tg_codegen import Target, compile_ast
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Nest
from tg_codegen.nest.spec import Kind
from tg_codegen.plan.actions import Prefetch, apply
from tg_codegen.plan.cpu.plan_cost import plan_cycles
from tg_codegen.plan.cpu.planner import CPUPlanner, cpu_loops
from tg_codegen.plan.cpu.row_tiles import ROW_OPERANDS
from tg_codegen.plan.vocabulary import parse_loop
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.search.cycles import cycles
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker, upper

ST = ShapeTracker.from_shape
EIGHT = Target(vector_bytes=64, registers=32, threads=8, l2_bytes=1 << 20)


def product(
    m: int, n: int, k: int, right_turned: bool = False, dtype: DType = dtypes.float32, padding: int = 0
) -> LazyOp:
    """(m, k) times (k, n): the right one may lie the other way round in memory, the left one is padded to k terms."""
    right = ST((n, k)) if right_turned else ST((k, n)).permute((1, 0))
    left = ST((m, 1, k - 2 * padding)).pad(((0, 0), (0, 0), (padding, padding)))
    x = A.load(1, dtype, left.expand((m, n, k)))
    y = A.load(2, dtype, right.reshape((1, n, k)).expand((m, n, k)))
    terms = A.alu(Ops.MUL, *(A.cast(v, dtypes.float32) for v in (x, y)))
    sizes = ((dtypes.float32, m * n), (dtype, m * (k - 2 * padding)), (dtype, k * n))
    return A.sink((A.store(0, ST((m, n, 1)), A.reduce(terms, Ops.ADD, (2,))),), tuple(BufferArg(*s) for s in sizes))


def after(ast: LazyOp, *actions: str) -> Nest:
    return apply(lower(ast), [parse_loop(action) for action in actions])


def test_threads_that_wait_count() -> None:
    tile = ("split(i1, 16, VECTOR)", "split(i0, 8, UPCAST)")
    ast = product(128, 64, 256)  # 16 tiles of rows, and 4 vectors
    even, uneven, alone = (plan_cycles(after(ast, *tile, *mark), EIGHT) for mark in (
        ["mark(i0, THREAD)"], ["outermost(i1)", "mark(i1, THREAD)"], []))
    assert uneven == pytest.approx(2 * even) and alone == pytest.approx(8 * even)


def test_lanes_that_are_left_over_count() -> None:
    takes = {n: plan_cycles(after(product(128, n, 256), "split(i1, 16, VECTOR)"), EIGHT) for n in (64, 65, 80)}
    assert takes[65] == pytest.approx(takes[80]) and takes[80] == pytest.approx(takes[64] * 5 / 4)


def test_a_larger_tile_reads_less() -> None:
    tiles = [("split(i1, 16, VECTOR)", f"split(i0, {rows}, UPCAST)", "split(i1, 2, UPCAST)") for rows in (2, 4, 8)]
    takes = [plan_cycles(after(product(128, 96, 256), *tile), EIGHT) for tile in tiles]
    assert takes == sorted(takes, reverse=True) and takes[0] > 1.2 * takes[2]


def test_what_is_not_packed_is_gathered_again_and_again() -> None:
    tile = ("split(i1, 16, VECTOR)", "split(i0, 8, UPCAST)", "outermost(i1)")
    ast = product(512, 96, 256, right_turned=True)
    gathered, packed = (plan_cycles(after(ast, *tile, *pack), EIGHT) for pack in ([], ["pack(1, i1)"]))
    straight = plan_cycles(after(product(512, 96, 256), *tile), EIGHT)
    assert gathered > 4 * packed and straight < packed < 1.5 * straight


def test_halves_are_converted() -> None:
    tile = ("split(i1, 16, VECTOR)", "split(i0, 8, UPCAST)")
    single, half = (plan_cycles(after(product(128, 64, 256, dtype=d), *tile), EIGHT)
                    for d in (dtypes.float32, dtypes.float16))
    assert 1.2 * single < half < 3 * single


def test_terms_that_padding_makes_zero_are_left_out_of_what_is_not_packed() -> None:
    tile = ("split(i1, 16, VECTOR)", "split(i0, 8, UPCAST)")
    ast = product(128, 64, 256, padding=96)  # 64 terms are left
    left, whole = (plan_cycles(after(a, *tile), EIGHT) for a in (ast, product(128, 64, 256)))
    packed = plan_cycles(after(ast, *tile, "pack(0, i0)"), EIGHT)
    assert 0.2 * whole < left < 0.5 * whole < packed


def test_plans_are_ranked_as_by_their_instructions() -> None:
    """Lanes along either side of drawn products: where the programs' cycles differ clearly, costs do, too."""
    rng, clear = random.Random(1), 0
    for _ in range(8):
        target = Target(vector_bytes=64, registers=32, threads=rng.choice((1, 2, 8)), l2_bytes=1 << 20)
        m, n, k = (rng.choice((rng.randint(2, 30), rng.randint(60, 600))) for _ in range(3))
        ast = product(m, n, k, right_turned=rng.random() < 0.5)
        nest = lower(ast)
        found = []
        for root in nest.roots.values():
            actions = CPUPlanner(nest, target, wanted=root).planned()
            spec = compile_ast(ast, LLVMRenderer(target), actions=actions)
            found.append((cycles(spec, target), plan_cycles(apply(nest, actions), target)))
        for (a, mine), (b, theirs) in combinations(sorted(found), 2):
            if b > 2 * a:
                clear += 1
                assert mine < theirs, (m, n, k, target, found)
    assert clear >= 8


def test_rows_that_are_lanes_later_have_accumulators_of_their_own() -> None:
    ast = product(4, 256, 2048, right_turned=True)
    alone, beside = (plan_cycles(after(ast, "split(r0, 16, LANES)", "mark(i0, UPCAST)", *tile), EIGHT)
                     for tile in ((), ("split(i1, 4, ROWS)",)))
    assert beside < 0.8 * alone


def test_few_rows_by_halves_that_lie_along_the_reduction_have_lanes_there() -> None:
    """Transposing them in registers, and widening each number of the rows by itself, would take longer."""
    for dtype in (dtypes.float16, dtypes.float32):
        chosen = [str(a) for a in cpu_loops(lower(product(5, 4093, 4099, True, dtype)), EIGHT)]
        assert "split(r0, 16, LANES)" in chosen and "mark(i0, UPCAST)" in chosen
    many = [str(a) for a in cpu_loops(lower(product(64, 4093, 4099, True)), EIGHT)]
    assert any(line.endswith("VECTOR)") for line in many) and "split(r0, 16, LANES)" not in many


def test_rows_are_side_by_side_where_what_they_share_comes_from_the_second_cache() -> None:
    target = replace(EIGHT, l1_bytes=48 << 10, last_bytes=128 << 20)
    for terms, beside in ((2048, False), (4099, True)):  # three rows of 24 KB, or of 48 KB
        chosen = [str(a) for a in cpu_loops(lower(product(3, 4093, terms, True)), target)]
        assert ("split(i1, 8, ROWS)" in chosen) is beside, chosen


@pytest.mark.parametrize(("outputs", "registers"), [*((n, 32) for n in range(3, 9)), (4, 16)])
def test_rows_side_by_side_leave_registers_for_what_they_share(outputs: int, registers: int) -> None:
    """Accumulators for each row, what the rows share, and the operand of a row, which nothing need fetch ahead."""
    target = replace(EIGHT, registers=registers, l1_bytes=48 << 10, last_bytes=128 << 20)
    nest = lower(product(outputs, 4093, 8191, True))
    actions = cpu_loops(nest, target)
    rows = next(upper(a.extent) for a in apply(nest, actions).axes if a.kind is Kind.ROWS)
    assert rows * outputs + outputs + ROW_OPERANDS <= registers
    assert 2 * rows > target.cpu.streams or 2 * rows * outputs + outputs + ROW_OPERANDS > registers, "as many as fit"
    assert not any(isinstance(action, Prefetch) for action in actions)
