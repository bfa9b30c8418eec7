"""Products by tensor cores: run on the host, and, where NVIDIA's compilers are installed, found in the machine code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tg_codegen import Renderer, compile_ast, parse_action
from tg_codegen.ir.matrix import MMA_TF32, tensor_cores
from tg_codegen.ir.program import ProgramSpec
from tg_codegen.ir.uop import UOps
from tg_codegen.render.c.cuda import CUDARenderer
from tg_codegen.render.ptx import PTXRenderer
from tg_dtype import DType, dtypes, to_bits, truncate
from tg_lazy import BufferArg, Context, LazyOp, Ops
from tg_lazy import ast as A
from tg_runtime import Buffer, Compiled, CompiledRunner, Device
from tg_runtime.backends.cuda import assembler, nvrtc
from tg_runtime.backends.cuda.assembler import JitLinkCompiler
from tg_runtime.backends.cuda.disassembly import disassemble
from tg_runtime.backends.cuda.libraries import include_folders, tool
from tg_runtime.backends.cuda.nvrtc import NVRTCCompiler
from tg_runtime.emulators.ptx.machine import MISSING, available
from tg_shape import ShapeTracker

ST = ShapeTracker.from_shape
Array = np.ndarray[Any, np.dtype[Any]]
KINDS = {
    "f16": (dtypes.float16, dtypes.float32), "bf16": (dtypes.bfloat16, dtypes.float32),
    "e4m3": (dtypes.fp8e4m3, dtypes.float32), "e5m2": (dtypes.fp8e5m2, dtypes.float32),
    "s8": (dtypes.int8, dtypes.int32), "u8": (dtypes.uint8, dtypes.int32),
}  # fmt: skip
needs_mock = pytest.mark.skipif(not available(), reason=MISSING)


def product(a: DType, acc: DType, m: int, n: int, k: int, tb: bool = False) -> LazyOp:
    shape = (m, n, k)
    right = ST((n, k)) if tb else ST((k, n)).permute((1, 0))
    x = A.load(1, a, ST((m, 1, k)).expand(shape))
    y = A.load(2, a, right.reshape((1, n, k)).expand(shape))
    x, y = (v if v.dtype is acc else A.cast(v, acc) for v in (x, y))
    total = A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (2,))
    sizes = (BufferArg(acc, m * n), BufferArg(a, m * k), BufferArg(a, k * n))
    return A.sink((A.store(0, ST((m, n, 1)), total),), sizes)


def values(dtype: DType, count: int, seed: int) -> tuple[bytes, Array]:
    """Small numbers as a buffer holds them, and exactly."""
    rng = np.random.default_rng(seed)
    if dtypes.is_int(dtype):
        found = rng.integers(int(dtypes.min(dtype)), int(dtypes.max(dtype)) + 1, count)
        return found.astype(dtype.name).tobytes(), found
    exact = [truncate(float(x), dtype) for x in rng.uniform(-2, 2, count)]
    kept = np.array([to_bits(x, dtype) for x in exact], {1: np.uint8, 2: np.uint16, 4: np.uint32}[dtype.itemsize])
    return kept.tobytes(), np.array(exact)


def instructions(spec: ProgramSpec) -> list[str]:
    return [u.arg.name for u in spec.uops if u.op is UOps.MATRIX]


def run(spec: ProgramSpec, device: Compiled, a: DType, acc: DType, m: int, n: int, k: int, tb: bool) -> None:
    (x, left), (y, right) = values(a, m * k, 1), values(a, k * n, 2)
    buffers = [Buffer(device.device, count, d).allocate() for count, d in ((m * n, acc), (m * k, a), (k * n, a))]
    buffers[1].copyin(memoryview(x))
    buffers[2].copyin(memoryview(y))
    CompiledRunner(spec, device)(buffers, {}, wait=True)
    out = bytearray(m * n * acc.itemsize)
    buffers[0].copyout(memoryview(out))
    want = left.reshape(m, k) @ (right.reshape(n, k).T if tb else right.reshape(k, n))
    tolerance = 2e-3 if a is dtypes.float32 else 1e-5
    np.testing.assert_allclose(np.frombuffer(out, acc.name).reshape(m, n), want, rtol=tolerance, atol=20 * tolerance)


@pytest.fixture
def device() -> Iterator[Compiled]:
    with Context(DEV="MOCK+CUDA:PTX"):
        found = Device["CUDA"]
        assert isinstance(found, Compiled)
        yield found


@pytest.mark.drawn(3)
@needs_mock
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_products(kind: str, tb: bool, device: Compiled) -> None:
    a, acc = KINDS[kind]
    for shape in ((32, 16, 64), (37, 26, 33), (48, 40, 8)):
        spec = compile_ast(product(a, acc, *shape, tb), PTXRenderer("sm_90"))
        assert bool(instructions(spec)) is (shape[2] >= 32 or a.itemsize == 2)
        run(spec, device, a, acc, *shape, tb)


@needs_mock
@pytest.mark.parametrize("shape", [(64, 32, 64), (50, 40, 70)])
def test_tiles_of_several_instructions_and_warps(shape: tuple[int, int, int], device: Compiled) -> None:
    text = ["split(i1, 8, FRAGMENT_COLUMNS)", "split(i1, 2, UPCAST)", "split(i1, 2, LOCAL)",
            "split(i0, 16, FRAGMENT_ROWS)", "split(i0, 2, UPCAST)", "split(i0, 2, LOCAL)", "split(r0, 16, CONTRACT)",
            "split(r0, 2, REDUCE)", "share(0, r0)", "share(1, r0)"]  # fmt: skip
    ast = product(dtypes.float16, dtypes.float32, *shape)
    spec = compile_ast(ast, PTXRenderer("sm_90"), actions=[parse_action(line) for line in text])
    assert len(instructions(spec)) >= 4
    run(spec, device, dtypes.float16, dtypes.float32, *shape, False)


@needs_mock
def test_tf32_is_asked_for(device: Compiled) -> None:
    ast = product(dtypes.float32, dtypes.float32, 32, 16, 24)
    assert not instructions(compile_ast(ast, PTXRenderer("sm_80")))
    spec = compile_ast(ast, PTXRenderer("sm_80", tf32=True))
    assert set(instructions(spec)) == {MMA_TF32.name}
    run(spec, device, dtypes.float32, dtypes.float32, 32, 16, 24, False)


def test_which_machine_has_which() -> None:
    names = {sm: {found.name for found in tensor_cores(sm)} for sm in (70, 75, 80, 89)}
    assert not names[70]
    assert names[75] == {"m16n8k8.f32.f16.f16.f32"}
    assert "m16n8k16.f32.bf16.bf16.f32" in names[80]
    assert {n for n in names[89] if "e4m3" in n} and not {n for n in names[80] if "e4m3" in n}


SASS = {
    "f16": "HMMA.16816.F32", "bf16": "HMMA.16816.F32.BF16", "e4m3": "QMMA", "e5m2": "QMMA", "s8": "IMMA.16832.S8.S8",
    "u8": "IMMA.16832.U8.U8",
}  # fmt: skip


def machine_code(renderer: Renderer, spec: ProgramSpec, arch: str) -> str:
    compiler = NVRTCCompiler(arch, cubin=True) if isinstance(renderer, CUDARenderer) else JitLinkCompiler(arch)
    return disassemble(compiler.compile(spec.src))


@pytest.mark.skipif(tool("nvdisasm") is None and tool("cuobjdump") is None, reason="nvdisasm is not installed")
@pytest.mark.parametrize("language", [CUDARenderer, PTXRenderer])
@pytest.mark.parametrize("kind", KINDS)
def test_machine_code(kind: str, language: type[CUDARenderer] | type[PTXRenderer]) -> None:
    if not (nvrtc.available() if language is CUDARenderer else assembler.available()):
        pytest.skip(nvrtc.MISSING)
    if kind == "f16" and language is CUDARenderer and not include_folders():
        pytest.skip("the header for float16 is not installed")
    arch = "sm_89" if kind.startswith("e") else "sm_80"
    renderer = language(arch)
    spec = compile_ast(product(*KINDS[kind], 256, 256, 256), renderer)
    assert SASS[kind] in machine_code(renderer, spec, arch)


@pytest.mark.skipif(tool("nvdisasm") is None and tool("cuobjdump") is None, reason="nvdisasm is not installed")
def test_machine_code_of_tf32() -> None:
    if not assembler.available():
        pytest.skip(assembler.MISSING)
    renderer = PTXRenderer("sm_80", tf32=True)
    spec = compile_ast(product(dtypes.float32, dtypes.float32, 256, 256, 256), renderer)
    assert "HMMA.1688.F32.TF32" in machine_code(renderer, spec, "sm_80")
