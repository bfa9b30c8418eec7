"""Walks over a row that run as one, and rows written while the next is computed: when it happens, and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, compile_ast, interpret
from tg_codegen.ir.program import ProgramSpec
from tg_codegen.ir.text import parse
from tg_codegen.ir.uop import STREAM, UOp, UOps
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.rewrite.pipelining import delayed
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

F32 = dtypes.float32
ST = ShapeTracker.from_shape
Array = np.ndarray[Any, np.dtype[Any]]


def machine(threads: int = 1, last_bytes: int = 1 << 12) -> Target:
    """One whose caches are so small that outputs go past them, or are not known."""
    return Target(
        vector_bytes=16, registers=32, threads=threads, l1_bytes=1 << 15, l2_bytes=1 << 16, last_bytes=last_bytes
    )  # fmt: skip


def softmax(n: int, m: int, out: int = 0, weighted: bool = False) -> LazyOp:
    """Powers of two, over their sum; with a weight for each column."""
    x = A.load(1, F32, ST((n, m)))
    greatest = A.view(A.reduce(x, Ops.MAX, (1,)), ST((n, 1)).expand((n, m)))
    power = A.alu(Ops.EXP2, A.alu(Ops.SUB, x, greatest))
    total = A.view(A.alu(Ops.RECIP, A.reduce(power, Ops.ADD, (1,))), ST((n, 1)).expand((n, m)))
    value = A.alu(Ops.MUL, power, total)
    buffers = [BufferArg(F32, n * m)] * 2
    if weighted:
        value = A.alu(Ops.MUL, value, A.load(2, F32, ST((1, m)).expand((n, m))))
        buffers.append(BufferArg(F32, m))
    return A.sink((A.store(out, ST((n, m)), value),), tuple(buffers))


def right(x: Array) -> Array:
    power = np.exp2(x - x.max(1, keepdims=True))
    found: Array = power / power.sum(1, keepdims=True)
    return found


def run(spec: ProgramSpec, x: Array, *more: Array) -> Array:
    out = bytearray(x.nbytes)
    buffers = [out, *(bytearray(a.tobytes()) for a in (x, *more))]
    for core in range(spec.threads):
        interpret(spec.uops, buffers, {"core_id": core} if spec.threads > 1 else {})
    return np.frombuffer(out, np.float32).reshape(x.shape)


def normal(n: int, m: int) -> Array:
    return np.random.default_rng(0).standard_normal((n, m)).astype(np.float32)


def loops(spec: ProgramSpec) -> list[list[UOps]]:
    """What each innermost loop does."""
    found: list[list[UOps]] = []
    stack: list[list[UOps]] = []
    for u in spec.uops:
        if u.op is UOps.RANGE:
            stack.append([])
        elif u.op is UOps.ENDRANGE:
            found.append(stack.pop())
        elif stack and u.op in (UOps.STORE, UOps.ASSIGN, UOps.PREFETCH):
            stack[-1].append(u.op)
    return found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(16, 256), (9, 192), (3, 512), (16, 100)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_values(shape: tuple[int, int], threads: int, weighted: bool) -> None:
    spec = compile_ast(softmax(*shape, weighted=weighted), LLVMRenderer(machine(threads)))
    assert STREAM in {u.arg for u in spec.uops if u.op is UOps.STORE}
    x, weight = normal(*shape), np.arange(shape[1], dtype=np.float32)
    found = run(spec, x, *([weight] if weighted else []))
    np.testing.assert_allclose(found, right(x) * (weight if weighted else 1), rtol=2e-5, atol=1e-6)


def test_what_is_kept_is_summed_in_the_same_walk() -> None:
    spec = compile_ast(softmax(64, 256), LLVMRenderer(machine(last_bytes=0)))
    walks = [set(walk) - {UOps.PREFETCH} for walk in loops(spec) if walk]
    assert {UOps.STORE, UOps.ASSIGN} in walks, "the powers are stored and added in one loop"
    assert walks.count({UOps.STORE}) == 1, "and the results are written in a loop of their own"


def test_a_row_is_written_in_the_next_ones_walk() -> None:
    spec = compile_ast(softmax(64, 256), LLVMRenderer(machine()))
    depth, inside = 0, []
    for u in spec.uops:
        depth += (u.op is UOps.RANGE) - (u.op is UOps.ENDRANGE)
        if u.op is UOps.STORE and u.arg == STREAM:
            inside.append(depth)
    assert sorted(set(inside)) == [1, 2], "in the walk within the rows' loop, and once more after it for the last row"


@pytest.mark.parametrize("last_bytes", [0, 1 << 24])
def test_rows_that_stay_in_the_caches_are_written_at_once(last_bytes: int) -> None:
    """What does not go past them has no time to win."""
    spec = compile_ast(softmax(64, 256), LLVMRenderer(machine(last_bytes=last_bytes)))
    assert STREAM not in {u.arg for u in spec.uops if u.op is UOps.STORE}
    assert not any(u.op is UOps.IF for u in spec.uops)


def test_cheap_rows_are_written_at_once() -> None:
    n, m = 64, 256
    x = A.load(1, F32, ST((n, m)))
    total = A.view(A.reduce(x, Ops.ADD, (1,)), ST((n, 1)).expand((n, m)))
    ast = A.sink((A.store(0, ST((n, m)), A.alu(Ops.SUB, x, total)),), (BufferArg(F32, n * m),) * 2)
    spec = compile_ast(ast, LLVMRenderer(machine()))
    assert STREAM in {u.arg for u in spec.uops if u.op is UOps.STORE}
    assert not any(u.op is UOps.IF for u in spec.uops)
    x_values = normal(n, m)
    want = x_values - x_values.sum(1, keepdims=True)
    np.testing.assert_allclose(run(spec, x_values), want, rtol=1e-4, atol=1e-4)


def test_in_place_rows_are_written_at_once() -> None:
    """An output that is also read does not go past the caches, and does not wait."""
    n, m = 64, 256
    x = A.load(0, F32, ST((n, m)))
    greatest = A.view(A.reduce(x, Ops.MAX, (1,)), ST((n, 1)).expand((n, m)))
    power = A.alu(Ops.EXP2, A.alu(Ops.SUB, x, greatest))
    total = A.view(A.reduce(power, Ops.ADD, (1,)), ST((n, 1)).expand((n, m)))
    ast = A.sink((A.store(0, ST((n, m)), A.alu(Ops.FDIV, power, total)),), (BufferArg(F32, n * m),))
    spec = compile_ast(ast, LLVMRenderer(machine()))
    assert not any(u.op is UOps.IF for u in spec.uops)
    values = normal(n, m)
    memory = bytearray(values.tobytes())
    interpret(spec.uops, [memory])
    np.testing.assert_allclose(np.frombuffer(memory, np.float32).reshape(n, m), right(values), rtol=2e-5, atol=1e-6)


ONE_PLACE = """
%0 = range[row] int64 (0:int64, 4:int64)
%1 = range[j] int64 (0:int64, 8:int64)
%2 = scratch[kept, {size}] float32*{size}@reg
%3 = param[1] float32*32
%4 = mul int64 (%0, 8:int64)
%5 = add int64 (%4, %1)
%6 = load float32 (%3, %5)
%7 = store (%2, {place}, %6)
%8 = acc[1] float32 (0.0, %0)
%9 = add float32 (%8, %6)
%10 = assign (%8, %9)
%11 = loop (%1, %7, %10)
%12 = range[k] int64 (0:int64, 8:int64)
%13 = param[0] float32*32
%14 = add int64 (%4, %12)
%15 = after float32*{size}@reg (%2, %11)
%16 = load float32 (%15, {again})
%17 = read float32 (%8, %11)
%18 = mul float32 (%16, %17)
%19 = store (%13, %14, %18)
%20 = loop (%12, %19)
%21 = loop (%0, %11, %20)
sink (%21)
"""


def test_a_place_that_each_iteration_overwrites_is_not_there_a_row_later() -> None:
    """The next row's second iteration would read what its first one stored."""

    def can_wait(**parts: object) -> bool:
        sink = parse(ONE_PLACE.format(**parts))
        assert isinstance(sink, UOp)
        return delayed(sink) is not sink

    assert can_wait(size=8, place="%1", again="%12")
    assert not can_wait(size=1, place="0:int64", again="0:int64")
