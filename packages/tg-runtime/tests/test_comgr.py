"""HIP C++ through COMGR: what is compiled, what is rejected, and libraries that are not there or not known."""

from __future__ import annotations

import ctypes

import pytest

from tg_codegen.render.c.hip import HIPRenderer
from tg_runtime import CompileError, DeviceUnavailable
from tg_runtime.compilers import comgr
from tg_runtime.compilers.comgr import HIPCompiler
from tg_runtime.compilers.comgr_library import NUMBERS, Comgr
from tg_runtime.host.elf import ELFFile

needs_comgr = pytest.mark.skipif(comgr.missing() is not None, reason=f"COMGR: {comgr.missing()}")
KERNEL = """
extern "C" __attribute__((device, const)) float __ocml_exp2_f32(float);
extern "C" __attribute__((global)) void k(float* __restrict__ out, int n) {
  int i = __builtin_amdgcn_workitem_id_x();
  out[i] = __ocml_exp2_f32((float)(i * n));
}
"""


@needs_comgr
def test_a_kernel_is_compiled() -> None:
    library = comgr.comgr()
    assert library.version[0] in NUMBERS and "gfx1030" in library.archs
    found = ELFFile(HIPCompiler("gfx1030").compile(KERNEL))
    assert found.machine == 224 and found.flags & 0xFF == 0x36
    assert {"k", "k.kd"} <= {symbol.name for symbol in found.symbols}


@needs_comgr
def test_a_function_that_is_nowhere() -> None:
    source = KERNEL.replace("__ocml_exp2_f32", "nowhere")
    with pytest.raises(CompileError, match="there is no nowhere"):
        HIPCompiler("gfx1030").compile(source)


@needs_comgr
def test_a_source_is_rejected_in_the_compilers_words() -> None:
    with pytest.raises(CompileError, match="use of undeclared identifier 'nothing'"):
        HIPCompiler("gfx1030").compile('extern "C" __attribute__((global)) void k(int* x) { *x = nothing; }')


@needs_comgr
def test_other_processors() -> None:
    with pytest.raises(ValueError, match="'gfx000' is no architecture"):
        HIPCompiler("gfx000")
    unknown = next((arch for arch in ("gfx950", "gfx1201") if arch not in comgr.comgr().archs), None)
    if unknown is not None:
        with pytest.raises(DeviceUnavailable, match=f"does not compile for {unknown}; it does for gfx"):
            HIPCompiler(unknown)


@needs_comgr
def test_no_second_llvm_comes_into_the_process() -> None:
    """A driver of OpenCL that brings its own would end it."""
    assert HIPCompiler("gfx1030").compile(KERNEL)
    with open("/proc/self/maps") as maps:
        assert not [line for line in maps if "comgr" in line]


@needs_comgr
def test_a_compiler_that_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = HIPCompiler("gfx1030")
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(CompileError, match="it ended with status 1"):
        compiler.compile(KERNEL)


def test_a_version_that_is_not_known() -> None:
    class Library:
        @staticmethod
        def amd_comgr_get_version(major: ctypes._Pointer[ctypes.c_size_t], minor: object) -> None:
            major._obj.value = 4  # type: ignore[attr-defined]

    with pytest.raises(DeviceUnavailable, match=r"COMGR has version 4\.0; 2 and 3 are known"):
        Comgr(Library)  # type: ignore[arg-type]


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    comgr._loaded.cache_clear()
    monkeypatch.setenv("COMGR_LIBRARY", "/nowhere/libamd_comgr.so")
    try:
        told = comgr.missing()
        assert told == "the library that COMGR_LIBRARY names cannot be loaded: /nowhere/libamd_comgr.so"
        with pytest.raises(DeviceUnavailable, match="COMGR_LIBRARY names"):
            HIPCompiler("gfx1030")
    finally:
        comgr._loaded.cache_clear()


def test_the_renderer_says_what_it_is_for() -> None:
    renderer = HIPRenderer("gfx1030")
    assert renderer.key.endswith(":gfx1030") and renderer.target.warp == 32
    with pytest.raises(ValueError, match="is no architecture of an AMD GPU"):
        HIPRenderer("sm_80")
