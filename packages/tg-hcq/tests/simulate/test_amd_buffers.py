"""Accesses by a buffer's descriptor on the software GPU of AMD, against Python's integers."""

from __future__ import annotations

import random
import struct
import zlib

import pytest

from tg_hcq.simulate.amd.architecture import architecture
from tg_hcq.simulate.amd.isa import Row, table
from tg_hcq.simulate.amd.machine import machine
from tg_hcq.simulate.amd.registers import FLOATS
from tg_hcq.simulate.amd.semantics import instruction_set
from tg_hcq.simulate.amd.testing.accesses import Access, access, same
from tg_hcq.simulate.amd.testing.program import DATA
from tg_hcq.simulate.engine import Access as Allowed
from tg_hcq.simulate.engine import AddressSpace, EngineFault, FaultKind, Launch, Memory, Scope, Wave, engine
from tg_hcq.simulate.engine.machine import Machine

ARCHS = [("gfx1100", 32), ("gfx1201", 64), ("gfx1030", 32), ("gfx942", 64), ("gfx950", 64)]
CODE, PART = 0x10000, 4096
END = {9: 0xBF810000, 10: 0xBF810000, 11: 0xBFB00000, 12: 0xBFB00000}
FORMAT = {9: 4 << 15, 10: 0x14 << 12 | 1 << 24, 11: 4 << 12 | 1 << 24, 12: 4 << 12}
STRUCTURED, INDEXED, UNCHECKED, RAW = range(4)
ADDRESS, DATUM, DESCRIPTOR, WAVE = 4, 28, 8, 12  # registers
WRONG = {  # word and bits that are put into a descriptor
    "swizzle": (1, 1 << 31), "cache swizzle": (1, 1 << 30), "type": (3, 1 << 30), "lane numbers": (3, 1 << 23),
    "index stride": (3, 1 << 21),
}  # fmt: skip


class Run:
    """One instruction with random registers, a random descriptor and random memory."""

    def __init__(self, arch: str, lanes: int, row: Row, what: Access, rng: random.Random) -> None:
        self.arch, self.lanes, self.row, self.what, self.rng = arch, lanes, row, what, rng
        self.generation = table(arch).generation
        self.memory = bytearray(rng.randbytes(PART))
        self.rows = {n: [rng.getrandbits(32) for _ in range(lanes)] for n in range(40)}
        self.exec = rng.choice([(1 << lanes) - 1, rng.getrandbits(lanes), 1 << rng.randrange(lanes)])
        self.indexed = any(part in row.record for part in ("_IDXEN", "_BOTHEN"))
        self.offset_of = next((ADDRESS + i for i, part in enumerate(("_OFFEN", "_BOTHEN")) if part in row.record), None)
        self.unit = what.nbytes if what.kind == "atomic" else 1
        self.check = rng.choice((STRUCTURED, INDEXED, UNCHECKED, RAW, RAW)) if self.generation > 9 else RAW
        self.wrong = rng.choice([*WRONG, "format", ""]) if rng.random() < 0.15 else ""
        self._descriptor()
        self._lanes()

    def _descriptor(self) -> None:
        rng, unit = self.rng, self.unit
        self.constant = rng.randrange(0, 40) * unit if rng.random() < 0.5 else 0
        self.wave = rng.randrange(0, 60) * unit
        self.base = rng.randrange(0, 64) * unit
        self.stride = 0 if self.generation == 9 else rng.choice((0, unit, 3 * unit, 64))
        room = PART - self.base - self.wave - what_room(self.what)
        if self.check in (STRUCTURED, INDEXED):
            self.records = rng.randrange(0, (room - 1024) // max(self.stride, 1)) if self.stride else rng.randrange(99)
        else:
            self.records = rng.choice((rng.randrange(self.wave, room + self.wave), 0, self.wave // 2))
        last = FORMAT[self.generation] | (self.check << 28 if self.generation > 9 else 0) | rng.getrandbits(12)
        begin = DATA + self.base
        words = [begin & 0xFFFFFFFF, begin >> 32 | self.stride << 16, self.records, last]
        if self.wrong == "format":
            words[3] &= ~FORMAT[self.generation]
        elif self.wrong:
            word, bits = WRONG[self.wrong]
            words[word] |= bits
        self.scalars = dict(enumerate(words, DESCRIPTOR)) | {WAVE: self.wave}

    def _lanes(self) -> None:
        """Offsets and indices, of which some lie outside; no access is outside of memory that is not caught."""
        rng, unit = self.rng, self.unit
        if self.offset_of is not None:
            most = {STRUCTURED: 2 * self.stride, INDEXED: 256, UNCHECKED: 512}.get(self.check, self.records + 64)
            for lane in range(self.lanes):
                far = rng.random() < 0.1 and self.check in (STRUCTURED, RAW)
                self.rows[self.offset_of][lane] = (
                    rng.randrange(1 << 31, 1 << 32) if far else rng.randrange(most // unit + 1) * unit)  # fmt: skip
        if self.indexed:
            most = 8 if self.check == UNCHECKED else self.records + 8 if self.check != RAW else 40
            for lane in range(self.lanes):
                self.rows[ADDRESS][lane] = rng.randrange(most)

    def place(self, lane: int) -> int | None:
        """Where a lane's bytes are; None outside.

        Raises:
          LookupError: where that is not known.
        """
        if self.wrong:
            raise LookupError
        offset = self.constant + (self.rows[self.offset_of][lane] if self.offset_of is not None else 0)
        index = self.rows[ADDRESS][lane] if self.indexed else 0
        inner, size = offset + index * self.stride, self.what.nbytes
        room = max(self.records - self.wave, 0)
        if self.check == RAW:
            words = size > 4 and self.what.kind != "atomic"
            starts, ends = inner >= room, inner + size > room
            if self.generation == 9 and starts != ends:
                raise LookupError
            if self.generation > 9 and words and (inner + 4 > room) != ends:
                raise LookupError
            outside = ends
        elif self.check == UNCHECKED:
            outside = self.records == 0
        else:
            outside = index >= self.records or (self.check == STRUCTURED and offset + size > self.stride)
        return None if outside else self.base + self.wave + inner

    def fields(self) -> dict[str, int]:
        """The instruction's."""
        found = {name: 0 for name, _ in self.row.fields}
        found |= {"vdata": DATUM, "srsrc": DESCRIPTOR, "soffset": WAVE, "offset": self.constant}
        return found | ({"vaddr": ADDRESS} if "vaddr" in found else {})

    def data(self) -> bytes:
        """The instruction and the end."""
        word, fields = self.row.value, self.fields()
        for name, pieces in self.row.fields:
            for position, index, width in pieces:
                word |= (fields[name] >> index & (1 << width) - 1) << position
        return word.to_bytes(self.row.nbytes, "little") + END[self.generation].to_bytes(4, "little")

    def execute(self, hostile: bool) -> Wave:
        """The wave after it; memory has what it stored."""
        space, memory = AddressSpace(), Memory(2 * PART)
        space.map(CODE, memory, 0, PART, Allowed.READ | Allowed.EXECUTE)
        space.map(DATA, memory, PART, PART, Allowed.READ | Allowed.WRITE)
        code = self.data()
        memory.view[: len(code)] = code
        memory.view[PART:] = self.memory
        gpu: Machine = machine(self.arch, self.lanes, space, hostile=hostile, seed=1)
        made: list[Wave] = []

        def setup(wave: Wave) -> None:
            for number, values in self.rows.items():
                wave.set_row(number, values)
            for number, value in self.scalars.items():
                wave.set_scalar("s", value, number)
            wave.set_scalar("mode", FLOATS)
            wave.exec = self.exec
            made.append(wave)

        gpu.run(Launch(CODE, setup=setup))
        if hostile:
            gpu.caches.flush()  # type: ignore[attr-defined]
            gpu.caches.drop(Scope.SYSTEM)  # type: ignore[attr-defined]
        self.memory = bytearray(memory.view[PART:])
        return made[0]

    def expected(self) -> tuple[dict[int, list[int]], bytearray]:
        """Registers and memory after it."""
        what, rows, memory = self.what, {n: list(values) for n, values in self.rows.items()}, bytearray(self.memory)
        words = max(what.nbytes // 4, 1)
        places = {lane: self.place(lane) for lane in range(self.lanes) if self.exec >> lane & 1}
        for lane, at in places.items():
            part = slice(at, at + what.nbytes) if at is not None else slice(0, 0)
            old = int.from_bytes(memory[part], "little")
            value = sum(self.rows[DATUM + i][lane] << 32 * i for i in range(words))
            if what.kind == "load":
                self._loaded(rows, lane, old)
            elif what.kind == "store":
                value = value >> 16 if what.half == "high" else value
                if at is not None:
                    memory[part] = (value % (1 << 8 * what.nbytes)).to_bytes(what.nbytes, "little")
            else:
                assert what.atomic is not None
                other = sum(self.rows[DATUM + words + i][lane] << 32 * i for i in range(words))
                if at is not None:
                    memory[part] = what.atomic(old, value, other).to_bytes(what.nbytes, "little")
                if "_RTN" in self.row.record:
                    for i in range(words):
                        rows[DATUM + i][lane] = old >> 32 * i & 0xFFFFFFFF
        return rows, memory

    def _loaded(self, rows: dict[int, list[int]], lane: int, old: int) -> None:
        what, bits = self.what, 8 * self.what.nbytes
        if bits >= 32:
            for i in range(bits // 32):
                rows[DATUM + i][lane] = old >> 32 * i & 0xFFFFFFFF
            return
        value, kept = (old - (old >> bits - 1 << bits) if what.signed else old) % (1 << 32), rows[DATUM][lane]
        rows[DATUM][lane] = {"": value, "low": kept & 0xFFFF0000 | value & 0xFFFF,
                             "high": kept & 0xFFFF | value << 16 & 0xFFFFFFFF}[what.half]  # fmt: skip


def what_room(what: Access) -> int:
    """Bytes behind the last one that offsets reach."""
    return 16 + what.nbytes


def rows_of(arch: str) -> list[tuple[Row, Access]]:
    """The instructions that are executed, in every form."""
    found = []
    for row in table(arch):
        if row.encoding != "MUBUF" or "vdata" not in row.operands or "format" in row.name or "_TFE" in row.record:
            continue
        what, accumulator = access(row.name), row.operands["vdata"].register_class.startswith(("AG", "AR"))
        if what is not None and not accumulator and not row.record.endswith("_format"):
            found.append((row, what))
    return found


def tried(arch: str, lanes: int, hostile: bool, draws: int, share: float = 1.0) -> dict[str, int]:
    """Executes every instruction; how often something was outside, or a fault.

    Raises:
      AssertionError: if one does something else than it should.
    """
    native = engine(instruction_set(architecture(arch, lanes)), lanes, hostile)
    native.prepare(name for name in native.instructions.handlers if name.startswith("buffer_"))
    seen = {"inside": 0, "outside": 0, "fault": 0}
    for row, what in rows_of(arch):
        rng = random.Random(zlib.crc32(f"{arch} {row.record} {hostile}".encode()))
        if rng.random() > share:
            continue
        for _ in range(draws):
            run = Run(arch, lanes, row, what, rng)
            try:
                places = [run.place(lane) for lane in range(lanes) if run.exec >> lane & 1]
            except LookupError:
                before = bytes(run.memory)
                with pytest.raises(EngineFault) as error:
                    run.execute(hostile)
                assert error.value.fault.kind is FaultKind.BUFFER, f"{row.record}: {error.value}"
                assert bytes(run.memory) == before
                seen["fault"] += 1
                continue
            if what.kind == "store" and len({at for at in places if at is not None}) < len(places) and hostile:
                continue
            rows, memory = run.expected()
            wave = run.execute(hostile)
            got, wanted = (
                b"".join(struct.pack("<2I", low, high) for n in range(0, len(rows), 2)
                         for low, high in zip(of[n], of[n + 1], strict=True))
                for of in ({n: wave.row(n) for n in rows}, rows)
            )  # fmt: skip
            assert same(row.name, got, wanted), f"{row.record}: registers"
            assert same(row.name, bytes(run.memory), bytes(memory)), f"{row.record}: memory"
            seen["inside"] += sum(at is not None for at in places)
            seen["outside"] += sum(at is None for at in places)
    return seen


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("arch", "lanes"), ARCHS)
def test_what_buffers_move(arch: str, lanes: int) -> None:
    seen = tried(arch, lanes, hostile=False, draws=2)
    assert min(seen.values()) > 10, seen


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("arch", "lanes"), [("gfx1100", 32), ("gfx942", 64)])
def test_what_buffers_move_on_hostile_cards(arch: str, lanes: int) -> None:
    seen = tried(arch, lanes, hostile=True, draws=1, share=0.2)
    assert min(seen["inside"], seen["outside"]) > 10, seen
