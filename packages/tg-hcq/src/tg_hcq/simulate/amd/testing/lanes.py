"""Single instructions of lanes: drawn, executed by the software GPU, and compared with their specification."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ...engine import FaultKind, InstructionSet, Status, Undecodable, Wave, engine, state
from ...engine.testing import DOUBLE, HALF, SINGLE, Bench, Format
from ..architecture import Architecture
from ..instructions import decoder
from ..isa import Decoded, Kind, Row, Table, table, text
from ..isa import decoder as bytes_decoder
from ..isa.decode import Decoder as BytesDecoder
from ..isa.registers import names
from ..registers import temporaries
from ..semantics import instruction_set
from . import lane_floats, lane_integers, lane_small
from .assembly import Operand, parse
from .permutations import permuted
from .rules import Mode, Rule

CORNERS = (
    0, 1, 2, 15, 16, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
    0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0x00800000, 0x007FFFFF, 0x80000001,
    0x7F7FFFFF, 0x3F000000, 0x40490FDB, 0x4B000001, 0x4F000000, 0x4F800000, 0xCF000000, 0x477FE000, 0x477FF000,
    0x33800000, 0x7E800000, 0x7F000000, 0x0C000000, 0x3FF00000, 0xBFF00000, 0x7FF00000, 0x7FF80000, 0x00100000,
    0x000FFFFF, 0x7FEFFFFF, 0x41E00000, 0x3C003C00, 0x7C00FC00, 0x7E000001, 0x04007C01, 0x03FF83FF, 0x7BFF3800,
)  # fmt: skip
MODES = (0xF0, 0xF0, 0xF0, 0xC0, 0x30, 0x00, 0xF5, 0xFA, 0xFF, 0xF1, 0xF4, 0x50, 0xA0, 0x0F)
_FORMATS = {"f16": HALF, "f32": SINGLE, "f64": DOUBLE}
_BITS = {"b16": 16, "f16": 16, "b32": 32, "f32": 32, "pi16": 32, "pf16": 32, "mix": 32, "b64": 64, "f64": 64,
         "pf32": 64}  # fmt: skip
_SELECTIONS = {"BYTE_0": (0, 8), "BYTE_1": (8, 8), "BYTE_2": (16, 8), "BYTE_3": (24, 8), "WORD_0": (0, 16),
               "WORD_1": (16, 16), "DWORD": (0, 32)}  # fmt: skip


@functools.cache
def rules() -> tuple[tuple[re.Pattern[str], Rule], ...]:
    """All specifications with their patterns."""
    found = [*lane_integers.rules(), *lane_floats.rules()]
    return tuple((re.compile(r.pattern), r) for r in found)


@functools.cache
def _of_bytes(signless: bool) -> tuple[tuple[re.Pattern[str], Rule], ...]:
    return tuple((re.compile(r.pattern), r) for r in lane_small.of_bytes(signless))


@functools.cache
def rule_of(name: str, arch: str = "") -> Rule | None:
    """The specification of a mnemonic; floats of 8 bits are others on gfx942."""
    for pattern, found in (*rules(), *_of_bytes(arch == "gfx942")):
        if pattern.fullmatch(name):
            return found
    return None


class Refused(Exception):
    """The software GPU does not execute the drawn form."""


@dataclass
class Trial:
    """An instruction that was executed.

    Attributes:
      assembly: as text.
      before: the state.
      after: the state.
      exec: the mask.
      mode: the MODE register.
    """

    assembly: str
    before: bytes
    after: bytes
    exec: int
    mode: int


class LanesBench:
    """Draws instructions of rows of an architecture's table, and executes them.

    Args:
      arch: the architecture.
      instructions: the handlers; those of the architecture if omitted.
      hostile: whether results are any of those that are allowed.
    """

    def __init__(self, arch: Architecture, instructions: InstructionSet | None = None, hostile: bool = False) -> None:
        self.arch, self.lanes = arch, arch.lanes
        self.instructions = instructions or instruction_set(arch)
        self.engine = engine(self.instructions, arch.lanes, hostile)
        self.layout = self.engine.layout
        self._bytes: BytesDecoder = bytes_decoder(arch.name)
        self._decode = decoder(arch, self.instructions)
        self._bench = Bench(self.engine, "s", "s")

    def rows(self) -> Iterable[Row]:
        """Those of arithmetic of lanes for which there is a specification.

        Of 16 bits LLVM has two sets, one where halves of registers are no registers (``fake16``): it is left out where
        the processor has the other one.
        """
        rows = list(table(self.arch.name))
        halves = {row.name for row in rows if "fake16" not in row.record}
        for row in rows:
            single = row.encoding.startswith("VOP") and row.encoding != "VOPD"
            other = "fake16" in row.record and row.name in halves
            if single and not other and rule_of(row.name, self.arch.name):
                yield row

    def draw(self, row: Row, rng: random.Random, plain: bool = False) -> Decoded:
        """An instruction of a row; a plain one has no modifiers.

        Raises:
          Undecodable: if none of many draws is an instruction.
        """
        for _ in range(200):
            word = row.value
            for name, pieces in row.fields:
                value = self._field(row, name, sum(p[2] for p in pieces), rng, plain)
                for position, index, width in pieces:
                    word |= (value >> index & (1 << width) - 1) << position
            data = word.to_bytes(row.nbytes, "little") + rng.choice(
                [rng.getrandbits(32), rng.choice(CORNERS)]).to_bytes(4, "little")  # fmt: skip
            try:
                found = self._bytes(data)
            except Undecodable:
                continue
            if found.record == row.record:
                self.data = data[: found.nbytes]
                return found
        raise Undecodable(f"no draw of {row.record} is an instruction")

    def _field(self, row: Row, name: str, width: int, rng: random.Random, plain: bool) -> int:
        kind = row.operands.get(name)
        if kind is not None and name == "vdst" and kind.bits > 128 and "IsMAI" not in row.flags:
            return 64 + 2 * rng.randrange(8)  # behind all sources: it may not be one of them
        if kind is not None and kind.register_class:
            vectors, others, legal = _legal(kind, table(self.arch.name))
            pick = rng.random()
            if vectors and (pick < 0.6 or not others):
                return rng.choice(vectors)
            return rng.choice(others or legal)
        if plain:
            return {"op_sel_hi": 0, "dst_sel": 6, "src0_sel": 6, "src1_sel": 6, "row_mask": 15, "bank_mask": 15,
                    "dpp_ctrl": 0xE4, "fi": 0xE9 if width > 1 else 0, "dpp8": 0o76543210}.get(
                name, 8 if name.endswith("_modifiers") and "VOP3P" in row.flags else 0)  # fmt: skip
        if name == "fi":
            return rng.choice([0xE9, 0xEA]) if width > 1 else rng.getrandbits(1)
        if name in ("clamp", "omod", "op_sel", "bound_ctrl"):
            return rng.getrandbits(width) if rng.random() < 0.5 else 0
        if name.endswith("_modifiers") and width > 2 and rng.random() < 0.5:
            return 8 if "VOP3P" in row.flags else 0
        return rng.getrandbits(width)

    def pairs(self) -> Iterable[Row]:
        """Rows of two instructions at once, for both of which there is a specification."""
        for row in table(self.arch.name):
            halves = row.name.replace("v_dual_", "v_").split(" :: ")
            if row.encoding == "VOPD" and all(rule_of(half, self.arch.name) for half in halves):
                yield row

    def placed(self) -> bool:
        """Whether there is a handler for the form of the instruction that was drawn last."""
        try:
            self._decode(0x1000, self.data + bytes(16))
        except Undecodable:
            return False
        return True

    def take(self, row: Row, fields: Mapping[str, int], literal: int = 0) -> Decoded:
        """An instruction of a row with these fields, as if drawn; those of the row that are not named are 0.

        Raises:
          Undecodable: if it is none.
        """
        word = row.value
        for name, pieces in row.fields:
            for position, index, width in pieces:
                word |= (fields.get(name, 0) >> index & (1 << width) - 1) << position
        data = word.to_bytes(row.nbytes, "little") + literal.to_bytes(4, "little")
        found = self._bytes(data)
        self.data = data[: found.nbytes]
        return found

    def run(self, wave: Wave, row: Row, fields: Mapping[str, int]) -> Status:
        """Executes an instruction of a row with these fields; those of the row that are not named are 0."""
        self.take(row, fields)
        made = self._decode(0x1000, self.data + bytes(16))
        return self._bench.step(wave, made.handler, made.operands, made.immediate)

    def step(self, wave: Wave, handler: str, operands: tuple[int, ...]) -> Status:
        """Executes a handler by its name."""
        return self._bench.step(wave, handler, operands)

    def execute(
        self, found: Decoded, rng: random.Random, mode: int | None = None, mask: int | None = None,
        rows: Mapping[int, list[int]] = {},
    ) -> Trial:  # fmt: skip
        """Executes an instruction on random registers.

        Args:
          found: the instruction, as it was drawn last.
          rng: what registers are drawn from.
          mode: the MODE register; drawn if omitted.
          mask: EXEC; drawn if omitted.
          rows: what vector registers hold.

        Raises:
          Refused: if it is not executed.
        """
        shown = text(found, 0x1000)
        try:
            made = self._decode(0x1000, self.data + bytes(16))
        except Undecodable as error:
            raise Refused(str(error)) from None
        wave = Wave(self.layout, rng=rng)
        count = temporaries(self.arch)
        for number in range(count):
            if number < 24 or 256 <= number < 280:
                style = rng.random()
                wave.set_row(number, [rng.choice(CORNERS) if rng.random() < style else rng.getrandbits(32)
                                      for _ in range(self.lanes)])  # fmt: skip
        for number in range(128):
            wave.set_scalar("s", rng.choice(CORNERS) if rng.random() < 0.5 else rng.getrandbits(32), number)
        for number, values in rows.items():
            wave.set_row(number, values)
        if mode is None:
            mode = rng.choice(MODES) | rng.choice((0, 0x100, 0x200, 0x300))
        wave.set_scalar("mode", mode)
        ones = (1 << self.lanes) - 1
        drawn = rng.choice([ones, rng.getrandbits(self.lanes), rng.getrandbits(self.lanes), 0])
        wave.exec = drawn if mask is None else mask
        before = bytes(wave.view)
        handlers = [self.engine.addresses[name] for name in made.parts]
        status = self._bench.step(wave, made.handler, made.operands, made.immediate, handlers)
        if status is Status.FAULT and FaultKind(wave.get(state.KIND)) is FaultKind.UNDECODABLE:
            raise Refused(f"{shown}: not in this mode")
        assert status is Status.BUDGET, f"{shown} stopped: {status.name}"
        return Trial(shown, before, bytes(wave.view), int.from_bytes(before[:8], "little"), mode)

    def check(self, trial: Trial, rng: random.Random, lanes: int = 5) -> None:
        """Compares with the specification. Of a pair, both read what was there before.

        Args:
          trial: what was executed.
          rng: which lanes are looked at, where results are in rows; inactive ones always are.
          lanes: how many.

        Raises:
          AssertionError: if a lane differs, or anything else changed.
        """
        expected = bytearray(trial.before)
        for half in trial.assembly.split(" :: "):
            checker = _Checker(self, trial, half.replace("v_dual_", "v_"), expected)
            checker.expect(rng, lanes)
        checker.compare()


@functools.cache
def _legal(kind: Kind, of: Table) -> tuple[list[int], list[int], list[int]]:
    """What a field can be: one of the first vector registers, a scalar or constant, anything."""
    shown = [(value, found) for value, found in enumerate(names(kind, of)) if found is not None]
    vectors = [value for value, found in shown if re.fullmatch(r"[va]\[?1?\d(\D.*)?", found)]
    unusable = "v", "a", "ttmp", "src", "xnack", "flat", "exec"
    others = [value for value, found in shown if not found.startswith(unusable) or found.startswith("vcc")]
    return vectors, others, [value for value, _ in shown]


class _Checker:
    """One trial against its specification."""

    def __init__(self, bench: LanesBench, trial: Trial, assembly: str, expected: bytearray) -> None:
        self.bench, self.trial, self.layout, self.lanes = bench, trial, bench.layout, bench.lanes
        self.assembly, self.expected = parse(assembly), expected
        found = rule_of(self.assembly.name, bench.arch.name)
        assert found is not None, trial.assembly
        self.rule, self.mode = found, Mode(trial.mode, bench.arch.generation)
        self._split()

    def _split(self) -> None:
        """Which operands are results and which sources."""
        name, operands, rule = self.assembly.name, list(self.assembly.operands), self.rule
        vcc, executing = Operand("s", 106), Operand("exec")
        self.results: list[Operand] = []
        for kind in rule.results:
            if kind == "mask" and name.startswith("v_cmpx_") and self.bench.arch.generation >= 10:
                self.results.append(executing)
            else:
                self.results.append(operands.pop(0))
        if name.startswith("v_cmpx_") and self.bench.arch.generation == 9:
            self.results.append(executing)
        wanted = [kind for kind in rule.sources if kind != "mask"]
        self.masks = operands[len(wanted) :] if "mask" in rule.sources else []
        self.sources = operands[: len(wanted)]
        if len(self.sources) < len(wanted):
            self.sources.append(self.results[0])  # the result is a source as well
        if "mask" in rule.sources and not self.masks:
            self.masks = [vcc]
        assert len(self.sources) == len(wanted), self.trial.assembly

    def expect(self, rng: random.Random, count: int) -> None:
        """Writes what must be there; of results in rows, a few lanes are looked at."""
        active = [n for n in range(self.lanes) if self.trial.exec >> n & 1]
        permutation = permuted(self.assembly, self.lanes, self.trial.exec)
        has_mask = "mask" in self.rule.results
        looked = active if has_mask else rng.sample(active, min(len(active), count))
        masks = [0 for _ in self.results]
        self.permutation = permutation
        for lane in active:
            source, writes = permutation[lane]
            if lane not in looked:
                for operand, kind in self._rows():
                    self._copy(operand, kind, lane)
                continue
            if not writes:
                continue
            found = self._compute(lane, source)
            for index, (operand, kind) in enumerate(zip(self.results, self._kinds(), strict=True)):
                value = found[min(index, len(found) - 1)]
                if kind == "mask":
                    masks[index] |= (value & 1) << lane
                else:
                    self._write(operand, kind, lane, value)
        for index, (operand, kind) in enumerate(zip(self.results, self._kinds(), strict=True)):
            if kind == "mask" and operand.bank != "null":
                at = self._scalar(operand)
                self.expected[at : at + self.lanes // 8] = masks[index].to_bytes(self.lanes // 8, "little")

    def compare(self) -> None:
        """Finds what differs.

        Raises:
          AssertionError: if anything does; it names the instruction, the place, and both values.
        """
        after = self.trial.after
        end = self.layout.vector(temporaries(self.bench.arch))
        first = state.SCALARS
        null = self.layout.scalar("null")
        self.expected[null : null + 8] = after[null : null + 8]
        wanted_exec = bytes(self.expected[:8])
        assert after[:8] == wanted_exec, f"{self.trial.assembly}: EXEC is {after[:8].hex()}, not {wanted_exec.hex()}"
        if after[first:end] != bytes(self.expected[first:end]):
            at = next(i for i in range(first, end) if after[i] != self.expected[i]) & ~3
            lane = (at - self.layout.rows) // 4 % self.lanes
            place = f"{self.layout.name(at)}{f', lane {lane}' if at >= self.layout.rows else ''}"
            got, wanted = (int.from_bytes(data[at : at + 4], "little") for data in (after, self.expected))
            sources = [hex(v) for v in self._values(lane, self.permutation[lane][0])] if at >= self.layout.rows else []
            raise AssertionError(f"{self.trial.assembly}: {place} is {got:#x}, not {wanted:#x}; sources {sources}, "
                                 f"MODE {self.trial.mode:#x}, EXEC {self.trial.exec:#x}")  # fmt: skip

    def _kinds(self) -> list[str]:
        return [*self.rule.results, *["mask"] * (len(self.results) - len(self.rule.results))]

    def _rows(self) -> list[tuple[Operand, str]]:
        return [(o, k) for o, k in zip(self.results, self._kinds(), strict=True) if k != "mask"]

    # where things lie

    def _scalar(self, operand: Operand) -> int:
        if operand.bank == "exec":
            return state.EXEC + 4 * operand.number
        if operand.bank == "m0":
            return self.layout.scalar("m0")
        return self.layout.scalar("s", operand.number)

    def _row(self, operand: Operand, lane: int) -> int:
        return self.layout.vector(operand.number + (256 if operand.bank == "a" else 0)) + 4 * lane

    def _word(self, at: int, data: bytes | None = None) -> int:
        return int.from_bytes((data or self.trial.before)[at : at + 4], "little")

    def _copy(self, operand: Operand, kind: str, lane: int) -> None:
        """Takes what came for granted."""
        for word in range(max(_BITS[kind] // 32, 1)):
            at = self._row(operand, lane) + word * self.layout.row_bytes
            self.expected[at : at + 4] = self.trial.after[at : at + 4]

    # sources

    def _raw(self, operand: Operand, kind: str, lane: int | None) -> int:
        """The bits of an operand, of a register all of them; of a lane that is not there 0."""
        bits = _BITS[kind]
        if operand.bank == "constant":
            if kind in ("pi16", "pf16", "mix", "pf32"):
                return operand.constant(16 if kind == "pf16" and "." in operand.text else 32, kind != "pi16")
            return operand.constant(bits, kind[0] == "f")
        if operand.bank == "null" or lane is None:
            return 0
        if operand.bank in "va":
            at, step = self._row(operand, lane), self.layout.row_bytes
        else:
            at, step = self._scalar(operand), 4
        return self._word(at) | (self._word(at + step) << 32 if bits == 64 else 0)

    def _values(self, lane: int, source: int | None) -> list[int]:
        found, masks, number = [], list(self.masks), 0
        for kind in self.rule.sources:
            if kind == "mask":
                operand = masks.pop(0)
                whole = 0
                if operand.bank == "constant":
                    whole = operand.constant(64, False)
                elif operand.bank != "null":
                    at = self._scalar(operand)
                    whole = int.from_bytes(self.trial.before[at : at + self.lanes // 8], "little")
                found.append(whole >> lane & 1)
            else:
                operand = self.sources[number]
                found.append(self._source(operand, kind, number, source if number == 0 else lane))
                number += 1
        return found

    def _source(self, operand: Operand, kind: str, index: int, lane: int | None) -> int:
        a = self.assembly
        value = self._raw(operand, kind, lane)
        flushes = not self.rule.plain
        if kind in ("pi16", "pf16", "pf32"):
            bits = _BITS[kind] // 2
            ones = (1 << bits) - 1
            usual = 0, 1
            halves = []
            for which, (select, sign) in enumerate((("op_sel", "neg_lo"), ("op_sel_hi", "neg_hi"))):
                half = value >> (bits if a.bits(select, index, usual[which]) else 0) & ones
                if a.bits(sign, index) and kind != "pi16":
                    half ^= 1 << bits - 1
                halves.append(self._flush(half, f"f{bits}", False) if kind != "pi16" else half)
            return halves[0] | halves[1] << bits
        if kind == "mix":
            if a.bits("op_sel_hi", index):
                half = value >> (16 if a.bits("op_sel", index) else 0) & 0xFFFF
                value = HALF.convert(self._flush(half, "f16", False), SINGLE)
            else:
                value = self._flush(value & 0xFFFFFFFF, "f32", False)
            value &= 0x7FFFFFFF if operand.absolute or a.bits("neg_hi", index) else 0xFFFFFFFF
            return value ^ (1 << 31 if operand.negated or a.bits("neg_lo", index) else 0)
        bits = _BITS[kind]
        part = a.part(f"src{index}_sel")
        if "byte_sel" in a.modifiers:
            part = f"BYTE_{a.modifiers['byte_sel']}"
        if part != "DWORD":
            shift, width = _SELECTIONS[part]
            value = value >> shift & (1 << width) - 1
            if operand.extended:
                value = value - (value >> width - 1 << width)
        elif bits == 16 and (operand.high or a.bits("op_sel", index)):
            value >>= 16
        value &= (1 << bits) - 1
        if kind[0] == "f":
            top = 1 << bits - 1
            value = value & ~top if operand.absolute else value
            value = value ^ top if operand.negated or a.bits("neg_lo", index) else value
            value = self._flush(value, kind, False) if flushes else value
        return value

    def _flush(self, value: int, kind: str, results: bool) -> int:
        of = _FORMATS[kind]
        tiny = not value >> of.fraction & (1 << of.exponent) - 1
        return value & of.sign if tiny and not self.mode.keeps_subnormals(kind, results) else value

    # results

    def _compute(self, lane: int, source: int | None) -> list[int]:
        clamps = "clamp" in self.assembly.modifiers
        environment = Rule.Environment(self.assembly, self.mode, lane, clamps)
        found = self.rule.compute(environment, *self._values(lane, source))
        results = list(found) if isinstance(found, tuple) else [found]
        kind = self.rule.results[0]
        if kind in _FORMATS and not self.rule.plain:
            results[0] = self._finish(results[0], kind)
        elif kind in ("pf16", "pf32"):
            bits = _BITS[kind] // 2
            ones = (1 << bits) - 1
            results[0] = sum(self._finish(results[0] >> at & ones, f"f{bits}") << at for at in (0, bits))
        return results

    def _finish(self, value: int, kind: str) -> int:
        """OMOD, the clamp, and flushed subnormals."""
        a, of, power = self.assembly, self.mode.format(kind), self._power(kind)
        if power and not of.is_nan(value) and not of.is_infinite(value):
            value = of.round(of.value(value) * Fraction(2) ** power)
            value = value if value >> of.fraction & (1 << of.exponent) - 1 else 0  # of either sign
        if "clamp" in a.modifiers:
            if of.is_nan(value):
                value = 0 if self.mode.nan_clamps else value
            elif value & of.sign and value & ~of.sign:
                value = 0
            elif not value & of.sign and value > lane_floats.one(of):
                value = lane_floats.one(of)
        value = self._flush(value, kind, True)
        return value

    def _power(self, kind: str) -> int:
        """Of two, by which OMOD multiplies a result; 0 where the mode has it ignored."""
        modifiers = self.assembly.modifiers
        power = {"2": 1, "4": 2}.get(modifiers.get("mul", ""), -1 if "div" in modifiers else 0)
        return 0 if self.mode.keeps_subnormals(kind, True) or self.mode.ieee else power

    def _write(self, operand: Operand, kind: str, lane: int, value: int) -> None:
        a, at = self.assembly, self._row(operand, lane)
        bits = _BITS[kind]
        value &= (1 << bits) - 1
        old, got = self._word(at), self._word(at, self.trial.after)
        if bits == 64:
            got |= self._word(at + self.layout.row_bytes, self.trial.after) << 32
            value = self._close(kind, got, value)
            self.expected[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "little")
            at += self.layout.row_bytes
            self.expected[at : at + 4] = (value >> 32).to_bytes(4, "little")
            return
        part = a.part("dst_sel")
        if part != "DWORD":
            shift, width = _SELECTIONS[part]
            # of a NaN, of which only some are wanted, any bits are as good
            of, whole = self._half() or _FORMATS.get(kind), 16 if self._half() else bits
            low = value & (1 << whole) - 1
            if of is not None and of.is_nan(low) and width < whole:
                value = got >> shift
            elif width >= bits:
                value = self._close(kind, got >> shift & (1 << bits) - 1, value)
            elif of is not None and of.is_nan(low) and of.is_nan(got >> shift & (1 << whole) - 1):
                value = got >> shift
            value &= (1 << width) - 1
            unused = a.modifiers.get("dst_unused", "UNUSED_PAD")
            if unused == "UNUSED_PRESERVE":
                word = old & ~((1 << width) - 1 << shift) | value << shift
            elif unused == "UNUSED_SEXT":
                word = (value - (value >> width - 1 << width)) << shift & 0xFFFFFFFF
            else:
                word = value << shift
        elif bits == 16:
            # the last bit of op_sel, behind those of the sources, is of the result
            selected = a.bits("op_sel", len(self.sources))
            high = operand.high or bool(selected) or a.name == "v_fma_mixhi_f16"
            value = self._close(kind, got >> (16 if high else 0) & 0xFFFF, value)
            if high:
                word = old & 0xFFFF | value << 16
            else:
                word = (old & ~0xFFFF if self._keeps() else 0) | value
        else:
            word = self._close(kind, got, value)
        self.expected[at : at + 4] = word.to_bytes(4, "little")

    def _keeps(self) -> bool:
        """Of results of 16 bits: whether the high half stays (LLVM, ``GCNSubtarget::zeroesHigh16BitsOfDest``)."""
        return self.bench.arch.generation >= 10 or bool(_KEEPS.fullmatch(self.assembly.name))

    def _half(self) -> Format | None:
        """The format of two halves that are a result of 32 bits."""
        name = self.assembly.name
        return HALF if re.match("v_cvt_pk_?rtz", name) else Format(8, 7) if name.startswith("v_cvt_pk_bf16") else None

    def _close(self, kind: str, got: int, wanted: int) -> int:
        """What came, if it is as good as what is wanted: any NaN, or a float that is near enough."""
        if kind in ("pf16", "pf32"):
            bits = _BITS[kind] // 2
            ones = (1 << bits) - 1
            return sum(self._close(f"f{bits}", got >> at & ones, wanted >> at & ones) << at for at in (0, bits))
        if of := self._half():
            halves = [(g, w) for g, w in ((got >> at & 0xFFFF, wanted >> at & 0xFFFF) for at in (0, 16))]
            return sum((g if of.is_nan(g) and of.is_nan(w) else w) << 16 * i for i, (g, w) in enumerate(halves))
        if kind not in _FORMATS or (self.rule.plain and kind[0] != "f"):
            return wanted
        of = _FORMATS[kind]
        if of.is_nan(wanted):
            return got if of.is_nan(got) else wanted
        away = abs(lane_floats.order(of, got) - lane_floats.order(of, wanted))
        near = away <= self.rule.ulps and not (got ^ wanted) & of.sign
        return got if near and not of.is_nan(got) else wanted


_KEEPS = re.compile(
    r"v_(mad_[ui]16|fma_f16|div_fixup_f16|(min|max|med)3_[uif]16|(maximum|minimum)3_f16|(add|sub)_i16|bitop3_b16"
    r"|ashr_pk_[ui]8_i32|fma_mix(lo|hi)_f16|cvt_pk_(fp|bf)8_f32)"
)
