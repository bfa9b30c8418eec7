"""Kernels that write past the caches, run on aligned and on unaligned memory."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from tg_codegen import Target, compile_ast
from tg_codegen.machine.renderer import Renderer
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, Ops
from tg_lazy import ast as A
from tg_runtime.backends.cpu.program import CPUProgram
from tg_runtime.compilers import llvm
from tg_runtime.compilers.clang import ClangCompiler
from tg_runtime.compilers.llvm import LLVMCompiler
from tg_runtime.device.compiler import Compiler
from tg_runtime.host.tools import c_compiler
from tg_runtime.memory.host import HostAllocator
from tg_shape import ShapeTracker

N = 10000
needs_llvm = pytest.mark.skipif(not llvm.available(), reason="llvmlite is not installed")
needs_clang = pytest.mark.skipif(c_compiler() is None, reason="no clang on the PATH")
TARGET = Target(vector_bytes=64, registers=32, last_bytes=4096)


@pytest.mark.parametrize("past", [0, 4, 32], ids="{} bytes past a line".format)
@pytest.mark.parametrize(
    ("renderer", "compiler"),
    [
        pytest.param(LLVMRenderer(TARGET), LLVMCompiler, id="llvm", marks=needs_llvm),
        pytest.param(ClangRenderer(TARGET), ClangCompiler, id="clang", marks=needs_clang),
    ],
)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16, dtypes.uint8, dtypes.bool], ids=lambda d: d.name)
def test_values(dtype: DType, renderer: Renderer, compiler: type[Compiler], past: int) -> None:
    shape = ShapeTracker.from_shape((N,))
    x = A.load(1, dtypes.float32, shape)
    ast = A.sink((A.store(0, shape, A.cast(A.alu(Ops.ADD, x, x), dtype)),),
                 (BufferArg(dtype, N), BufferArg(dtypes.float32, N)))  # fmt: skip
    spec = compile_ast(ast, renderer)
    assert "stream(0)" in map(str, spec.actions)
    size, kept = dtype.itemsize * N, 64
    allocator = HostAllocator("CPU")
    out, src = allocator.alloc(size + kept), allocator.alloc(4 * N)
    values = np.arange(N, dtype=np.float32) % 100
    allocator.copyin(src, memoryview(values.tobytes()))
    whole = allocator.as_buffer(out, size + kept)
    whole[:] = bytes(size + kept)
    CPUProgram(spec.name, compiler().compile(spec.src))(allocator.offset(out, size, past), src)
    np.testing.assert_array_equal(np.frombuffer(whole[past : past + size], dtype.name), (2 * values).astype(dtype.name))
    assert not any(whole[:past])
    assert not any(whole[past + size :])


@needs_llvm
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.uint8], ids=lambda d: d.name)
def test_the_processor_is_told(dtype: DType) -> None:
    if "x86" not in platform.machine():
        pytest.skip("the names of x86's instructions")
    shape = ShapeTracker.from_shape((N,))
    x = A.load(1, dtypes.float32, shape)
    ast = A.sink((A.store(0, shape, A.cast(x, dtype)),), (BufferArg(dtype, N), BufferArg(dtypes.float32, N)))
    text = LLVMCompiler(tuned=True).assembly(compile_ast(ast, LLVMRenderer(TARGET)).src)
    assert "vmovnt" in text or "movnt" in text
