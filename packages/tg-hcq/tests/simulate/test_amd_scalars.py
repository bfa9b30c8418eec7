"""Scalar instructions of the software GPU of AMD against Python's integers: encoded, decoded, placed, executed."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterator

import pytest

from tg_hcq.simulate.amd.architecture import architecture
from tg_hcq.simulate.amd.instructions import decoder
from tg_hcq.simulate.amd.isa import Row, table
from tg_hcq.simulate.amd.semantics import instruction_set
from tg_hcq.simulate.amd.testing.assembler import LLVM_MC, MISSING
from tg_hcq.simulate.amd.testing.program import CODE, Bed
from tg_hcq.simulate.amd.testing.scalars import Before, known, specification
from tg_hcq.simulate.engine import EngineFault, FaultKind, Status, Undecodable, Wave, engine, state
from tg_hcq.simulate.engine.testing import HALF, SINGLE, Bench

ARCHS = [("gfx1100", 32), ("gfx1201", 32), ("gfx1030", 64), ("gfx942", 64), ("gfx950", 64)]
ENCODINGS = ("SOP1", "SOP2", "SOPC", "SOPK")
DRAWS = 24
FLOATS = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 0.15915494309189532)
CORNERS = (0, 1, 31, 32, 33, 63, 64, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0x7F800000,
           0xFF800000, 0x7FC00000, 0x00800000, 0x007FFFFF, 0x477FE000, 0x477FF000, 0x33800000, 0x3C007C00, 0x4F000000,
           0xCF000000, 0x4F800000, 0x200004, 0x1F0010, 0x400000, 0x0000FC00, 0x00008000, 0x80008000)  # fmt: skip


class Encoded:
    """A row with fields, and what its operands mean: an evaluation apart from that of the decoder's user."""

    def __init__(self, row: Row, rng: random.Random, arch: str, lanes: int) -> None:
        self.row, self.lanes = row, lanes
        self.null, self.m0 = {9: (None, 124), 10: (125, 124)}.get(table(arch).generation, (124, 125))
        self.literal = rng.choice(CORNERS) if rng.random() < 0.5 else rng.getrandbits(32)
        self.fields = {}
        for name, pieces in row.fields:
            width = sum(piece[2] for piece in pieces)
            kind = row.operands.get(name)
            if name == "imm":
                self.fields[name] = self.literal
            elif kind is None or not kind.register_class:
                self.fields[name] = rng.getrandbits(width)
            else:
                constants = kind.type.startswith("REG_IMM") and name != "sdst"
                self.fields[name] = self._operand(rng, kind.bits, constants)
        pair = [row.operands[name].bits for name in ("src0", "src1") if name in self.fields]
        if len(pair) == 2 and pair[0] == pair[1] and rng.random() < 0.2:
            self.fields["src1"] = self.fields["src0"]

    def _operand(self, rng: random.Random, bits: int, constants: bool) -> int:
        pick = rng.random()
        if constants and pick < 0.35:
            return rng.choice([255, rng.randrange(128, 209), rng.randrange(240, 249)])
        if pick < 0.45:
            return rng.choice([106, 126, self.m0 if bits == 32 else 106, self.null or 106])
        return rng.randrange(0, 100, bits // 32)

    def data(self) -> bytes:
        """The bytes."""
        word = self.row.value
        for name, pieces in self.row.fields:
            for position, index, width in pieces:
                word |= (self.fields[name] >> index & (1 << width) - 1) << position
        out = word.to_bytes(self.row.nbytes, "little")
        return out if "imm" in self.fields else out + self.literal.to_bytes(4, "little")

    def value(self, wave: Wave, name: str) -> int:
        """The bits of an operand."""
        number, kind = self.fields[name], self.row.operands[name]
        bits, half = kind.bits, kind.type.endswith("16")
        ones = (1 << bits) - 1
        if name == "imm" or number == 255:
            return self.literal
        if 128 <= number <= 208:
            return (number - 128 if number <= 192 else 192 - number) & ones
        if 240 <= number <= 248:
            shape = "<e" if half else "<f" if bits == 32 else "<d"
            return int.from_bytes(struct.pack(shape, FLOATS[number - 240]), "little")
        if number == self.null:
            return 0
        if number == self.m0:
            return wave.scalar("m0")
        return wave.exec & ones if number == 126 else wave.scalar("s", number, bits // 32)

    def sources(self) -> Iterator[str]:
        """The names of the operands that are read, in order."""
        return (n for n, k in self.row.operands.items() if n in self.fields and (n == "imm" or n.startswith("src")))


def check(row: Row, arch: str, lanes: int, bench: Bench, rng: random.Random) -> bool:
    """One instruction with random operands; whether it was executed."""
    of, layout = architecture(arch, lanes), bench.engine.layout
    encoded = Encoded(row, rng, arch, lanes)
    try:
        found = decoder(of, bench.engine.instructions)(0x1000, encoded.data())
    except Undecodable:
        return False
    wave = Wave(layout, rng=rng)
    for number in range(124):
        wave.set_scalar("s", rng.choice(CORNERS) if rng.random() < 0.5 else rng.getrandbits(32), number)
    wave.set_scalar("scc", rng.getrandbits(1))
    wave.set_scalar("null", 0, words=2)
    wave.exec = rng.choice([rng.getrandbits(lanes), (1 << lanes) - 1, 0])
    destination = encoded.fields.get("sdst")
    old = encoded.value(wave, "sdst") if destination is not None else 0
    before = Before(
        tuple(encoded.value(wave, n) for n in encoded.sources()), old, wave.scalar("scc"),
        encoded.fields.get("simm16", 0), wave.exec,
    )  # fmt: skip
    expected = bytearray(wave.view)
    wanted = specification(row.name, before)
    bits = row.operands["sdst"].bits if destination is not None else 0
    place = None
    if wanted.exec is not None:
        expected[state.EXEC : state.EXEC + 8] = wanted.exec.to_bytes(8, "little")
    if wanted.result is not None and destination != encoded.null:
        assert destination is not None
        place = layout.scalar("m0") if destination == encoded.m0 else layout.scalar("s", min(destination, 123))
        place = state.EXEC if destination == 126 else place
        expected[place : place + bits // 8] = wanted.result.to_bytes(bits // 8, "little")
    if wanted.scc is not None:
        wave_scc = layout.scalar("scc")
        expected[wave_scc : wave_scc + 4] = wanted.scc.to_bytes(4, "little")
    assert bench.step(wave, found.handler, found.operands, found.immediate) is Status.BUDGET
    got = bytearray(wave.view)
    null = layout.scalar("null")
    got[null : null + 8] = expected[null : null + 8]
    kinds = [part for part in row.name.split("_") if part in ("f16", "f32")]
    form = {"f32": SINGLE, "f16": HALF}.get(kinds[0] if kinds else "")
    if place is not None and form is not None:  # a NaN may have any payload
        for at in range(place, place + (4 if "_pk_" in row.name else form.bits // 8), form.bits // 8):
            part = slice(at, at + form.bits // 8)
            if form.is_nan(int.from_bytes(expected[part], "little")):
                assert form.is_nan(int.from_bytes(got[part], "little")), found.text
                got[part] = expected[part]
    where = [layout.name(at) for at in range(state.SCALARS, layout.rows) if got[at] != expected[at]]
    assert (got[state.EXEC : 8], where) == (expected[state.EXEC : 8], []), f"{found.text}: of {before} came another"
    assert got[layout.rows :] == expected[layout.rows :], found.text
    return True


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("arch", "lanes"), ARCHS)
def test_what_scalars_compute(arch: str, lanes: int) -> None:
    bench = Bench(engine(instruction_set(architecture(arch, lanes)), lanes), "s", "s")
    bench.engine.prepare(name for name in bench.engine.instructions.handlers if name.startswith("s_"))
    tried = 0
    for row in table(arch):
        if row.encoding in ENCODINGS and row.name in bench.engine.instructions.handlers and known(row.name):
            rng = random.Random(zlib.crc32(f"{arch} {row.record}".encode()))
            assert sum(check(row, arch, lanes, bench, rng) for _ in range(DRAWS)) >= DRAWS // 3, row.name
            tried += 1
    assert tried >= 100


needs_llvm = pytest.mark.skipif(LLVM_MC is None, reason=MISSING)


def scalars(wave: Wave, first: int, count: int) -> list[int]:
    return [wave.scalar("s", first + i) for i in range(count)]


@needs_llvm
@pytest.mark.parametrize(("arch", "lanes"), ARCHS)
def test_calls_and_jumps(arch: str, lanes: int) -> None:
    """A call by a constant, one by a register, returns, and the address of the program itself."""
    bed = Bed(arch, lanes)
    bed.run("""
        s_getpc_b64 s[4:5]
      main:
        s_mov_b32 s6, 0
        s_call_b64 s[8:9], once
        s_add_co_u32 s10, s4, once - main
        s_add_co_ci_u32 s11, s5, 0
        s_swappc_b64 s[8:9], s[10:11]
        s_endpgm
      once:
        s_add_co_u32 s6, s6, 1
        s_setpc_b64 s[8:9]
    """ if arch == "gfx1201" else """
        s_getpc_b64 s[4:5]
      main:
        s_mov_b32 s6, 0
        s_call_b64 s[8:9], once
        s_add_u32 s10, s4, once - main
        s_addc_u32 s11, s5, 0
        s_swappc_b64 s[8:9], s[10:11]
        s_endpgm
      once:
        s_add_u32 s6, s6, 1
        s_setpc_b64 s[8:9]
    """)
    (wave,) = bed.waves
    assert wave.scalar("s", 4, 2) == CODE + 4
    assert wave.scalar("s", 6) == 2 and wave.executed == 11


@needs_llvm
@pytest.mark.parametrize(("arch", "lanes"), ARCHS)
@pytest.mark.parametrize("vcc", [0, 1, 1 << 31, 1 << 32, 1 << 63])
def test_branches_look_at_all_of_vcc(arch: str, lanes: int, vcc: int) -> None:
    bed = Bed(arch, lanes)

    def setup(wave: Wave) -> None:
        wave.set_scalar("s", vcc, 106, words=2)
        wave.set_scalar("s", 0, 4, words=2)

    bed.run("""
        s_cbranch_vccz one
        s_mov_b32 s4, 1
      one:
        s_cbranch_vccnz two
        s_mov_b32 s5, 1
      two:
        s_endpgm
    """, setup=setup)
    some = vcc % (1 << lanes) != 0
    assert scalars(bed.waves[0], 4, 2) == [int(some), int(not some)]


@needs_llvm
@pytest.mark.parametrize(("arch", "lanes"), ARCHS)
def test_branches_look_at_the_mask_and_at_scc(arch: str, lanes: int) -> None:
    """And one that looks at nothing."""
    bed = Bed(arch, lanes)
    mask, kind = ("exec", "b64") if lanes == 64 else ("exec_lo", "b32")
    bed.run(f"""
        s_mov_b64 s[4:5], 0
        s_mov_b32 s6, 0
        s_branch one
        s_add_u32 s4, s4, 1
      one:
        s_cmp_eq_u32 s6, 0
        s_cbranch_scc0 wrong
        s_cbranch_scc1 equal
        s_add_u32 s4, s4, 2
      equal:
        s_cmp_lg_u32 s6, 0
        s_cbranch_scc1 wrong
        s_cbranch_scc0 none
        s_add_u32 s4, s4, 4
      none:
        s_mov_{kind} {mask}, 0
        s_cbranch_execnz wrong
        s_cbranch_execz two
      wrong:
        s_add_u32 s5, s5, 1
      two:
        s_mov_{kind} {mask}, 4
        s_cbranch_execz wrong
        s_cbranch_execnz three
        s_add_u32 s6, s6, 1
      three:
        s_endpgm
    """)
    assert scalars(bed.waves[0], 4, 3) == [0, 0, 0]


IDLE = {
    "gfx1030": "ds_nop/v_nop/s_clause 0x1\n s_nop 0\n s_nop 0/s_dcache_inv/s_gl1_inv/s_inst_prefetch 0x3/s_setprio 0x1"
               "/s_sleep 0x2/s_version 0x1/s_wait_idle/s_waitcnt_depctr 0x0/s_waitcnt_expcnt null, 0x0"
               "/s_waitcnt_lgkmcnt null, 0x0/s_waitcnt_vmcnt null, 0x0/s_wakeup",
    "gfx1100": "ds_nop/v_nop/s_clause 0x1\n s_nop 0\n s_nop 0/s_dcache_inv/s_gl1_inv/s_set_inst_prefetch_distance 0x3"
               "/s_setprio 0x1/s_sleep 0x2/s_version 0x1/s_wait_idle/s_waitcnt_depctr 0x0/s_waitcnt_expcnt null, 0x0"
               "/s_waitcnt_lgkmcnt null, 0x0/s_waitcnt_vmcnt null, 0x0/s_wakeup",
    "gfx1201": "ds_nop/v_nop/s_clause 0x1\n s_nop 0\n s_nop 0/s_dcache_inv/s_setprio 0x1/s_sleep 0x2/s_version 0x1"
               "/s_wait_idle/s_wakeup/s_delay_alu instid0(VALU_DEP_1)/s_wait_alu 0x0/s_wait_bvhcnt 0x0"
               "/s_wait_expcnt 0x0"
               "/s_wait_loadcnt_dscnt 0x0/s_wait_samplecnt 0x0/s_wait_storecnt_dscnt 0x0/global_wb scope:SCOPE_DEV"
               "/global_wbinv scope:SCOPE_DEV/s_prefetch_data s[0:1], 0x0, null, 0/s_prefetch_data_pc_rel 0x0, null, 0"
               "/s_prefetch_inst s[0:1], 0x0, null, 0/s_prefetch_inst_pc_rel 0x0, null, 0"
               "/s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)/s_waitcnt 0x0",
    "gfx942": "ds_nop/v_nop/s_waitcnt vmcnt(0) lgkmcnt(0)/s_barrier/s_dcache_inv/s_dcache_inv_vol/s_dcache_wb"
              "/s_dcache_wb_vol/s_setprio 0x1/s_sleep 0x2/s_wakeup/buffer_inv sc1/buffer_wbl2 sc1",
}  # fmt: skip
IDLE["gfx950"] = IDLE["gfx942"]
"""What changes no register and no memory: waits, hints, and caches that the machine has not."""


@needs_llvm
@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.parametrize(("arch", "lanes"), ARCHS)
def test_waits_and_hints_change_nothing(arch: str, lanes: int, hostile: bool) -> None:
    bed = Bed(arch, lanes, hostile=hostile)
    data = random.Random(1).randbytes(len(bed.data))
    bed.data[:] = data
    for line in IDLE[arch].split("/"):
        before = list[bytes]()
        executed = bed.run(f"{line}\n s_endpgm", setup=lambda wave, to=before: to.append(bytes(wave.view)))  # type: ignore[misc]
        (wave,) = bed.waves
        assert executed == 2 + line.count("\n"), line
        assert bytes(wave.view[state.SCALARS :]) == before[0][state.SCALARS :] and bytes(bed.data) == data, line


@needs_llvm
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_accumulation_registers(arch: str) -> None:
    bed = Bed(arch, 64)
    numbers = [random.Random(2).getrandbits(32) for _ in range(64)]

    def setup(wave: Wave) -> None:
        wave.set_row(4, numbers)
        wave.exec = 0xF0F0F0F0F0F0F0F0

    bed.run("v_accvgpr_write_b32 a7, v4\n v_accvgpr_mov_b32 a250, a7\n v_accvgpr_read_b32 v5, a250\n s_endpgm",
            setup=setup)  # fmt: skip
    (wave,) = bed.waves
    wanted = [number if lane & 4 else 0 for lane, number in enumerate(numbers)]
    assert list(wave.row(5)) == list(wave.row(256 + 7)) == list(wave.row(256 + 250)) == wanted


@needs_llvm
@pytest.mark.parametrize(("arch", "lanes"), ARCHS)
def test_mode_is_read_and_written_unless_it_asks_for_what_is_not_executed(arch: str, lanes: int) -> None:
    bed, name = Bed(arch, lanes), "HW_REG_WAVE_MODE" if arch == "gfx1201" else "HW_REG_MODE"
    bed.run(f"""
        s_setreg_imm32_b32 hwreg({name}, 8, 2), 3
        s_getreg_b32 s4, hwreg({name})
        s_getreg_b32 s5, hwreg({name}, 4, 3)
        s_mov_b32 s6, 0xf5
        s_setreg_b32 hwreg({name}, 8, 2), s6
        s_getreg_b32 s7, hwreg({name})
        s_endpgm
    """)
    assert scalars(bed.waves[0], 4, 4) == [0x3F0, 7, 0xF5, 0x1F0]
    for bit in (0, 2, 10, 12, 18, 23, 27):  # FP_ROUND, LOD_CLAMPED, exceptions, FP16_OVFL, GPR_IDX_EN
        with pytest.raises(EngineFault, match="no known instruction") as error:
            bed.run(f"s_nop 0\n s_setreg_imm32_b32 hwreg({name}, {bit}, 1), 1\n s_endpgm")
        assert (error.value.fault.kind, error.value.fault.pc) == (FaultKind.UNDECODABLE, CODE + 4)
    with pytest.raises(EngineFault, match="but MODE are not executed"):
        bed.run("s_getreg_b32 s4, hwreg(7)\n s_endpgm")


@needs_llvm
@pytest.mark.parametrize(("arch", "lanes"), ARCHS)
def test_registers_that_m0_counts_from(arch: str, lanes: int) -> None:
    bed = Bed(arch, lanes)

    def setup(wave: Wave) -> None:
        for number in range(4, 40):
            wave.set_scalar("s", 1000 + number, number)

    moves = "s_movrels_b32 s4, s10\n s_movreld_b32 s20, s11\n s_movrels_b64 s[6:7], s[10:11]\n s_endpgm"
    program = "s_mov_b32 m0, {}\n" + moves
    bed.run(program.format(3), setup=setup)
    assert scalars(bed.waves[0], 4, 4) == [1013, 1005, 1013, 1014] and scalars(bed.waves[0], 23, 1) == [1011]
    bed.run("s_mov_b32 m0, 6\n s_movreld_b64 s[20:21], s[10:11]\n s_endpgm", setup=setup)
    assert scalars(bed.waves[0], 19, 10) == [1019, 1020, 1021, 1022, 1023, 1024, 1025, 1010, 1011, 1028]
    with pytest.raises(EngineFault) as error:
        bed.run(program.format(96), setup=setup)
    assert (error.value.fault.kind, error.value.fault.pc) == (FaultKind.UNDECODABLE, CODE + 8)


@needs_llvm
@pytest.mark.parametrize(("arch", "lanes"), [("gfx1030", 32), ("gfx1100", 32), ("gfx1201", 32)])
def test_two_registers_that_m0_counts_from(arch: str, lanes: int) -> None:
    """By its low half where to read, and by its high half where to write; 10 bits of each count."""
    bed = Bed(arch, lanes)

    def setup(wave: Wave) -> None:
        for number in range(4, 40):
            wave.set_scalar("s", 1000 + number, number)

    for counts in ((20 << 16) | 10, 0xFC14FC0A):
        bed.run(f"s_mov_b32 m0, {counts}\n s_movrelsd_2_b32 s5, s7\n s_endpgm", setup=setup)
        assert scalars(bed.waves[0], 24, 3) == [1024, 1017, 1026]
    with pytest.raises(EngineFault) as error:
        bed.run("s_mov_b32 m0, 0x3ff0000\n s_movrelsd_2_b32 s5, s7\n s_endpgm", setup=setup)
    assert (error.value.fault.kind, error.value.fault.pc) == (FaultKind.UNDECODABLE, CODE + 8)


@needs_llvm
@pytest.mark.parametrize(("arch", "lanes"), [("gfx1030", 32), ("gfx1100", 32), ("gfx1201", 32)])
def test_modes_of_rounding_and_of_subnormals(arch: str, lanes: int) -> None:
    """Whoever asks for the modes that there are gets them; any other is a fault at the instruction."""
    bed, name = Bed(arch, lanes), "HW_REG_WAVE_MODE" if arch == "gfx1201" else "HW_REG_MODE"
    bed.run(f"""
        s_round_mode 0x0
        s_denorm_mode 0xf
        s_getreg_b32 s4, hwreg({name}, 0, 8)
        s_endpgm
    """)
    assert scalars(bed.waves[0], 4, 1) == [0xF0]
    for refused in ("s_round_mode 0x1", "s_round_mode 0xc", "s_denorm_mode 0x0", "s_denorm_mode 0xe"):
        with pytest.raises(EngineFault, match="no known instruction") as error:
            bed.run(f"s_nop 0\n {refused}\n s_endpgm")
        assert (error.value.fault.kind, error.value.fault.pc) == (FaultKind.UNDECODABLE, CODE + 4)


@needs_llvm
def test_a_trap_and_messages_stop_the_wave() -> None:
    for arch, lanes in ARCHS:
        with pytest.raises(EngineFault) as error:
            Bed(arch, lanes).run("s_nop 0\n s_trap 2\n s_endpgm")
        assert (error.value.fault.kind, error.value.fault.pc) == (FaultKind.TRAP, CODE + 4)
    assert Bed("gfx1100").run("s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)\n s_endpgm") == 2
    with pytest.raises(EngineFault, match="messages but"):
        Bed("gfx1100").run("s_sendmsg sendmsg(MSG_INTERRUPT)\n s_endpgm")


@needs_llvm
def test_split_barriers() -> None:
    """A wave goes on when all have said that they came, not when all wait; a wait without that is a fault."""
    bed = Bed("gfx1201")
    program = """
        s_cmp_eq_u32 s3, 0
        s_cbranch_scc1 first
        s_barrier_signal -1
        s_barrier_wait -1
        s_endpgm
      first:
        s_barrier_signal -1
        s_nop 0
        s_barrier_wait -1
        s_endpgm
    """
    bed.run(program, groups=2, waves=3)
    with pytest.raises(EngineFault, match="without having said") as error:
        bed.run("s_barrier_wait -1\n s_endpgm", waves=2)
    assert error.value.fault.kind is FaultKind.BARRIER
    with pytest.raises(EngineFault, match="but that of the workgroup"):
        bed.run("s_barrier_signal 1\n s_endpgm")
