"""Loads, stores and atomics of the software GPU of AMD against Python's integers: encoded, decoded, executed."""

from __future__ import annotations

import ctypes
import random
import struct
import zlib
from collections.abc import Callable, Sequence

import pytest

from tg_hcq.simulate.amd.isa import Row, table
from tg_hcq.simulate.amd.machine import machine
from tg_hcq.simulate.amd.registers import FLOATS, PRIVATE_APERTURE, SHARED_APERTURE
from tg_hcq.simulate.amd.testing.accesses import Access, access, same
from tg_hcq.simulate.amd.testing.assembler import LLVM_MC, MISSING
from tg_hcq.simulate.amd.testing.program import DATA, Bed
from tg_hcq.simulate.engine import Access as Allowed
from tg_hcq.simulate.engine import AddressSpace, EngineFault, FaultKind, Launch, Memory, Wave
from tg_hcq.simulate.engine.launch import Group

ARCHS = [("gfx1100", 32), ("gfx1201", 64), ("gfx1030", 32), ("gfx942", 64), ("gfx950", 64)]
FAMILIES = ("GLOBAL", "FLAT", "SCRATCH", "DS")
CODE, PART = 0x10000, 4096
NUMBERS = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0xBF800000, 0x7F800000, 0x7FC00000, 0x7C003C00,
           0x3FF00000, 0x00000001, 0x80000001, 0x40490FDB)  # fmt: skip
END = {9: 0xBF810000, 10: 0xBF810000, 11: 0xBFB00000, 12: 0xBFB00000}


class Run:
    """One instruction of a wave, with random registers and memories."""

    def __init__(self, arch: str, lanes: int, row: Row, what: Access, rng: random.Random) -> None:
        self.arch, self.lanes, self.row, self.what, self.rng = arch, lanes, row, what, rng
        self.generation = table(arch).generation
        self.where = {"DS": "shared", "SCRATCH": "scratch"}.get(row.encoding, "global")
        self.memory = {
            "global": bytearray(rng.randbytes(PART)), "shared": bytearray(rng.randbytes(PART)),
            "scratch": bytearray(rng.randbytes(256 * lanes)),
        }  # fmt: skip
        self.rows = {
            n: [rng.choice(NUMBERS) if rng.random() < 0.5 else rng.getrandbits(32) for _ in range(lanes)]
            for n in range(64)
        }
        self.exec = rng.choice([(1 << lanes) - 1, rng.getrandbits(lanes), 1 << rng.randrange(lanes)])
        self.fields = {name: 0 for name, _ in row.fields}
        places = {"vdst": 20, "vdata": 28, "data0": 28, "data1": 36}
        self.fields |= {name: place for name, place in places.items() if name in self.fields}
        self.scalars = {4: 0, 5: 0}
        self.offsets = self._addresses()

    def _addresses(self) -> list[int]:
        """Where each lane's bytes are; writes what leads there into registers."""
        rng, what, fields = self.rng, self.what, self.fields
        size = {"global": PART, "shared": PART, "scratch": 256}[self.where]
        room = size - what.nbytes - what.stride * 255 % size if what.stride else size - what.nbytes
        unit = what.nbytes if what.kind == "atomic" else 1
        few = rng.random() < 0.3
        picked = [rng.randrange(0, 8 if few else (room // 2) // unit + 1) * unit for _ in range(self.lanes)]
        constant = 0
        if what.stride:
            most = (size // 2) // what.stride
            fields["offset0"], fields["offset1"] = (rng.randrange(min(most, 256)) for _ in range(2))
        elif "offset" in fields:
            width = sum(p[2] for n, pieces in self.row.fields if n == "offset" for p in pieces)
            signs = self.generation >= 12 or self.row.encoding != "FLAT"
            signs = signs and self.row.encoding != "DS"
            constant = rng.randrange(-64 if signs else 0, 64)
            fields["offset"] = constant % (1 << width)
        base = {"global": DATA}.get(self.where, 0)
        kinds = self.row.operands
        if "saddr" in fields:
            fields["saddr"] = 4
            high = rng.randrange(64, 128) if "vaddr" not in fields else rng.randrange(64)
            self.scalars = {4: (base + high) & 0xFFFFFFFF, 5: (base + high) >> 32} if base else {4: high, 5: 7}
            for lane, at in enumerate(picked):
                self.rows[4][lane] = (at - high - constant) % (1 << 32) if "vaddr" in fields else 0
            fields.update({"vaddr": 4} if "vaddr" in fields else {})
            if "vaddr" not in fields:
                return [high + constant] * self.lanes
            if base:  # an offset of a lane is not negative
                for lane, at in enumerate(picked):
                    picked[lane] = max(at, high + max(constant, 0) + 64) // unit * unit
                    self.rows[4][lane] = picked[lane] - high - constant
            return picked
        name = "addr" if "addr" in fields else "vaddr"
        if name not in fields:
            fields["offset"] = abs(constant)
            return [abs(constant)] * self.lanes
        fields[name] = 4
        generic = self.row.encoding == "FLAT"
        for lane, at in enumerate(picked):
            start = base
            if generic and lane % 3:
                start = (SHARED_APERTURE if lane % 3 == 1 else PRIVATE_APERTURE) << 32
                picked[lane] = at = at % (200 // unit) * unit if lane % 3 == 2 else at
                at = max(at, -(-constant // unit) * unit if constant > 0 else at)  # no carry into the aperture
                picked[lane] = at
            address = start + at - constant
            self.rows[4][lane] = address & 0xFFFFFFFF
            if kinds[name].bits == 64:
                self.rows[5][lane] = address >> 32
        return picked

    def data(self) -> bytes:
        """The instruction and the end."""
        word = self.row.value
        for name, pieces in self.row.fields:
            for position, index, width in pieces:
                word |= (self.fields[name] >> index & (1 << width) - 1) << position
        return word.to_bytes(self.row.nbytes, "little") + END[self.generation].to_bytes(4, "little")

    def execute(self) -> Wave:
        """The wave after it; memories have what it stored."""
        space, memory = AddressSpace(), Memory(2 * PART)
        space.map(CODE, memory, 0, PART, Allowed.READ | Allowed.EXECUTE)
        space.map(DATA, memory, PART, PART, Allowed.READ | Allowed.WRITE)
        code = self.data()
        memory.view[: len(code)] = code
        memory.view[PART:] = self.memory["global"]
        gpu = machine(self.arch, self.lanes, space)
        groups: list[Group] = []
        begin, made = gpu.begin, []

        def begun(launch: Launch, number: int, slot: int = 0) -> Group:
            group = begin(launch, number, slot)
            groups.append(group)
            ctypes.memmove(group.shared, bytes(self.memory["shared"]), PART)
            ctypes.memmove(group.scratch[0], bytes(self.memory["scratch"]), 256 * self.lanes)
            return group

        def setup(wave: Wave) -> None:
            for number, values in self.rows.items():
                wave.set_row(number, values)
            for number, value in self.scalars.items():
                wave.set_scalar("s", value, number)
            wave.set_scalar("mode", FLOATS)
            wave.exec = self.exec
            made.append(wave)

        gpu.begin = begun  # type: ignore[method-assign]
        gpu.run(Launch(CODE, setup=setup, shared_bytes=PART, scratch_bytes=256))
        self.memory["global"] = bytearray(memory.view[PART:])
        self.memory["shared"] = bytearray(groups[0].shared.raw[:PART])
        self.memory["scratch"] = bytearray(groups[0].scratch[0].raw[: 256 * self.lanes])
        return made[0]

    def expected(self) -> tuple[dict[int, list[int]], dict[str, bytearray]]:
        """Registers and memories after it."""
        what, rows = self.what, {n: list(values) for n, values in self.rows.items()}
        memory = {name: bytearray(block) for name, block in self.memory.items()}
        words = max(what.nbytes // 4, 1)
        active = [lane for lane in range(self.lanes) if self.exec >> lane & 1]
        for index, lane in ((i, lane) for i in range(2 if what.stride else 1) for lane in active):
            where = self.where
            if self.row.encoding == "FLAT" and lane % 3:
                where = "shared" if lane % 3 == 1 else "scratch"
            block, first = memory[where], self.offsets[lane] + (256 * lane if where == "scratch" else 0)
            pairs = [first]
            if what.stride:
                pairs = [first + self.fields[f"offset{i}"] * what.stride for i in range(2)]
            for at in pairs[index : index + 1]:
                part = slice(at, at + what.nbytes)
                old = int.from_bytes(block[part], "little")
                if what.kind == "load":
                    self._loaded(rows, lane, old, index * words)
                    continue
                source = self.fields.get("vdata", self.fields.get("data0", 0)) + (8 * index if what.stride else 0)
                value = sum(self.rows[source + i][lane] << 32 * i for i in range(words))
                if what.kind == "store":
                    value = value >> 16 if what.half == "high" else value
                    block[part] = (value % (1 << 8 * what.nbytes)).to_bytes(what.nbytes, "little")
                    continue
                assert what.atomic is not None
                second = 36 if "data1" in self.fields else source + words
                other = sum(self.rows[second + i][lane] << 32 * i for i in range(words)) if what.operands == 2 else 0
                block[part] = what.atomic(old, value, other).to_bytes(what.nbytes, "little")
                if "vdst" in self.fields:
                    for i in range(words):
                        rows[20 + i][lane] = old >> 32 * i & 0xFFFFFFFF
        return rows, memory

    def _loaded(self, rows: dict[int, list[int]], lane: int, old: int, first: int) -> None:
        what = self.what
        if what.nbytes >= 4:
            for i in range(what.nbytes // 4):
                rows[20 + first + i][lane] = old >> 32 * i & 0xFFFFFFFF
            return
        bits = 8 * what.nbytes
        value = (old - (old >> bits - 1 << bits) if what.signed else old) % (1 << 32)
        kept = rows[20][lane]
        rows[20][lane] = {"": value, "low": kept & 0xFFFF0000 | value & 0xFFFF,
                          "high": kept & 0xFFFF | value << 16 & 0xFFFFFFFF}[what.half]  # fmt: skip


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("arch", "lanes"), ARCHS)
def test_what_accesses_move(
    arch: str, lanes: int, drawn: Callable[[list[tuple[Row, Access]], int], Sequence[tuple[Row, Access]]]
) -> None:
    """A run of the whole suite draws a third of the accesses."""
    tried, every = 0, []
    for row in table(arch):
        what = access(row.name) if row.encoding in FAMILIES else None
        classes = {kind.register_class[:2] for kind in row.operands.values()}
        moves = {"vdst", "vdata", "data0"} & dict(row.fields).keys()
        if what is not None and not classes & {"AG", "AR"} and moves:
            every.append((row, what))
    chosen = drawn(every, len(every) // 3)
    for row, what in chosen:
        rng = random.Random(zlib.crc32(f"{arch} {row.record}".encode()))
        for _ in range(2):
            run = Run(arch, lanes, row, what, rng)
            if what.kind == "atomic" and any(at % what.nbytes for at in run.offsets):
                continue
            rows, memory = run.expected()
            try:
                wave = run.execute()
            except EngineFault as error:
                if error.fault.kind is FaultKind.UNDECODABLE and "not executed yet" in error.fault.detail:
                    break
                raise AssertionError(f"{row.record}: {error}") from None
            for number, values in rows.items():
                if number not in (20, 21) or what.kind != "atomic":
                    assert list(wave.row(number)) == values, f"{row.record}: v{number}"
            if what.kind == "atomic":
                got, wanted = (
                    b"".join(struct.pack("<2I", low, high) for low, high in zip(*pair, strict=True))
                    for pair in ((wave.row(20), wave.row(21)), (rows[20], rows[21]))
                )
                assert same(row.name, got, wanted), f"{row.record}: v20"
            for name in ("global", "shared", "scratch"):
                assert same(row.name, bytes(run.memory[name]), bytes(memory[name])), f"{row.record}: {name}"
            tried += 1
    assert tried > 350 * (1 if len(chosen) == len(every) else 0.25)


needs_llvm = pytest.mark.skipif(LLVM_MC is None, reason=MISSING)


def rows_of(lanes: int, seed: int) -> tuple[list[int], list[int], int]:
    """Addresses, data and a mask."""
    rng = random.Random(seed)
    addresses, data = ([rng.getrandbits(32) for _ in range(lanes)] for _ in range(2))
    return addresses, data, rng.getrandbits(lanes)


@needs_llvm
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("arch", "lanes"), [
    ("gfx1100", 32), ("gfx1030", 32), ("gfx942", 64), ("gfx950", 64), ("gfx1201", 32),
])  # fmt: skip
def test_lanes_give_one_another_words(arch: str, lanes: int, seed: int) -> None:
    bed, (addresses, data, mask) = Bed(arch, lanes), rows_of(lanes, seed)

    def setup(wave: Wave) -> None:
        wave.set_row(4, addresses)
        wave.set_row(5, data)
        wave.set_row(6, [7] * lanes)
        wave.set_row(7, [7] * lanes)
        wave.exec = mask

    bed.run("ds_bpermute_b32 v6, v4, v5 offset:8\n ds_permute_b32 v7, v4, v5\n s_endpgm", setup=setup)
    active = [lane for lane in range(lanes) if mask >> lane & 1]
    taken, given = [7] * lanes, {}
    for lane in active:
        source = (addresses[lane] + 8) % (1 << 32) // 4 % lanes
        taken[lane] = data[source] if mask >> source & 1 else 0
        given[addresses[lane] // 4 % lanes] = data[lane]
    assert list(bed.waves[0].row(6)) == taken
    assert list(bed.waves[0].row(7)) == [given.get(n, 0) if n in active else 7 for n in range(lanes)]


@needs_llvm
@pytest.mark.parametrize(("arch", "lanes"), [("gfx1100", 64), ("gfx1030", 32), ("gfx942", 64), ("gfx950", 64)])
def test_swizzled_lanes(arch: str, lanes: int) -> None:
    rng = random.Random(7)
    quads = [0x8000 | rng.getrandbits(8) for _ in range(2)]
    for how in (*quads, *(rng.getrandbits(15) for _ in range(4)), 0x1F):
        bed, (_, data, mask) = Bed(arch, lanes), rows_of(lanes, how)

        def setup(wave: Wave, data: list[int] = data, mask: int = mask) -> None:
            wave.set_row(5, data)
            wave.exec = mask

        bed.run(f"ds_swizzle_b32 v6, v5 offset:{how:#x}\n s_endpgm", setup=setup)
        for lane in (n for n in range(lanes) if mask >> n & 1):
            if how >> 15:
                source = lane // 4 * 4 + (how >> 2 * (lane % 4) & 3)
            else:
                low = (lane % 32 & how & 31 | how >> 5 & 31) ^ (how >> 10 & 31)
                source = lane // 32 * 32 + low
            assert bed.waves[0].row(6)[lane] == (data[source] if mask >> source & 1 else 0)
    with pytest.raises(EngineFault, match="Fourier"):
        Bed(arch, lanes).run("ds_swizzle_b32 v6, v5 offset:0xe003\n s_endpgm")


@needs_llvm
@pytest.mark.parametrize("lanes", [32, 64])
def test_buffers_of_scratch(lanes: int) -> None:
    """Words of the lanes lie beside one another; a descriptor that says anything else is a fault at the instruction."""
    bed, data = Bed("gfx1030", lanes), rows_of(lanes, lanes)[1]
    last = 1 << 23 | (2 if lanes == 32 else 3) << 21

    def setup(wave: Wave, word: int = last) -> None:
        for index, value in enumerate((DATA & 0xFFFFFFFF, DATA >> 32 | 1 << 31, 0xFFFFFFFF, word)):
            wave.set_scalar("s", value, 4 + index)
        wave.set_scalar("s", 8 * lanes, 8)
        wave.set_row(4, [12] * lanes)
        wave.set_row(5, data)

    bed.run(
        """
        buffer_store_dword v5, v4, s[4:7], s8 offen offset:8
        buffer_store_byte v5, off, s[4:7], 0 offset:6
        buffer_load_ushort v6, off, s[4:7], s8 offset:22
        buffer_load_short_d16_hi v6, off, s[4:7], s8 offset:20
        buffer_store_short v5, off, s[4:7], 0 offset:8
        buffer_store_short_d16_hi v5, off, s[4:7], 0 offset:10
        buffer_store_byte_d16_hi v5, off, s[4:7], 0 offset:12
        buffer_load_sbyte v7, off, s[4:7], s8 offset:20
        buffer_load_ubyte v8, off, s[4:7], s8 offset:21
        buffer_load_sshort v9, off, s[4:7], s8 offset:22
        buffer_load_sbyte_d16 v10, off, s[4:7], s8 offset:20
        buffer_load_sbyte_d16_hi v10, off, s[4:7], s8 offset:21
        buffer_load_ubyte_d16 v11, off, s[4:7], s8 offset:20
        buffer_load_ubyte_d16_hi v11, off, s[4:7], s8 offset:21
        buffer_load_short_d16 v12, off, s[4:7], s8 offset:22
        s_endpgm
    """,
        setup=setup,
    )
    found = bed.words(16 * lanes)
    assert found[(8 + 20) // 4 * lanes :][:lanes] == data
    assert [word >> 16 for word in found[lanes : 2 * lanes]] == [word & 0xFF for word in data]
    assert list(bed.waves[0].row(6)) == [word >> 16 | word << 16 & 0xFFFF0000 for word in data]
    assert found[2 * lanes : 3 * lanes] == data
    assert [word & 0xFF for word in found[3 * lanes : 4 * lanes]] == [word >> 16 & 0xFF for word in data]
    low, second = ([word >> at & 0xFF for word in data] for at in (0, 8))
    signed = [[byte - (byte >> 7 << 8) & 0xFFFF for byte in bytes_] for bytes_ in (low, second)]
    rows = {number: list(bed.waves[0].row(number)) for number in range(7, 13)}
    assert rows[7] == [byte - (byte >> 7 << 8) & 0xFFFFFFFF for byte in low] and rows[8] == second
    assert rows[9] == [(half := word >> 16) - (half >> 15 << 16) & 0xFFFFFFFF for word in data]
    assert rows[10] == [a | b << 16 for a, b in zip(*signed, strict=True)]
    assert rows[11] == [a | b << 16 for a, b in zip(low, second, strict=True)]
    assert [word & 0xFFFF for word in rows[12]] == [word >> 16 for word in data]
    with pytest.raises(EngineFault) as error:
        bed.run("s_nop 0\n buffer_load_dword v6, off, s[4:7], 0\n s_endpgm",
                setup=lambda wave: setup(wave, last ^ 1 << 23))  # fmt: skip
    assert (error.value.fault.kind, error.value.fault.pc) == (FaultKind.BUFFER, CODE + 4)


@needs_llvm
@pytest.mark.parametrize(("arch", "lanes"), ARCHS)
def test_what_lies_outside_is_a_fault(arch: str, lanes: int) -> None:
    """Of LDS, of scratch, of a mapping: with the address, the instruction and the lane; nothing is changed."""
    newer = int(arch[3:-2]) >= 11
    load, read = ("global_load_b64", "ds_load_b64") if newer else ("global_load_dwordx2", "ds_read_b64")
    private = "scratch_load_b32" if newer else "scratch_load_dword"
    cases = [
        (f"{read} v[6:7], v4 offset:8", FaultKind.SHARED, 1 << 9, 504),
        (f"{private} v6, v4, off", FaultKind.SCRATCH, 100, 60),
        (f"{load} v[6:7], v4, s[0:1] offset:8", FaultKind.UNMAPPED, 1 << 14, 0),
    ]
    for text, kind, far, near in cases:

        def setup(wave: Wave, far: int = far, near: int = near) -> None:
            wave.set_row(4, [near] * (lanes - 3) + [far] * 3)
            wave.set_row(6, [1] * lanes)

        bed = Bed(arch, lanes)
        with pytest.raises(EngineFault) as error:
            bed.run(f"s_nop 0\n {text}\n s_endpgm", setup=setup, shared_bytes=512, scratch_bytes=64)
        fault = error.value.fault
        lane = 0 if kind is FaultKind.SHARED else lanes - 3
        assert (fault.kind, fault.pc, fault.lane) == (kind, CODE + 4, lane), text
        assert list(bed.waves[0].row(6)) == [1] * lanes


@needs_llvm
@pytest.mark.parametrize(("arch", "lanes"), ARCHS)
def test_scalar_loads(arch: str, lanes: int) -> None:
    """Of each size, from a base, an offset in a register and a constant, each cut to whole words."""
    bed, rng = Bed(arch, lanes), random.Random(3)
    bed.data[:] = rng.randbytes(len(bed.data))
    names = {1: "b32", 2: "b64", 4: "b128", 8: "b256", 16: "b512"}
    if int(arch[3:-2]) < 11:
        names = {1: "dword", 2: "dwordx2", 4: "dwordx4", 8: "dwordx8", 16: "dwordx16"}
    for words, name in names.items():
        target = "s16" if words == 1 else f"s[16:{15 + words}]"
        base = DATA + 4 * rng.randrange(64) + 2
        bed.run(f"s_mov_b32 s4, 0x123\n s_load_{name} {target}, s[6:7], s4 offset:0x41\n s_endpgm",
                setup=lambda wave, base=base: wave.set_scalar("s", base, 6, words=2))  # type: ignore[misc]  # fmt: skip
        want = struct.unpack_from(f"<{words}I", bed.data, base - 2 - DATA + 0x164)
        assert tuple(bed.waves[0].scalar("s", 16 + i) for i in range(words)) == want, name


@needs_llvm
@pytest.mark.parametrize(("arch", "lanes", "hostile"), [*((*arch, False) for arch in ARCHS), ("gfx1100", 32, True)])
def test_scalar_loads_from_buffers(arch: str, lanes: int, hostile: bool) -> None:
    """Of each size, inside and outside, with records that lie apart and bytes; partly outside they are a fault."""
    bed, rng, newer = Bed(arch, lanes, hostile=hostile), random.Random(f"{arch} {hostile}"), int(arch[3:-2]) >= 11
    bed.data[:] = rng.randbytes(len(bed.data))
    names = {"b32": 4, "b64": 8, "b128": 16, "b256": 32, "b512": 64}
    if not newer:
        names = {"dword": 4, "dwordx2": 8, "dwordx4": 16, "dwordx8": 32, "dwordx16": 64}
    if arch == "gfx1201":
        names |= {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "b96": 12}
    wait = "s_wait_kmcnt 0x0" if arch == "gfx1201" else "s_waitcnt lgkmcnt(0)"
    seen = {"inside": 0, "outside": 0, "fault": 0}
    for name, nbytes in names.items():
        words = max(nbytes // 4, 1)
        target = "s16" if words == 1 else f"s[16:{15 + words}]"
        unit, cut = min(nbytes, 4), 4 if nbytes >= 4 else 1
        constant = rng.randrange(72) // unit * unit + rng.randrange(cut)
        program = f"s_buffer_load_{name} {target}, s[8:11], s4 offset:{constant:#x}\n {wait}\n s_endpgm"
        for _ in range(8):
            stride = rng.choice((0, 4, 20))
            size = rng.choice((0, 4, 60, 100, 4 * rng.randrange(40)))
            records = size // stride if stride else size
            size = records * max(stride, 1)
            register = rng.randrange(72) // unit * unit + rng.randrange(cut)
            swizzle = rng.random() < 0.05
            base = DATA + 4 * rng.randrange(64) | stride << 48 | swizzle << 63
            at = (register + constant) // cut * cut

            def setup(wave: Wave, base: int = base, records: int = records, register: int = register) -> None:
                wave.set_scalar("s", base, 8, words=2)
                wave.set_scalar("s", records, 10)
                wave.set_scalar("s", register, 4)

            if swizzle or at < size < at + nbytes:
                with pytest.raises(EngineFault) as error:
                    bed.run(program, setup=setup)
                assert error.value.fault.kind is FaultKind.BUFFER
                seen["fault"] += 1
                continue
            bed.run(program, setup=setup)
            first = (base & (1 << 48) - 1) - DATA + at
            data = bytes(bed.data[first : first + nbytes]) if at < size else bytes(nbytes)
            want = int.from_bytes(data, "little", signed=name[0] == "i") % (1 << 32 * words)
            assert bed.waves[0].scalar("s", 16, words) == want, (name, stride, size, at)
            seen["inside" if at < size else "outside"] += 1
    assert min(seen.values()) > 0, seen


@needs_llvm
def test_narrow_scalar_loads() -> None:
    bed, rng = Bed("gfx1201"), random.Random(4)
    bed.data[:] = rng.randbytes(len(bed.data))
    bed.run(
        """
        s_load_u8 s8, s[0:1], 0x7
        s_load_i8 s9, s[0:1], 0x7
        s_load_i16 s10, s[0:1], -0x2
        s_load_u16 s11, s[0:1], 0xa
        s_load_b96 s[12:14], s[0:1], 0x10
        s_endpgm
    """,
        setup=lambda wave: wave.set_scalar("s", DATA + 256, 0, words=2),
    )
    shapes = (("B", 7), ("b", 7), ("h", -2), ("H", 10), ("<3I", 16))
    want = [value % (1 << 32) for shape, at in shapes for value in struct.unpack_from(shape, bed.data, 256 + at)]
    assert [bed.waves[0].scalar("s", 8 + i) for i in range(7)] == want
