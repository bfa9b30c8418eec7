"""Conversions with a scale of gfx950, against numbers that are exact."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tg_hcq.simulate.amd.architecture import architecture
from tg_hcq.simulate.amd.instructions import decoder
from tg_hcq.simulate.amd.isa import Row, table, text
from tg_hcq.simulate.amd.scaled import BITS, Form, form
from tg_hcq.simulate.amd.semantics import instruction_set
from tg_hcq.simulate.amd.testing.assembly import Operand, parse
from tg_hcq.simulate.amd.testing.lane_small import scaled, small_value
from tg_hcq.simulate.amd.testing.lanes import LanesBench
from tg_hcq.simulate.engine import FaultKind, Status, Undecodable, Wave, state
from tg_hcq.simulate.engine.testing import HALF, SINGLE, Bench

ROWS = [row for row in table("gfx950") if form(row.name)]
NAN = {"f32": SINGLE, "f16": HALF}
LANES = 64


def names(rows: Sequence[Row]) -> list[str]:
    return [row.name.removeprefix("v_cvt_scalef32_") for row in rows]


def test_every_conversion_is_executed_but_those_with_random_numbers() -> None:
    """36 of 51; LLVM's names are the list."""
    those = {row.name for row in table("gfx950") if row.name.startswith("v_cvt_scalef32_")}
    assert {name for name in those if form(name) is None} == {name for name in those if "_sr_" in name}
    assert len(ROWS) == len({row.name for row in ROWS}) == 34


def codes(rng: random.Random, kind: str, power: int) -> int:
    """A number's bits; mostly of those whose quotient is a number."""
    bits = BITS[kind]
    if bits <= 8 or rng.random() < 0.2:
        return rng.getrandbits(bits)
    if kind == "f32":
        return rng.getrandbits(1) << 31 | min(max(power + 127 + rng.randrange(-20, 18), 0), 254) << 23 | (
            rng.choice((0, 1, 0x7FFFFF, 0x400000, 0x200000, 0x100000, rng.getrandbits(23))))  # fmt: skip
    return rng.getrandbits(16)


class Case:
    """An instruction that was drawn, the registers before it, and what it must leave behind."""

    def __init__(self, row: Row, rng: random.Random) -> None:
        self.row, self.rng, self.bench = row, rng, BENCH
        found = form(row.name)
        assert found is not None
        self.form: Form = found
        while True:
            self.drawn = BENCH.draw(row, rng, plain=rng.random() < 0.5)
            try:
                self.made = DECODE(0x1000, BENCH.data + bytes(16))
            except Undecodable:
                continue
            self.assembly = parse(text(self.drawn, 0x1000))
            if all(o.bank in "vs" or o.bank == "constant" for o in self.assembly.operands):
                break

    def fill(self) -> None:
        """Draws registers so that most results are known; a lane of another one is set to zero."""
        rng, of = self.rng, self.form
        power = rng.choice((0, 0, 1, -1, 5, -9, 20, -40))
        self.rows = {n: [rng.getrandbits(32) for _ in range(LANES)] for n in range(40)}
        self.rows |= {n: [rng.getrandbits(32) for _ in range(LANES)] for n in range(64, 120)}
        self.scalars = [rng.getrandbits(32) for _ in range(128)]
        last = self.assembly.operands[-1]
        for operand in self.assembly.operands[1:-1]:
            for n in range(operand.number, operand.number + of.source_words):
                per = 32 // BITS[of.source] if BITS[of.source] != 6 else 0
                for lane in range(LANES):
                    word = sum(codes(rng, of.source, power) << BITS[of.source] * i for i in range(per))
                    if per and operand.bank == "v":
                        self.rows[n][lane] = word
                    elif per and operand.bank == "s":
                        self.scalars[n] = word
        exponent = rng.getrandbits(1) << 31 | (power + 127) << 23 | rng.getrandbits(23)
        if last.bank == "v":
            self.rows[last.number] = [exponent if rng.random() < 0.8 else rng.getrandbits(32) for _ in range(LANES)]
        elif last.bank == "s":
            self.scalars[last.number] = exponent

    def word(self, operand: Operand, lane: int, further: int = 0) -> int:
        if operand.bank == "constant":
            return operand.constant(32, True)
        return self.rows[operand.number + further][lane] if operand.bank == "v" else self.scalars[operand.number]

    def elements(self, lane: int) -> list[int]:
        """The sources' numbers."""
        of, a = self.form, self.assembly
        bits, sources = BITS[of.source], a.operands[1:-1]
        if of.alternate:
            found = []
            for i in range(of.count):
                operand = sources[i % 2]
                word = self.word(operand, lane, i // 2)
                word = word & 0x7FFFFFFF if operand.absolute else word
                found.append(word ^ (1 << 31) if operand.negated else word)
            return found
        whole = sum(self.word(sources[0], lane, i) << 32 * i for i in range(of.source_words))
        if of.widens and of.count <= 2:
            whole >>= of.count * bits * (a.bits("op_sel", 0) + 2 * a.bits("op_sel", 1))
        return [whole >> bits * i & (1 << bits) - 1 for i in range(of.count)]

    def wanted(self, lane: int) -> list[int | None]:
        return [scaled(x, self.form.source, self.form.result, self.word(self.assembly.operands[-1], lane))
                for x in self.elements(lane)]  # fmt: skip

    def position(self) -> int:
        """Where in its registers the result begins."""
        of, a = self.form, self.assembly
        if of.count > 2 or of.result in ("f32", "bf16") or (of.result == "f16" and of.count == 2):
            return 0
        if of.result == "f16":
            return 16 * a.bits("op_sel", 2)
        last = len(a.operands) - 1
        if of.result == "fp4":
            return 8 * (a.bits("op_sel", 3) * 2 + a.bits("op_sel", 2))
        return 16 * a.bits("op_sel", last)

    def execute(self, exec_mask: int, mode: int = 0xF0) -> tuple[Wave, Status]:
        wave = Wave(BENCH.layout, rng=self.rng)
        for n, values in self.rows.items():
            wave.set_row(n, values)
        for n, value in enumerate(self.scalars):
            wave.set_scalar("s", value, n)
        wave.exec = exec_mask
        wave.set_scalar("mode", mode)
        status = Bench(BENCH.engine, "s", "s").step(wave, self.made.handler, self.made.operands, self.made.immediate)
        return wave, status


BENCH = LanesBench(architecture("gfx950", LANES))
DECODE = decoder(BENCH.arch, instruction_set(BENCH.arch))


def result(case: Case, values: list[int], old: int) -> int:
    """The registers of the result, as a number."""
    width = BITS[case.form.result]
    whole = sum(value << width * i for i, value in enumerate(values))
    ones = (1 << width * len(values)) - 1
    at = case.position()
    return old & ~(ones << at) | whole << at


def same(case: Case, got: int, wanted: int) -> bool:
    """Any NaN is as good as another."""
    width, of = BITS[case.form.result], NAN.get(case.form.result)
    if case.form.result == "bf16":
        return all(g == w or (g & 0x7FFF > 0x7F80 and w & 0x7FFF > 0x7F80) for g, w in parts(got, wanted, 16))
    if case.form.result in ("fp8", "bf8"):
        nan = [code for code in range(256) if small_value(code, case.form.result) == "nan"]
        return all(g == w or (g in nan and w in nan) for g, w in parts(got, wanted, 8))
    if of is None:
        return got == wanted
    return all(g == w or (of.is_nan(g) and of.is_nan(w)) for g, w in parts(got, wanted, width))


def parts(got: int, wanted: int, width: int) -> list[tuple[int, int]]:
    ones = (1 << width) - 1
    return [(got >> at & ones, wanted >> at & ones) for at in range(0, 1024, width)]


def check(row: Row, rng: random.Random) -> int:
    """Compares a drawn instruction; how many lanes were compared."""
    case = Case(row, rng)
    case.fill()
    wanted = [case.wanted(lane) for lane in range(LANES)]
    known = sum((None not in values) << lane for lane, values in enumerate(wanted))
    mask = known & rng.choice((-1, rng.getrandbits(LANES)))
    wave, status = case.execute(mask)
    shown = text(case.drawn)
    assert status is Status.BUDGET, shown
    target, words = case.assembly.operands[0].number, case.form.result_words
    for lane in range(LANES):
        old = sum(case.rows[target + i][lane] << 32 * i for i in range(words))
        got = sum(wave.row(target + i)[lane] << 32 * i for i in range(words))
        values = [value for value in wanted[lane] if value is not None]
        right = result(case, values, old) if mask >> lane & 1 else old
        assert same(case, got, right), f"{shown}: lane {lane} is {got:#x}, not {right:#x}"
    for n, values in case.rows.items():
        if not target <= n < target + words:
            assert list(wave.row(n)) == values, f"{shown} changed v{n}"
    if known != (1 << LANES) - 1:  # with one of the other lanes it is a fault
        _, refused = case.execute(mask | 1 << next(n for n in range(LANES) if not known >> n & 1))
        assert refused is Status.FAULT, shown
    return mask.bit_count()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_numbers_are_scaled_exactly(row: Row, request: pytest.FixtureRequest) -> None:
    rng = random.Random(row.name)
    assert sum(check(row, rng) for _ in range(12)) > 100


@pytest.mark.parametrize("name", ["pk_fp8_f32", "pk32_f16_fp6", "f32_bf8"])
def test_other_modes_are_a_fault(name: str) -> None:
    row = ROWS[names(ROWS).index(name)]
    for mode in (0xF1, 0xE0, 0x70, 1 << 23 | 0xF0):
        case = Case(row, random.Random(mode))
        case.fill()
        wave, status = case.execute(0, mode)
        assert status is Status.FAULT
        assert FaultKind(wave.get(state.KIND)) is FaultKind.UNDECODABLE
