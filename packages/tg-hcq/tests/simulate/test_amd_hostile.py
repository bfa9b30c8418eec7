"""Programs on a hostile AMD GPU: right ones stay right, and whatever is deleted from the list makes one fail.

``;!`` marks an instruction that is deleted, ``{past}`` a cache policy that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tg_hcq.simulate.amd.testing.assembler import LLVM_MC, MISSING
from tg_hcq.simulate.amd.testing.program import Bed
from tg_hcq.simulate.engine import EngineFault, HungWave

pytestmark = pytest.mark.skipif(LLVM_MC is None, reason=MISSING)
SEEDS = range(1, 9)
OLDER = {"load": "global_load_dword", "store": "global_store_dword", "read": "ds_read_b32", "write": "ds_write_b32",
         "scalar": "s_load_dword", "outside": "s_buffer_load_dword"}  # fmt: skip
NEWER = {"load": "global_load_b32", "store": "global_store_b32", "read": "ds_load_b32", "write": "ds_store_b32",
         "scalar": "s_load_b32", "outside": "s_buffer_load_b32", "add": "v_add_nc_u32"}  # fmt: skip
WAITS = {"loaded": "s_waitcnt vmcnt(0)", "local": "s_waitcnt lgkmcnt(0)", "constants": "s_waitcnt lgkmcnt(0)",
         "one": "s_waitcnt vmcnt(1)", "barrier": "s_barrier ;!"}  # fmt: skip
WORDS: dict[str, dict[str, str]] = {
    "gfx1030": OLDER | WAITS | {
        "add": "v_add_nc_u32", "stored": "s_waitcnt_vscnt null, 0x0", "past": " glc dlc", "out": "", "send": "",
        "inside": "buffer_gl0_inv ;!", "fetch": "buffer_gl1_inv ;!\n buffer_gl0_inv ;!", "reader": "1",
    },
    "gfx1100": NEWER | WAITS | {
        "stored": "s_waitcnt_vscnt null, 0x0", "past": " glc", "out": "", "send": "", "inside": "buffer_gl0_inv ;!",
        "fetch": "buffer_gl1_inv ;!\n buffer_gl0_inv ;!", "reader": "1",
    },
    "gfx1201": NEWER | {
        "loaded": "s_wait_loadcnt 0x0", "local": "s_wait_dscnt 0x0", "constants": "s_wait_kmcnt 0x0",
        "one": "s_wait_loadcnt 0x1", "barrier": "s_barrier_signal -1 ;!\n s_barrier_wait -1 ;!",
        "stored": "s_wait_storecnt 0x0", "past": " scope:SCOPE_DEV", "out": " scope:SCOPE_DEV", "send": "",
        "inside": "global_inv scope:SCOPE_SE ;!", "fetch": "global_inv scope:SCOPE_DEV ;!", "reader": "1",
    },
    "gfx942": OLDER | WAITS | {
        "add": "v_add_u32", "stored": "s_waitcnt vmcnt(0)", "past": " sc1", "out": " sc1", "send": "buffer_wbl2 sc1 ;!",
        "inside": "", "fetch": "buffer_inv sc1 ;!", "reader": "2",
    },
}  # fmt: skip
"""How each generation says it: waits, barriers, caches; who reads what workgroup 0 gives, that has other caches."""
LANES = {"gfx942": 64}


@dataclass(frozen=True)
class Program:
    """A program for all generations, and the words that it leaves: ``lane`` and ``n`` lanes are known."""

    text: str
    expected: str
    groups: int = 1
    waves: int = 1
    count: str = "n"

    def lines(self, arch: str) -> list[str]:
        """The instructions for an architecture."""
        lanes = LANES.get(arch, 32)
        words = WORDS[arch] | {"size": str(4 * lanes), "shift": str(lanes.bit_length() + 1)}
        words["meet"] = words["barrier"].replace(";!", "")  # a wave that ends is waited for no more
        text = self.text
        for name, word in sorted(words.items(), key=lambda item: -len(item[0])):  # "loaded" before "load"
            if name != "past":
                text = text.replace(f"${name}", word)
        return [line.strip() for line in text.splitlines() if line.strip(" ;!")]


PROGRAMS = {
    "a load": Program("""
        v_lshlrev_b32 v4, 2, v0
        $load v5, v4, s[0:1] offset:1024
        $loaded ;!
        $add v5, 1, v5
        $store v4, v5, s[0:1]
        s_endpgm
    """, "(256 + lane) * 3 + 1"),
    "the older of two loads": Program("""
        v_lshlrev_b32 v4, 2, v0
        $load v5, v4, s[0:1] offset:1024
        $load v6, v4, s[0:1] offset:1024
        $one ;!
        v_mov_b32 v7, v5
        $loaded ;!
        $add v5, v6, v7
        $store v4, v5, s[0:1]
        s_endpgm
    """, "(256 + lane) * 6"),
    "a scalar load": Program("""
        v_lshlrev_b32 v4, 2, v0
        $scalar s4, s[0:1], 0x404
        $constants ;!
        v_mov_b32 v5, s4
        $store v4, v5, s[0:1]
        s_endpgm
    """, "257 * 3"),
    "a scalar load outside of a buffer": Program("""
        v_lshlrev_b32 v4, 2, v0
        s_mov_b32 s8, s0
        s_mov_b32 s9, s1
        s_mov_b32 s10, 16
        s_mov_b32 s11, 0
        $outside s4, s[8:11], 0x20
        $constants ;!
        v_mov_b32 v5, s4
        $store v4, v5, s[0:1]
        s_endpgm
    """, "0"),
    "words of other waves by LDS": Program("""
        s_lshl_b32 s4, s3, $shift
        v_lshlrev_b32 v4, 2, v0
        v_or_b32 v4, s4, v4
        $add v5, s3, v0
        $write v4, v5
        $local ;!
        $barrier
        v_xor_b32 v4, $size, v4
        $read v5, v4
        $local ;!
        $store v4, v5, s[0:1]
        s_endpgm
    """, "lane % n + lane // n", waves=2, count="2 * n"),
    "lanes that exchange": Program("""
        v_lshlrev_b32 v4, 2, v0
        ds_swizzle_b32 v5, v0 offset:0x8000
        $local ;!
        $store v4, v5, s[0:1]
        s_endpgm
    """, "lane // 4 * 4"),
    "a word of another wave by memory": Program("""
        v_mov_b32 v4, 0
        v_mov_b32 v6, 9
        v_lshlrev_b32 v7, 2, v0
        s_cmp_eq_u32 s3, 0
        s_cbranch_scc0 reads
        $store v4, v6, s[0:1] offset:1600
        $stored ;!
        $meet
        s_endpgm
      reads:
        $load v5, v4, s[0:1] offset:1600
        $loaded
        $barrier
        $inside
        $load v5, v4, s[0:1] offset:1600
        $loaded ;!
        $store v7, v5, s[0:1]
        s_endpgm
    """, "9", waves=2),
    "a word of another workgroup": Program("""
        v_mov_b32 v4, 0
        v_mov_b32 v6, 9
        v_mov_b32 v8, 7
        v_lshlrev_b32 v7, 2, v0
        s_cmp_eq_u32 s2, $reader
        s_cbranch_scc1 reads
        s_cmp_eq_u32 s2, 0
        s_cbranch_scc0 ends
        $store v4, v6, s[0:1] offset:1600
        $send
        $stored ;!
        $store v4, v8, s[0:1] offset:1920$out
      ends:
        s_endpgm
      reads:
        $load v5, v4, s[0:1] offset:1600
        $load v9, v4, s[0:1] offset:1920
        $loaded
      again:
        $load v9, v4, s[0:1] offset:1920$past
        $loaded ;!
        v_readfirstlane_b32 s4, v9
        s_cmp_eq_u32 s4, 7
        s_cbranch_scc0 again
        $fetch
        $load v5, v4, s[0:1] offset:1600
        $loaded ;!
        $store v7, v5, s[0:1]
        s_endpgm
    """, "9", groups=3),
}


def mutants(program: Program, arch: str) -> Iterator[tuple[str, str]]:
    """What is deleted, and the text without it; first nothing."""
    lines = program.lines(arch)
    past = WORDS[arch]["past"]

    def text(skip: int, flag: str) -> str:
        kept = [line.replace(";!", "") for index, line in enumerate(lines) if index != skip]
        return "\n".join(kept).replace("$past", flag)

    yield "", text(-1, past)
    for index, line in enumerate(lines):
        if line.endswith(";!"):
            yield f"{line} (line {index})", text(index, past)
        elif "$past" in line:
            yield past, text(-1, "")


def right(program: Program, arch: str, text: str, seed: int) -> bool:
    """Whether a program does what it should."""
    n = LANES.get(arch, 32)
    bed = Bed(arch, n, seed=seed, hostile=True)
    for index in range(512):
        bed.data[4 * index : 4 * index + 4] = (3 * index).to_bytes(4, "little")
    bed.data[1536:2048] = bytes(512)
    try:
        bed.run(text, program.groups, program.waves, shared_bytes=1024, budget=1000)
    except (EngineFault, HungWave):
        return False
    wanted = [eval(program.expected, {"lane": lane, "n": n}) for lane in range(eval(program.count, {"n": n}))]
    return bed.words(len(wanted)) == wanted


@pytest.mark.parametrize("arch", WORDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_deleting_anything_is_noticed(name: str, arch: str) -> None:
    program = PROGRAMS[name]
    for deleted, text in mutants(program, arch):
        results = (right(program, arch, text, seed) for seed in SEEDS)
        if deleted:
            assert not all(results), f"{arch}: {name} does without {deleted}"
        else:
            assert all(results), f"{arch}: {name}"
