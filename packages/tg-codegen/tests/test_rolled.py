"""Operands that are rolled, turned and reversed: read in vectors, and right."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, compile_ast, interpret
from tg_codegen.ir.program import ProgramSpec
from tg_codegen.ir.uop import UOps
from tg_codegen.plan.cut_dimension import CutDimension
from tg_codegen.plan.split_concat import MOST_PERIODS, SplitConcat
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

F32 = dtypes.float32
ST = ShapeTracker.from_shape
Array = np.ndarray[Any, np.dtype[Any]]
RENDERERS = {
    "AVX2": LLVMRenderer(Target(vector_bytes=32, registers=16)),
    "AVX-512": LLVMRenderer(Target(vector_bytes=64, registers=32)),
    "threads": LLVMRenderer(Target(vector_bytes=16, registers=32, threads=3)),
    "GPU": OpenCLRenderer(Target(kind="gpu", vector_bytes=4, registers=128, shared_bytes=1 << 14, local_max=64)),
}


def around(st: ShapeTracker, axis: int, before: int, after: int) -> ShapeTracker:
    """A view that goes on around the ends of an axis: ``before`` elements of its end in front, ``after`` behind."""
    shape = st.shape
    n = int(shape[axis])
    times = -(-before // n) + 1 + -(-after // n)
    rows = st.reshape((*shape[:axis], 1, *shape[axis:]))
    more = rows.expand((*shape[:axis], times, *shape[axis:])).reshape((*shape[:axis], times * n, *shape[axis + 1:]))
    start = -before % n
    return more.shrink([
        (start, start + before + n + after) if k == axis else (0, size) for k, size in enumerate(shape)])


def rolled(st: ShapeTracker, axis: int, by: int) -> ShapeTracker:
    """``np.roll``."""
    n = int(st.shape[axis])
    longer = around(st, axis, by % n, 0)
    return longer.shrink([(0, n) if k == axis else (0, size) for k, size in enumerate(st.shape)])


def copied(view: ShapeTracker, size: int, dtype: DType = F32, added: ShapeTracker | None = None) -> LazyOp:
    """A kernel that writes out a view of an operand, or a view and another view of it added up."""
    value = A.load(1, dtype, view)
    if added is not None:
        value = A.alu(Ops.ADD, value, A.load(1, dtype, added))
    count = prod(int(size) for size in view.shape)
    return A.sink((A.store(0, ST(view.shape), value),), (BufferArg(dtype, count), BufferArg(dtype, size)))


def values(spec: ProgramSpec, x: Array, shape: tuple[int, ...]) -> Array:
    out = bytearray(int(np.prod(shape)) * x.itemsize)
    interpret(spec.uops, [out, bytearray(x.tobytes())], {})
    return np.frombuffer(out, x.dtype).reshape(shape)


@pytest.mark.drawn(10)
@pytest.mark.parametrize("machine", RENDERERS)
@pytest.mark.parametrize("number", range(12))
def test_drawn_views(number: int, machine: str) -> None:
    """Rolls, turns and reversals one after the other, of drawn sizes; and such a view added to another one."""
    draw = random.Random(20261130 + number)
    shape = tuple(draw.randrange(1, 45) for _ in range(draw.randrange(1, 4)))
    x = np.random.default_rng(number).integers(-99, 99, shape).astype(np.float32)

    def viewed() -> tuple[ShapeTracker, Array]:
        st, want = ST(shape), x
        for _ in range(draw.randrange(1, 4)):
            axis, how = draw.randrange(len(st.shape)), draw.randrange(3)
            if how == 0:
                by = draw.randrange(-60, 60)
                st, want = rolled(st, axis, by), np.roll(want, by, axis)
            elif how == 1:
                st, want = st.flip((axis,)), np.flip(want, axis)
            else:
                order = draw.sample(range(len(st.shape)), len(st.shape))
                st, want = st.permute(order), want.transpose(order)
        return st, want

    (one, first), (two, second) = viewed(), viewed()
    spec = compile_ast(copied(one, x.size), RENDERERS[machine])
    assert np.array_equal(values(spec, x, first.shape), first)
    if first.shape == second.shape:
        spec = compile_ast(copied(one, x.size, added=two), RENDERERS[machine])
        assert np.array_equal(values(spec, x, first.shape), first + second)


@pytest.mark.parametrize("machine", ["AVX2", "AVX-512"])
def test_what_goes_on_around_its_ends_is_copied_in_vectors(machine: str) -> None:
    """Nothing is divided, and but for the ends of runs nothing is read alone."""
    draw = random.Random(machine)
    n, m = draw.randrange(20, 40), draw.randrange(300, 700)
    x = np.random.default_rng(n).standard_normal((n, m)).astype(np.float32)
    before, after = draw.randrange(16, 90), draw.randrange(16, 90)
    for st, want in (
        (rolled(ST((n, m)), 1, before), np.roll(x, before, 1)),
        (around(ST((n, m)), 1, before, after), np.pad(x, ((0, 0), (before, after)), mode="wrap")),
        (rolled(rolled(ST((n, m)), 0, 7), 1, -after), np.roll(x, (7, -after), (0, 1))),
    ):
        spec = compile_ast(copied(st, x.size), RENDERERS[machine])
        assert str(SplitConcat()) in spec.actions
        assert np.array_equal(values(spec, x, want.shape), want)
        loads = [u.dtype.count for u in spec.uops if u.op is UOps.LOAD]
        assert loads and sum(count > 1 for count in loads) >= 2


def test_what_begins_anew_often_is_not_in_parts() -> None:
    """A row again and again is one loop and not so many; of whole rows, a dimension counts them."""
    for times, parted in ((1, True), (MOST_PERIODS, False)):
        for missing in (0, 5):
            spec = compile_ast(copied(around(ST((9, 67)), 1, 0, 67 * times - missing), 9 * 67), RENDERERS["AVX2"])
            assert (str(SplitConcat()) in spec.actions) == (parted and missing > 0)
            assert (str(CutDimension("i1", 67)) in spec.actions) == (missing == 0)


@pytest.mark.parametrize("machine", ["AVX2", "AVX-512"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)], ids=str)
def test_what_is_turned_and_reversed_is_turned_in_registers(axes: tuple[int, ...], machine: str) -> None:
    draw = random.Random(f"{axes} {machine}")
    n, m = 16 * draw.randrange(3, 6), 16 * draw.randrange(3, 6)
    x = np.random.default_rng(n).standard_normal((n, m)).astype(np.float32)
    st, want = ST((n, m)).permute((1, 0)).flip(axes), np.flip(x.T, axes)
    spec = compile_ast(copied(st, x.size), RENDERERS[machine])
    assert np.array_equal(values(spec, x, want.shape), want)
    assert all(u.dtype.count > 1 for u in spec.uops if u.op is UOps.LOAD)
