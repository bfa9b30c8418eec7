"""The comparison of every code object that tests compile with LLVM's listings: it sees one wrong bit."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import amd_listings

from tg_hcq.simulate.amd.isa import decode, decoder
from tg_runtime.cache import diskcache
from tg_runtime.compilers.amdgpu import AMDGPUCompiler

pytest.importorskip("llvmlite", reason="LLVM compiles the kernels")
needs_objdump = pytest.mark.skipif(not amd_listings.available(), reason="llvm-objdump-22 is not installed")
KERNEL = """
define amdgpu_kernel void @k(ptr addrspace(1) %p, float %x) {
  %y = load float, ptr addrspace(1) %p
  %z = call float @llvm.fma.f32(float %y, float %x, float 0x3FF3333340000000)
  store float %z, ptr addrspace(1) %p
  ret void
}
declare float @llvm.fma.f32(float, float, float)
"""
ARCHS = ("gfx1030", "gfx1100", "gfx1201", "gfx942", "gfx950")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a code object of each architecture, each with a few words before it, as in a cache."""
    for arch in ARCHS:
        image = AMDGPUCompiler(arch).compile(KERNEL)
        (tmp_path / arch).write_bytes(b"some words\n" + image)
        (tmp_path / f"{arch} again").write_bytes(image)
    (tmp_path / "damaged").write_bytes(image[:100])
    (tmp_path / "other").write_bytes(b"no code object")
    return tmp_path


def test_code_objects_of_a_cache(folder: Path) -> None:
    found = amd_listings.code_objects(folder)
    assert len(found) == len(ARCHS) and all(image.startswith(b"\x7fELF") for image in found.values())


def test_what_compilers_keep_is_found() -> None:
    AMDGPUCompiler("gfx1100").compile_cached(KERNEL)
    cache = diskcache.cache_folder()
    assert cache is not None and amd_listings.code_objects(Path(cache))


@needs_objdump
def test_instructions_are_decoded_as_by_llvm(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert amd_listings.main([str(folder)]) == 0
    told = capsys.readouterr().out
    assert told.strip().startswith("5 code objects of AMD's") and ": 0 differ from llvm-objdump-22" in told


@needs_objdump
def test_a_wrong_operand_and_a_wrong_size_are_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(arch: str) -> decode.Decoder:
        def decoded(data: bytes) -> decode.Decoded:
            found = decoder(arch)(data)
            if arch == "gfx1100" and found.name == "s_load_b64":
                return decode.Decoded(
                    found.name, found.record, found.encoding, {**found.fields, "sdst": found.fields["sdst"] + 2},
                    found.literal, found.nbytes, found.row, found.table,
                )  # fmt: skip
            if arch == "gfx942" and found.name == "s_endpgm":
                return decode.Decoded(
                    found.name, found.record, found.encoding, found.fields, None, 8, found.row, found.table
                )
            return found

        return decoded

    monkeypatch.setattr(amd_listings, "decoder", wrong)
    found = amd_listings.compared(list(amd_listings.code_objects(folder).values()))
    assert len(found.differences) == 2, found.differences
    assert any("s_load_b64" in line for line in found.differences)
    assert any("s_endpgm' of 8 bytes" in line for line in found.differences)


@needs_objdump
def test_what_there_is_no_time_for_is_told(folder: Path) -> None:
    found = amd_listings.compared(list(amd_listings.code_objects(folder).values()), seconds=-1)
    assert found.unseen == len(ARCHS) and "5 were not looked at" in found.line
