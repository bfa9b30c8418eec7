"""Every conformance case in every language that can be run or checked with no device, against the op table."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tg_codegen.conformance import Case, cases, encode_buffer, thread_case
from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.machine.renderer import Renderer
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.render.c.cuda import CUDARenderer
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import AddrSpace, DType, dtypes, truncate
from tg_lazy import Ops

Launch = Callable[..., None]
Compile = Callable[[str], Callable[[str], Launch]]
"""From a source to its kernels by their names; :class:`AssertionError` where the compiler refuses it."""
Joined = Callable[[Mapping[str, str]], dict[str, tuple[str, ...]]]
Selected = Callable[[str], list[Case]]

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
#define exp __builtin_exp
#define expf __builtin_expf
#define log __builtin_log
#define logf __builtin_logf
#define cos __builtin_cos
#define cosf __builtin_cosf
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
    def build(source: str) -> Callable[[str], Launch]:
        library = folder / f"kernels{len(list(folder.iterdir()))}.so"
        command = [compiler, *_SHARED, *flags, "-o", str(library), "-"]
        done = subprocess.run(command, input=prefix + source, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stderr}\n{source}"
        loaded = ctypes.CDLL(str(library))

        def kernel(name: str) -> Launch:
            address = ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value
            assert address is not None
            return _launcher(address, loaded)

        return kernel

    return build


def _tool(*names: str) -> str:
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    pytest.skip(f"{names[-1]} is not installed")


@pytest.fixture(scope="module")
def clang(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles C with clang and no library; a warning is an error."""
    flags = ["-x", "c", "-std=c11", "-nostdlib", "-Wall", "-Werror", "-Wno-psabi", "-Wno-unused"]
    return _shared_object(_tool("clang-19", "clang"), flags, tmp_path_factory.mktemp("clang"))


@pytest.fixture(scope="module")
def gcc(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles C with gcc."""
    return _shared_object(_tool("gcc"), ["-x", "c", "-std=gnu11", "-w"], tmp_path_factory.mktemp("gcc"))


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles CUDA C++ for the host, with a shim for what only CUDA has."""
    folder = tmp_path_factory.mktemp("cuda")
    (folder / "cuda_fp16.h").write_text("")
    flags = ["-x", "c++", "-std=c++17", "-Wno-everything", f"-I{folder}", "-O0"]
    return _shared_object(_tool("clang++-19", "clang-19", "clang"), flags, folder, _CUDA_SHIM)


@pytest.fixture(scope="module")
def llvm() -> Compile:
    """Compiles LLVM IR in this process."""
    binding = pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features().flatten()
    host = binding.Target.from_default_triple()

    def build(source: str) -> Callable[[str], Launch]:
        machine = host.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=1, jit=True)
        module = binding.parse_assembly(source)
        module.verify()
        options = binding.create_pipeline_tuning_options(speed_level=1)
        options.loop_vectorization = False  # which LLVM 22 may end with stores that are too wide
        builder = binding.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        engine = binding.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        return lambda name: _launcher(engine.get_function_address(name), engine)

    return build


@pytest.fixture(scope="module")
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


RENDERERS: dict[str, Renderer] = {
    "llvm": LLVMRenderer(), "clang": ClangRenderer(), "gcc": ClangRenderer(), "cuda": CUDARenderer(),
}  # fmt: skip


SAMPLE = {"alu_float32x8", "alu_float16x8", "alu_int8x8", "alu_uint32", "alu_boolx8", "cast_float64x8", "cast_int16",
          "tails_int32x8"}  # fmt: skip


def every_case() -> list[tuple[str, Case]]:
    found: list[tuple[str, Case]] = []
    for backend, renderer in RENDERERS.items():
        chosen = list(cases(renderer, lanes=4 if backend == "cuda" else 8))
        if backend == "gcc":  # our C is written for clang: a sample shows that gcc takes it too
            of_each = ("alu_", "cast_", "tails_")
            chosen = [case for case in chosen if not case.name.startswith(of_each) or case.name in SAMPLE]
        if not renderer.target.grid:
            chosen.append(thread_case())
        if backend in ("llvm", "clang"):
            of_three = [case for case in cases(renderer, lanes=3) if case.name in ("gated_lanes", "lanes", "argmax")]
            chosen += [dataclasses.replace(case, name=f"{case.name}_3") for case in of_three]
        found += [(backend, case) for case in chosen]
    return found


CASES = every_case()


@pytest.fixture(scope="module")
def kernels(
    request: pytest.FixtureRequest, joined: Joined, selected: Selected
) -> Callable[[str, Case], Launch]:  # fmt: skip
    """What launches the kernel of a case: those of a language that run are compiled together."""
    running = {id(case) for case in selected("case")}

    @functools.cache
    def of(backend: str) -> dict[str, Callable[[str], Launch]]:
        build: Compile = request.getfixturevalue(backend)
        renderer, mine = RENDERERS[backend], [case for name, case in CASES if name == backend and id(case) in running]
        sources = {case.name: renderer.render(case.name, case.uops) for case in mine}
        found: dict[str, Callable[[str], Launch]] = {}
        for source, names in joined(sources).items():
            try:
                found.update(dict.fromkeys(names, build(source)))
            except AssertionError:  # then each case tells for itself
                found.update({name: lambda name: build(sources[name])(name) for name in names})
        return found

    def kernel(backend: str, case: Case) -> Launch:
        if backend == "llvm":  # without a process
            build: Compile = request.getfixturevalue(backend)
            return build(RENDERERS[backend].render(case.name, case.uops))(case.name)
        return of(backend)[case.name](case.name)

    return kernel


@pytest.mark.drawn(20)
@pytest.mark.parametrize(("backend", "case"), [pytest.param(*each, id=f"{each[0]}-{each[1].name}") for each in CASES])
def test_conformance(backend: str, case: Case, kernels: Callable[[str, Case], Launch]) -> None:
    launch = kernels(backend, case)
    buffers = case.buffers()
    launch(*buffers, vals=case.vals)
    case.check(buffers)


OPENCL = OpenCLRenderer(half=True)


def test_opencl_is_well_formed(opencl_syntax: Callable[[str], None], joined: Joined) -> None:
    every = [case for case in cases(OPENCL) if not case.name.endswith("16")]
    assert len(every) > 50
    for source in joined({case.name: OPENCL.render(case.name, case.uops) for case in every}):
        opencl_syntax(source)


def test_opencl_work_group(opencl_syntax: Callable[[str], None]) -> None:
    """Work-items share an array; the launch must agree with the stated size."""
    k = LinearBuilder()
    out, a = k.param(0, dtypes.float32), k.param(1, dtypes.float32)
    group, item = k.special("gidx0", 4), k.special("lidx0", 16)
    tile = k.scratch("tile", dtypes.float32, 16, AddrSpace.LOCAL)
    at = k.alu(Ops.ADD, k.alu(Ops.MUL, group, k.const(16)), item)
    k.store(tile, item, k.load(a, at))
    k.barrier()
    ready = k.after(tile)
    k.store(out, at, k.load(ready, k.alu(Ops.SUB, k.const(15), item)))
    text = OPENCL.render("turn", k.uops)
    assert "reqd_work_group_size(16, 1, 1)" in text
    assert "__local float tile[16];" in text
    opencl_syntax(text)


@pytest.mark.parametrize("backend", RENDERERS)
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64], ids=str)
def test_nothing_is_contracted(backend: str, dtype: DType, request: pytest.FixtureRequest) -> None:
    """x * x - y with y = x * x of another kernel is 0: one kernel rounds the product as the other does."""
    build: Compile = request.getfixturevalue(backend)
    raw = encode_buffer([truncate(1.0 + n / 8191, dtype) for n in range(0, 3000, 375)], dtype)
    for lanes in (1, 4):
        k = LinearBuilder()
        out, a, b = (k.param(slot, dtype) for slot in range(3))
        with k.range(8, step=lanes) as i:
            x = k.load(a, i, lanes)
            k.store(out, i, k.alu(Ops.SUB, k.alu(Ops.MUL, x, x), k.load(b, i, lanes)))
        squares = bytearray(len(raw))
        square = LinearBuilder()
        to, of = square.param(0, dtype), square.param(1, dtype)
        with square.range(8) as i:
            x = square.load(of, i)
            square.store(to, i, square.alu(Ops.MUL, x, x))
        build(RENDERERS[backend].render("square", square.uops))("square")(squares, raw)
        result = bytearray(b"\xff" * len(raw))
        build(RENDERERS[backend].render("difference", k.uops))("difference")(result, raw, squares)
        assert result == bytes(len(raw))
