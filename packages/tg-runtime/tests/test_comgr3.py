"""COMGR 3, from source to code object, against a library with its interface that refuses all other numbers.

``comgr3.c`` has the numbers of AMD's header once more, and what each call demands. It compiles nothing: it hands out
the object that LLVM made for the source, which must arrive with each byte.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tg_codegen import compile_ast
from tg_codegen.render.c.hip import HIPRenderer
from tg_codegen.render.llvm import AMDLLVMRenderer
from tg_dtype import dtypes
from tg_lazy import BufferArg, Ops
from tg_lazy import ast as A
from tg_runtime import CompileError, DeviceUnavailable
from tg_runtime.compilers import comgr
from tg_runtime.compilers.amdgpu import AMDGPUCompiler
from tg_runtime.compilers.comgr import HIPCompiler
from tg_runtime.compilers.comgr_library import NUMBERS, Comgr, ComgrError, Numbers
from tg_runtime.compilers.llvm import available
from tg_runtime.host.elf import ELFFile
from tg_shape import ShapeTracker

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
    pytest.mark.skipif(not available(), reason="llvmlite is not installed"),
]
ARCH = "gfx1100"
SOURCE = 'extern "C" __attribute__((global)) void k() {}\n'
NOWHERE = """
declare float @__ocml_exp2_f32(float)
define amdgpu_kernel void @k(ptr addrspace(1) %out) {
  %x = call float @__ocml_exp2_f32(float 1.5)
  store float %x, ptr addrspace(1) %out
  ret void
}
"""
NOTHING = "define amdgpu_kernel void @k() { ret void }"


def fnv(source: str) -> str:
    """The FNV-1a hash of 64 bits (Fowler, Noll, Vo), by which the library finds an object."""
    found = 0xCBF29CE484222325
    for byte in source.encode():
        found = (found ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return f"{found:016x}"


class Library:
    """The library, built.

    Attributes:
      path: of the file.
      folder: where its objects lie.
    """

    def __init__(self, folder: Path, *defines: str) -> None:
        self.folder, self.path = folder, folder / "version3.so"
        self._trace = folder / "trace"
        flags = ["-Wall", "-Werror", "-O1", "-shared", "-fPIC", *(f"-D{define}" for define in defines)]
        subprocess.run(["gcc", *flags, "-o", self.path, Path(__file__).with_name("comgr3.c")], check=True)

    def give(self, source: str, made: bytes, unlinked: bool = False) -> None:
        """From now on this is the object of a source."""
        (self.folder / f"{fnv(source)}{'.unlinked' if unlinked else ''}.o").write_bytes(made)

    def calls(self) -> list[str]:
        """What was called since it was asked last."""
        found = self._trace.read_text().splitlines()
        self._trace.unlink()
        return found


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """The library of version 3, which COMGR_LIBRARY names."""
    found = Library(tmp_path)
    yield from _named(found, monkeypatch)


def _named(library: Library, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    monkeypatch.setenv("COMGR_LIBRARY", str(library.path))
    monkeypatch.setenv("COMGR3_OBJECTS", str(library.folder))
    monkeypatch.setenv("COMGR3_TRACE", str(library.folder / "trace"))
    comgr._loaded.cache_clear()
    yield library
    comgr._loaded.cache_clear()


def test_what_it_says_of_itself(named: Library) -> None:
    assert comgr.missing() is None
    assert comgr.comgr() == ((3, 0), ["gfx1030", "gfx1100"])
    with pytest.raises(DeviceUnavailable, match=r"COMGR 3\.0 does not compile for gfx942; it does for gfx1030, "):
        HIPCompiler("gfx942")


def test_from_a_kernel_to_its_code_object(named: Library) -> None:
    """The renderer's source arrives with each byte; each call has the numbers of version 3, and nothing is kept."""
    view = ShapeTracker.from_shape((131,))
    value = A.alu(Ops.ADD, *(A.load(slot, dtypes.float32, view) for slot in (1, 2)))
    ast = A.sink((A.store(0, view, value),), (BufferArg(dtypes.float32, 131),) * 3)
    source = compile_ast(ast, HIPRenderer(ARCH)).src
    made = AMDGPUCompiler(ARCH).compile(compile_ast(ast, AMDLLVMRenderer(ARCH)).src)
    named.give(source, made)
    compiler = HIPCompiler(ARCH)
    named.calls()
    found = compiler.compile(source)
    assert found == made and ELFFile(found).machine == 224
    assert named.calls() == [
        "set_language 3", "set_isa_name amdgcn-amd-amdhsa--gfx1100", *(f"option {text}" for text in comgr.OPTIONS),
        "create_data 1", "do_action 12: status 0", "option -O3", "do_action 4: status 0", "held 0",
    ]  # fmt: skip
    assert compiler.cachekey is not None and "comgr:3.0:gfx1100" in compiler.cachekey


def test_device_libraries_are_of_version_2_alone(named: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 3 has them inside: files of another LLVM's bitcode would not be read."""
    (named.folder / "ocml.bc").write_bytes(b"")
    monkeypatch.setenv("HIP_DEVICE_LIB_PATH", str(named.folder))
    assert comgr.device_libraries(ARCH)
    key = HIPCompiler(ARCH).cachekey
    assert key is not None and "mlink-builtin-bitcode" not in key


def test_a_source_is_rejected_with_the_log(named: Library) -> None:
    with pytest.raises(CompileError, match=r"kernel\.hip:2:2: error: no such thing"):
        HIPCompiler(ARCH).compile(SOURCE + "#error no such thing\n")
    calls = named.calls()
    assert calls[-2:] == ["do_action 12: status 1", "held 0"]
    with pytest.raises(CompileError, match="amd_comgr_do_action: status 1"):  # a log that says nothing
        HIPCompiler(ARCH).compile(SOURCE)
    assert named.calls()[-2:] == ["do_action 4: status 1", "held 0"]


def test_a_function_that_is_nowhere(named: Library) -> None:
    named.give(SOURCE, AMDGPUCompiler(ARCH).compile(NOWHERE))
    with pytest.raises(CompileError, match="there is no __ocml_exp2_f32; AMD's device libraries have it"):
        HIPCompiler(ARCH).compile(SOURCE)


_WRONG = [
    *(NUMBERS[3]._replace(hip=number) for number in range(-1, 8) if number != 3),
    *(NUMBERS[3]._replace(compile=number) for number in range(-1, 22) if number not in (12, 13)),
    *(NUMBERS[3]._replace(generate=number) for number in range(-1, 22) if number != 4),
    NUMBERS[3]._replace(compile=13), NUMBERS[2],
]  # fmt: skip


def test_every_other_number_is_refused(named: Library) -> None:
    """None of the numbers of version 3 can be another one: no object comes, or one without the device libraries."""
    named.give(SOURCE, AMDGPUCompiler(ARCH).compile(NOTHING))
    named.give(SOURCE, b"without device libraries", unlinked=True)
    library = Comgr(ctypes.CDLL(str(named.path)))
    assert library.numbers == NUMBERS[3] and library.version == (3, 0)
    found, _ = library.compile(SOURCE.encode(), ARCH, ["-O3"])
    assert found is not None and ELFFile(found).machine == 224
    for numbers in _WRONG:
        library.numbers = numbers
        try:
            found, _ = library.compile(SOURCE.encode(), ARCH, ["-O3"])
        except ComgrError as error:
            assert str(error) == "amd_comgr_action_info_set_language: status 2" and numbers.hip not in range(5)
            continue
        assert found in (None, b"without device libraries"), numbers
        assert (found is None) == (numbers != Numbers(3, 2, 4)), numbers


def test_an_instruction_set_that_it_has_not(named: Library) -> None:
    library = Comgr(ctypes.CDLL(str(named.path)))
    with pytest.raises(ComgrError, match="amd_comgr_action_info_set_isa_name: status 2"):
        library.compile(SOURCE.encode(), "gfx942", ["-O3"])


def test_a_library_without_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in _named(Library(tmp_path, "WITHOUT_LOGGING"), monkeypatch):
        told = comgr.missing()
        assert told is not None and "undefined symbol: amd_comgr_action_info_set_logging" in told
        with pytest.raises(DeviceUnavailable, match=str(library.path)):
            HIPCompiler(ARCH)


def test_a_library_of_version_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in _named(Library(tmp_path, "MAJOR=4"), monkeypatch):
        assert comgr.missing() == "COMGR has version 4.0; 2 and 3 are known"
        with pytest.raises(DeviceUnavailable, match=r"COMGR has version 4\.0; 2 and 3 are known"):
            HIPCompiler(ARCH)
