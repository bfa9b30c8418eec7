"""How long one core takes for a kernel, told before it is planned: as its instructions say later, and what follows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from tg_codegen import Target, compile_ast
from tg_codegen.nest.lower import lower
from tg_codegen.nest.parts import stated
from tg_codegen.plan.work import core_cycles, worth_threads
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.search.cycles import cycles
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

ST = ShapeTracker.from_shape
TWO = Target(vector_bytes=64, registers=32, threads=2, l2_bytes=1 << 21)


def sink(value: LazyOp, shape: tuple[int, ...], dtype: DType, *sizes: int) -> LazyOp:
    count = 1
    for n in shape:
        count *= n
    return A.sink((A.store(0, ST(shape), value),), tuple(BufferArg(dtype, n) for n in (count, *sizes)))


def elementwise(n: int, m: int, dtype: DType) -> LazyOp:
    x, y = (A.load(slot, dtype, ST((n * m,))) for slot in (1, 2))
    return sink(A.alu(Ops.ADD, A.alu(Ops.MUL, x, y), y), (n * m,), dtype, n * m, n * m)


def exponentials(n: int, m: int, dtype: DType) -> LazyOp:
    return sink(A.alu(Ops.EXP2, A.load(1, dtype, ST((n * m,)))), (n * m,), dtype, n * m)


def quotients(n: int, m: int, dtype: DType) -> LazyOp:
    return sink(A.alu(Ops.RECIP, A.load(1, dtype, ST((n * m,)))), (n * m,), dtype, n * m)


def row_sums(n: int, m: int, dtype: DType) -> LazyOp:
    return sink(A.reduce(A.load(1, dtype, ST((n, m))), Ops.ADD, (1,)), (n, 1), dtype, n * m)


def column_sums(n: int, m: int, dtype: DType) -> LazyOp:
    return sink(A.reduce(A.load(1, dtype, ST((m, n)).permute((1, 0))), Ops.ADD, (1,)), (n, 1), dtype, n * m)


def transposition(n: int, m: int, dtype: DType) -> LazyOp:
    return sink(A.load(1, dtype, ST((n, m)).permute((1, 0))), (m, n), dtype, n * m)


def product(n: int, m: int, dtype: DType) -> LazyOp:
    k = 61
    x = A.load(1, dtype, ST((n, 1, k)).expand((n, m, k)))
    y = A.load(2, dtype, ST((k, m)).permute((1, 0)).reshape((1, m, k)).expand((n, m, k)))
    return sink(A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (2,)), (n, m, 1), dtype, n * k, k * m)


MADE: dict[str, Callable[[int, int, DType], LazyOp]] = {
    f.__name__: f for f in (elementwise, exponentials, quotients, row_sums, column_sums, transposition, product)}
FACTOR = 4.0
"""How far apart the two may be: instructions know no caches, and what is computed knows no tiles."""


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", MADE)
def test_about_what_its_instructions_take(name: str, dtype: DType) -> None:
    draw = random.Random(f"{name} {dtype.name}")
    for _ in range(2):
        n, m = draw.randint(33, 180), draw.randint(33, 180)
        ast = MADE[name](n, m, dtype)
        told = core_cycles(stated(lower(ast)).outline, TWO)
        counted = cycles(compile_ast(ast, LLVMRenderer(replace(TWO, threads=1))), TWO)
        assert counted / FACTOR < told < counted * FACTOR, (n, m)


@pytest.mark.parametrize("name", MADE)
def test_threads_have_what_takes_long(name: str) -> None:
    """Of growing sizes, the first ones are left to one thread, all from one on are divided."""
    draw, before = random.Random(name), 1
    for n in (3, 5, 17, 31, 59, 113, 227, 431):
        ast = MADE[name](n, n + draw.randrange(5), dtypes.float32)
        worth = worth_threads(stated(lower(ast)).outline, TWO)
        threads = compile_ast(ast, LLVMRenderer(TWO)).threads
        assert threads == (2 if worth else 1) and threads >= before, n
        before = threads
    assert before == 2
    assert not worth_threads(stated(lower(ast)).outline, replace(TWO, threads=1))
