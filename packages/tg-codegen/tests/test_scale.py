"""SCALE: powers of two as an instruction, for machines that have it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tg_codegen import Target, compile_ast, interpret
from tg_codegen.ir.uop import UOps
from tg_codegen.linear.interpret import ldexp
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import DType, dtypes, truncate
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

ST = ShapeTracker.from_shape
WIDE = Target(vector_bytes=64, registers=32, scales=True)
VALUES = [
    0.0, -0.0, 1.0, -1.5, 0.3, 126.99, 127.999, 128.0, 500.0, -126.0, -126.5, -130.25, -148.9, -149.4, -151.0, -1e9,
    math.inf, -math.inf, math.nan, 3.25,
]  # fmt: skip


def exponentials(dtype: DType) -> LazyOp:
    n = len(VALUES)
    store = A.store(0, ST((n,)), A.alu(Ops.EXP2, A.load(1, dtype, ST((n,)))))
    return A.sink((store,), (BufferArg(dtype, n), BufferArg(dtype, n)))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64])
def test_exponentials(dtype: DType) -> None:
    spec = compile_ast(exponentials(dtype), LLVMRenderer(WIDE))
    assert any(u.op is UOps.SCALE for u in spec.uops)
    out, x = memoryview(bytearray(len(VALUES) * dtype.itemsize)), bytearray(len(VALUES) * dtype.itemsize)
    memoryview(x).cast(dtype.fmt)[:] = memoryview(_packed(dtype)).cast(dtype.fmt)  # type: ignore[call-overload]
    interpret(spec.uops, [out, x], {})
    for given, found in zip(VALUES, out.cast(dtype.fmt), strict=True):  # type: ignore[call-overload]
        value = float(truncate(given, dtype))
        want = math.nan if math.isnan(value) else 0.0 if value < -2000 else math.inf if value > 2000 else 2.0**value
        want = float(truncate(want, dtype))
        if math.isfinite(want) and want > 1e-37:
            assert math.isclose(found, want, rel_tol=3e-7 if dtype is dtypes.float32 else 1e-14)
        else:
            assert found == want or abs(found - want) < 2e-44 or (math.isnan(found) and math.isnan(want))


def _packed(dtype: DType) -> bytes:
    import array

    return array.array("f" if dtype is dtypes.float32 else "d", VALUES).tobytes()


def test_as_text() -> None:
    wide = compile_ast(exponentials(dtypes.float32), LLVMRenderer(WIDE)).src
    assert "@llvm.x86.avx512.mask.scalef.ps.512" in wide  # the vectors
    narrow = compile_ast(exponentials(dtypes.float32), LLVMRenderer(replace(WIDE, vector_bytes=16))).src
    assert "@llvm.ldexp.v4f32.v4i32" in narrow
    for renderer in (LLVMRenderer(replace(WIDE, scales=False)), ClangRenderer(WIDE)):
        assert not any(u.op is UOps.SCALE for u in compile_ast(exponentials(dtypes.float32), renderer).uops)


def test_powers_that_do_not_fit() -> None:
    assert ldexp(-1.5, 5000.0) == -math.inf
    assert ldexp(1.0, -5000.0) == 0.0
    assert math.isnan(ldexp(1.0, math.nan))
