"""Conversions with a scale, of gfx950: floats of 4, 6 and 8 bits times a power of two, and wider ones divided by it.

Of the scale, a float of 32 bits, only the exponent counts, as that of a block of elements. Quotients are rounded once.
What no document says is a fault: a product that normal floats cannot hold, the number of 4 or 6 bits of what is
infinite or none, other modes of rounding and of subnormals. Those with random numbers are not among them.

Sources: AMD, "AMD Instinct CDNA4 Instruction Set Architecture", V_CVT_SCALEF32_* (``exponent(S1.f32)``); which bytes
are read and written, and that a pack divides: AMD's sanitizer of floating point, ``amdgcn_cvt.hpp`` and
``cvt_scalef32_mx_gfx950_test.cpp``, which ran on hardware (elements of 6 bits follow one another from the lowest bit;
of two sources they alternate); LLVM, ``VOP3Instructions.td`` (OPSEL).
"""

from __future__ import annotations

from typing import Final

from ....engine import F16, F32, F64, I8, I16, I32, I64, Emitter, FaultKind, Type, Value, either, vector
from ....engine.emitter import STRIP
from ....engine.handlers import Handler, Rows, active_bits
from ...registers import FLOATS, OF_NUMBERS
from ...scaled import BITS, RESULT, SIGNS, SOURCE, Form, form
from .alu import Lanes, mode
from .matrices import repeat
from .microscaling import SMALL, multiplied, tiny
from .numbers import narrowed, odd, raw
from .small import of_byte, to_small

WORDS: Final = I32.of(STRIP)


def add(to: Lanes) -> None:
    """Adds the handlers of this subject."""
    for name in sorted(to.there):
        found = form(name)
        if found is not None:
            to.to.add(Scaled(name, found))


class Scaled(Handler):
    """A conversion with a scale; operands are the result, one or two sources, and the scale.

    Args:
      name: of the instruction.
      of: its form.
    """

    def __init__(self, name: str, of: Form) -> None:
        self.form = of
        source = vector() if of.wide else either()
        super().__init__(name, [vector()], [source] * (1 + of.alternate) + [either()])

    def emit(self, e: Emitter) -> None:
        """Writes a loop over strips of lanes, and in it one over pairs of numbers."""
        of, sources = self.form, self.sources
        rows = Rows(e, sources if not of.wide else sources[-1:], 1 if not of.wide else len(sources))
        rows.prepare()
        self.rows, self.target, self.how = rows, e.slot(0), e.immediate()
        if of.wide:
            self.bases = [e.slot(1 + i) for i in range(len(sources) - 1)]
            for base in self.bases:
                e.check(base, of.source_words)
        elif not of.widens or of.count == 1:
            e.check(self.target, 1)  # a part of it stays
        executing = e.exec()
        other = e.compare("ne", (mode(e) & ~OF_NUMBERS) ^ FLOATS, 0)
        e.do(f"br i1 {other.text}, label %unknown, label %known")
        e.label("known")
        repeat(e, e.value(I64, e.layout.lanes // STRIP), lambda number: self._strip(e, number * STRIP, executing))
        e.go_on()
        e.label("unknown")
        e.fault(FaultKind.UNDECODABLE)

    def _strip(self, e: Emitter, lane: Value, executing: Value) -> None:
        of = self.form
        self.lane, self.active = lane, active_bits(e, executing, lane)
        exponent = self.rows.strip(len(self.rows.operands) - 1, lane) >> 23 & 0xFF
        if not of.wide:
            self._pair(e, None, exponent)
            return
        if not of.widens:
            for row in range(of.result_words):
                self._put(e, e.value(I64, row), e.value(WORDS, 0), e.value(WORDS, -1))
        repeat(e, e.value(I64, of.count // 2), lambda number: self._pair(e, number, exponent))

    def _pair(self, e: Emitter, number: Value | None, exponent: Value) -> None:
        """Two numbers that follow one another, or the only ones."""
        of = self.form
        numbers = (self._narrow if of.widens else self._broad)(e, number)[: of.count]
        found, unknown = [], None
        for x in numbers:
            y, lost = self._scaled(e, x, exponent)
            found.append(y)
            unknown = lost if unknown is None else unknown | lost
        assert unknown is not None
        few = e.emit(Type("i", STRIP), f"bitcast <{STRIP} x i1> {(unknown & self.active).text} to i{STRIP}")
        fine = e.name().removeprefix("%")
        e.do(f"br i1 {e.compare('ne', few, 0).text}, label %unknown, label %{fine}")
        e.label(fine)
        (self._spread if of.widens else self._pack)(e, number, found)

    def _scaled(self, e: Emitter, x: Value, exponent: Value) -> tuple[Value, Value]:
        """The result's bits in integers of 16 or 32, and where they are not known."""
        of = self.form
        if of.widens:
            y, lost = multiplied(e, x, exponent)
            if of.result == "f16":
                return raw(e, narrowed(e, y, F16)), lost
            bits = raw(e, y)
            return bits if of.result == "f32" else e.convert("trunc", bits >> 16, I16), lost
        power = e.convert("zext", e.value(exponent.type, 1023 + 127) - exponent, I64) << 52
        power = e.select(e.compare("eq", exponent, 0xFF), e.value(power.type, 0x7FF8 << 48), power)
        y = odd(e, e.convert("fpext", x, F64) * e.bits(power, F64))
        beyond = e.compare("uge", raw(e, y) & 0x7FFFFFFF, 0x7F800000)
        return to_small(e, y, of.result), beyond if of.result in SMALL else beyond & ~beyond

    def _narrow(self, e: Emitter, number: Value | None) -> list[Value]:
        """Two numbers of 4, 6 or 8 bits."""
        of = self.form
        bits = BITS[of.source]
        if number is None:
            word = self.rows.strip(0, self.lane) >> e.value(WORDS, e.convert("trunc", self.how >> SOURCE & 31, I32))
        else:
            position = number * (2 * bits)
            first = position >> 5
            last = e.intrinsic("umin", first + 1, of.source_words - 1)
            low, high = (e.load(WORDS, self._row(e, self.bases[0], row), 4) for row in (first, last))
            word = e.intrinsic("fshr", high, low, e.value(WORDS, e.convert("trunc", position & 31, I32)))
        parts = [word, word >> bits]
        if of.source in SMALL:
            return [tiny(e, part, of.source) for part in parts]
        return [of_byte(e, e.convert("trunc", part, I8), of.source) for part in parts]

    def _broad(self, e: Emitter, number: Value | None) -> list[Value]:
        """Two numbers of 16 or 32 bits."""
        of = self.form
        if number is None:
            words = [self.rows.strip(i, self.lane) for i in range(1 + of.alternate)]
        else:
            words = [e.load(WORDS, self._row(e, base, number), 4) for base in self.bases]
        if of.alternate:
            return [e.bits(self._signed(e, word, i), F32) for i, word in enumerate(words)]
        if of.source == "bf16":
            return [e.bits(half, F32) for half in (words[0] << 16, words[0] & -0x10000)]
        halves = (e.convert("trunc", half, I16) for half in (words[0], words[0] >> 16))
        return [e.convert("fpext", e.bits(half, F16), F32) for half in halves]

    def _signed(self, e: Emitter, word: Value, index: int) -> Value:
        """With the sign that the instruction gives it."""
        signs = e.convert("trunc", self.how >> SIGNS + 2 * index, I32)
        word = word & ~e.value(WORDS, (signs & 2) << 30)
        return word ^ e.value(WORDS, signs << 31)

    def _spread(self, e: Emitter, number: Value | None, found: list[Value]) -> None:
        """Writes a number to a register, or two halves to one."""
        place = number if number is not None else e.value(I64, 0)
        everything = e.value(WORDS, -1)
        if self.form.result == "f32":
            for i, value in enumerate(found):
                self._put(e, place * len(found) + i, value, everything)
        elif len(found) == 2:
            low, high = (e.convert("zext", value, I32) for value in found)
            self._put(e, place, low | high << 16, everything)
        else:
            self._insert(e, e.convert("zext", found[0], I32), 16)

    def _pack(self, e: Emitter, number: Value | None, found: list[Value]) -> None:
        """Writes two numbers beside one another."""
        bits = BITS[self.form.result]
        low, high = (e.convert("zext", value, I32) for value in found)
        both = low | high << bits
        if number is None:
            self._insert(e, both, 2 * bits)
            return
        position = number * (2 * bits)
        wide = e.convert("zext", both, I64)
        wide = wide << e.value(wide.type, position & 31)
        first = position >> 5
        last = e.intrinsic("umin", first + 1, self.form.result_words - 1)
        for row, part in ((first, wide), (last, wide >> 32)):
            self._put(e, row, e.convert("trunc", part, I32), e.value(WORDS, 0))

    def _insert(self, e: Emitter, value: Value, bits: int) -> None:
        """Writes a part of the result's register."""
        shift = e.convert("trunc", self.how >> RESULT & 31, I32)
        up = e.value(WORDS, shift)
        self._put(e, e.value(I64, 0), value << up, e.value(WORDS, (1 << bits) - 1) << up)

    def _put(self, e: Emitter, row: Value, value: Value, mask: Value) -> None:
        """Writes bits of a row, those of the mask and what is set."""
        address = self._row(e, self.target, row)
        old = e.load(WORDS, address, 4)
        e.store(e.select(self.active, old & ~mask | value, old), address, 4)

    def _row(self, e: Emitter, base: Value, row: Value) -> str:
        return e.at("%w", e.convert("zext", base, I64) + row * e.layout.row_bytes + (self.lane << 2))
