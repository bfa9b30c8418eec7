"""Compilers: their errors, their cache, and binaries that turn out not to load."""

from __future__ import annotations

import os
import platform
import re
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tg_codegen.conformance import cases
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import dtypes
from tg_lazy import Context, LazyBuffer, Ops, ast
from tg_runtime import (
    Buffer,
    CompiledRunner,
    CompileError,
    Compiler,
    Device,
    ExecItem,
    get_runner,
    parse_dev,
    realize,
)
from tg_runtime.backends.cpu.program import CPUProgram
from tg_runtime.cache import diskcache
from tg_runtime.compilers import clang, llvm
from tg_runtime.device import compiler as compiler_module
from tg_runtime.device.compiler import keep_source
from tg_runtime.errors import DevSyntaxError
from tg_runtime.host.arch import CPUArch
from tg_runtime.host.tools import c_compiler, find_tool
from tg_runtime.kernels import speccache
from tg_runtime.kernels.generate import make_spec
from tg_runtime.testing.kernels import kernel
from tg_shape import ShapeTracker

needs_llvm = pytest.mark.skipif(not llvm.available(), reason="llvmlite is not installed")
needs_clang = pytest.mark.skipif(c_compiler() is None, reason="no clang on the PATH")

IR = "define void @twice(ptr %p) {\n %x = load i32, ptr %p\n %y = shl i32 %x, 1\n store i32 %y, ptr %p\n ret void\n}\n"
C = "void twice(int *p) { *p *= 2; }\n"


class Counting(Compiler):
    """Counts how often it really compiles."""

    def __init__(self, key: str | None) -> None:
        super().__init__(key)
        self.count = 0

    def compile(self, src: str) -> bytes:
        self.count += 1
        return src[::-1].encode()


def check_twice(lib: bytes) -> None:
    buffer = Buffer("CPU", 1, dtypes.int32).copyin(memoryview(b"\x15\0\0\0"))
    CPUProgram("twice", lib)(buffer.opaque)
    assert buffer.as_buffer().cast("i")[0] == 42


def test_cache_is_keyed_by_compiler_and_source(cache_folder: Path) -> None:
    one, same, other, none = Counting("a"), Counting("a"), Counting("b"), Counting(None)
    for compiler in (one, same, other, none, none):
        assert compiler.compile_cached("abc") == b"cba"
    assert (one.count, same.count, other.count, none.count) == (1, 0, 1, 2)
    assert one.compile_cached("abd") == b"dba"
    assert one.count == 2
    one.forget("abc")
    assert same.compile_cached("abc") == b"cba"
    assert same.count == 1


def test_nothing_breaks_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    with Context(CACHEDIR="/proc/nowhere"):
        compiler = Counting("a")
        assert compiler.compile_cached("x") == compiler.compile_cached("x") == b"x"
        assert compiler.count == 2


@needs_llvm
def test_llvm() -> None:
    check_twice(llvm.LLVMCompiler().compile(IR))


@needs_clang
def test_clang() -> None:
    check_twice(clang.ClangCompiler().compile(C))
    check_twice(clang.ClangCompiler(language="ir").compile(IR))


@pytest.mark.skipif(find_tool("gcc", "cc") is None, reason="no gcc on the PATH")
def test_gcc_serves_for_a_users_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", find_tool("gcc", "cc") or "")
    compiler = clang.ClangCompiler(allow_gcc=True)
    check_twice(compiler.compile(C))
    with pytest.raises(CompileError, match="the source is kept in"):
        compiler.compile("void f( {")


@needs_llvm
@pytest.mark.parametrize("source", ["define void @f( {", "define void @f() { ret i32 1 }", "garbage"])
def test_llvm_keeps_what_it_rejects(source: str, cache_folder: Path) -> None:
    with pytest.raises(CompileError, match="LLVM IR: compilation failed; the source is kept in ") as caught:
        llvm.LLVMCompiler().compile(source)
    error = caught.value
    assert error.path is not None
    assert error.path.endswith(".ll")
    assert error.path in str(error)
    assert Path(error.path).read_text() == error.source == source


@needs_clang
def test_clang_keeps_what_it_rejects(cache_folder: Path) -> None:
    with pytest.raises(CompileError, match=r"clang.*: compilation failed; the source is kept in ") as caught:
        clang.ClangCompiler().compile("void f() { undeclared(); }")
    assert "undeclared" in str(caught.value)
    assert caught.value.path is not None
    assert Path(caught.value.path).parent == cache_folder / "failed"
    assert os.path.exists(caught.value.path)


@needs_clang
def test_what_clang_says_of_a_processor_is_told_without_its_own_name() -> None:
    with pytest.raises(DevSyntaxError, match=r"^CPU arch: clang[-\d.]* says: [^:]*'foo'") as caught:
        clang.ClangCompiler(CPUArch("foo")).check()
    assert "error" not in str(caught.value)


@pytest.mark.skipif(os.name != "posix", reason="the compiler is a script of the shell")
@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo warning: old >&2; echo clang: error: no such thing >&2; exit 1", "no such thing"),
        ("echo Illegal instruction >&2; exit 4", "Illegal instruction"),
        ("exit 5", "status 5"),
    ],
)
def test_whatever_a_compiler_says_that_fails_is_told(
    script: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it does not call it an error, or says nothing at all."""
    path = tmp_path / "myclang"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("CC", str(path))
    with pytest.raises(DevSyntaxError, match=rf"^CPU arch: myclang says: {says}$"):
        clang.ClangCompiler(CPUArch("foo")).check()


def test_few_rejected_sources_are_kept(cache_folder: Path) -> None:
    paths = [keep_source(f"source {number}", ".c") for number in range(100)]
    left = sorted((cache_folder / "failed").iterdir())
    assert 10 <= len(left) <= 64
    assert paths[-1] is not None and Path(paths[-1]) in left
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in left)


def test_rejected_sources_are_kept_in_the_cache_folder_alone(
    cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(compiler_module, "_kept", {})
    path = keep_source("source", ".c")
    assert path is not None and Path(path).parent == cache_folder / "failed"
    assert not list(temporary.iterdir())


def test_rejected_sources_without_a_cache_folder_are_new_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(compiler_module, "_kept", {})
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in (f"{diskcache.digest('source')[:16]}.c", f"tinytg-{diskcache.digest('source')[:16]}.c"):
        (tmp_path / name).symlink_to(victim)  # what an earlier version, or this one, might write to
    with Context(CACHEDIR="/proc/nowhere"):
        path = keep_source("source", ".c")
        assert path is not None and keep_source("source", ".c") == path
        assert sum(keep_source(str(number), ".c") is not None for number in range(200)) == 63
    assert Path(path).read_text() == "source" and not Path(path).is_symlink()
    assert victim.read_text() == "precious"


def test_rejected_source_without_a_cache_folder() -> None:
    with Context(CACHEDIR="/proc/nowhere"), pytest.raises(CompileError) as caught:
        (llvm.LLVMCompiler() if llvm.available() else clang.ClangCompiler()).compile("nonsense")
    assert caught.value.path is not None  # the system's folder for temporary files served
    os.unlink(caught.value.path)


@needs_llvm
def test_compile_error_names_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: llvm.LLVMCompiler, src: str) -> bytes:
        return real(self, src + "garbage")

    real = llvm.LLVMCompiler.compile
    monkeypatch.setattr(llvm.LLVMCompiler, "compile", broken)
    with Context(DEV="CPU:LLVM", CCACHE=0):
        x = LazyBuffer.iota(13, dtypes.int32, "CPU").alu(Ops.ADD, LazyBuffer.const(29, dtypes.int32, (13,), "CPU"))
        with pytest.raises(CompileError) as caught:
            realize([x])
        assert any(f"{__file__}:" in note for note in caught.value.__notes__)
        monkeypatch.undo()
        realize([x])  # nothing was lost
        assert x.is_realized


@needs_llvm
def test_binary_that_does_not_load_is_made_anew(cache_folder: Path) -> None:
    with Context(DEV="CPU:LLVM"):
        device = Device["CPU"]
        x = ast.load(1, dtypes.int32, ShapeTracker.from_shape((11,)))
        sink = kernel([(ast.alu(Ops.ADD, x, x), 11)], [(dtypes.int32, 11)])
        spec = make_spec(device, sink)
        assert device.compiler is not None
        assert device.compiler.cachekey is not None
        key = diskcache.digest(device.compiler.cachekey, spec.src)
        diskcache.put("compile", key, b"\x7fELF, but not much of it")
        source = Buffer("CPU", 11, dtypes.int32).copyin(memoryview(bytes(44)))
        ExecItem(CompiledRunner(spec, device), [Buffer("CPU", 11, dtypes.int32).allocate(), source]).run()
        CompiledRunner(spec, device)
        found = diskcache.get("compile", key)
        assert found is not None and len(found) > 100  # what was made anew is kept


@needs_llvm
def test_a_kernel_from_the_disk_that_does_not_compile_is_generated_anew(cache_folder: Path) -> None:
    with Context(DEV="CPU:LLVM"):
        device = Device["CPU"]
        x = ast.load(1, dtypes.int32, ShapeTracker.from_shape((13,)))
        sink = kernel([(ast.alu(Ops.ADD, x, x), 13)], [(dtypes.int32, 13)])
        good = make_spec(device, sink)
        entry = next(path for path in (cache_folder / "kernel").rglob("*") if path.is_file())
        key = entry.parent.name + entry.name
        bad = speccache.dump(replace(good, src="define nonsense"))
        assert bad is not None and diskcache.put("kernel", key, bad)
        device.programs.clear()
        runner = get_runner(device, sink)
        assert isinstance(runner, CompiledRunner) and runner.spec.src == good.src
        assert diskcache.get("kernel", key) == speccache.dump(good)
        device.programs.clear()


@needs_llvm
@pytest.mark.parametrize("cpu", ["", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_llvm_masks_no_stores_of_its_own(cpu: str) -> None:
    """The last of 13 int64, stored as an int8 by a masked store that LLVM made of a plain loop, was 8 bytes."""
    if cpu and platform.machine() != "x86_64":
        pytest.skip("the levels are x86-64's")
    compiler, renderer = llvm.LLVMCompiler(CPUArch.parse(cpu)), LLVMRenderer()
    for case in cases(renderer, lanes=8):
        source = renderer.render(case.name, case.uops)
        if case.name.startswith("cast_") or case.name in ("branches", "empty_range"):
            assert "llvm.masked.store" not in str(compiler.module(source)), case.name


@needs_llvm
def test_text_in_vectors_is_optimised_though_not_by_the_whole_pipeline() -> None:
    """Functions that are only declared have nothing to optimise."""
    source = """
    declare <8 x float> @llvm.fabs.v8f32(<8 x float>)
    define void @f(ptr %o, ptr %a) {
      %kept = alloca <8 x float>
      %x = load <8 x float>, ptr %a, align 4
      store <8 x float> %x, ptr %kept
      %y = load <8 x float>, ptr %kept
      %z = call <8 x float> @llvm.fabs.v8f32(<8 x float> %y)
      store <8 x float> %z, ptr %o, align 4
      ret void
    }"""
    tuned, whole = llvm.LLVMCompiler(tuned=True), llvm.LLVMCompiler()
    assert "alloca" not in str(tuned.module(source))
    found, want = (re.findall(r"(?m)^\t\w.*", compiler.assembly(source)) for compiler in (tuned, whole))
    assert found == want != []


@needs_llvm
def test_a_kernel_takes_few_calls_into_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each of them a thread waits until it is let into Python again, where another one generates kernels."""
    from llvmlite.binding import ffi

    compiler, renderer = llvm.LLVMCompiler(tuned=True), LLVMRenderer()
    sources = {case.name: renderer.render(case.name, case.uops) for case in cases(renderer, lanes=8)}
    first = {name: compiler.compile(source) for name, source in sources.items()}
    calls: list[str] = []
    plain = ffi._lib_fn_wrapper.__call__

    def counted(function: object, *args: object) -> object:
        calls.append(function._cfn.__name__)  # type: ignore[attr-defined]
        return plain(function, *args)

    monkeypatch.setattr(ffi._lib_fn_wrapper, "__call__", counted)
    for name, source in reversed(sources.items()):
        calls.clear()
        assert compiler.compile(source) == first[name], f"{name} depends on what was compiled before it"
        if llvm._VECTOR.search(source):
            assert len(calls) <= 20, f"{name}: {calls}"


@needs_llvm
def test_threads_write_objects_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that they write alone; llvmlite would let one in after the other."""
    from llvmlite.binding import ffi

    compiler, renderer = llvm.LLVMCompiler(tuned=True), LLVMRenderer()
    sources = [renderer.render(case.name, case.uops) for case in cases(renderer, lanes=8)][:40]
    alone = list(map(compiler.compile, sources))
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(compiler.compile, sources)) == alone
        emit, both = ffi.lib.LLVMPY_TargetMachineEmitToMemory, threading.Barrier(2, timeout=60)
        plain = emit._cfn

        def together(*args: object) -> object:
            both.wait()
            return plain(*args)

        monkeypatch.setattr(emit, "_cfn", together)
        assert list(threads.map(compiler.compile, sources[:2])) == alone[:2]
    assert len(compiler._free) <= 2, "one for each thread that compiled while another one did"


@needs_llvm
def test_llvm_keeps_nothing_of_a_kernel() -> None:
    first, second = llvm.LLVMCompiler().module(IR), llvm.LLVMCompiler().module(IR)
    assert first._context is not second._context, "types and constants go with their kernel"


def test_a_compiler_gives_back_what_it_took(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[int] = []
    monkeypatch.setattr("tg_runtime.host.libc.trim", lambda: trimmed.append(1))
    compiler = Counting("rest")
    for number, source in enumerate(("a", "b")):
        compiler.compile_cached(source)
        compiler.compile_cached(source)
        compiler.rest()
        compiler.rest()
        assert len(trimmed) == number + 1
    later = Counting("rest")
    later.compile_cached("a")
    later.rest()
    assert len(trimmed) == 2, "nothing was compiled"


@pytest.mark.parametrize("tool", [llvm.LLVMCompiler, clang.ClangCompiler])
def test_cache_key_tells_processors_apart(tool: type[llvm.LLVMCompiler]) -> None:
    if (tool is llvm.LLVMCompiler and not llvm.available()) or (tool is not llvm.LLVMCompiler and c_compiler() is None):
        pytest.skip("this compiler is not on the machine")
    keys = {tool(CPUArch.parse(arch)).cachekey for arch in ("", "native,-avx2", "x86-64-v3", "x86-64-v3,+fma")}
    assert len(keys) == 4


def test_arch() -> None:
    assert CPUArch.parse("") == CPUArch.parse("native") == CPUArch()
    assert CPUArch.parse("native,avx2,-fma") == CPUArch("", ("+avx2", "-fma"))
    assert CPUArch.parse("+avx2") == CPUArch("", ("+avx2",))
    assert CPUArch.parse(f"{platform.machine()},znver2") == CPUArch("znver2")
    assert CPUArch.parse("znver4").has("avx512f")
    assert not CPUArch.parse("znver4,-avx512f").has("avx512f")
    assert CPUArch.parse("haswell").has("avx2")
    assert not CPUArch.parse("haswell").has("avx512f")
    assert not CPUArch.parse("x86_64,znver4,-avx").has("avx2")
    assert CPUArch.parse("x86_64,x86-64,avx512f").has("fma")
    assert CPUArch.parse("arm64,cortex-a76,-fullfp16").machine in ("aarch64", "")
    for text in ("riscv64,", "znver2,,avx2", "+", "znver2 avx2"):
        with pytest.raises(DevSyntaxError, match="names no processor"):
            CPUArch.parse(text)
    with pytest.raises(DevSyntaxError, match="not riscv64"):
        CPUArch.parse("riscv64,native")


@pytest.mark.parametrize(
    ("text", "vector_bytes", "registers", "fused"),
    [
        ("x86_64,znver2,avx2,-avx512f", 32, 16, True), ("x86_64,znver4", 64, 32, True),
        ("x86_64,x86-64-v2", 16, 16, False), ("x86_64,znver5,-avx512f", 32, 16, True),
        ("x86_64,sapphirerapids,-avx2", 16, 16, True),
        ("aarch64", 16, 32, True), ("aarch64,neoverse-v2", 16, 32, True), ("riscv64", 16, 32, True),
        ("riscv64,+zvl256b", 32, 32, True), ("riscv64,-v", 4, 32, True),
    ],
)  # fmt: skip
def test_targets(text: str, vector_bytes: int, registers: int, fused: bool) -> None:
    """Vectors, registers and fused operations are those of the processor that is named."""
    target = CPUArch.parse(text).target(3)
    found = (target.vector_bytes, target.registers, target.fused_multiply_add, target.threads)
    assert found == (vector_bytes, registers, fused, 3)
    with Context(DEV=f"NULL:LLVM:{text}"):
        renderer = Device["NULL"].renderer
    assert renderer is not None and renderer.target.vector_bytes == vector_bytes


@needs_llvm
@pytest.mark.parametrize("text", ["x86_64,znver2,avx2,-avx512f", "x86_64,znver4", "aarch64,cortex-a76", "riscv64"])
def test_instructions_follow_the_processor(text: str) -> None:
    arch = CPUArch.parse(text)._replace(machine=text.partition(",")[0])
    lanes = arch.target(1).vector_bytes // 4
    assembly = llvm.LLVMCompiler(arch).assembly(f"""
    define void @f(ptr %o, ptr %a) {{
      %x = load <{lanes} x float>, ptr %a
      %y = fadd <{lanes} x float> %x, %x
      store <{lanes} x float> %y, ptr %o
      ret void
    }}""")
    register = {"x86_64,znver2,avx2,-avx512f": r"%ymm\d", "x86_64,znver4": r"%zmm\d"}.get(text, r"\bv\d+")
    assert len(re.findall(rf"(?m)^\s+v?f?addp?.*{register}|vfadd", assembly)) == 1, assembly
    if "znver2" in text:
        assert "zmm" not in assembly


@needs_llvm
@pytest.mark.parametrize(
    ("text", "message"),
    [("x86_64,zen7", "no processor zen7"), ("aarch64,neo", "no feature neo.*no processor neo|no processor neo"),
     ("riscv64,generic-rv64,+warp", "no feature warp")],
)  # fmt: skip
def test_what_llvm_does_not_know(text: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DevSyntaxError, match=message):
        llvm.LLVMCompiler(CPUArch.parse(text)).compile(IR)
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the extensions are x86-64's")
def test_what_the_processor_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"avx", "avx2", "fma", "f16c"}
    monkeypatch.setattr("tg_runtime.host.arch.features", lambda: frozenset(found))
    assert CPUArch.parse("haswell").lacking() == CPUArch.parse("znver2,-sse4a").lacking() == []
    assert CPUArch.parse("znver2").lacking() == ["sse4a"]
    found.add("sse4a")
    assert CPUArch.parse("znver2,avx2,-avx512f").lacking() == []
    assert CPUArch.parse("native,avx512f").lacking() == ["avx512f"]
    assert CPUArch.parse("znver5").lacking() == ["avx512f"]
    problem = Device.load("CPU").unavailable(parse_dev("CPU:LLVM:znver5")[0])
    assert problem == "code for znver5 needs avx512f, which this processor does not have"


@needs_llvm
@pytest.mark.skipif(find_tool("objdump", "llvm-objdump") is None, reason="no objdump on the PATH")
def test_disassembly() -> None:
    compiler = llvm.LLVMCompiler()
    assert "<twice>:" in compiler.disassemble(compiler.compile(IR))
    assert "ret" in compiler.assembly(IR)
    assert "no disassembly" in compiler.disassemble(b"garbage")
