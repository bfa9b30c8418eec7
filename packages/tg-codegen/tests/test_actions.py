"""Actions that must be refused, and those that fit though they look odd: each computes what the plain loops compute."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import prod

import numpy as np
import pytest

from tg_codegen import ActionError, EmitError, Target, compile_ast, interpret
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.ir.uop import UOp, UOps, const
from tg_codegen.machine.renderer import Renderer
from tg_codegen.nest.lower import lower
from tg_codegen.plan.actions import apply
from tg_codegen.plan.vocabulary import parse_loop
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.render.wgsl import WGSLRenderer
from tg_codegen.rewrite.pipelining import apart
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

F32, I32, I8 = dtypes.float32, dtypes.int32, dtypes.int8
ST = ShapeTracker.from_shape
CPU = LLVMRenderer(Target(vector_bytes=32, registers=16, threads=2))
GPU = OpenCLRenderer()


def total(*shape: int, axes: tuple[int, ...] | None = None) -> LazyOp:
    """The sum of an array over some axes, or all."""
    axes = tuple(range(len(shape))) if axes is None else axes
    left = tuple(1 if n in axes else size for n, size in enumerate(shape))
    value = A.reduce(A.load(1, F32, ST(shape)), Ops.ADD, axes)
    return A.sink((A.store(0, ST(left), value),), (BufferArg(F32, prod(left)), BufferArg(F32, prod(shape))))


def product(m: int, n: int, k: int, narrow: DType = F32, wide: DType = F32) -> LazyOp:
    """(m, k) @ (n, k) transposed, of ``narrow`` numbers added up as ``wide`` ones."""
    x = A.cast(A.load(1, narrow, ST((m, 1, k)).expand((m, n, k))), wide)
    y = A.cast(A.load(2, narrow, ST((1, n, k)).expand((m, n, k))), wide)
    value = A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (2,))
    sizes = (BufferArg(wide, m * n), BufferArg(narrow, m * k), BufferArg(narrow, n * k))
    return A.sink((A.store(0, ST((m, n, 1)), value),), sizes)


def spread(n: int, m: int) -> LazyOp:
    """For each row, the sum of squares of what is left of each element when the row's sum is taken off."""
    x = A.load(1, F32, ST((n, m)))
    away = A.alu(Ops.SUB, x, A.view(A.reduce(x, Ops.ADD, (1,)), ST((n, 1)).expand((n, m))))
    value = A.reduce(A.alu(Ops.MUL, away, away), Ops.ADD, (1,))
    return A.sink((A.store(0, ST((n, 1)), value),), (BufferArg(F32, n), BufferArg(F32, n * m)))


def results(ast: LazyOp, actions: list[str]) -> tuple[list[float], list[float]]:
    """What a kernel of small integers computes with some actions, and with none."""
    return _computed(ast, tuple(actions)), _computed(ast, ())


@cache
def _computed(ast: LazyOp, actions: tuple[str, ...]) -> list[float]:
    rng = np.random.default_rng(0)
    memory = [bytearray(rng.integers(-3, 4, b.size).astype(b.dtype.name).tobytes()) for b in ast.arg]
    spec = compile_ast(ast, CPU, actions=[parse_loop(text) for text in actions])
    interpret(spec.uops, memory, {})
    values: list[float] = np.frombuffer(memory[0], ast.arg[0].dtype.name).tolist()
    return values


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("split(r0, 4, CONTRACT)", "split(r0, 2, CONTRACT)", "r0.1 of the same reduction is CONTRACT already"),
        ("split(r0, 4, CONTRACT)", "split(r1, 2, CONTRACT)", "r0.1 of the same reduction is CONTRACT already"),
        ("split(r0, 4, LANES)", "split(r1, 4, LANES)", "r0.1 of the same reduction is LANES already"),
        ("split(r0, 4, LANES)", "mark(r1, CONTRACT)", "r0.1 of the same reduction is LANES already"),
        ("split(r0, 4, LANES)", "mark(r0, LANES)", "vector lanes already"),
        ("mark(r0, UNROLL)", "mark(r0, SPREAD)", "r0 is UNROLL already"),
        ("split(i0, 4, THREAD)", "split(i0, 2, THREAD)", "divided among the threads already"),
        ("split(i0, 4, THREAD)", "mark(i0, THREAD)", "divided among the threads already"),
        ("split(i0, 4, VECTOR)", "mark(i0, ROWS)", "vector lanes already"),
        ("split(i0, 4, UPCAST)", "outermost(i0.1)", "UPCAST, not a serial loop"),
        ("split(r0, 4, REDUCE)", "outermost(r0)", "REDUCE, not a serial loop"),
        ("split(i0, 4, LOOP)", "split(i0, 2, FLAT)", "FLAT is no kind of loop; these are: LOOP"),
        ("split(i0, 4, LOOP)", "mark(i0, loop)", "loop is no kind of loop"),
    ],
)  # fmt: skip
def test_what_does_not_go_together(first: str, second: str, message: str) -> None:
    nest = parse_loop(first).apply(lower(total(16, 12, 20, 24, axes=(1, 3))))
    with pytest.raises(ActionError, match=message):
        parse_loop(second).apply(nest)


@pytest.mark.parametrize("text", ["split(i0, x, LOOP)", "pack(, -)", "split(i0, 4)", "fly(i0)", "pack(0, -", ""])
def test_what_is_no_action(text: str) -> None:
    with pytest.raises(ActionError, match="not an action"):
        parse_loop(text)


@pytest.mark.parametrize(
    ("renderer", "text"),
    [(CPU, "split(i0, 4, LOCAL)"), (CPU, "mark(i0, GLOBAL)"), (CPU, "split(r0, 4, GROUP)"), (GPU, "mark(i0, THREAD)"),
     (GPU, "split(i0, 12, VECTOR)")],
)  # fmt: skip
def test_what_a_machine_does_not_have(renderer: LLVMRenderer | OpenCLRenderer, text: str) -> None:
    with pytest.raises(EmitError, match=r"has none|there are vectors of"):
        compile_ast(total(32, 16, axes=(1,)), renderer, actions=[parse_loop(text)])


@pytest.mark.parametrize("text", [
    "split(r0, 4, CONTRACT); split(r0, 2, LANES)", "split(r0, 4, LANES); split(r0, 2, CONTRACT); mark(i1, ROWS)",
    "split(r0, 4, CONTRACT)", "split(r0, 5, CONTRACT); split(r0, 2, UNROLL)", "mark(r0, CONTRACT); pack(0, -)",
    "split(r0, 3, CONTRACT); pack(1, -); mark(i1, VECTOR)", "split(r0, 5, CONTRACT); pack(1, -); mark(i1, ROWS)",
    "mark(r0, LANES); pack(0, -)", "mark(i1, VECTOR); pack(0, i0)", "split(i1, 12, VECTOR); pack(1, -)",
    "convert(0, -)", "convert(0, i0)", "convert(0, r0)", "convert(1, r0)",
    "pack(1, -); mark(i1, VECTOR); convert(1, i1)", "mark(r0, SPREAD); pack(0, i0); convert(0, -)",
    "mark(r0, SPREAD); pack(1, r0); convert(1, -)",
    "split(r0, 4, REDUCE); split_reduction(0, -)", "outermost(i1); split_reduction(0, i1); pack(0, r0)",
])  # fmt: skip
@pytest.mark.parametrize("sizes", [(5, 12, 15), (3, 33, 11), (8, 36, 16)])
def test_products_with_odd_tiles(sizes: tuple[int, int, int], text: str) -> None:
    got, want = results(product(*sizes, I8, I32), text.split("; "))
    assert got == want


@pytest.mark.parametrize("text", [
    "split_reduction(0, i0)", "split_reduction(1, i0)", "split_reduction(0, i0); split(r1, 4, UNROLL)",
])
def test_a_partial_result_is_whole_before_it_is_used(text: str) -> None:
    got, want = results(spread(8, 10), text.split("; "))
    assert got == want


def test_which_indices_differ_from_iteration_to_iteration() -> None:
    at = UOp(UOps.RANGE, dtypes.int64, (const(0, dtypes.int64), const(8, dtypes.int64)), "i")
    other, two = at.replace((const(0, dtypes.int64), const(9, dtypes.int64))), const(2, dtypes.int64)
    moved = at.alu(Ops.MUL, two).alu(Ops.ADD, other)
    assert apart(at, at) and apart(moved, at) and apart(moved.alu(Ops.SHL, two), at)
    assert not apart(other, at) and not apart(at.alu(Ops.MUL, const(0, dtypes.int64)), at)
    assert not apart(at.alu(Ops.MUL, other), at) and not apart(at.alu(Ops.AND, two), at)
    assert not apart(at.alu(Ops.SUB, at), at) and not apart(two.alu(Ops.SHL, at), at)


@pytest.mark.parametrize("renderer", [GPU, WGSLRenderer()])
def test_gpus_are_not_told_what_comes(renderer: Renderer) -> None:
    action, ast = parse_loop("prefetch(1, 16)"), product(4, 8, 12)
    told, plain = compile_ast(ast, renderer, actions=[action]), compile_ast(ast, renderer, actions=[])
    assert told.src == plain.src and told.actions == (str(action),)
    assert any(u.op is UOps.PREFETCH for u in compile_ast(ast, CPU, actions=[action]).uops)


def test_a_kernel_emitted_for_another_kind_of_machine() -> None:
    nest = apply(lower(total(64)), [parse_loop("mark(r0, GROUP)")])
    emit_nest(nest, GPU.target)
    with pytest.raises(EmitError, match="r0 is GROUP, of which a CPU has none"):
        emit_nest(nest, replace(CPU.target, threads=1))
