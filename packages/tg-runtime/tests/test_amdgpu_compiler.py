"""Kernels for AMD GPUs: every one compiles, and gets its own arguments and no others."""

from __future__ import annotations

import struct

import pytest

from tg_codegen import Renderer, Target, compile_ast
from tg_codegen.conformance import cases, elementwise_case
from tg_codegen.ir.program import ProgramSpec
from tg_codegen.ir.uop import UOps
from tg_codegen.machine.amdgpu import ARCHS, amd_target
from tg_codegen.machine.limits import broken_limits
from tg_codegen.render.llvm import AMDLLVMRenderer
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_runtime import CompileError
from tg_runtime.compilers.amdgpu import AMDGPUCompiler
from tg_runtime.compilers.llvm import available
from tg_runtime.host.elf.file import ELFFile
from tg_shape import ShapeTracker

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is not installed")

GENERATIONS = ("gfx1030", "gfx1100", "gfx1201", "gfx942", "gfx950")
ST = ShapeTracker.from_shape
WAVE32, KERNARG, PRIVATE_BUFFER = 1 << 10, 1 << 3, 1 << 0


class Descriptor:
    """What the hardware is told of a kernel: 64 bytes beside it.

    Source: LLVM, "User Guide for AMDGPU Backend", table "Code Object V3 Kernel Descriptor".
    """

    def __init__(self, image: bytes) -> None:
        file = ELFFile(image)
        symbol = next(s for s in file.symbols if s.name.endswith(".kd"))
        start = file.sections[symbol.section].offset + symbol.value
        self.shared, self.private, self.arguments = struct.unpack_from("<III", image, start)
        self.properties = struct.unpack_from("<H", image, start + 56)[0]
        self.flags = file.flags


def product(m: int, n: int, k: int, dtype: DType = dtypes.float32) -> LazyOp:
    x = A.load(1, dtype, ST((m, k)).reshape((m, 1, k)).expand((m, n, k)))
    y = A.load(2, dtype, ST((k, n)).permute((1, 0)).reshape((1, n, k)).expand((m, n, k)))
    total = A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (2,))
    sizes = (m * n, m * k, k * n)
    return A.sink((A.store(0, ST((m, n, 1)), total),), tuple(BufferArg(dtype, size) for size in sizes))


def total(n: int) -> LazyOp:
    x = A.reduce(A.load(1, dtypes.float32, ST((n,))), Ops.ADD, (0,))
    return A.sink((A.store(0, ST((1,)), x),), (BufferArg(dtypes.float32, 1), BufferArg(dtypes.float32, n)))


def compiled(arch: str, ast: LazyOp) -> tuple[str, Descriptor, str]:
    spec = compile_ast(ast, AMDLLVMRenderer(arch))
    compiler = AMDGPUCompiler(arch)
    return spec.src, Descriptor(compiler.compile_cached(spec.src)), compiler.assembly(spec.src)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("arch", ARCHS)
def test_all_cases_of_conformance_compile_and_ask_for_nothing_hidden(arch: str) -> None:
    renderer: Renderer = AMDLLVMRenderer(arch)
    compiler = AMDGPUCompiler(arch)
    wave = WAVE32 if ARCHS[arch].lanes == 32 else 0
    own = PRIVATE_BUFFER if arch.startswith("gfx103") else 0
    for case in cases(renderer):
        found = Descriptor(compiler.compile_cached(renderer.render(case.name, case.uops)))
        assert found.properties & ~own in (KERNARG | wave, wave), f"{case.name}: {found.properties:#x}"
        assert found.arguments <= 8 * sum(u.op in (UOps.PARAM, UOps.VAR) for u in case.uops), case.name


@pytest.mark.parametrize("arch", GENERATIONS)
@pytest.mark.parametrize(("m", "n", "k"), [(509, 251, 131), (64, 64, 64), (1, 3, 5)])
def test_products_have_their_arguments_and_no_scratch(arch: str, m: int, n: int, k: int) -> None:
    text, found, _ = compiled(arch, product(m, n, k))
    assert found.arguments == 3 * 8 and found.private == 0
    assert found.shared <= amd_target(arch).shared_bytes
    assert text.startswith("@") == (found.shared > 0)


@pytest.mark.parametrize(
    ("arch", "barrier"),
    [("gfx1030", "s_barrier"), ("gfx1100", "s_barrier"), ("gfx942", "s_barrier"), ("gfx1201", "s_barrier_signal")],
)
def test_groups_share_memory_and_wait_for_one_another(arch: str, barrier: str) -> None:
    _, found, assembly = compiled(arch, total(1_000_003))
    assert found.shared > 0 and barrier in assembly and "ds_" in assembly


def test_vectors_are_loaded_whole_and_products_added_in_one_step() -> None:
    _, _, assembly = compiled("gfx1100", product(512, 512, 512))
    assert "global_load_b128" in assembly
    assert "v_fmac_f32" in assembly or "v_dual_fmac_f32" in assembly or "v_fma_f32" in assembly


def test_division_and_roots_are_rounded_right_and_denormals_stay() -> None:
    """LLVM's long forms of both, not the approximations; and the mode of the kernel keeps denormal numbers."""
    x, y = (A.load(slot, dtypes.float32, ST((7,))) for slot in (1, 2))
    value = A.alu(Ops.SQRT, A.alu(Ops.FDIV, x, y))
    ast = A.sink((A.store(0, ST((7,)), value),), (BufferArg(dtypes.float32, 7),) * 3)
    _, _, assembly = compiled("gfx1100", ast)
    assert "v_div_fixup_f32" in assembly and "v_sqrt_f32" in assembly and "v_fma" in assembly
    assert ".amdhsa_float_denorm_mode_32 3" in assembly


@pytest.mark.drawn(1)
@pytest.mark.parametrize("arch", GENERATIONS)
def test_halves_are_rounded_right(arch: str) -> None:
    """Reciprocals and roots of float16 by way of float32: the instructions for them only come near."""
    x = A.load(1, dtypes.float16, ST((7,)))
    for op, last in ((Ops.SQRT, "v_cvt_f16_f32"), (Ops.RECIP, "v_div_fixup_f16")):
        ast = A.sink((A.store(0, ST((7,)), A.alu(op, x)),), (BufferArg(dtypes.float16, 7),) * 2)
        _, _, assembly = compiled(arch, ast)
        assert "v_rcp_f16" not in assembly and "v_sqrt_f16" not in assembly and last in assembly


@pytest.mark.parametrize("arch", GENERATIONS)
def test_pairs_of_halves_are_one_instruction(arch: str) -> None:
    renderer = AMDLLVMRenderer(arch)
    case = elementwise_case(renderer, dtypes.float16, 2, 0.0)
    assembly = AMDGPUCompiler(arch).assembly(renderer.render(case.name, case.uops))
    assert all(f"v_pk_{op}_f16" in assembly for op in ("add", "mul", "fma"))


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="'sm_90' is no architecture of an AMD GPU"):
        AMDLLVMRenderer("sm_90")
    with pytest.raises(ValueError, match="'x86-64-v4' is no architecture of an AMD GPU"):
        AMDGPUCompiler("x86-64-v4")
    with pytest.raises(CompileError, match="there is assembly in it"):
        AMDGPUCompiler("gfx1100").compile('define void @k() {\n  call void asm "s_nop 0", ""()\n  ret void\n}\n')
    with pytest.raises(CompileError, match="there is assembly in it"):
        AMDGPUCompiler("gfx1100").compile('define void @k() {\n  call void\n  asm "s_nop 0", ""()\n  ret void\n}\n')
    with pytest.raises(CompileError, match="LLVM IR"):
        AMDGPUCompiler("gfx1100").compile("define void @k() {\n  ret i32\n}\n")


@pytest.mark.parametrize("arch", GENERATIONS)
def test_more_local_memory_than_there_is(arch: str) -> None:
    """LLVM would end the process: it reports this nowhere else."""
    text = """@k.a = internal addrspace(3) global [SIZE x i8] poison, align 16
define amdgpu_kernel void @k(i32 %i) {
  %p = getelementptr i8, ptr addrspace(3) @k.a, i32 %i
  store volatile i8 1, ptr addrspace(3) %p
  ret void
}
"""
    most = amd_target(arch).shared_bytes
    compiler = AMDGPUCompiler(arch)
    assert Descriptor(compiler.compile_cached(text.replace("SIZE", str(most)))).shared == most
    for make in (compiler.compile, compiler.assembly):
        with pytest.raises(CompileError, match=f"share {most + 1} bytes of local memory; {arch} has {most}"):
            make(text.replace("SIZE", str(most + 1)))


def test_launches_out_of_limits() -> None:
    for arch, most in (("gfx942", (2**32 - 1) // 1024), ("gfx1100", 2**31 - 1)):
        renderer = AMDLLVMRenderer(arch)
        spec = ProgramSpec("k", "", (), (), (), (most, 65535, 65535), (1024, 1, 1))
        assert not broken_limits(spec, renderer)
        spec = ProgramSpec("k", "", (), (), (), (most + 1, 65536, 65536), (1025, 1, 1))
        assert len(broken_limits(spec, renderer)) == 4


def test_another_architecture_is_another_key() -> None:
    assert len({AMDGPUCompiler(arch).cachekey for arch in ARCHS}) == len(ARCHS)
    assert len({AMDLLVMRenderer(arch).key for arch in ARCHS}) == len(ARCHS)
    assert isinstance(amd_target("gfx942"), Target) and amd_target("gfx950").shared_bytes == 160 << 10
