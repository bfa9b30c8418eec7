"""Programs by hand on the software GPU of AMD: masks, branches and constants, against Python's integers."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from tg_hcq.simulate.amd.isa import decoder, text
from tg_hcq.simulate.amd.machine import machine
from tg_hcq.simulate.amd.registers import FLOATS
from tg_hcq.simulate.engine import Access, AddressSpace, EngineFault, FaultKind, Launch, Memory, Wave

ENCODED = {
    "s_and_saveexec_b32 s6, s4": "042086be",
    "s_and_saveexec_b32 s6, vcc_lo": "6a2086be",
    "s_and_saveexec_b32 s7, s5": "052087be",
    "s_or_saveexec_b32 s7, s5": "052287be",
    "s_xor_saveexec_b32 s7, s5": "052487be",
    "s_or_saveexec_b32 s6, -1": "c12286be",
    "s_or_saveexec_b32 s8, s6": "062288be",
    "s_cbranch_scc0 0x10c": "0200a1bf",
    "s_cbranch_scc0 0x108": "0100a1bf",
    "s_cbranch_scc1 0xf0": "fbffa2bf",
    "s_cbranch_execz 0x108": "0100a5bf",
    "s_cbranch_execnz 0xf0": "fbffa6bf",
    "s_branch 0xec": "faffa0bf",
    "s_load_b32 s9, s[0:1], 0x20": "400200f4200000f8",
    "v_lshlrev_b32_e32 v1, 2, v0": "82000230",
    "v_lshlrev_b32_e32 v1, 3, v0": "83000230",
    "v_mov_b32_e32 v2, 1": "8102047e",
    "v_mov_b32_e32 v3, s7": "0702067e",
    "v_mov_b32_e32 v4, s8": "0802087e",
    "v_mov_b32_e32 v5, s9": "09020a7e",
    "v_add_nc_u32_e32 v2, v2, v0": "0201044a",
    "v_add_nc_u32_e32 v3, -1, v3": "c106064a",
    "v_cmp_ne_u32_e32 vcc_lo, 0, v3": "80069a7c",
    "v_lshlrev_b64 v[2:3], v0, -1": "02003cd700830100",
    "v_lshlrev_b64 v[2:3], v0, -16": "02003cd700a10100",
    "v_lshlrev_b64 v[2:3], v0, 64": "02003cd700810100",
    "v_lshrrev_b64 v[2:3], v0, -16": "02003dd700a10100",
    "v_ashrrev_i64 v[2:3], v0, -16": "02003ed700a10100",
    "v_lshlrev_b64 v[2:3], v0, 0x70000001": "02003cd700ff010001000070",
    "v_lshlrev_b64 v[2:3], v0, 0xf0000001": "02003cd700ff0100010000f0",
    "global_store_b32 v1, v2, s[2:3]": "00006adc01020200",
    "global_store_b32 v1, v3, s[2:3] offset:128": "80006adc01030200",
    "global_store_b32 v1, v4, s[2:3] offset:256": "00016adc01040200",
    "global_store_b32 v1, v5, s[2:3] offset:384": "80016adc01050200",
    "global_store_b64 v1, v[2:3], s[2:3]": "00006edc01020200",
    "s_endpgm": "0000b0bf",
}
"""Instructions, and their bytes by ``llvm-mc -triple=amdgcn -mcpu=gfx1100 -show-encoding`` of LLVM 22.

Branches are written as if they stood at 0x100.
"""
CODE, DATA, SIZE = 0x10000, 0x20000, 4096
LANES = 32
ALL = (1 << LANES) - 1


def executed(
    program: Sequence[str], rows: Mapping[int, Sequence[int]] = {}, scalars: Mapping[int, int] = {}
) -> bytes:
    """What one wave of 32 stored at ``s[2:3]``; ``v0`` is the lane, ``s[0:1]`` leads to words that are 7."""
    space, memory = AddressSpace(), Memory(2 * SIZE)
    space.map(CODE, memory, 0, SIZE, Access.READ | Access.EXECUTE)
    space.map(DATA, memory, SIZE, SIZE, Access.READ | Access.WRITE)
    words = b"".join(bytes.fromhex(ENCODED[line]) for line in program)
    memory.view[: len(words)] = words
    memory.view[2 * SIZE - 256 :] = np.full(64, 7, np.uint32).tobytes()

    def setup(wave: Wave) -> None:
        wave.set_scalar("s", DATA + SIZE - 256, 0, words=2)
        wave.set_scalar("s", DATA, 2, words=2)
        for number, value in scalars.items():
            wave.set_scalar("s", value, number)
        wave.set_scalar("mode", FLOATS)
        for number, values in {0: range(LANES), **rows}.items():
            wave.set_row(number, list(values))

    machine("gfx1100", LANES, space).run(Launch(CODE, 1, 1, setup))
    return bytes(memory.view[SIZE : SIZE + 512])


def test_bytes_are_what_they_say() -> None:
    decode = decoder("gfx1100")
    for line, encoded in ENCODED.items():
        words = bytes.fromhex(encoded)
        found = decode(words)
        assert (text(found, 0x100), found.nbytes) == (line, len(words))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("op", ["and", "or", "xor"])
def test_masks_are_saved_and_combined(op: str, seed: int) -> None:
    """The old mask goes to the register, lanes outside the new one do nothing, SCC says whether any is inside."""
    rng = random.Random(seed)
    first = rng.getrandbits(32)
    second = [rng.getrandbits(32), first, first ^ ALL, 0, ALL, rng.getrandbits(32)][seed]
    program = [
        "v_lshlrev_b32_e32 v1, 2, v0", "s_and_saveexec_b32 s6, s4", f"s_{op}_saveexec_b32 s7, s5",
        "s_cbranch_scc0 0x10c", "s_load_b32 s9, s[0:1], 0x20", "v_mov_b32_e32 v2, 1", "s_or_saveexec_b32 s8, s6",
        "v_mov_b32_e32 v3, s7", "v_mov_b32_e32 v4, s8", "v_mov_b32_e32 v5, s9", "global_store_b32 v1, v2, s[2:3]",
        "global_store_b32 v1, v3, s[2:3] offset:128", "global_store_b32 v1, v4, s[2:3] offset:256",
        "global_store_b32 v1, v5, s[2:3] offset:384", "s_endpgm",
    ]  # fmt: skip
    stored = executed(program, {n: [0] * LANES for n in (2, 3, 4, 5)}, {4: first, 5: second, 9: 0})
    inside, saved, new, any_left = np.frombuffer(stored, np.uint32).reshape(4, LANES)
    expected = {"and": first & second, "or": first | second, "xor": first ^ second}[op]
    assert inside.tolist() == [expected >> lane & 1 for lane in range(LANES)]
    assert (saved == first).all() and (new == expected).all()
    assert (any_left == (7 if expected else 0)).all()


@pytest.mark.parametrize("ways", [
    ["s_cbranch_execnz 0xf0"], ["s_cbranch_scc1 0xf0"], ["s_cbranch_execz 0x108", "s_branch 0xec"],
    ["s_cbranch_scc0 0x108", "s_branch 0xec"],
])
def test_branches_lead_back(ways: list[str]) -> None:
    """A loop that each lane leaves after rounds of its own."""
    rounds = [random.Random(5).randrange(1, 12) + lane % 7 for lane in range(LANES)]
    program = [
        "v_lshlrev_b32_e32 v1, 2, v0", "v_add_nc_u32_e32 v2, v2, v0", "v_add_nc_u32_e32 v3, -1, v3",
        "v_cmp_ne_u32_e32 vcc_lo, 0, v3", "s_and_saveexec_b32 s6, vcc_lo", *ways, "s_or_saveexec_b32 s6, -1",
        "global_store_b32 v1, v2, s[2:3]", "s_endpgm",
    ]  # fmt: skip
    stored = executed(program, {2: [0] * LANES, 3: rounds})
    assert np.frombuffer(stored, np.uint32)[:LANES].tolist() == [lane * n for lane, n in enumerate(rounds)]


@pytest.mark.parametrize(("op", "constant"), [
    ("v_lshlrev_b64", -1), ("v_lshlrev_b64", -16), ("v_lshlrev_b64", 64), ("v_lshlrev_b64", 0x70000001),
    ("v_lshrrev_b64", -16), ("v_ashrrev_i64", -16),
])  # fmt: skip
def test_constants_of_64_bits(op: str, constant: int) -> None:
    """Inline ones have their sign in all 64 bits; literals are extended."""
    number = hex(constant) if constant > 64 else str(constant)
    program = [
        "v_lshlrev_b32_e32 v1, 3, v0", f"{op} v[2:3], v0, {number}", "global_store_b64 v1, v[2:3], s[2:3]", "s_endpgm",
    ]  # fmt: skip
    stored = executed(program)
    shifts: dict[str, Callable[[int], int]] = {
        "v_lshlrev_b64": lambda n: constant << n,
        "v_lshrrev_b64": lambda n: constant % 2**64 >> n,
        "v_ashrrev_i64": lambda n: constant >> n,
    }
    shift = shifts[op]
    assert np.frombuffer(stored, np.uint64)[:LANES].tolist() == [shift(lane) % 2**64 for lane in range(LANES)]


def test_literal_whose_sign_is_in_question_is_refused() -> None:
    with pytest.raises(EngineFault, match=re.compile("literal of 32 bits")) as error:
        executed(["v_lshlrev_b64 v[2:3], v0, 0xf0000001", "s_endpgm"])
    assert (error.value.fault.kind, error.value.fault.pc) == (FaultKind.UNDECODABLE, CODE)
