"""The means to compile and run what the renderers write."""

from __future__ import annotations

import ctypes
import operator
import platform
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tg_codegen.uop import UOp
from tg_lazy import Ops

Launch = Callable[..., None]
Compile = Callable[[str, str], Launch]

_NATIVE = ["-march=native"] if platform.machine() in ("x86_64", "AMD64") else ["-mcpu=native"]
_SHARED = ["-shared", "-fPIC", "-O1", "-fno-math-errno", *_NATIVE]

# Enough of CUDA for the kernels to run on the host, as one thread of one block.
_CUDA_SHIM = """
#define memcpy __builtin_memcpy
#define fma __builtin_fma
#define fmaf __builtin_fmaf
#define sqrt __builtin_sqrt
#define sqrtf __builtin_sqrtf
#define trunc __builtin_trunc
#define truncf __builtin_truncf
#define exp2 __builtin_exp2
#define exp2f __builtin_exp2f
#define log2 __builtin_log2
#define log2f __builtin_log2f
#define sin __builtin_sin
#define sinf __builtin_sinf
#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __align__(n) __attribute__((aligned(n)))
#define __syncthreads()
typedef _Float16 __half;
static inline __half __hfma(__half a, __half b, __half c) { return (__half)((double)a * (double)b + (double)c); }
static inline __half __hmul_rn(__half a, __half b) { return a * b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline float __int_as_float(int x) { float r; memcpy(&r, &x, 4); return r; }
static inline double __longlong_as_double(long long x) { double r; memcpy(&r, &x, 8); return r; }
static const struct { int x, y, z; } blockIdx = {0, 0, 0}, threadIdx = {0, 0, 0};
"""


def _launcher(address: int, keep: object) -> Launch:
    def launch(*buffers: bytearray, vals: Sequence[int] = ()) -> None:
        raw = [(ctypes.c_char * max(len(b), 1)).from_buffer(b) for b in buffers]
        kinds = [ctypes.c_void_p] * len(raw) + [ctypes.c_int32] * len(vals)
        ctypes.CFUNCTYPE(None, *kinds)(address)(*(ctypes.addressof(b) for b in raw), *vals)
        assert keep is not None

    return launch


def _shared_object(compiler: str, flags: Sequence[str], folder: Path, prefix: str = "") -> Compile:
    def build(source: str, name: str) -> Launch:
        library = folder / f"{name}{len(list(folder.iterdir()))}.so"
        command = [compiler, *_SHARED, *flags, "-o", str(library), "-"]
        done = subprocess.run(command, input=prefix + source, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stderr}\n{source}"
        loaded = ctypes.CDLL(str(library))
        address = ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value
        assert address is not None
        return _launcher(address, loaded)

    return build


def _tool(*names: str) -> str:
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    pytest.skip(f"{names[-1]} is not installed")


@pytest.fixture
def clang(tmp_path: Path) -> Compile:
    """Compiles C with clang and no library; a warning is an error."""
    flags = ["-x", "c", "-std=c11", "-nostdlib", "-Wall", "-Werror", "-Wno-psabi", "-Wno-unused"]
    return _shared_object(_tool("clang-19", "clang"), flags, tmp_path)


@pytest.fixture
def gcc(tmp_path: Path) -> Compile:
    """Compiles C with gcc."""
    return _shared_object(_tool("gcc"), ["-x", "c", "-std=gnu11", "-w"], tmp_path)


@pytest.fixture
def cuda(tmp_path: Path) -> Compile:
    """Compiles CUDA C++ for the host, with a shim for what only CUDA has."""
    (tmp_path / "cuda_fp16.h").write_text("")
    flags = ["-x", "c++", "-std=c++17", "-Wno-everything", f"-I{tmp_path}", "-O0"]
    return _shared_object(_tool("clang++-19", "clang-19", "clang"), flags, tmp_path, _CUDA_SHIM)


@pytest.fixture
def llvm() -> Compile:
    """Compiles LLVM IR in this process."""
    binding = pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features().flatten()
    host = binding.Target.from_default_triple()

    def build(source: str, name: str) -> Launch:
        machine = host.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=1, jit=True)
        module = binding.parse_assembly(source)
        module.verify()
        builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=1))
        builder.getModulePassManager().run(module, builder)
        engine = binding.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        return _launcher(engine.get_function_address(name), engine)

    return build


@pytest.fixture
def opencl_syntax() -> Callable[[str], None]:
    """Checks OpenCL C 1.2 with clang's front end, as far as types and names go."""
    found = _tool("clang-19", "clang")

    def check(source: str) -> None:
        flags = ["-x", "cl", "-cl-std=CL1.2", "-target", "spir64", "-Xclang", "-finclude-default-header"]
        flags += ["-Xclang", "-fdeclare-opencl-builtins"]
        command = [found, *flags, "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused", "-"]
        done = subprocess.run(command, input=source, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stderr}\n{source}"

    return check


_NUMPY: dict[Any, Callable[..., Any]] = {
    Ops.ADD: operator.add,
    Ops.SUB: operator.sub,
    Ops.MUL: operator.mul,
    Ops.FDIV: operator.truediv,
    Ops.NEG: operator.neg,
    Ops.NOT: operator.invert,
    Ops.AND: operator.and_,
    Ops.OR: operator.or_,
    Ops.XOR: operator.xor,
    Ops.SHL: operator.lshift,
    Ops.SHR: operator.rshift,
    Ops.CMPLT: operator.lt,
    Ops.CMPEQ: operator.eq,
    Ops.CMPNE: operator.ne,
    Ops.WHERE: np.where,
    Ops.SQRT: np.sqrt,
    Ops.TRUNC: np.trunc,
    Ops.MAX: np.maximum,
}


def _multiply_add(a: Any, b: Any, c: Any) -> Any:
    """One rounding, but for one result in millions: in a wider float."""
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    return (a.astype(wide) * b + c).astype(a.dtype)


OnArrays = Callable[..., Any]


@pytest.fixture
def on_arrays() -> OnArrays:
    return _on_arrays


def _on_arrays(root: UOp, known: dict[UOp, Any], fused: bool = True) -> Any:
    """A node without memory or loops, evaluated by numpy for arrays of operands.

    Args:
      known: arrays that stand for nodes.
      fused: whether MULACC rounds once.
    """
    done = dict(known)
    with np.errstate(all="ignore"):
        for u in root.toposort():
            if u in done:
                continue
            operands = [done[s] for s in u.src]
            wanted = np.dtype(u.dtype.name)
            if u.is_const:
                done[u] = np.asarray(u.arg, dtype=wanted)
            elif u.op is Ops.CAST:
                done[u] = operands[0].astype(wanted)
            elif u.op is Ops.BITCAST:
                done[u] = operands[0].view(wanted)
            elif u.op is Ops.MULACC:
                a, b, c = np.broadcast_arrays(*operands)
                done[u] = _multiply_add(a, b, c) if fused else a * b + c
            else:
                done[u] = np.asarray(_NUMPY[u.op](*operands))
            assert done[u].dtype == wanted, u
    return done[root]
