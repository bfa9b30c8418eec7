"""MSL: every conformance case checked for types and address spaces, and run as a function of the host."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tg_codegen import compile_ast
from tg_codegen.conformance import Case, cases
from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.ir.uop import UOp
from tg_codegen.render.c.msl import MOST_BUFFERS, MSLRenderer
from tg_codegen.render.c.msl_host import CHECK_FLAGS, HOST_FLAGS, host_source, install
from tg_dtype import AddrSpace, DType, dtypes
from tg_lazy import LazyOp, Ops, ast
from tg_shape import ShapeTracker

f32 = dtypes.float32
RENDERER = MSLRenderer(bfloat=True)


def every_case() -> Iterator[Case]:
    """Those of native vectors, and some of vectors that the language does not have."""
    yield from cases(RENDERER, lanes=4)
    for lanes in (3, 8):
        for case in cases(RENDERER, lanes=lanes):
            if not case.name.startswith(("alu_", "cast_")):
                yield Case(f"{case.name}_{lanes}", case.uops, case.outputs, case.inputs, case.vals, case.initial)


CASES = {case.name: case for case in every_case()}
Joined = Callable[[Mapping[str, str]], dict[str, tuple[str, ...]]]
Selected = Callable[[str], list[str]]


def tool(*names: str) -> str:
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    pytest.skip(f"{names[-1]} is not installed")


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("msl")
    install(str(folder))
    return folder


@pytest.fixture(scope="module")
def check(headers: Path) -> Callable[[str], str]:
    """What clang says against a source; nothing if it is right."""
    compiler = tool("clang-19", "clang")

    def run(source: str) -> str:
        command = [compiler, *CHECK_FLAGS, f"-I{headers}", "-"]
        return subprocess.run(command, input=source, capture_output=True, text=True).stderr

    return run


@pytest.fixture(scope="module")
def rendered() -> dict[str, str]:
    """The source of each case."""
    return {name: RENDERER.render(name, case.uops) for name, case in CASES.items()}


@pytest.fixture(scope="module")
def libraries(
    rendered: dict[str, str], joined: Joined, selected: Selected, headers: Path
) -> dict[str, ctypes.CDLL]:  # fmt: skip
    """The library of every case that runs, compiled together."""
    sources = joined({name: rendered[name] for name in selected("name")})
    compiler = tool("g++", "clang++-19", "clang++")
    found: dict[str, ctypes.CDLL] = {}
    for number, (source, names) in enumerate(sources.items()):
        library = headers / f"kernels{number}.so"
        command = [compiler, *HOST_FLAGS, "-O0", f"-I{headers}", "-o", str(library), "-", "-lm"]
        done = subprocess.run(command, input=host_source(source, names), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.update(dict.fromkeys(names, ctypes.CDLL(str(library))))
    return found


@pytest.mark.drawn(10)
@pytest.mark.parametrize("name", CASES)
def test_conformance(name: str, libraries: dict[str, ctypes.CDLL]) -> None:
    case = CASES[name]
    buffers = case.buffers()
    arguments: list[object] = [(ctypes.c_char * max(len(b), 1)).from_buffer(b) for b in buffers]
    arguments += [(ctypes.c_int32 * len(case.vals))(*case.vals)] if case.vals else []
    arguments += [(ctypes.c_uint32 * 4)(), (ctypes.c_uint32 * 4)()]
    slots = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(a) for a in arguments))  # type: ignore[arg-type]
    getattr(libraries[name], f"{name}_entry")(slots)
    case.check(buffers)


def test_sources(check: Callable[[str], str], rendered: dict[str, str], joined: Joined) -> None:
    sources = joined(rendered)
    assert sorted(name for names in sources.values() for name in names) == sorted(CASES)
    assert [check(source) for source in sources] == [""] * len(sources)


@pytest.mark.parametrize(
    ("was", "made", "complaint"),
    [
        ("threadgroup float tile", "device float tile", "cannot be declared|must be|__global"),
        ("(const threadgroup packed_float4*)(tile", "(const device packed_float4*)(tile", "__local"),
        ("device const float* data1", "thread const float* data1", "must reside in"),
        ("device const float* data1", "constant float* data1", "__constant"),
        ("*(device packed_float4*)(data0", "*(constant packed_float4*)(data0", "__constant"),
        ("packed_float4(", "float3(", "float3"),
    ],
)
def test_a_mistake_is_seen(was: str, made: str, complaint: str, check: Callable[[str], str]) -> None:
    source = RENDERER.render("turn", turn())
    assert check(source) == ""
    assert was in source
    found = check(source.replace(was, made, 1))
    assert any(word in found for word in complaint.split("|")), found


def turn() -> list[UOp]:
    """Blocks of 16 numbers, each turned round by a threadgroup of 4."""
    k = LinearBuilder()
    out, a = k.param(0, f32), k.param(1, f32)
    group, item = k.special("gidx0", 4), k.special("lidx0", 4)
    tile = k.scratch("tile", f32, 16, AddrSpace.LOCAL)
    mine = k.alu(Ops.MUL, item, k.const(4))
    at = k.alu(Ops.ADD, k.alu(Ops.MUL, group, k.const(16)), mine)
    k.store(tile, mine, k.load(a, at, 4))
    k.barrier()
    other = k.load(k.after(tile), k.alu(Ops.SUB, k.const(12), mine), 4)
    k.store(out, at, k.gep(other, 3, 2, 1, 0))
    return k.uops


def test_threadgroups() -> None:
    text = RENDERER.render("turn", turn())
    assert "[[max_total_threads_per_threadgroup(4)]] kernel void turn(device float* data0 [[buffer(0)]], " in text
    assert "uint3 group [[threadgroup_position_in_grid]], uint3 item [[thread_position_in_threadgroup]])" in text
    assert "  threadgroup float tile[16];\n" in text
    assert "*(threadgroup packed_float4*)(tile + " in text
    assert "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);" in text


def product(dtype: DType, size: int = 32) -> LazyOp:
    """A product of square matrices, summed in fp32."""
    shape = (size, size, size)
    st = ShapeTracker.from_shape((size, size))
    x = ast.load(1, dtype, st.reshape((size, 1, size)).expand(shape))
    y = ast.load(2, dtype, st.permute((1, 0)).reshape((1, size, size)).expand(shape))
    total = ast.reduce(ast.alu(Ops.MUL, ast.cast(x, f32), ast.cast(y, f32)), Ops.ADD, (2,))
    arguments = (ast.BufferArg(f32, size * size), *(ast.BufferArg(dtype, size * size) for _ in range(2)))
    return ast.sink((ast.store(0, ShapeTracker.from_shape((size, size, 1)), total),), arguments)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, f32], ids=lambda dtype: dtype.name)
def test_matrices_of_a_simd_group(dtype: DType, check: Callable[[str], str]) -> None:
    """Where the device has them, and the language the dtype; the operands pass through threadgroup memory."""
    text = compile_ast(product(dtype), RENDERER).src
    name = {"float16": "half", "bfloat16": "bfloat", "float32": "float"}[dtype.name]
    assert f"simdgroup_{name}8x8 a; a.thread_elements()[0] = a_.x; a.thread_elements()[1] = a_.y;" in text
    assert "simdgroup_multiply_accumulate(c, a, b, c);" in text
    assert "threadgroup_barrier" in text
    assert check(text) == ""
    for renderer in (MSLRenderer(bfloat=True, simdgroup=False), MSLRenderer()):
        if dtype is dtypes.bfloat16 or not renderer.target.matrices:
            without = compile_ast(product(dtype), renderer).src
            assert "simdgroup" not in without
            assert check(without) == ""


def test_all_lanes_of_a_load_or_none() -> None:
    """A gate that is the same for all lanes leaves the load whole."""
    k = LinearBuilder()
    out, a, n = k.param(0, f32), k.param(1, f32), k.variable("n", 1, 8)
    with k.range(8) as i:
        gate = k.broadcast(k.alu(Ops.CMPLT, i, n), 4)
        k.store(out, i, k.gep(k.load(a, i, 4, gate, k.const(0.0, f32.vec(4))), 3))
    text = RENDERER.render("gated", k.uops)
    assert "? (float4)float4(*(const device packed_float4*)(data1 + i)) : float4(0.0f);" in text


def test_limits() -> None:
    """31 buffers, the variables counting as one; 32 KiB of threadgroup memory."""
    for count, variables in ((MOST_BUFFERS, 0), (MOST_BUFFERS - 1, 2), (MOST_BUFFERS + 1, 0), (MOST_BUFFERS, 1)):
        k = LinearBuilder()
        pointers = [k.param(slot, dtypes.int32) for slot in range(count)]
        total = k.const(1)
        for number in range(variables):
            total = k.alu(Ops.ADD, total, k.variable(f"n{number}", 1, 4))
        for pointer in pointers:
            k.store(pointer, k.const(0), total)
        if count + bool(variables) <= MOST_BUFFERS:
            assert f"[[buffer({count + bool(variables) - 1})]]" in RENDERER.render("many", k.uops)
        else:
            with pytest.raises(ValueError, match="MSL: the kernel many wants 32 buffers"):
                RENDERER.render("many", k.uops)
    for size in (8192, 8193):
        k = LinearBuilder()
        tile = k.scratch("tile", f32, size, AddrSpace.LOCAL)
        k.store(tile, k.const(0), k.const(0.0, f32))
        if size == 8192:
            assert "threadgroup float tile[8192];" in RENDERER.render("large", k.uops)
        else:
            with pytest.raises(ValueError, match="wants 32784 bytes of threadgroup memory; the device has 32768"):
                RENDERER.render("large", k.uops)


def test_dtypes() -> None:
    """No float64; bfloat16 where the device has it; none of 8 bits."""
    assert RENDERER.supports_dtype(dtypes.bfloat16)
    assert not MSLRenderer().supports_dtype(dtypes.bfloat16)
    assert all(MSLRenderer().supports_dtype(d) for d in (dtypes.float16, dtypes.int64, dtypes.uint64, dtypes.bool))
    assert not any(RENDERER.supports_dtype(d) for d in (dtypes.float64, dtypes.fp8e4m3, dtypes.fp8e5m2))


def test_names() -> None:
    """Neither a keyword nor a name of ours is taken by a kernel or a variable."""
    k = LinearBuilder()
    n = k.variable("device", 1, 4)
    with k.range(n, name="thread") as i:
        k.store(k.param(0, dtypes.int32), i, n)
    text = RENDERER.render("kernel", k.uops)
    assert "struct Args { int device_1; };" in text
    assert "kernel void kernel_1(device int* data0 [[buffer(0)]], constant Args& args [[buffer(1)]]" in text
    assert "for (int thread_1 = 0; thread_1 < args.device_1; thread_1++) {" in text


def test_nothing_is_contracted() -> None:
    assert "#pragma clang fp contract(off)\n" in RENDERER.render("turn", turn())
