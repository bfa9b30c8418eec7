"""Moves of a search: together they reach every kind of loop and every action, and put actions in another order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tg_codegen import Target
from tg_codegen.ir.matrix import AMX_TILES, AVX512_DOTS, tensor_cores
from tg_codegen.nest.kernel import Kernel
from tg_codegen.nest.lower import lower
from tg_codegen.nest.parts import stated
from tg_codegen.nest.spec import Kind
from tg_codegen.plan.actions import Action, In, KernelAction, Mark, Share, Split
from tg_codegen.plan.heuristic import applied
from tg_codegen.plan.vocabulary import ACTIONS, parse_action
from tg_codegen.search.moves import alterations, measured_moves, modelled_moves, other_walks
from tg_codegen.search.replanned import reparted
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

ST = ShapeTracker.from_shape
F32, F16, I8, I32 = dtypes.float32, dtypes.float16, dtypes.int8, dtypes.int32
CPU = Target(vector_bytes=64, registers=32, threads=4, matrices=AVX512_DOTS)
TILES = replace(CPU, matrices=AMX_TILES)
GPU = Target(kind="gpu", vector_bytes=16, registers=128, shared_bytes=48 << 10, local_max=1024,
             matrices=tensor_cores(80))  # fmt: skip


def product(m: int, n: int, k: int, dtype: DType, acc: DType) -> LazyOp:
    shape = (m, n, k)
    x = A.cast(A.load(1, dtype, ST((m, 1, k)).expand(shape)), acc)
    y = A.cast(A.load(2, dtype, ST((1, k, n)).permute((0, 2, 1)).expand(shape)), acc)
    sizes = (BufferArg(acc, m * n), BufferArg(dtype, m * k), BufferArg(dtype, k * n))
    return A.sink((A.store(0, ST((m, n, 1)), A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (2,))),), sizes)


def softmax(rows: int, columns: int) -> LazyOp:
    whole = ST((rows, columns))
    wide = A.alu(Ops.EXP2, A.load(1, F32, whole))
    total = A.view(A.reduce(wide, Ops.ADD, (1,)), ST((rows, 1)).expand((rows, columns)))
    return A.sink((A.store(0, whole, A.alu(Ops.FDIV, wide, total)),), (BufferArg(F32, rows * columns),) * 2)


def lookup(rows: int, width: int) -> LazyOp:
    index = A.load(2, I32, ST((rows, 1)).expand((rows, width)))
    place = A.alu(Ops.ADD, A.alu(Ops.MUL, index, A.const(width, I32, (rows, width))), A.iota(
        ST((1, width)).expand((rows, width)), I32))
    value = A.gather(1, F32, ST((rows * width,)), place)
    sizes = (BufferArg(F32, rows * width), BufferArg(F32, rows * width), BufferArg(I32, rows))
    return A.sink((A.store(0, ST((rows, width)), value),), sizes)


def padded(rows: int, columns: int) -> LazyOp:
    x = A.load(1, F32, ST((rows, columns)).pad(((2, 2), (0, 0))))
    return A.sink((A.store(0, ST((rows + 4, columns)), x),), (
        BufferArg(F32, (rows + 4) * columns), BufferArg(F32, rows * columns)))


def scaled(blocks: int, width: int) -> LazyOp:
    """A sum of numbers, each block of which has a factor."""
    n = blocks * width
    factors = A.load(2, F32, ST((blocks, 1)).expand((blocks, width)).reshape((n,)))
    total = A.reduce(A.alu(Ops.MUL, A.load(1, F32, ST((n,))), factors), Ops.ADD, (0,))
    return A.sink((A.store(0, ST((1,)), total),), tuple(BufferArg(F32, size) for size in (1, n, blocks)))


def triangle(rows: int, columns: int) -> LazyOp:
    """The elements up to the diagonal, by themselves, and the sums of their rows."""
    shape = (rows, columns)
    row = A.iota(ST((rows,)).reshape((rows, 1)).expand(shape), I32)
    column = A.iota(ST((columns,)).reshape((1, columns)).expand(shape), I32)
    held = A.alu(Ops.WHERE, A.alu(Ops.CMPLT, row, column), A.const(0, F32, shape), A.load(1, F32, ST(shape)))
    sums = A.reduce(A.load(2, F32, ST(shape)), Ops.ADD, (1,))
    buffers = BufferArg(F32, rows), BufferArg(F32, rows * columns), BufferArg(F32, rows * columns, internal=True)
    return A.sink((A.store(2, ST(shape), held), A.store(0, ST((rows, 1)), sums)), buffers)


CASES = [
    (product(64, 64, 1024, I8, I32), CPU, ()),
    (product(64, 64, 1024, I8, I32), CPU, ("split(i1, 16, VECTOR)",)),
    (product(64, 64, 64, I8, I32), TILES, ()),
    (product(64, 64, 64, F16, F32), GPU, ()),
    (product(64, 64, 64, F16, F32), GPU, ("split(i0, 8, LOCAL)",)),
    (softmax(64, 1024), CPU, ()),
    (softmax(64, 1024), CPU, ("split(r0, 8, LANES)",)),
    (softmax(64, 1024), CPU, ("reuse_row_values()",)),
    (lookup(64, 64), CPU, ()),
    (padded(64, 8), CPU, ()),
    (scaled(8, 32), CPU, ()),
    (triangle(256, 256), CPU, ("row_blocks(16)",)),
    (product(64, 64, 1024, F32, F32), CPU, (
        "split(i0, 4, UPCAST)", "split(r0, 256, REDUCE)", "split_reduction(0, -)")),
]


def moves(ast: LazyOp, target: Target, so_far: tuple[str, ...]) -> Iterator[Action]:
    loops = [action for action in map(parse_action, so_far) if isinstance(action, KernelAction)]
    kernel = applied(stated(lower(ast)), loops)
    yield from modelled_moves(kernel, target)
    yield from (action for actions in measured_moves(kernel, target) for action in actions)
    yield from (action for actions in other_walks(()) for action in actions)


def found() -> list[Action]:
    every = [action for case in CASES for action in moves(*case)]
    return [action.action if isinstance(action, In) else action for action in every]


def test_every_action_comes_out_of_some_move() -> None:
    assert {type(action) for action in found()} == set(ACTIONS.values())


def test_every_kind_comes_out_of_some_move() -> None:
    assert {action.kind for action in found() if isinstance(action, (Split, Mark))} == set(Kind)


def test_what_is_shared_may_be_so_for_the_whole_kernel() -> None:
    assert {action.axis for action in found() if isinstance(action, Share)} >= {None, "r0"}


@pytest.mark.parametrize(("dtype", "total", "target"), [(F16, F32, "gpu"), (I8, I32, "tiles")])
@pytest.mark.parametrize("kind", [Kind.FRAGMENT_ROWS, Kind.FRAGMENT_COLUMNS])
def test_a_product_by_rows_and_columns_is_one_move(kind: Kind, dtype: DType, total: DType, target: str) -> None:
    kernel = stated(lower(product(64, 64, 64, dtype, total)))
    whole = [actions for actions in measured_moves(kernel, {"gpu": GPU, "tiles": TILES}[target])
             if any(isinstance(a, Split) and a.kind is kind for a in actions)]  # fmt: skip
    assert whole and all(isinstance(applied(kernel, actions), Kernel) for actions in whole)


def test_actions_change_places() -> None:
    """Neighbours do, unless they are for different parts: these say nothing of each other."""
    lines = ("outermost(i1)", "pack(0, i0)", "0: stream(0)", "0: outermost(i2)", "1: outermost(i2)")
    actions = [action for action in map(parse_action, lines) if isinstance(action, KernelAction)]
    orders = {tuple(map(str, found)) for found in alterations(actions) if sorted(map(str, found)) == sorted(lines)}
    assert orders == {(*lines[1::-1], *lines[2:]), (*lines[:2], *lines[3:1:-1], *lines[4:])}


def test_a_kernel_is_parted_anew_whatever_was_done_to_its_loops() -> None:
    kernel = stated(lower(softmax(64, 1024)))
    split = parse_action("split(i0, 4, UPCAST)")
    assert isinstance(split, KernelAction)
    lists = [[str(action) for action in found] for found in reparted(kernel, [split], CPU)]
    assert any(lines[0] == "reuse_row_values()" and len(lines) > 1 for lines in lists)
    first = parse_action("reuse_row_values()")
    assert isinstance(first, KernelAction)
    starts = {tuple(line for line in map(str, found) if line.startswith(("reuse", "row_blocks")))
              for found in reparted(kernel, [first], CPU)}  # fmt: skip
    assert () in starts and ("reuse_row_values()", "row_blocks(16)") in starts
