"""Loads to LDS of the software GPU of AMD: where lanes' words go, by Python's integers, and what waits for them."""

from __future__ import annotations

import random
import struct

import pytest

from tg_hcq.simulate.amd.isa import table
from tg_hcq.simulate.amd.testing.assembler import LLVM_MC, MISSING
from tg_hcq.simulate.amd.testing.program import Bed
from tg_hcq.simulate.engine import EngineFault, FaultKind

pytestmark = pytest.mark.skipif(LLVM_MC is None, reason=MISSING)
LANES = {"gfx1030": 32, "gfx942": 64, "gfx950": 64}
SIZES = {"ubyte": 1, "sbyte": 1, "ushort": 2, "sshort": 2, "dword": 4, "dwordx3": 12, "dwordx4": 16}
TILE, OUT, BEFORE = 2048, 8192, 0xC0DEC0DE
FORMAT = {"gfx1030": 0x31014000, "gfx942": 0x00020000, "gfx950": 0x00020000}
CASES = [(arch, kind, size) for arch in LANES for kind in ("global", "buffer")
         for size in SIZES
         if not (arch == "gfx1030" and kind == "global") and (arch == "gfx950" or "x" not in size)]  # fmt: skip


class Tile:
    """A program that fills a part of LDS, loads to it, and gives back what is there.

    Attributes:
      instruction: the load, as text.
      first: where in LDS lane 0's word goes.
      start: the byte of data that lane 0 loads, by 20 more for each lane.
      records: bytes of the buffer, if it is one.
      mask: which lanes load.
    """

    def __init__(self, arch: str, kind: str, size: str, rng: random.Random) -> None:
        self.arch, self.size, self.lanes = arch, size, LANES[arch]
        self.constant = 4 * rng.randrange(30)
        self.first = 4 * rng.randrange(100) + self.constant
        self.start = 4 * rng.randrange(100) + self.constant
        self.records = rng.choice((4096, self.start + 4 * rng.randrange(200)))
        self.mask = rng.choice(((1 << self.lanes) - 1, rng.getrandbits(self.lanes)))
        skip = self.start - self.constant
        if kind == "global":
            self.instruction = f"global_load_lds_{size} v3, s[0:1] offset:{self.constant}"
            self.records = 4096
        else:
            self.instruction = f"buffer_load_{size} v3, s[4:7], 0 offen offset:{self.constant} lds"
        self.setup = f"v_mov_b32 v9, {skip}"

    def text(self, waits: bool = True) -> str:
        add = "v_add_nc_u32" if self.arch == "gfx1030" else "v_add_u32"
        exec_ = "exec_lo" if self.lanes == 32 else "exec"
        move = "s_mov_b32" if self.lanes == 32 else "s_mov_b64"
        parts = range(0, TILE, 4 * self.lanes)
        lines = ["v_lshlrev_b32 v1, 2, v0", f"v_mov_b32 v2, {BEFORE:#x}"]
        lines += [f"ds_write_b32 v1, v2 offset:{at}" for at in parts]
        lines += ["s_waitcnt lgkmcnt(0)", "v_mul_u32_u24 v3, 20, v0", self.setup, f"{add} v3, v3, v9"]
        lines += ["s_mov_b32 s4, s0", "s_mov_b32 s5, s1", f"s_mov_b32 s6, {self.records}",
                  f"s_mov_b32 s7, {FORMAT[self.arch]:#x}", f"s_mov_b32 m0, {self.first - self.constant}"]  # fmt: skip
        mask = [f"s_mov_b32 s{8 + i}, {self.mask >> 32 * i & 0xFFFFFFFF:#x}" for i in range(self.lanes // 32)]
        lines += [*mask, f"{move} {exec_}, {'s8' if self.lanes == 32 else 's[8:9]'}", self.instruction]
        lines += [f"{move} {exec_}, -1", "s_waitcnt vmcnt(0)" if waits else "", f"v_add_u32 v6, {OUT}, v1"]
        lines[-1] = f"{add} v6, {OUT:#x}, v1"
        for at in parts:
            lines += [f"ds_read_b32 v5, v1 offset:{at}", "s_waitcnt lgkmcnt(0)",
                      f"global_store_dword v6, v5, s[0:1] offset:{at}"]  # fmt: skip
        return "\n".join([*lines, "s_endpgm"])

    def expected(self, data: bytes) -> bytes:
        tile = bytearray(struct.pack("<I", BEFORE) * (TILE // 4))
        nbytes = SIZES[self.size]
        for lane in range(self.lanes):
            if not self.mask >> lane & 1:
                continue
            at = self.start + 20 * lane
            part = data[at : at + nbytes] if at < self.records else bytes(nbytes)
            if nbytes < 4:
                part = (int.from_bytes(part, "little", signed=self.size[0] == "s") % (1 << 32)).to_bytes(4, "little")
            to = self.first + lane * (4 if nbytes <= 4 else 16)
            tile[to : to + len(part)] = part
        return bytes(tile)

    def partly(self) -> bool:
        """Whether a lane is partly outside, which is a fault."""
        ends = [self.start + 20 * lane for lane in range(self.lanes) if self.mask >> lane & 1]
        return any(at < self.records < at + SIZES[self.size] for at in ends)


def run(tile: Tile, seed: int, hostile: bool, waits: bool = True) -> bytes:
    """What is in LDS afterwards, and at once the data of which it must be."""
    bed = Bed(tile.arch, tile.lanes, seed, hostile)
    bed.data[:] = random.Random(seed).randbytes(len(bed.data))
    before = bytes(bed.data)
    bed.run(tile.text(waits), shared_bytes=TILE)
    found = bytes(bed.data[OUT : OUT + TILE])
    return b"" if found == tile.expected(before) else found


@pytest.mark.drawn(12)
@pytest.mark.parametrize(("arch", "kind", "size"), CASES)
def test_lanes_words_go_beside_one_another(arch: str, kind: str, size: str) -> None:
    rng = random.Random(f"{arch} {kind} {size}")
    for seed in range(3):
        tile = Tile(arch, kind, size, rng)
        if tile.partly():
            continue
        for hostile in (False, True):
            assert run(tile, seed, hostile) == b"", tile.instruction


@pytest.mark.parametrize(("arch", "kind", "size"), [("gfx950", "global", "dwordx4"), ("gfx1030", "buffer", "dword")])
def test_a_missing_wait_is_noticed(arch: str, kind: str, size: str) -> None:
    tile = Tile(arch, kind, size, random.Random(5))
    tile.mask, tile.records = (1 << tile.lanes) - 1, 4096
    assert all(run(tile, seed, hostile=True) == b"" for seed in range(6))
    assert any(run(tile, seed, hostile=True, waits=False) for seed in range(6))


@pytest.mark.parametrize(("m0", "kind"), [(TILE - 16, FaultKind.SHARED), (1 << 16, FaultKind.SHARED),
                                          (2, FaultKind.MISALIGNED)])  # fmt: skip
@pytest.mark.parametrize("hostile", [False, True])
def test_words_that_have_no_place_are_a_fault(m0: int, kind: FaultKind, hostile: bool) -> None:
    bed = Bed("gfx942", 64, hostile=hostile)
    with pytest.raises(EngineFault) as error:
        bed.run(f"v_lshlrev_b32 v1, 2, v0\ns_mov_b32 m0, {m0}\nglobal_load_lds_dword v1, s[0:1]\ns_endpgm",
                shared_bytes=TILE)  # fmt: skip
    assert error.value.fault.kind is kind


@pytest.mark.parametrize("size", [size for size, nbytes in SIZES.items() if nbytes <= 4])
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_private_memory_is_loaded_to_lds(arch: str, size: str) -> None:
    for hostile in (False, True):
        bed = Bed(arch, 64, hostile=hostile)
        bed.run(f"""
            v_lshlrev_b32 v1, 2, v0
            v_mul_u32_u24 v2, 0xfff7, v0
            scratch_store_dword off, v2, off offset:8
            s_waitcnt vmcnt(0)
            s_mov_b32 m0, 64
            scratch_load_lds_{size} off, off offset:8
            s_waitcnt vmcnt(0)
            ds_read_b32 v5, v1 offset:72
            s_waitcnt lgkmcnt(0)
            global_store_dword v1, v5, s[0:1]
            s_endpgm
        """, shared_bytes=TILE, scratch_bytes=64)  # fmt: skip
        numbers = ((0xFFF7 * lane).to_bytes(4, "little")[: SIZES[size]] for lane in range(64))
        assert bed.words(64) == [int.from_bytes(n, "little", signed=size[0] == "s") % (1 << 32) for n in numbers]


def test_every_such_load_is_in_the_list() -> None:
    """Of gfx9, all but those that read a format; gfx10.3 has some that are not from buffers, which are refused."""
    for arch in ("gfx942", "gfx950"):
        names = {row.name for row in table(arch) if "_LDS_" in row.record and row.encoding in ("GLOBAL", "MUBUF")}
        covered = {f"global_load_lds_{s}" if k == "global" else f"buffer_load_{s}" for a, k, s in CASES if a == arch}
        assert names - covered == {"buffer_load_format_x"}
