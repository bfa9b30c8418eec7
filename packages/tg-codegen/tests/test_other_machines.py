"""Plans for machines that are not at hand: registers are enough, vectors are used up, threads have as much to do.

Sizes are drawn, odd ones with the others. What is counted is counted in linear kernels, with the numbers of the machine
model: it says what a plan asks of a machine, not what the machine makes of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from tg_codegen import ProgramSpec, Target, compile_ast, interpret
from tg_codegen.ir.uop import UOp, UOps
from tg_codegen.machine.limits import accumulators
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.search.cycles import _body
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

F32 = dtypes.float32
ST = ShapeTracker.from_shape
MACHINES = {
    "NEON, 4 threads": Target(vector_bytes=16, registers=32, threads=4, l1_bytes=1 << 16, l1_ways=4, l2_ways=8),
    "SVE, 4 threads": Target(vector_bytes=32, registers=32, threads=4, l1_bytes=1 << 16, l1_ways=4, l2_bytes=1 << 20),
    "AVX2, 8 threads": Target(vector_bytes=32, registers=16, threads=8, l2_bytes=1 << 18, l2_ways=8),
    "no vectors": Target(vector_bytes=4, registers=32),
}
MACHINE = pytest.mark.parametrize("machine", MACHINES)
DRAWS = 6
LEAST_REUSE = {"NEON, 4 threads": 1.2, "SVE, 4 threads": 0.85, "AVX2, 8 threads": 0.85, "no vectors": 0.85}
"""Multiply-adds for each load of a vector or a scalar, copies to scratch included."""


def product(m: int, n: int, k: int, right_turned: bool) -> LazyOp:
    """(m, k) times (k, n), of which the right one may lie in memory the other way round."""
    x = A.load(1, F32, ST((m, k)).reshape((m, 1, k)).expand((m, n, k)))
    right = ST((n, k)) if right_turned else ST((k, n)).permute((1, 0))
    y = A.load(2, F32, right.reshape((1, n, k)).expand((m, n, k)))
    total = A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (2,))
    return A.sink((A.store(0, ST((m, n, 1)), total),), tuple(BufferArg(F32, s) for s in (m * n, m * k, k * n)))


def convolution(b: int, c: int, o: int, h: int) -> LazyOp:
    """Of images (b, c, h, h), padded by one, with weights (o, c, 3, 3)."""
    side, full = h + 2, (b, o, h, h, c, 3, 3)
    x = ST((b, c, h, h)).pad(((0, 0), (0, 0), (1, 1), (1, 1))).reshape((b, c, 1, side, 1, side))
    x = x.expand((b, c, 4, side, 4, side)).reshape((b, c, 4 * side, 4 * side))
    x = x.shrink(((0, b), (0, c), (0, 3 * (side + 1)), (0, 3 * (side + 1)))).reshape((b, c, 3, side + 1, 3, side + 1))
    x = x.shrink(((0, b), (0, c), (0, 3), (0, h), (0, 3), (0, h))).permute((0, 3, 5, 1, 2, 4))
    w = ST((o, c, 3, 3)).reshape((1, o, 1, 1, c, 3, 3)).expand(full)
    terms = A.alu(Ops.MUL, A.load(1, F32, x.reshape((b, 1, h, h, c, 3, 3)).expand(full)), A.load(2, F32, w))
    store = A.store(0, ST((b, o, h, h, 1, 1, 1)), A.reduce(terms, Ops.ADD, (4, 5, 6)))
    return A.sink((store,), tuple(BufferArg(F32, n) for n in (b * o * h * h, b * c * h * h, o * c * 9)))


def attention(heads: int, rows: int, keys: int, width: int) -> LazyOp:
    """Rows with keys, their powers of two over the sum of these, and sums of values with those weights."""
    full, out, square = (heads, rows, keys, width), (heads, rows, width, keys), (heads, rows, keys)
    q = A.load(1, F32, ST((heads, rows, width)).reshape((heads, rows, 1, width)).expand(full))
    k = A.load(2, F32, ST((heads, keys, width)).reshape((heads, 1, keys, width)).expand(full))
    seen, column = A.load(4, F32, ST(square)), ST((heads, rows, 1)).expand(square)
    power = A.alu(Ops.EXP2, A.alu(Ops.SUB, seen, A.view(A.reduce(seen, Ops.MAX, (2,)), column)))
    share = A.alu(Ops.FDIV, power, A.view(A.reduce(power, Ops.ADD, (2,)), column))
    p = A.load(5, F32, ST(square).reshape((heads, rows, 1, keys)).expand(out))
    v = A.load(3, F32, ST((heads, keys, width)).permute((0, 2, 1)).reshape((heads, 1, width, keys)).expand(out))
    stores = (
        A.store(4, ST((*square, 1)), A.reduce(A.alu(Ops.MUL, q, k), Ops.ADD, (3,))), A.store(5, ST(square), share),
        A.store(0, ST((heads, rows, width, 1)), A.reduce(A.alu(Ops.MUL, p, v), Ops.ADD, (3,))),
    )  # fmt: skip
    between = BufferArg(F32, heads * rows * keys, internal=True)
    return A.sink(stores, (*(BufferArg(F32, heads * n * width) for n in (rows, rows, keys, keys)), between, between))


def softmax(n: int, m: int) -> LazyOp:
    """Powers of two, over their sum in each row."""
    x, row = A.load(1, F32, ST((n, m))), ST((n, 1)).expand((n, m))
    power = A.alu(Ops.EXP2, A.alu(Ops.SUB, x, A.view(A.reduce(x, Ops.MAX, (1,)), row)))
    total = A.view(A.reduce(power, Ops.ADD, (1,)), row)
    return A.sink((A.store(0, ST((n, m)), A.alu(Ops.FDIV, power, total)),), (BufferArg(F32, n * m),) * 2)


def transposition(n: int, m: int) -> LazyOp:
    x = A.load(1, F32, ST((m, n)).permute((1, 0)))
    return A.sink((A.store(0, ST((n, m)), x),), (BufferArg(F32, n * m),) * 2)


PROGRAMS: dict[str, Callable[[random.Random], LazyOp]] = {
    "product": lambda r: product(r.randint(90, 400), r.randint(90, 400), r.randint(60, 400), r.random() < 0.5),
    "convolution": lambda r: convolution(r.randint(1, 9), r.choice((3, 16, 37)), r.randint(16, 70), r.randint(9, 40)),
    "attention": lambda r: attention(r.randint(1, 9), r.randint(60, 300), r.randint(60, 300), r.choice((33, 64))),
    "softmax": lambda r: softmax(r.randint(64, 700), r.randint(100, 3000)),
    "transposition": lambda r: transposition(r.randint(300, 1100), r.randint(300, 1100)),
}
PROGRAM = pytest.mark.parametrize("program", PROGRAMS)


@cache
def kernels(program: str, machine: str, seed: int = 0) -> tuple[ProgramSpec, ...]:
    """Some kernels of a program, planned for a machine."""
    rng, renderer = random.Random(f"{program} {seed}"), LLVMRenderer(MACHINES[machine])
    found = tuple(compile_ast(PROGRAMS[program](rng), renderer) for _ in range(DRAWS))
    assert not any(spec.fallback for spec in found)
    return found


def runs(spec: ProgramSpec, counted: Callable[[UOp], bool]) -> float:
    """How often instructions run that are counted, in all loops of a kernel, the threads' among them."""
    total, factor, factors = 0.0, 1.0, list[float]()
    for u in spec.uops:
        if u.op is UOps.RANGE:
            factors.append(factor)
            start, end = u.src[0], u.src[1]
            factor *= int(end.arg) - int(start.arg) if end.is_const and start.is_const else 1
        elif u.op is UOps.ENDRANGE:
            factor = factors.pop()
        elif counted(u):
            total += factor
    return total


@pytest.mark.drawn(4)
@MACHINE
@PROGRAM
def test_accumulators_do_not_exceed_the_registers(program: str, machine: str) -> None:
    target = MACHINES[machine]
    for spec in kernels(program, machine):
        assert accumulators(spec.uops, target.vector_bytes) < target.registers, "one is left for what is multiplied"


@MACHINE
@pytest.mark.parametrize("program", ["product", "convolution", "attention"])
def test_what_is_read_is_used_several_times(program: str, machine: str) -> None:
    """A tile of 8 by 1 does 8 multiply-adds for 9 loads, one of 6 by 2 does 12 for 8."""
    for spec in kernels(program, machine):
        done = runs(spec, lambda u: u.op is Ops.MULACC)
        read = runs(spec, lambda u: u.op is UOps.LOAD)
        assert done / read > LEAST_REUSE[machine], f"{done:.0f} multiply-adds, {read:.0f} loads"


@MACHINE
@pytest.mark.parametrize("program", ["softmax", "transposition"])
def test_memory_is_read_and_written_in_whole_vectors(program: str, machine: str) -> None:
    width = MACHINES[machine].vector_bytes

    def whole(u: UOp) -> bool:
        return (u if u.op is UOps.LOAD else u.src[2]).dtype.itemsize >= width

    for spec in kernels(program, machine):
        for op in (UOps.LOAD, UOps.STORE):
            every = runs(spec, lambda u, op=op: u.op is op)  # type: ignore[misc]
            vectors = runs(spec, lambda u, op=op: u.op is op and whole(u))  # type: ignore[misc]
            assert vectors >= 0.9 * every, f"{vectors:.0f} of {every:.0f} {op.name} of whole vectors"


@MACHINE
@pytest.mark.parametrize(
    ("program", "most"), [("product", 1.27), ("convolution", 1.3), ("softmax", 1.05), ("transposition", 1.1)])
def test_threads_have_about_the_same_to_do(program: str, most: float, machine: str) -> None:
    """The busiest thread beside the mean of all, of drawn sizes together: some divide badly by any number."""
    target, shares = MACHINES[machine], list[float]()
    for spec in kernels(program, machine):
        each = [_body(spec.uops, target, core) for core in range(spec.threads)]
        assert spec.threads == target.threads, "no thread is without any"
        shares.append(max(each) * len(each) / sum(each))
    assert sum(shares) / len(shares) < most, f"{[round(share, 2) for share in shares]}"


def test_a_batch_that_does_not_divide_is_not_what_is_divided() -> None:
    """Of 5 products on 4 threads one thread would do two, and the others one each: their rows are divided instead."""
    m, n, k, batch = 200, 160, 100, 5
    shape = (batch, m, n, k)
    x = A.load(1, F32, ST((batch, m, k)).reshape((batch, m, 1, k)).expand(shape))
    y = A.load(2, F32, ST((batch, k, n)).permute((0, 2, 1)).reshape((batch, 1, n, k)).expand(shape))
    store = A.store(0, ST((batch, m, n, 1)), A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (3,)))
    ast = A.sink((store,), tuple(BufferArg(F32, batch * s) for s in (m * n, m * k, k * n)))
    target = MACHINES["NEON, 4 threads"]
    spec = compile_ast(ast, LLVMRenderer(target))
    each = [_body(spec.uops, target, core) for core in range(spec.threads)]
    assert len(each) == 4 and max(each) * len(each) / sum(each) < 1.15


@MACHINE
@pytest.mark.parametrize("right_turned", [False, True])
def test_what_is_planned_computes_products(machine: str, right_turned: bool) -> None:
    rng = np.random.default_rng(0)
    for m, n, k in ((13, 29, 23), (31, 6, 40), (40, 37, 3)):
        x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (n, k) if right_turned else (k, n)))
        spec, out = compile_ast(product(m, n, k, right_turned), LLVMRenderer(MACHINES[machine])), bytearray(4 * m * n)
        interpret(spec.uops, [out, bytearray(x.tobytes()), bytearray(y.tobytes())], threads=spec.threads)
        want = x @ (y.T if right_turned else y)
        np.testing.assert_allclose(np.frombuffer(out, np.float32).reshape(m, n), want, rtol=1e-4, atol=1e-5)
