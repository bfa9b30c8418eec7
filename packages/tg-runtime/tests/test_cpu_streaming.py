"""Kernels that write past the caches, run on aligned and on unaligned memory."""

from __future__ import annotations

import numpy as np
import pytest

from tg_codegen import Target, compile_ast
from tg_codegen.render_c import ClangRenderer
from tg_codegen.render_llvm import LLVMRenderer
from tg_codegen.renderer import Renderer
from tg_dtype import dtypes
from tg_lazy import BufferArg, Ops
from tg_lazy import ast as A
from tg_runtime.compiler import Compiler
from tg_runtime.cpu import llvm
from tg_runtime.cpu.clang import ClangCompiler
from tg_runtime.cpu.llvm import LLVMCompiler
from tg_runtime.cpu.memory import HostAllocator
from tg_runtime.cpu.program import CPUProgram
from tg_runtime.cpu.tools import c_compiler
from tg_shape import ShapeTracker

N = 5000
needs_llvm = pytest.mark.skipif(not llvm.available(), reason="llvmlite is not installed")
needs_clang = pytest.mark.skipif(c_compiler() is None, reason="no clang on the PATH")
TARGET = Target(vector_bytes=32, last_bytes=4096)


@pytest.mark.parametrize("past", [0, 4, 32], ids="{} bytes past a line".format)
@pytest.mark.parametrize(
    ("renderer", "compiler"),
    [
        pytest.param(LLVMRenderer(TARGET), LLVMCompiler, id="llvm", marks=needs_llvm),
        pytest.param(ClangRenderer(TARGET), ClangCompiler, id="clang", marks=needs_clang),
    ],
)
def test_values(renderer: Renderer, compiler: type[Compiler], past: int) -> None:
    shape = ShapeTracker.from_shape((N,))
    x = A.load(1, dtypes.float32, shape)
    ast = A.sink((A.store(0, shape, A.alu(Ops.ADD, x, x)),), (BufferArg(dtypes.float32, N),) * 2)
    spec = compile_ast(ast, renderer)
    assert "stream(0)" in map(str, spec.actions)
    allocator = HostAllocator("CPU")
    out, src = allocator.alloc(4 * N + 64), allocator.alloc(4 * N)
    values = np.arange(N, dtype=np.float32)
    allocator.copyin(src, memoryview(values.tobytes()))
    whole = allocator.as_buffer(out, 4 * N + 64)
    whole[:] = bytes(4 * N + 64)
    CPUProgram(spec.name, compiler().compile(spec.src))(allocator.offset(out, 4 * N, past), src)
    got = np.frombuffer(whole, np.float32)
    np.testing.assert_array_equal(got[past // 4 :][:N], 2 * values)
    assert not got[: past // 4].any()
    assert not got[past // 4 + N :].any()
