"""Butterflies: what the copies of short dimensions have in common is computed once, and written turned in registers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, compile_ast, interpret
from tg_codegen.ir.uop import UOp, UOps
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_lazy.ast import fold
from tg_shape import ShapeTracker

F32 = dtypes.float32
ST = ShapeTracker.from_shape
DRAWN = random.Random(20261129)
RENDERERS = {
    "AVX2": LLVMRenderer(Target(vector_bytes=32, registers=16)),
    "AVX-512": LLVMRenderer(Target(vector_bytes=64, registers=32)),
    "GPU": OpenCLRenderer(Target(kind="gpu", vector_bytes=4, registers=128, shared_bytes=1 << 14, local_max=64)),
}
SHAPES = [
    (3, 3, 32),
    (2, 4, 64),
    *((DRAWN.randrange(1, 5), DRAWN.randrange(3, 5), DRAWN.randrange(3, 70)) for _ in range(3)),
]


def hadamard(rows: int, bits: int, beside: int, turned: bool) -> LazyOp:
    """Sums and differences over each of ``bits`` axes of 2, between ``rows`` and ``beside``.

    Args:
      turned: whether the axes of 2 are the last ones of what is written; otherwise they stay where they were.
    """
    shape = (rows, *[2] * bits, beside)
    order = (0, bits + 1, *range(1, bits + 1)) if turned else tuple(range(bits + 2))

    def over_all(st: ShapeTracker) -> ShapeTracker:
        return st.expand(shape).permute(order)

    def stage(fixed: tuple[int, ...]) -> LazyOp:
        axis = len(fixed) + 1
        if axis > bits:
            bounds = ((0, rows), *((bit, bit + 1) for bit in fixed), (0, beside))
            return A.load(1, F32, over_all(ST(shape).shrink(bounds)))
        a, b = stage((*fixed, 0)), stage((*fixed, 1))
        one = ST((1,) * len(shape)).pad(tuple((int(n == axis), 0) for n in range(len(shape))))
        second = fold.splat(A.const(True, dtypes.bool), over_all(one))
        return fold.alu(Ops.WHERE, second, fold.alu(Ops.SUB, a, b), fold.alu(Ops.ADD, a, b))

    size = rows * beside << bits
    written = ST(tuple(shape[n] for n in order))
    return A.sink((A.store(0, written, stage(())),), (BufferArg(F32, size), BufferArg(F32, size)))


def by_numpy(x: Any, bits: int, turned: bool) -> Any:
    for axis in range(bits, 0, -1):
        a, b = (np.take(x, [n], axis) for n in (0, 1))
        x = np.concatenate([a + b, a - b], axis)
    return np.moveaxis(x, -1, 1) if turned else x


def sums(uops: list[UOp]) -> int:
    return sum(u.op in (Ops.ADD, Ops.SUB) and u.dtype.scalar() is F32 for u in uops)


@pytest.mark.drawn(5)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("machine", RENDERERS)
def test_what_copies_have_in_common_is_computed_once(machine: str, shape: tuple[int, int, int], turned: bool) -> None:
    rows, bits, beside = shape
    spec = compile_ast(hadamard(rows, bits, beside, turned), RENDERERS[machine])
    x = np.random.default_rng(bits).standard_normal((rows, *[2] * bits, beside)).astype(np.float32)
    out = bytearray(x.nbytes)
    interpret(spec.uops, [out, bytearray(x.tobytes())], {})
    wanted = by_numpy(x, bits, turned)
    assert np.array_equal(np.frombuffer(out, np.float32).reshape(wanted.shape), wanted)
    if beside % 16 == 0:
        assert sums(list(spec.uops)) == bits << bits, [str(action) for action in spec.actions]


@pytest.mark.parametrize("machine", ["AVX2", "AVX-512"])
def test_digits_of_a_run_are_written_in_vectors(machine: str) -> None:
    """Axes of 2 whose places are neighbours are one run: none of it is written alone."""
    spec = compile_ast(hadamard(2, 4, 64, True), RENDERERS[machine])
    stores = [u.src[2].dtype.count for u in spec.uops if u.op is UOps.STORE]
    assert stores and min(stores) >= 8


def test_little_in_common_is_not_copied() -> None:
    spec = compile_ast(hadamard(3, 1, 64, False), RENDERERS["AVX2"])
    assert "UPCAST" not in " ".join(str(action) for action in spec.actions if "i1" in str(action))
