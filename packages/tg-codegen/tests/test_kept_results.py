"""Results kept in scratch: outputs of many single elements are written in a loop, and right."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, compile_ast, interpret
from tg_codegen.compile import render_kernel
from tg_codegen.ir.program import ProgramSpec
from tg_codegen.nest.lower import lower
from tg_codegen.nest.parts import stated
from tg_codegen.plan.heuristic import before_emission
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

F32 = dtypes.float32
Array = np.ndarray[Any, np.dtype[Any]]
MACHINES = {
    "AVX2": Target(vector_bytes=32, registers=16),
    "AVX-512": Target(vector_bytes=64, registers=32),
    "threads": Target(vector_bytes=64, registers=32, threads=3),
    "strict": Target(vector_bytes=64, registers=32, strict=True),
}


def step(rows: int, columns: int, window: int, terms: int, count: int) -> LazyOp:
    """A gradient, whose columns lie ``window`` apart in memory, and ``count`` averages that it moves."""
    shape = (terms, rows, columns, window)
    flat = rows * columns * window
    left = ShapeTracker.from_shape((terms, rows)).reshape((terms, rows, 1, 1)).expand(shape)
    right = ShapeTracker.from_shape((terms, window, columns)).reshape((terms, 1, window, columns))
    right = right.permute((0, 1, 3, 2)).expand(shape)
    product = A.alu(Ops.MUL, A.load(count + 1, F32, left), A.load(count + 2, F32, right))
    gradient = A.reduce(product, Ops.ADD, (0,))
    out = ShapeTracker.from_shape((1, rows, columns, window))
    stores = [A.store(0, out, gradient)]
    for slot in range(1, count + 1):
        stores.append(A.store(slot, out, A.alu(Ops.ADD, A.load(slot, F32, out), A.alu(Ops.MUL, gradient, gradient))))
    sizes = [flat] * (count + 1) + [terms * rows, terms * columns * window]
    return A.sink(tuple(stores), tuple(BufferArg(F32, size) for size in sizes))


def outputs(spec: ProgramSpec, averages: list[Array], left: Array, right: Array) -> list[Array]:
    memory = [bytearray(averages[0].nbytes), *(bytearray(x.tobytes()) for x in averages)]
    interpret(spec.uops, [*memory, bytearray(left.tobytes()), bytearray(right.tobytes())], {})
    return [np.frombuffer(m, np.float32).reshape(averages[0].shape) for m in memory]


@pytest.mark.drawn(8)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("number", range(2))
def test_steps_of_drawn_sizes(number: int, machine: str) -> None:
    """Small integers are added up exactly, whatever the order."""
    draw = random.Random(f"{machine}{number}")
    rows, columns, window = draw.randrange(33, 49), draw.randrange(65, 82), 3
    terms, count = draw.randrange(7, 10), draw.randrange(3, 5)
    spec = compile_ast(step(rows, columns, window, terms, count), LLVMRenderer(MACHINES[machine]))
    rng = np.random.default_rng(number)
    averages = [rng.integers(-9, 9, (rows, columns, window)).astype(np.float32) for _ in range(count)]
    left = rng.integers(-9, 9, (terms, rows)).astype(np.float32)
    right = rng.integers(-9, 9, (terms, window, columns)).astype(np.float32)
    gradient = np.einsum("tr,twc->rcw", left, right)
    for found, want in zip(
            outputs(spec, averages, left, right), [gradient, *(x + gradient**2 for x in averages)], strict=True):
        assert np.array_equal(found, want)


def test_long_outputs_are_a_loop() -> None:
    """A kernel of the usual length, and the very bits that registers hold."""
    renderer = LLVMRenderer(MACHINES["AVX-512"])
    rows, columns, window, terms, count = 47, 131, 3, 7, 4
    ast = step(rows, columns, window, terms, count)
    kernel = stated(lower(ast))
    chosen = before_emission(kernel, renderer.target)
    told = [str(action) for action in chosen]
    kept = next(n for n, text in enumerate(told) if text.startswith("split_reduction"))
    without = [a for n, a in enumerate(chosen) if n not in (kept - 1, kept) and not told[n].startswith("roll")]
    short, long = render_kernel(kernel, renderer, chosen), render_kernel(kernel, renderer, without)
    assert len(long.uops) > 3 * len(short.uops), told
    rng = np.random.default_rng(3)
    averages = [rng.standard_normal((rows, columns, window)).astype(np.float32) for _ in range(count)]
    left = rng.standard_normal((terms, rows)).astype(np.float32)
    right = rng.standard_normal((terms, window, columns)).astype(np.float32)
    for found, want in zip(outputs(short, averages, left, right), outputs(long, averages, left, right), strict=True):
        assert np.array_equal(found.view(np.uint32), want.view(np.uint32))


def test_short_outputs_stay_in_registers() -> None:
    renderer = LLVMRenderer(MACHINES["AVX-512"])
    plain = compile_ast(step(47, 131, 3, 7, 0), renderer)
    assert not any(text.startswith("split_reduction") for text in plain.actions)
