"""Lowering, actions and emission, checked by running what comes out in the reference interpreter against numpy."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest

from tg_codegen import (
    ActionError,
    EmitError,
    Mark,
    Outermost,
    Pack,
    Renderer,
    Share,
    Split,
    SplitReduction,
    Target,
    compile_ast,
    interpret,
    linearize,
)
from tg_codegen.emit.kernel import emit, emit_nest
from tg_codegen.ir.uop import UOps
from tg_codegen.ir.verify import verify
from tg_codegen.nest.env import Env
from tg_codegen.nest.estimate import estimate
from tg_codegen.nest.launch_shape import fold
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Axis, Nest
from tg_codegen.nest.parts import stated
from tg_codegen.nest.spec import Kind
from tg_codegen.nest.text import parse_kernel, print_kernel, print_nest
from tg_codegen.plan.actions import LoopAction, apply
from tg_codegen.plan.code_copies import proposed
from tg_codegen.plan.heuristic import applied, before_emission, loop_actions
from tg_codegen.plan.vocabulary import parse_action, parse_loop
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker, Variable, sint

F32, I32 = dtypes.float32, dtypes.int32
ST = ShapeTracker.from_shape
Array = np.ndarray[Any, np.dtype[Any]]

CPU = Target(kind="cpu", vector_bytes=32, registers=16, threads=2, l1_bytes=1 << 15, l2_bytes=1 << 18)
GPU = Target(kind="gpu", vector_bytes=16, registers=64, local_max=64, shared_bytes=1 << 14)
BIG_GPU = Target(kind="gpu", vector_bytes=16, registers=255, local_max=1024, shared_bytes=48 << 10)
PLAIN_GPU = Target(kind="gpu", vector_bytes=4, registers=64, local_max=32)


@dataclass(frozen=True)
class Case:
    """A kernel, its inputs by slot and what numpy says its outputs are."""

    ast: LazyOp
    inputs: dict[int, Array]
    want: dict[int, Array]
    values: dict[Variable | str, int]


def case(
    ast: LazyOp, inputs: dict[int, Array], want: dict[int, Array], values: dict[Variable | str, int] | None = None
) -> Case:
    return Case(ast, inputs, want, values or {})


def data(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(0.5, 2, shape).astype(np.float32)


def buffers(*sizes: int, dtype: Any = F32) -> tuple[BufferArg, ...]:
    return tuple(BufferArg(dtype, n) for n in sizes)


def wide(x: LazyOp, shape: tuple[int, ...]) -> LazyOp:
    return A.view(x, ST(tuple(x.shape)).expand(shape))


def elementwise(n: int, m: int) -> Case:
    x, y = data(n, m), data(m, seed=1)
    a = A.load(1, F32, ST((n, m)))
    b = A.load(2, F32, ST((1, m)).expand((n, m)))
    out = A.alu(Ops.MAX, A.alu(Ops.MUL, a, b), A.const(1.5, F32, (n, m)))
    ast = A.sink((A.store(0, ST((n, m)), out),), buffers(n * m, n * m, m))
    return case(ast, {1: x, 2: y}, {0: np.maximum(x * y, 1.5)})


def transpose(n: int, m: int) -> Case:
    x = data(m, n)
    a = A.load(1, F32, ST((m, n)).permute((1, 0)))
    return case(A.sink((A.store(0, ST((n, m)), A.alu(Ops.ADD, a, a)),), buffers(n * m, n * m)), {1: x}, {0: 2 * x.T})


def both_ways(n: int, m: int) -> Case:
    """One operand along the output, one across it and padded."""
    x, y = data(n, m), data(m - 3, n - 1, seed=1)
    a = A.load(1, F32, ST((n, m)))
    b = A.load(2, F32, ST((m - 3, n - 1)).pad(((2, 1), (0, 1))).permute((1, 0)))
    want = x - np.pad(y, ((2, 1), (0, 1))).T
    ast = A.sink((A.store(0, ST((n, m)), A.alu(Ops.SUB, a, b)),), buffers(n * m, n * m, (m - 3) * (n - 1)))
    return case(ast, {1: x, 2: y}, {0: want})


def stored_across(n: int, m: int) -> Case:
    """A permuted store of bools, and of half of the numbers."""
    x = data(n, m)
    a = A.load(2, F32, ST((n, m)))
    flags = A.alu(Ops.CMPLT, a, A.const(1, F32, (n, m)))
    stores = (A.store(0, ST((m, n)).permute((1, 0)), flags), A.store(1, ST((m, 2 * n)).permute((1, 0)).shrink(
        ((n, 2 * n), (0, m))), a))
    wide = np.zeros((m, 2 * n))
    wide[:, n:] = x.T
    sizes = (BufferArg(dtypes.bool, n * m), BufferArg(F32, 2 * n * m), BufferArg(F32, n * m))
    return case(A.sink(stores, sizes), {2: x}, {0: x.T < 1, 1: wide})


def matmul_across(m: int, n: int, k: int, left: bool, right: bool) -> Case:
    """A product of operands that may lie transposed in memory."""
    x, y = data(m, k), data(k, n, seed=1)
    a = ST((k, m)).permute((1, 0)) if left else ST((m, k))
    b = ST((n, k)) if right else ST((k, n)).permute((1, 0))
    terms = A.alu(
        Ops.MUL,
        A.load(1, F32, a.reshape((m, 1, k)).expand((m, n, k))),
        A.load(2, F32, b.reshape((1, n, k)).expand((m, n, k))),
    )
    ast = A.sink((A.store(0, ST((m, n, 1)), A.reduce(terms, Ops.ADD, (2,))),), buffers(m * n, m * k, k * n))
    return case(ast, {1: x.T if left else x, 2: y.T if right else y}, {0: x @ y})


def padded(n: int) -> Case:
    x = data(n)
    a = A.load(1, F32, ST((n,)).pad(((2, 3),)))
    inside = A.view(A.alu(Ops.ADD, A.load(1, F32, ST((n,))), A.const(1, F32, (n,))), ST((n,)).pad(((2, 3),)))
    want = np.pad(x, (2, 3)) * 10 + np.pad(x + 1, (2, 3))
    out = A.alu(Ops.ADD, A.alu(Ops.MUL, a, A.const(10, F32, (n + 5,))), inside)
    return case(A.sink((A.store(0, ST((n + 5,)), out),), buffers(n + 5, n)), {1: x}, {0: want})


def flipped(n: int) -> Case:
    x = data(n)
    a = A.load(1, F32, ST((n,)).flip((0,)))
    return case(A.sink((A.store(0, ST((n,)), A.alu(Ops.MUL, a, a)),), buffers(n, n)), {1: x}, {0: x[::-1] ** 2})


def reflected(n: int, m: int, before: int, after: int) -> Case:
    """Rows between parts of themselves that are turned, as a padding that reflects has them."""
    x = data(n, m)
    wide = before + m + after

    def part(first: int, end: int, at: int, turned: bool) -> LazyOp:
        view = ST((n, m)).shrink(((0, n), (first, end)))
        view = view.flip((1,)) if turned else view
        return A.load(1, F32, view.pad(((0, 0), (at, wide - at - (end - first)))))

    out = part(0, m, before, turned=False)
    out = A.alu(Ops.ADD, out, part(1, 1 + before, 0, turned=True))
    out = A.alu(Ops.ADD, out, part(m - 1 - after, m - 1, before + m, turned=True))
    want = np.pad(x, ((0, 0), (before, after)), mode="reflect")
    return case(A.sink((A.store(0, ST((n, wide)), out),), buffers(n * wide, n * m)), {1: x}, {0: want})


def total(n: int, m: int, axis: int, op: Ops = Ops.ADD) -> Case:
    x = data(n, m)
    shape = (1, m) if axis == 0 else (n, 1)
    r = A.reduce(A.load(1, F32, ST((n, m))), op, (axis,))
    reducers: dict[Ops, Any] = {Ops.ADD: np.sum, Ops.MAX: np.max, Ops.MUL: np.prod}
    want = reducers[op](x.astype(np.float64), axis=axis)
    return case(A.sink((A.store(0, ST(shape), r),), buffers(int(want.size), n * m)), {1: x}, {0: want})


def everything(n: int) -> Case:
    x = data(n)
    r = A.reduce(A.load(1, F32, ST((n,))), Ops.ADD, (0,))
    return case(A.sink((A.store(0, ST((1,)), r),), buffers(1, n)), {1: x}, {0: x.sum(dtype=np.float64)})


def matmul(m: int, n: int, k: int) -> Case:
    x, y = data(m, k), data(k, n, seed=1)
    a = A.load(1, F32, ST((m, k)).reshape((m, 1, k)).expand((m, n, k)))
    b = A.load(2, F32, ST((k, n)).permute((1, 0)).reshape((1, n, k)).expand((m, n, k)))
    r = A.reduce(A.alu(Ops.MUL, a, b), Ops.ADD, (2,))
    out = A.alu(Ops.ADD, r, A.load(3, F32, ST((1, n, 1)).expand((m, n, 1))))
    bias = data(n, seed=2)
    ast = A.sink((A.store(0, ST((m, n, 1)), out),), buffers(m * n, m * k, k * n, n))
    return case(ast, {1: x, 2: y, 3: bias}, {0: x @ y + bias})


def normalise(n: int, m: int) -> Case:
    """Two reductions of different levels and an output wider than they are: the shape of softmax and layernorm."""
    x = data(n, m)
    a = A.load(1, F32, ST((n, m)))
    top = A.reduce(a, Ops.MAX, (1,))
    centred = A.alu(Ops.SUB, a, wide(top, (n, m)))
    square = A.reduce(A.alu(Ops.MUL, centred, centred), Ops.ADD, (1,))
    out = A.alu(Ops.FDIV, centred, wide(A.alu(Ops.ADD, square, A.const(1, F32, (n, 1))), (n, m)))
    c = x - x.max(1, keepdims=True)
    ast = A.sink((A.store(0, ST((n, m)), out),), buffers(n * m, n * m))
    return case(ast, {1: x}, {0: c / ((c * c).sum(1, keepdims=True) + 1)})


def moments(n: int, m: int) -> Case:
    """Two reductions over one loop, two outputs of different shapes."""
    x = data(n, m)
    a = A.load(3, F32, ST((n, m)))
    first, second = A.reduce(a, Ops.ADD, (1,)), A.reduce(A.alu(Ops.MUL, a, a), Ops.ADD, (1,))
    out = A.alu(Ops.MUL, a, wide(first, (n, m)))
    stores = (A.store(0, ST((n, 1)), first), A.store(1, ST((n, 1)), second), A.store(2, ST((n, m)), out))
    s = x.sum(1)
    return case(A.sink(stores, buffers(n, n, n * m, n * m)), {3: x}, {0: s, 1: (x * x).sum(1), 2: x * s[:, None]})


def convolution(c: int, h: int, o: int) -> Case:
    x, w = data(c, h, h), data(o, c, 3, 3, seed=1)
    view = ST((c, h, h)).pad(((0, 0), (1, 1), (1, 1)))
    # windows: (c, h, 3, h, 3)
    size = h + 2
    rows = view.reshape((c, 1, size, 1, size)).expand((c, 4, size, 4, size)).reshape((c, 4 * size, 4 * size))
    rows = rows.shrink(((0, c), (0, 3 * (size + 1)), (0, 3 * (size + 1)))).reshape((c, 3, size + 1, 3, size + 1))
    rows = rows.shrink(((0, c), (0, 3), (0, h), (0, 3), (0, h))).permute((2, 4, 0, 1, 3))
    shape = (o, h, h, c, 3, 3)
    a = A.load(1, F32, rows.reshape((1, h, h, c, 3, 3)).expand(shape))
    b = A.load(2, F32, ST((o, 1, 1, c, 3, 3)).expand(shape))
    r = A.reduce(A.alu(Ops.MUL, a, b), Ops.ADD, (3, 4, 5))
    padded_x = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    want = np.zeros((o, h, h))
    for i in range(3):
        for j in range(3):
            want += np.einsum("oc,chw->ohw", w[:, :, i, j], padded_x[:, i : i + h, j : j + h])
    ast = A.sink((A.store(0, ST((o, h, h, 1, 1, 1)), r),), buffers(o * h * h, c * h * h, o * c * 9))
    return case(ast, {1: x, 2: w}, {0: want})


def rows_by_index(n: int, vocabulary: int, width: int) -> Case:
    table = data(vocabulary, width)
    ids = np.random.default_rng(3).integers(-1, vocabulary + 1, n).astype(np.int32)
    row = A.load(2, I32, ST((n, 1)).expand((n, width)))
    column = A.iota(ST((1, width)).expand((n, width)))
    index = A.alu(Ops.ADD, A.alu(Ops.MUL, row, A.const(width, I32, (n, width))), column)
    out = A.gather(1, F32, ST((vocabulary * width,)), index)
    want = np.array([table[i] if 0 <= i < vocabulary else np.zeros(width) for i in ids])
    sizes = (BufferArg(F32, n * width), BufferArg(F32, vocabulary * width), BufferArg(I32, n))
    return case(A.sink((A.store(0, ST((n, width)), out),), sizes), {1: table, 2: ids}, {0: want})


def in_place(n: int) -> Case:
    x, y = data(n), data(n, seed=1)
    out = A.alu(Ops.SUB, A.load(0, F32, ST((n,))), A.load(1, F32, ST((n,))))
    return case(A.sink((A.store(0, ST((n,)), out),), buffers(n, n)), {0: x, 1: y}, {0: x - y})


def into_view(n: int) -> Case:
    x, y = data(2 * n), data(n, seed=1)
    want = x.copy()
    want[1::2] = y
    odd = ST((2 * n,)).shrink(((1, 2 * n),)).stride((2,))
    return case(A.sink((A.store(0, odd, A.load(1, F32, ST((n,)))),), buffers(2 * n, n)), {0: x, 1: y}, {0: want})


def symbolic(n: int, bound: int) -> Case:
    v = Variable("n", 1, bound)
    x = data(bound, 5)
    a = A.load(2, F32, ST((bound, 5)).shrink(((0, v), (0, 5))))
    stores = (A.store(0, ST((v, 5)), A.alu(Ops.ADD, a, a)), A.store(1, ST((1, 5)), A.reduce(a, Ops.ADD, (0,))))
    doubled = np.zeros((bound, 5))
    doubled[:n] = 2 * x[:n]
    return case(A.sink(stores, buffers(5 * bound, 5, 5 * bound)), {2: x}, {0: doubled, 1: x[:n].sum(0)}, {v: n})


def rows_that_vary(n: int, bound: int) -> Case:
    """Of a table of (3, 5, bound) numbers the first n of each row, packed."""
    v = Variable("n", 1, bound)
    x = data(3, 5, bound)
    whole = ST((3, 5, bound)).shrink(((0, 3), (0, 5), (0, v)))
    out = np.zeros(15 * bound)
    out[: 15 * n] = 2 * x[:, :, :n].reshape(-1)
    a = A.load(1, F32, whole)
    stores = (A.store(0, ST((3, 5, v)), A.alu(Ops.ADD, a, a)),)
    return case(A.sink(stores, buffers(15 * bound, 15 * bound)), {1: x}, {0: out}, {v: n})


CASES: dict[str, Callable[[], Case]] = {
    "elementwise": lambda: elementwise(3, 37),
    "elementwise, even": lambda: elementwise(8, 32),
    "transpose": lambda: transpose(19, 9),
    "transpose, even": lambda: transpose(16, 32),
    "transpose, narrow": lambda: transpose(40, 3),
    "both ways": lambda: both_ways(13, 22),
    "stored across": lambda: stored_across(11, 21),
    "pad": lambda: padded(13),
    "flip": lambda: flipped(21),
    "reflected": lambda: reflected(3, 21, 5, 11),
    "row sum": lambda: total(5, 70, 1),
    "column sum": lambda: total(33, 19, 0),
    "row max": lambda: total(3, 9, 1, Ops.MAX),
    "row product": lambda: total(3, 17, 1, Ops.MUL),
    "sum of all": lambda: everything(139),
    "matmul": lambda: matmul(7, 18, 11),
    "matmul, even": lambda: matmul(8, 32, 16),
    "matmul, left across": lambda: matmul_across(13, 18, 11, True, False),
    "matmul, right across": lambda: matmul_across(6, 35, 19, False, True),
    "matmul, both across": lambda: matmul_across(21, 14, 17, True, True),
    "matmul, one row": lambda: matmul(1, 20, 9),
    "matmul, one column": lambda: matmul(20, 1, 40),
    "normalise": lambda: normalise(5, 43),
    "moments": lambda: moments(4, 21),
    "convolution": lambda: convolution(2, 6, 3),
    "gather": lambda: rows_by_index(6, 5, 19),
    "in place": lambda: in_place(27),
    "store through a view": lambda: into_view(15),
    "symbolic": lambda: symbolic(4, 9),
    "rows that vary": lambda: rows_that_vary(7, 19),
}


def check(nest: Nest, case: Case, target: Target) -> None:
    memory = []
    for slot, arg in enumerate(case.ast.arg):
        raw = np.zeros(arg.size, np.dtype(arg.dtype.name))
        if slot in case.inputs:
            raw[:] = case.inputs[slot].reshape(-1)
        memory.append(bytearray(raw.tobytes()))
    emitted = emit_nest(nest, target)
    verify(emitted)
    listed = linearize(emitted)
    verify(listed)
    interpret(listed, memory, case.values)
    for slot, want in case.want.items():
        got = np.frombuffer(memory[slot], np.dtype(case.ast.arg[slot].dtype.name))
        np.testing.assert_allclose(got, np.asarray(want).reshape(-1), rtol=2e-5, atol=1e-5, err_msg=print_nest(nest))


@pytest.mark.parametrize("name", CASES)
def test_plain(name: str) -> None:
    made = CASES[name]()
    check(lower(made.ast), made, Target())


@pytest.mark.parametrize("target", [CPU, GPU, BIG_GPU, PLAIN_GPU], ids=["cpu", "gpu", "big gpu", "plain gpu"])
@pytest.mark.parametrize("name", CASES)
def test_heuristic(name: str, target: Target) -> None:
    made = CASES[name]()
    nest = lower(made.ast)
    check(apply(nest, loop_actions(nest, target)), made, target)


@pytest.mark.parametrize("renderer", [LLVMRenderer(CPU), OpenCLRenderer(GPU)], ids=["cpu", "gpu"])
@pytest.mark.parametrize("name", CASES)
def test_the_list_of_actions_is_all_that_was_done(name: str, renderer: Renderer) -> None:
    ast = CASES[name]().ast
    planned = compile_ast(ast, renderer)
    again = compile_ast(ast, renderer, actions=[parse_action(line) for line in planned.actions])
    assert (again.src, again.actions) == (planned.src, planned.actions)


TRIES: list[tuple[str, str, Target]] = [
    ("matmul", "split(i1, 4, VECTOR); split(i0, 3, UPCAST); split(i1, 2, UPCAST); outermost(i1); pack(1, i1)", CPU),
    ("matmul", "split(i1, 4, VECTOR); split(r0, 4, UNROLL); split(i0, 2, UPCAST); mark(i0, THREAD)", CPU),
    ("matmul", "split(r0, 4, LANES); split(r0, 2, SPREAD); split(i0, 2, UPCAST); split(i1, 5, UPCAST)", CPU),
    ("matmul", "split(i0, 2, UPCAST); pack(0, -)", CPU),
    ("matmul", "split(i0, 4, LOCAL); mark(i0, GLOBAL); split(r0, 4, GROUP)", GPU),
    ("row sum", "split(r0, 8, GROUP); mark(i0, GLOBAL)", GPU),
    ("row sum", "split(r0, 2, LANES); split(r0, 16, GROUP); split(i0, 2, LOCAL); mark(i0, GLOBAL)", GPU),
    ("sum of all", "split(r0, 48, GROUP)", GPU),
    ("matmul", "split(i1, 4, LOCAL); split(i0, 4, LOCAL); split(r0, 4, REDUCE); share(0, r0); share(1, r0)", GPU),
    ("matmul", "split(i1, 2, VECTOR); split(i1, 4, LOCAL); split(i1, 2, UPCAST); split(i0, 3, UPCAST); "
     "mark(i0, LOCAL); split(r0, 4, REDUCE); share(0, r0); share(1, r0); mark(i1, GLOBAL)", GPU),
    ("matmul", "split(i1, 4, LOCAL); split(i0, 2, LOCAL); share(1, -); mark(i0, GLOBAL)", GPU),
    ("matmul", "split(i0, 4, LOCAL); split(r0, 2, GROUP); share(0, r0); mark(i1, GLOBAL)", GPU),
    ("matmul, both across", "split(i1, 8, LOCAL); split(i0, 5, UPCAST); split(i0, 2, LOCAL); split(r0, 8, REDUCE); "
     "share(1, r0); share(0, r0)", GPU),
    ("matmul, left across", "split(i1, 4, VECTOR); mark(i1, LOCAL); split(i0, 2, LOCAL); share(0, r0); "
     "split(i0, 2, LOOP); mark(i0, GLOBAL)", GPU),
    ("transpose", "split(i1, 8, LOCAL); split(i0, 2, UPCAST); split(i0, 4, LOCAL); share(0, -); mark(i1, GLOBAL)", GPU),
    ("both ways", "split(i1, 8, LOCAL); split(i0, 8, LOCAL); share(1, -); mark(i1, GLOBAL); mark(i0, GLOBAL)", GPU),
    ("normalise", "split(r0, 8, GROUP); split(r1, 8, GROUP); split(i1, 8, LOCAL); mark(i0, GLOBAL)", GPU),
    ("normalise", "split(r0, 4, GROUP); split(r1, 8, GROUP); split(i1, 2, VECTOR); split(i1, 8, LOCAL)", GPU),
    ("normalise", "split(r0, 16, GROUP); mark(i0, LOCAL)", GPU),
    ("row sum", "split(r0, 8, GROUP)", GPU),
    ("normalise", "split(r0, 4, GROUP); split(r1, 4, GROUP); split(i1, 8, LOCAL)", GPU),
    ("moments", "split(r0, 8, GROUP); split(i1, 8, LOCAL); mark(i0, GLOBAL)", GPU),
    ("symbolic", "split(r0, 2, GROUP); split(i0, 4, LOCAL); mark(i0, GLOBAL); mark(i1, GLOBAL)", GPU),
    ("convolution", "split(i2, 4, LOCAL); mark(i0, LOCAL); share(0, r0); share(1, r0); mark(i1, GLOBAL)", GPU),
    ("row sum", "split(r0, 16, LANES); split(i0, 2, UPCAST); split(r0, 3, UNROLL)", CPU),
    ("column sum", "split(i0, 8, VECTOR); split(r0, 4, SPREAD); mark(i0, THREAD)", CPU),
    ("normalise", "split(r0, 8, LANES); split(r1, 4, LANES); split(i1, 16, VECTOR); split(i0, 2, UPCAST)", CPU),
    ("normalise", "split(i0, 4, VECTOR); split(i1, 3, UPCAST)", CPU),
    ("moments", "split(r0, 4, LANES); split(r0, 2, SPREAD); mark(i0, THREAD)", CPU),
    ("convolution", "mark(r2, UNROLL); mark(r1, UNROLL); split(i2, 4, VECTOR); split(i1, 4, UPCAST)", CPU),
    ("symbolic", "split(i0, 4, UPCAST); mark(i1, UPCAST)", CPU),
    ("symbolic", "split(i0, 4, VECTOR); split(r0, 2, UNROLL)", CPU),
    ("symbolic", "mark(i0, THREAD); split(r0, 4, SPREAD)", CPU),
    ("transpose", "split(i1, 4, VECTOR); split(i0, 8, UPCAST)", CPU),
    ("transpose", "split(i1, 8, VECTOR); split(i0, 4, UPCAST)", CPU),
    ("transpose", "split(i1, 8, VECTOR); split(i0, 7, UPCAST); split(i1, 2, UPCAST); mark(i0, THREAD)", CPU),
    ("transpose", "split(i0, 4, VECTOR); split(i1, 4, UPCAST)", CPU),
    ("transpose", "split(i1, 4, VECTOR); split(i0, 4, LOOP); outermost(i1); outermost(i0); pack(0, i1)", CPU),
    ("transpose", "split(i0, 4, VECTOR); split(i1, 3, UPCAST); pack(0, i0)", CPU),
    ("transpose, even", "split(i1, 8, VECTOR); split(i0, 8, UPCAST); split(i1, 2, LOOP); outermost(i1)", CPU),
    ("both ways", "split(i1, 4, VECTOR); split(i0, 4, UPCAST)", CPU),
    ("both ways", "split(i1, 8, VECTOR); mark(i0, UPCAST); pack(1, -)", CPU),
    ("both ways", "split(i0, 4, VECTOR); split(i1, 8, UPCAST)", CPU),
    ("both ways", "split(i1, 4, VECTOR); split(i0, 6, LOOP); pack(1, i0)", CPU),
    ("stored across", "split(i1, 4, VECTOR); split(i0, 4, UPCAST)", CPU),
    ("stored across", "split(i1, 8, VECTOR); split(i0, 6, UPCAST)", CPU),
    ("matmul, left across", "split(i1, 4, VECTOR); split(i0, 6, UPCAST); split(i1, 2, UPCAST); pack(0, i0)", CPU),
    ("matmul, left across", "split(i1, 4, VECTOR); split(i0, 4, UPCAST); split(i0, 2, LOOP); pack(0, i0)", CPU),
    ("matmul, left across", "split(i0, 4, VECTOR); split(i1, 4, UPCAST); split(r0, 4, UNROLL)", CPU),
    ("matmul, right across", "split(i1, 8, VECTOR); split(i0, 3, UPCAST); outermost(i1); pack(1, i1)", CPU),
    ("matmul, right across", "split(i1, 4, VECTOR); split(i1, 3, UPCAST); mark(i0, UPCAST); pack(0, -)", CPU),
    ("matmul, right across", "split(i1, 8, VECTOR); split(r0, 8, UNROLL); split(i0, 2, UPCAST)", CPU),
    ("matmul, right across", "split(i1, 4, VECTOR); split(r0, 4, SPREAD); split(i0, 2, UPCAST)", CPU),
    ("matmul", "split(i1, 4, VECTOR); split(i0, 3, UPCAST); split(r0, 4, REDUCE); split_reduction(0, -)", CPU),
    ("matmul", "split(r0, 3, REDUCE); outermost(i1); split_reduction(0, i1); pack(0, r0); mark(i1, THREAD)", CPU),
    ("matmul", "split(i1, 4, VECTOR); split(r0, 4, REDUCE); split(r0, 2, UNROLL); split_reduction(0, i0)", CPU),
    ("matmul", "split(i0, 4, LOOP); split(i0, 2, UPCAST); split(i1, 4, VECTOR); split(i1, 2, LOOP)", CPU),
    ("matmul, both across", "split(i0, 4, VECTOR); split(i1, 4, UPCAST); split(r0, 8, REDUCE); split(i0, 2, LOOP); "
     "outermost(i0); pack(1, r0)", CPU),
    ("matmul, left across", "split(i1, 4, VECTOR); split(i0, 6, UPCAST); split(i1, 2, UPCAST); split(r0, 4, REDUCE); "
     "split(i0, 2, LOOP); outermost(i1); outermost(i0); split_reduction(0, i1); pack(1, r0)", CPU),
    ("matmul, both across", "split(i0, 4, VECTOR); split(i1, 4, UPCAST); split(r0, 8, REDUCE); split(i0, 2, LOOP); "
     "outermost(i0); split_reduction(0, i0); pack(0, r0); pack(1, r0)", CPU),
    ("row max", "split(r0, 4, REDUCE); split_reduction(0, -)", CPU),
    ("normalise", "split(r0, 8, REDUCE); split_reduction(0, i0); split(i1, 8, VECTOR)", CPU),
    ("normalise", "split(r1, 8, REDUCE); split_reduction(1, i0); split(i1, 8, VECTOR)", CPU),
    ("moments", "split(r0, 8, REDUCE); split(i0, 2, UPCAST); split_reduction(0, -); split_reduction(1, i0)", CPU),
    ("symbolic", "split(r0, 2, REDUCE); split_reduction(0, -); mark(i1, UPCAST)", CPU),
    ("matmul, both across", "split(i0, 8, VECTOR); split(i1, 4, UPCAST); pack(0, i0)", CPU),
    ("matmul, both across", "split(i0, 4, VECTOR); split(i1, 6, UPCAST); pack(0, i0); pack(1, i1)", CPU),
    ("elementwise", "split(i1, 8, LOCAL); mark(i1, GLOBAL); mark(i0, GLOBAL)", GPU),
    ("gather", "split(i1, 8, VECTOR); split(i0, 4, UPCAST)", CPU),
    ("flip", "split(i0, 8, VECTOR)", CPU),
    ("reflected", "split(i1, 8, VECTOR)", CPU),
    ("reflected", "split(i1, 4, VECTOR); split(i1, 3, UPCAST); split(i0, 2, UPCAST)", CPU),
    ("row sum", "split(r0, 16, LANES); split(i0, 4, ROWS)", CPU),
    ("row max", "split(r0, 4, LANES); split(i0, 2, ROWS)", CPU),
    ("row sum", "split(i0, 4, ROWS); split(r0, 3, UNROLL)", CPU),
    ("row product", "split(r0, 3, LANES); split(i0, 2, ROWS)", CPU),
    ("row product", "split(r0, 2, LANES); split(i0, 2, ROWS); split(r0, 2, SPREAD)", CPU),
    ("matmul", "split(r0, 4, LANES); split(r0, 2, SPREAD); split(i0, 4, ROWS); split(i1, 3, UPCAST)", CPU),
    ("matmul", "split(r0, 8, LANES); split(i1, 8, ROWS); split(i1, 2, UPCAST); mark(i0, THREAD)", CPU),
    ("matmul, one column", "split(r0, 8, LANES); split(i0, 8, ROWS); mark(i0, THREAD)", CPU),
    ("moments", "split(r0, 8, LANES); split(i0, 4, ROWS)", CPU),
    ("normalise", "split(r0, 8, LANES); split(r1, 4, LANES); split(i0, 4, ROWS)", CPU),
    ("symbolic", "split(i0, 4, ROWS); split(r0, 4, LANES)", CPU),
    ("in place", "split(i0, 8, VECTOR); split(i0, 2, UPCAST); mark(i0, THREAD)", CPU),
]


@pytest.mark.parametrize(("name", "text", "target"), TRIES, ids=[f"{n}: {t}" for n, t, _ in TRIES])
def test_actions(name: str, text: str, target: Target) -> None:
    made = CASES[name]()
    actions = [parse_loop(part) for part in text.split(";")]
    assert [str(a) for a in actions] == [part.strip() for part in text.split(";")]
    check(apply(lower(made.ast), actions), made, target)


def test_all_cuts_of_a_small_matmul() -> None:
    made = matmul(5, 6, 7)
    for factor in (2, 3, 4, 5):
        for kind in (Kind.UPCAST, Kind.VECTOR):
            for other in (Kind.UNROLL, Kind.SPREAD, Kind.LANES, Kind.REDUCE):
                actions: list[LoopAction] = [Split("i0", factor, kind), Split("r0", factor, other)]
                check(apply(lower(made.ast), actions), made, CPU)


def some_gpu_action(nest: Nest, choose: random.Random) -> LoopAction:
    axis = choose.choice(nest.axes)
    reduce = nest.roots[axis.root].reduce
    factor, place = choose.choice([2, 3, 4, 5, 8]), choose.choice([axis.name, None])
    cut = [Kind.LOCAL, Kind.LOCAL, Kind.UPCAST, Kind.VECTOR, Kind.LOOP]
    if reduce:
        cut = [Kind.REDUCE, Kind.UNROLL, Kind.LANES, Kind.GROUP]
    return choose.choice([
        *[Split(axis.name, factor, choose.choice(cut))] * 6,
        Mark(axis.name, Kind.GROUP if reduce else choose.choice([Kind.GLOBAL, Kind.LOCAL])),
        Share(choose.randrange(2), place), Share(choose.randrange(2), place),
    ])  # fmt: skip


@pytest.mark.drawn(4)
@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 24))])
def test_any_actions_for_work_items_are_right(seed: int) -> None:
    choose = random.Random(seed)
    for name in ("transpose", "both ways", "matmul, both across", "matmul", "normalise", "moments", "symbolic"):
        made = CASES[name]()
        nest = lower(made.ast)
        for _ in range(choose.randint(2, 7)):
            with suppress(ActionError):
                nest = some_gpu_action(nest, choose).apply(nest)
        with suppress(EmitError):
            if items_of(nest) <= 128 and len(emit_nest(nest, GPU).toposort()) < 2000:
                check(nest, made, GPU)


def items_of(nest: Nest) -> int:
    return prod(a.extent for a in nest.axes if a.kind in (Kind.LOCAL, Kind.GROUP) and isinstance(a.extent, int))


def some_action(nest: Nest, choose: random.Random) -> LoopAction:
    axis = choose.choice(nest.axes)
    reduce = nest.roots[axis.root].reduce
    factor, place = choose.choice([2, 3, 4, 5, 8]), choose.choice([axis.name, None])
    cut, whole = [Kind.LOOP, Kind.UPCAST, Kind.VECTOR], [Kind.UPCAST, Kind.THREAD]
    if reduce:
        cut, whole = [Kind.REDUCE, Kind.UNROLL, Kind.SPREAD, Kind.LANES], [Kind.UNROLL, Kind.SPREAD]
    return choose.choice([
        *[Split(axis.name, factor, choose.choice(cut))] * 6,
        Outermost(axis.name), Mark(axis.name, choose.choice(whole)),
        Pack(choose.randrange(2), place), SplitReduction(choose.randrange(2), place),
    ])  # fmt: skip


@pytest.mark.drawn(4)
@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 24))])
def test_any_actions_that_fit_are_right(seed: int) -> None:
    choose = random.Random(seed)
    for name in ("transpose", "both ways", "matmul, both across", "matmul", "normalise", "symbolic"):
        made = CASES[name]()
        nest = lower(made.ast)
        for _ in range(choose.randint(2, 6)):
            with suppress(ActionError):
                nest = some_action(nest, choose).apply(nest)
        with suppress(EmitError):
            if len(emit_nest(nest, CPU).toposort()) < 2000:
                check(nest, made, CPU)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (Split("i9", 4, Kind.UPCAST), "no loop 'i9'; the kernel has i0, i1, r0"),
        (Split("i0", 1, Kind.UPCAST), "factor must be at least 2"),
        (Split("i0", 4, Kind.LANES), "not a reduction"),
        (Split("r0", 4, Kind.VECTOR), "is a reduction"),
        (Split("i0", 100, Kind.UPCAST), "only 7 iterations"),
        (Pack(7, None), "has 3 loads"),
        (Pack(1, "i0"), "does not depend on i0"),
        (SplitReduction(1, None), "has 1 reductions"),
        (SplitReduction(0, "i9"), "no loop 'i9'"),
        (Outermost("x"), "no loop"),
        (Mark("r0", Kind.THREAD), "is a reduction"),
        (Share(0, "r0"), "no work-items"),
        (Share(3, "r0"), "has 3 loads"),
    ],
)
def test_actions_that_do_not_fit(action: LoopAction, message: str) -> None:
    with pytest.raises(ActionError, match=message):
        action.apply(lower(matmul(7, 18, 11).ast))


def test_partial_results_have_one_register_each() -> None:
    nest = apply(lower(total(5, 70, 1).ast), [parse_loop(t) for t in ("split(r0, 16, LANES)", "split_reduction(0, -)")])
    with pytest.raises(EmitError, match="spread over registers, lanes or items"):
        emit_nest(nest, CPU)


def test_an_inner_loop_has_no_partial_iteration() -> None:
    nest = Split("i0", 4, Kind.LOOP).apply(lower(matmul(7, 18, 11).ast))
    with pytest.raises(ActionError, match="3 does not divide the 4 iterations of an inner loop"):
        Split("i0.1", 3, Kind.UPCAST).apply(nest)
    Split("i0.1", 2, Kind.UPCAST).apply(nest)


def test_actions_that_are_not() -> None:
    for text in ("fly(i0)", "split(i0)", "split(i0, 4, UPCAST"):
        with pytest.raises(ActionError, match="not an action"):
            parse_loop(text)


def test_contiguous_dimensions_are_joined() -> None:
    a = A.load(1, F32, ST((4, 5, 6)))
    nest = lower(A.sink((A.store(0, ST((4, 5, 6)), A.alu(Ops.ADD, a, a)),), buffers(120, 120)))
    assert [(axis.extent, axis.kind) for axis in nest.axes] == [(120, Kind.LOOP)]


def test_rows_of_a_length_that_varies_are_joined() -> None:
    nest = lower(rows_that_vary(7, 19).ast)
    assert next(axis.extent for axis in nest.axes) == 15 and len(nest.axes) == 2


def test_softmax_rows_come_outside_of_columns() -> None:
    nest = lower(normalise(5, 43).ast)
    assert [axis.extent for axis in nest.axes if axis.kind is Kind.LOOP] == [5, 43]


@pytest.mark.parametrize(("kind", "accumulators"), [("VECTOR", [4]), ("ROWS", [8, 8, 8, 8])])
def test_lanes_of_outputs_beside_lanes_of_reductions(kind: str, accumulators: list[int]) -> None:
    """Rows have accumulators of their own, whose lanes are added up; plain vectors have one, of a lane for each."""
    made = total(8, 32, 1)
    nest = apply(lower(made.ast), [parse_loop("split(r0, 8, LANES)"), parse_loop(f"split(i0, 4, {kind})")])
    check(nest, made, CPU)
    assert [u.dtype.count for u in emit_nest(nest, CPU).toposort() if u.op is UOps.ACC] == accumulators


def test_a_register_tile_shares_its_loads() -> None:
    made = matmul(8, 32, 16)
    actions = [parse_loop(t) for t in ("split(i1, 8, VECTOR)", "split(i0, 4, UPCAST)", "split(i1, 2, UPCAST)")]
    uops = linearize(emit_nest(apply(lower(made.ast), actions), CPU))
    loads = [u for u in uops if u.op.name == "LOAD" and u.src[0].arg in (1, 2)]
    assert len(loads) == 4 + 2, "four scalars of one operand, two vectors of the other, once each"


def test_copies_that_keep_no_accumulators_are_a_loop_around_the_stores() -> None:
    made = matmul(16, 32, 24)
    copies = [parse_loop(t) for t in ("split(i1, 8, VECTOR)", "split(i0, 8, UPCAST)", "split(i1, 2, UPCAST)")]
    pieces = [parse_loop(t) for t in ("split(r0, 8, REDUCE)", "split_reduction(0, -)")]

    def stores(nest: Nest) -> int:
        check(nest, made, CPU)
        return sum(u.op is UOps.STORE and u.src[0].op is UOps.PARAM for u in emit_nest(nest, CPU).toposort())

    assert stores(apply(lower(made.ast), copies)) == 8 * 2, "of each register tile's rows and vectors"
    kept = apply(lower(made.ast), copies + pieces)
    assert stores(apply(kept, [*proposed(kept)])) == 2, "of the vectors of one row, which are neighbours"


def test_estimates() -> None:
    found = estimate(lower(matmul(8, 32, 16).ast))
    assert found.flops == 2 * 8 * 32 * 16 + 8 * 32
    assert found.mem == 4 * (8 * 16 + 16 * 32 + 32 + 8 * 32)


def test_what_is_packed_at_the_top_serves_a_loop_and_what_is_left_of_it() -> None:
    made = matmul(17, 4, 6)
    nest = lower(made.ast)
    actions = [parse_loop(t) for t in ("mark(i1, VECTOR)", "split(i0, 8, UPCAST)", "pack(1, -)", "mark(r0, UNROLL)")]
    check(apply(nest, actions), made, CPU)


@pytest.mark.parametrize("step", [2, 3, 4, 5])
@pytest.mark.parametrize("lanes", [4, 8])
def test_elements_apart_are_read_as_the_vectors_that_hold_them(step: int, lanes: int) -> None:
    x = data(24, step)
    a = A.load(1, F32, ST((24, step)).shrink(((0, 24), (0, 1))).reshape((24,)))
    ast = A.sink((A.store(0, ST((24,)), A.alu(Ops.ADD, a, a)),), buffers(24, 24 * step))
    made = case(ast, {1: x}, {0: 2 * x[:, 0]})
    target = Target(vector_bytes=4 * lanes)
    nest = apply(lower(made.ast), [Split("i0", lanes, Kind.VECTOR)])
    check(nest, made, target)
    reads = [u for u in emit_nest(nest, target).toposort() if u.op is UOps.LOAD]
    assert {u.dtype.count for u in reads} == ({lanes} if step <= 4 else {1})


@pytest.mark.parametrize(("n", "rows"), [(1024, 8), (1023, 6)])
def test_results_that_fall_on_one_set_of_the_cache_are_turned_whole(n: int, rows: int) -> None:
    wide = Target(vector_bytes=64, registers=32, l1_bytes=1 << 15, l2_bytes=1 << 20)
    log = [str(a) for a in loop_actions(lower(matmul_across(n, n, 1024, True, True).ast), wide)]
    assert log[0] == "split(i0, 16, VECTOR)"
    assert f"split(i1, {rows}, UPCAST)" in log


def test_what_is_known_of_one_loop_is_kept_by_the_next() -> None:
    i, j = Variable("i", 0, 7), Variable("j", 0, 7)
    both = Env().open("a", i, 1, 0, exact=True).open("b", j, 1, 0, exact=True)
    assert both.exact == {i, j}
    assert both.open("c", i, 1, 0).exact == {i, j} and both.open("c", i, 1, 0, exact=False).exact == {j}


def test_parallel_loops_share_dimensions_where_there_are_too_many_or_too_long_ones() -> None:
    def folded(*extents: int) -> list[int]:
        axes = [Axis(f"a{n}", Variable(f"v{n}", 0, e - 1), 1, e, Kind.GLOBAL) for n, e in enumerate(extents)]
        return [n for n in fold([(axis,) for axis in axes], (1 << 20, 60, 60)).sizes if isinstance(n, int)]

    assert sorted(folded(4, 5, 6)) == [4, 5, 6]
    assert prod(folded(2, 3, 5, 7)) == 210 and len(folded(2, 3, 5, 7)) <= 3
    assert prod(folded(30, 2, 30, 2, 30, 2)) == 216000 and len(folded(30, 2, 30, 2, 30, 2)) <= 3
    assert folded(61, 62, 63) == [61 * 62 * 63]
    assert folded(1_000_000, 50, 5, 5) == [1_000_000, 50, 25]


def test_a_parallel_loop_of_a_variable_extent_has_a_dimension_of_its_own() -> None:
    """The numbers of what shares a dimension with it would depend on its extent."""
    sizes = Variable("n", 1, 50), Variable("m", 1, 50), Variable("k", 1, 50)

    def folded(*extents: sint) -> tuple[sint, ...]:
        axes = [Axis(f"a{i}", Variable(f"v{i}", 0, e - 1), 1, e, Kind.GLOBAL) for i, e in enumerate(extents)]
        return fold([(axis,) for axis in axes], (1 << 20, 1 << 16, 1 << 16)).sizes

    assert folded(sizes[0], 3, sizes[1], 5) == (15, *sizes[:2])
    with pytest.raises(ValueError, match="4 parallel loops do not fit"):
        folded(2, *sizes)


@pytest.mark.parametrize("target", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_its_text(name: str, target: Target) -> None:
    kernel = stated(lower(CASES[name]().ast))
    kernel = applied(kernel, before_emission(kernel, target))
    again = parse_kernel(print_kernel(kernel))
    assert print_kernel(again) == print_kernel(kernel)
    assert emit(again, target) is emit(kernel, target)
