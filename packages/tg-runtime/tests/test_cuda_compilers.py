"""NVRTC and nvJitLink from PyPI: every conformance kernel for every architecture, and NVRTC's PTX run on the host."""

from __future__ import annotations

import ctypes
import functools
import re
import subprocess
import sys
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path

import pytest

from tg_codegen import Target, compile_ast, parse_action
from tg_codegen.conformance import Case, cases
from tg_codegen.machine.renderer import Renderer
from tg_codegen.render import dynamic
from tg_codegen.render.c.cuda import CUDARenderer
from tg_codegen.render.ptx import PTXRenderer
from tg_dtype import dtypes
from tg_lazy import LazyOp, Ops, ast
from tg_runtime.backends.cuda import assembler, nvrtc
from tg_runtime.backends.cuda.assembler import JitLinkCompiler, PTXCompiler
from tg_runtime.backends.cuda.device import choose_compiler
from tg_runtime.backends.cuda.disassembly import ELF_MAGIC
from tg_runtime.backends.cuda.libraries import include_folders, tool
from tg_runtime.backends.cuda.nvrtc import NVRTCCompiler
from tg_runtime.emulators.ptx import Program
from tg_runtime.emulators.ptx.machine import MISSING, available
from tg_runtime.errors import CompileError
from tg_runtime.testing import DeviceConformance
from tg_runtime.testing.kernels import kernel
from tg_shape import ShapeTracker

needs_nvrtc = pytest.mark.skipif(not nvrtc.available(), reason=nvrtc.MISSING)
needs_jitlink = pytest.mark.skipif(not assembler.available(), reason=assembler.MISSING)
needs_llvm = pytest.mark.skipif(not available(), reason=MISSING)
needs_disassembler = pytest.mark.skipif(
    tool("nvdisasm") is None and tool("cuobjdump") is None, reason="nvdisasm is not installed"
)
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
# float16 in CUDA C++ wants a header that comes with nvidia-cuda-runtime
HEADERS = bool(include_folders())
# the wheel whose cuda.h the bindings are of
WHEEL = any(d.name == "nvidia-cuda-runtime" and d.version.startswith("13.5.") for d in distributions())


@functools.cache
def all_cases(renderer: type[CUDARenderer] | type[PTXRenderer], arch: str) -> dict[str, Case]:
    found: Renderer = renderer(arch)
    return {case.name: case for case in cases(found) if HEADERS or "16" not in case.name}


@needs_jitlink
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_ptx_assembles(arch: str) -> None:
    """Every conformance kernel that we write as PTX."""
    compiler, renderer = JitLinkCompiler(arch), PTXRenderer(arch)
    for name, case in all_cases(PTXRenderer, arch).items():
        assert compiler.compile(renderer.render(name, case.uops)).startswith(ELF_MAGIC), name


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_cuda_compiles(arch: str) -> None:
    """A kernel of every kind for every architecture that the library knows; NVRTC gives PTX without its NUL."""
    if int(arch.removeprefix("sm_")) not in nvrtc.architectures():
        pytest.skip(f"NVRTC {nvrtc.version()} does not know {arch}")
    compiler, renderer = NVRTCCompiler(arch), CUDARenderer(arch)
    for name in ("alu_float32x4", "alu_int64", "cast_float64", "lanes", "branches"):
        found = compiler.compile(renderer.render(name, all_cases(CUDARenderer, arch)[name].uops))
        assert b"\0" not in found
        assert f".entry {name}(" in found.decode()
    cubin = NVRTCCompiler(arch, cubin=True)
    assert cubin.compile(renderer.render("lanes", all_cases(CUDARenderer, arch)["lanes"].uops)).startswith(ELF_MAGIC)
    assert compiler.cachekey != cubin.cachekey


@needs_nvrtc
@needs_llvm
@pytest.mark.parametrize("name", all_cases(CUDARenderer, "sm_80"))
def test_what_nvrtc_writes_runs(name: str) -> None:
    """The driver's side of our CUDA C++: NVRTC's PTX, translated for the host."""
    case = all_cases(CUDARenderer, "sm_80")[name]
    source = NVRTCCompiler("sm_80").compile(CUDARenderer("sm_80").render(name, case.uops))
    buffers = case.buffers()
    memory = [(ctypes.c_char * (len(b) + 16)).from_buffer_copy(bytes(b) + bytes(16)) for b in buffers]
    params = b"".join(ctypes.addressof(m).to_bytes(8, "little") for m in memory)
    params += b"".join(value.to_bytes(4, "little", signed=True) for value in case.vals)
    Program(source.decode()).kernels[name].launch(params, (1, 1, 1), (1, 1, 1))
    case.check([bytes(m)[: len(b)] for m, b in zip(memory, buffers, strict=True)])


@needs_nvrtc
@needs_llvm
class TestNVRTC(DeviceConformance):
    """CUDA C++ all the way, on a driver whose GPUs are the host."""

    device = "CUDA"
    dev = "MOCK+CUDA:CUDA:sm_80"
    dtypes = (
        dtypes.bool, dtypes.int8, dtypes.uint16, dtypes.int32, dtypes.uint64, dtypes.bfloat16, dtypes.float32,
        dtypes.float64, *((dtypes.float16,) if HEADERS else ()),
    )  # fmt: skip


@needs_nvrtc
def test_a_rejected_source_is_kept(cache_folder: Path) -> None:
    source = 'extern "C" __global__ void broken(float* x) { *x = missing; }'
    with pytest.raises(CompileError, match='identifier "missing" is undefined') as caught:
        NVRTCCompiler("sm_80").compile(source)
    assert caught.value.path is not None
    assert Path(caught.value.path).read_text() == source


@needs_jitlink
def test_a_rejected_text_is_kept(cache_folder: Path) -> None:
    source = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { wrong; }\n"
    with pytest.raises(CompileError, match="nvJitLink for sm_80") as caught:
        JitLinkCompiler("sm_80").compile(source)
    assert caught.value.path is not None
    assert Path(caught.value.path).read_text() == source


@needs_jitlink
@needs_disassembler
def test_machine_code() -> None:
    """Vectors are one access, a multiplication and an addition are one instruction."""
    case = all_cases(PTXRenderer, "sm_90")["lane_sums"]
    compiler = JitLinkCompiler("sm_90")
    text = compiler.disassemble(compiler.compile(PTXRenderer("sm_90").render("lane_sums", case.uops)))
    assert "LDG.E.128" in text
    assert "FFMA" in text
    assert "STG.E.128" in text


@needs_nvrtc
@needs_jitlink
def test_machine_code_where_the_driver_takes_it() -> None:
    """Machine code of compilers up to the driver's major version, PTX for older drivers and for the mock."""
    for driver, cubin in ((0, False), (nvrtc.version()[0] - 1, False), (nvrtc.version()[0], True)):
        compiler = choose_compiler("CUDA", "sm_90", driver)
        assert isinstance(compiler, NVRTCCompiler)
        assert compiler.cubin == cubin
    unknown = choose_compiler("CUDA", "sm_999", 99)
    assert isinstance(unknown, NVRTCCompiler)
    assert not unknown.cubin
    assert nvrtc.virtual("sm_999") == f"compute_{nvrtc.architectures()[-1]}"
    assert nvrtc.virtual("sm_90a") == "compute_90a"
    assert isinstance(choose_compiler("PTX", "sm_90", assembler.major()), JitLinkCompiler)
    assert isinstance(choose_compiler("PTX", "sm_90", assembler.major() - 1), PTXCompiler)


def test_ptx_is_left_as_it_is() -> None:
    compiler = PTXCompiler()
    assert compiler.cachekey is None
    assert compiler.disassemble(compiler.compile("// text")) == "// text"


@pytest.mark.skipif(find_spec("ctypesgen") is None, reason="ctypesgen is not installed")
@pytest.mark.skipif(not WHEEL, reason="nvidia-cuda-runtime is not installed")
def test_bindings_are_what_the_header_says() -> None:
    done = subprocess.run([sys.executable, "-m", "tools.cuda", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def product(m: int, n: int, k: int) -> LazyOp:
    """A product of matrices of float32."""
    whole = ShapeTracker.from_shape
    a = ast.load(1, dtypes.float32, whole((m, k)).reshape((m, 1, k)).expand((m, n, k)))
    b = ast.load(2, dtypes.float32, whole((k, n)).permute((1, 0)).reshape((1, n, k)).expand((m, n, k)))
    return kernel([(ast.reduce(ast.alu(Ops.MUL, a, b), Ops.ADD, (2,)), m * n)], [(dtypes.float32, m * k)] * 2)


@needs_nvrtc
@needs_jitlink
@needs_disassembler
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_a_product_is_computed_from_shared_memory_in_vectors(arch: str) -> None:
    sink = product(1024, 1024, 512)
    for renderer, compiler in ((CUDARenderer(arch), NVRTCCompiler(arch, cubin=True)),
                               (PTXRenderer(arch), JitLinkCompiler(arch))):
        spec = compile_ast(sink, renderer, actions=[parse_action(part) for part in PLAN.split(";")])
        assembly = compiler.disassemble(compiler.compile(spec.src))
        for instruction in (r"LDG\.E\.(\w+\.)*128", r"LDS\.(\w+\.)*128", r"STG\.E\.(\w+\.)*128", r"BAR\.SYNC"):
            assert re.search(instruction, assembly), f"{type(renderer).__name__}: no {instruction}"
        assert not re.search(r"\b(LDL|STL)\b", assembly), "registers are kept in memory"


PLAN = ("split(i1, 4, VECTOR); split(i1, 16, LOCAL); split(i0, 8, UPCAST); split(i0, 8, LOCAL); split(r0, 16, REDUCE); "
        "share(0, r0); share(1, r0); mark(i0, GLOBAL); mark(i1, GLOBAL)")


@needs_nvrtc
@needs_disassembler
def test_copies_are_vectors() -> None:
    x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((1 << 20,)))
    spec = compile_ast(kernel([(ast.alu(Ops.ADD, x, x), 1 << 20)], [(dtypes.float32, 1 << 20)]), CUDARenderer("sm_80"))
    compiler = NVRTCCompiler("sm_80", cubin=True)
    assembly = compiler.disassemble(compiler.compile(spec.src))
    assert re.search(r"LDG\.E\.(\w+\.)*128", assembly)
    assert re.search(r"STG\.E\.(\w+\.)*128", assembly)


@needs_nvrtc
@needs_jitlink
def test_machine_code_tells_how_much_shared_memory_it_wants() -> None:
    x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((128, 128)).permute((1, 0)))
    sink = kernel([(x, 128 * 128)], [(dtypes.float32, 128 * 128)])
    plan = "mark(i1, LOCAL); split(i0, 16, UPCAST); mark(i0, LOCAL); share(0, -)"
    actions = [parse_action(part) for part in plan.split(";")]
    target = Target(kind="gpu", vector_bytes=16, registers=255, shared_bytes=163 << 10, local_max=1024)
    for renderer, compiler in ((CUDARenderer("sm_80", target), NVRTCCompiler("sm_80", cubin=True)),
                               (PTXRenderer("sm_80", target), JitLinkCompiler("sm_80"))):
        spec = compile_ast(sink, renderer, actions=actions)
        assert dynamic.wanted(spec.name, compiler.compile(spec.src)) > 64 << 10
