"""Matrix products of the software GPU of AMD against Python's integers: sums that are exact in any order.

Where elements lie is said once more here, as the manuals do: *RDNA3 Instruction Set Architecture* 7.9, *RDNA4* 7.12,
*CDNA4* 7.1.4, 7.1.6 and 7.5; of sparse products also as AMD's tests of hardware say ("LayoutMatchesHardware").
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import pytest

from tg_hcq.simulate.amd.architecture import architecture
from tg_hcq.simulate.amd.isa import Row, table
from tg_hcq.simulate.amd.registers import FLOATS
from tg_hcq.simulate.amd.semantics import instruction_set
from tg_hcq.simulate.amd.semantics.vector import matrices
from tg_hcq.simulate.amd.testing.lanes import LanesBench
from tg_hcq.simulate.engine import Emitter, Status, Undecodable, Value, Wave, state
from tg_hcq.simulate.engine.testing import DOUBLE, HALF, SINGLE, Format

A, B, C, D, INDEX = 32, 48, 64, 96, 128  # registers
ARCHS = {"gfx1100": 32, "gfx1201": 32, "gfx942": 64, "gfx950": 64}
REFUSED = {
    "v_mfma_ld_scale_b32": "it is a part of products with scales",
    r"v_smfmac_.*_(16x16x128|32x32x64)_.*": "the manual's table of B is not what hardware was seen to do",
}
"""Products that are not executed, and why."""
FORMATS = {"f16": HALF, "bf16": Format(8, 7), "f32": SINGLE, "xf32": SINGLE, "f64": DOUBLE}


def names(arch: str) -> list[str]:
    """The products of an architecture."""
    return sorted({row.name for row in table(arch) if re.match(r"v_(s?wmma|s?mfma|swmmac|smfmac)", row.name)})


CASES = [(arch, name) for arch in ARCHS for name in names(arch)
         if not any(re.fullmatch(p, name) for p in REFUSED) and "f8f6f4" not in name]  # fmt: skip
NAMED = [name for name in names("gfx950") if name.endswith("f8f6f4")]
"""Products whose elements the instruction names."""


@dataclass
class Shape:
    """A product, by its name and architecture."""

    arch: str
    name: str

    def __post_init__(self) -> None:
        found = re.fullmatch(r"v_(\w+?)_([a-z]+\d+)_(\d+)x\d+x(\d+)(?:_(\d+)b)?_(.+)", self.name)
        assert found is not None, self.name
        self.family, self.result, kinds = found[1], found[2], found[6]
        self.size, self.inner, self.blocks = int(found[3]), int(found[4]), int(found[5] or 1)
        pair = kinds.split("_") * 2
        old = self.arch == "gfx942"
        self.kinds = [f"{kind}z" if old and kind in ("fp8", "bf8") else kind for kind in pair[:2]]
        self.bits = int(re.sub(r"\D", "", kinds[:4]) or 0) if not kinds.startswith("iu") else int(kinds[2:])
        self.lanes = ARCHS[self.arch]
        self.sparse = self.family in ("smfmac", "swmmac")
        self.held = 16 if self.arch == "gfx1100" else self.lanes
        self.per_lane = self.inner // (self.held // (self.size * self.blocks))

    def operand(self, b: int, i: int, k: int, which: int) -> tuple[int, int]:
        """The lane and the item in it of A[b, i, k] or B[b, k, i]."""
        run = self.per_lane
        if self.sparse and self.bits == 16 and (self.lanes == 32 or (which == 1 and self.per_lane == 16)):
            run = 8
        groups = self.inner // self.per_lane
        part, item = k // run % groups, k // (run * groups) * run + k % run
        return i + self.size * (b + self.blocks * part), item

    def total(self, b: int, i: int, j: int) -> tuple[int, int]:
        """The lane and the item in it of D[b, i, j]."""
        if self.arch == "gfx1100":
            return j + 16 * (i % 2), i // 2
        if self.arch == "gfx1201":
            return j + 16 * (i // 8), i % 8
        h = 1 if self.result == "f64" else 4
        b_i = math.ceil(64 / (self.size * self.size / h))
        m_i = 64 // b_i // self.size
        g = self.size // (h * m_i)
        return j + self.size * (i // h % m_i + m_i * (b % b_i)), i % h + h * (i // (h * m_i) + g * (b // b_i))


@functools.cache
def bytes_of(kind: str) -> dict[Fraction, int]:
    """The numbers of a format of 8 bits, by their definitions."""
    exponents, bias = {"fp8": (4, 7), "bf8": (5, 15), "fp8z": (4, 8), "bf8z": (5, 16)}[kind]
    fraction = 7 - exponents
    found = dict[Fraction, int]()
    for byte in range(255, -1, -1):
        biased, rest = byte >> fraction & (1 << exponents) - 1, byte & (1 << fraction) - 1
        if byte == 0x80 or (kind == "fp8" and byte & 0x7F == 0x7F) or (kind == "bf8" and biased == 31):
            continue
        size = Fraction(rest + (1 << fraction if biased else 0)) * Fraction(2) ** (max(biased, 1) - bias - fraction)
        found[-size if byte >> 7 else size] = byte
    return found


@functools.cache
def encoded(number: float, kind: str) -> int:
    """A number as an element; of floats the nearest one."""
    if kind in FORMATS:
        return FORMATS[kind].round(Fraction(number))
    if kind[-1] == "z" or kind in ("fp8", "bf8"):
        return bytes_of(kind)[Fraction(number)]
    return int(number) & (1 << int(kind[1:])) - 1


@functools.cache
def small(kind: str) -> list[float]:
    """Numbers of a format of 8 bits whose products and sums are exact."""
    return [float(n) for n in bytes_of(kind) if abs(n) <= 8 and (n * 8).denominator == 1]


def drawn(kind: str, rng: random.Random) -> float:
    """A small number that the element has, and whose products are exact."""
    if kind[0] in "iu":
        bits = int(kind[1:])
        return rng.randrange(0, 1 << bits) if kind[0] == "u" else rng.randrange(-1 << bits - 1, 1 << bits - 1)
    if kind in FORMATS:
        return rng.randrange(-8, 9)
    return rng.choice(small(kind))


def row_of(arch: str, name: str, accumulators: bool = False) -> Row:
    """The row whose result is in vector registers, or in accumulation registers."""
    kind = "AReg" if accumulators else ("VReg", "AV")
    rows = [row for row in table(arch) if row.name == name and row.operands["vdst"].register_class.startswith(kind)]
    return next(row for row in rows if "src2" in [f for f, _ in row.fields] or "idx" in [f for f, _ in row.fields])


class Bench:
    """A product with random operands, and what must come.

    Args:
      constant: whether C is the inline constant 4, or 4.0.
      hostile: whether sums are made in an order that is drawn.
    """

    def __init__(self, shape: Shape, rng: random.Random, constant: bool = False, hostile: bool = False) -> None:
        self.shape, self.rng, self.constant = shape, rng, constant
        self.bench = LanesBench(architecture(shape.arch, shape.lanes), hostile=hostile)
        s = self.shape
        self.signs = rng.randrange(4) if s.kinds[0].startswith("iu") else 0
        self.kinds = [("i" if self.signs >> n & 1 else "u") + s.kinds[n][2:] if self.signs or s.kinds[0][:2] == "iu"
                      else s.kinds[n] for n in (0, 1)]  # fmt: skip
        size, inner = range(s.size), range(s.inner)
        self.a, self.b = ([[[drawn(kind, rng) for _ in inner] for _ in size] for _ in range(s.blocks)]
                          for kind in self.kinds)  # fmt: skip
        self.c: list[list[list[float]]] = [
            [[4 if constant else rng.randrange(-99, 100) for _ in size] for _ in size] for _ in range(s.blocks)
        ]
        self.rows = {register: [rng.getrandbits(32) for _ in range(s.lanes)] for register in range(32, 160)}
        self.chosen = [[[sorted(rng.sample(range(4), 2)) for _ in range(s.inner // 4)] for _ in size]
                       for _ in range(s.blocks)]  # fmt: skip

    def put(self, register: int, lane: int, bit: int, bits: int, value: int) -> None:
        """Writes some bits of a lane's registers."""
        if bits == 64:
            self.put(register, lane, bit + 32, 32, value >> 32)
            bits, value = 32, value & 0xFFFFFFFF
        word, shift = self.rows[register + bit // 32], bit % 32
        word[lane] = word[lane] & ~((1 << bits) - 1 << shift) | value << shift

    def operands(self, shift: int = 0) -> None:
        """Writes A, B, and the index."""
        s = self.shape
        for block in range(s.blocks):
            for i in range(s.size):
                for k in range(s.inner):
                    for which, matrix, first in ((0, self.a, A), (1, self.b, B)):
                        lane, item = s.operand(block, i, k, which)
                        if which == 0 and s.sparse:
                            chosen = self.chosen[block][i][k // 4]
                            if k % 4 not in chosen:
                                continue
                            item = item // 4 * 2 + chosen.index(k % 4)
                            self.put(INDEX, lane, 2 * item + shift, 2, k % 4)
                        value = encoded(matrix[block][i][k], self.kinds[which])
                        for copy in (0, 16) if s.arch == "gfx1100" else (0,):
                            self.put(first, lane + copy, s.bits * item, s.bits, value)

    def addends(self, high: bool = False) -> None:
        """Writes C, where the result is in place if the product is sparse."""
        s = self.shape
        for block in range(s.blocks):
            for i in range(s.size):
                for j in range(s.size):
                    register, lane, bit, bits = self.place(block, i, j, high)
                    self.put((D if s.sparse else C) + register, lane, bit, bits, encoded(self.c[block][i][j], s.result))

    def place(self, block: int, i: int, j: int, high: bool = False) -> tuple[int, int, int, int]:
        """Register, lane, bit and bits of an element of the result."""
        s = self.shape
        lane, item = s.total(block, i, j)
        bits = int(s.result.lstrip("bfi"))
        if bits == 16 and s.arch == "gfx1100":
            return item, lane, 16 * high, 16
        return bits * item // 32, lane, bits * item % 32, bits

    def run(self, fields: Mapping[str, int], accumulators: bool = False, mode: int = FLOATS) -> Status:
        """Executes it."""
        s = self.shape
        self.wave = Wave(self.bench.layout, rng=self.rng)
        for register, values in self.rows.items():
            self.wave.set_row(register, values)
            if accumulators:
                self.wave.set_row(256 + register, values)
        self.wave.exec = (1 << s.lanes) - 1
        self.wave.put(state.DRAWN, self.rng.getrandbits(64), 2)
        self.wave.set_scalar("mode", mode)
        c = 256 + C
        if self.constant:
            c = 128 + 4 if s.result == "i32" else 246
        names = {"src0": 256 + A, "src1": 256 + B, "src2": 256 + INDEX if s.sparse else c, "idx": 256 + INDEX,
                 "vdst": D, "src0_modifiers": 8 | self.signs & 1, "src1_modifiers": 8 | self.signs >> 1,
                 "src2_modifiers": 8, **fields}  # fmt: skip
        return self.bench.run(self.wave, row_of(s.arch, s.name, accumulators), names)

    def check(self, high: bool = False, accumulators: bool = False, signs: tuple[int, int, int] = (1, 1, 1),
              source: dict[int, int] | None = None) -> None:  # fmt: skip
        """Compares the result; ``source`` is by which block of A each is multiplied."""
        s = self.shape
        for block in range(s.blocks):
            a = self.a[block if source is None else source[block]]
            for i in range(s.size):
                left = [0 if s.sparse and k % 4 not in self.chosen[block][i][k // 4] else x for k, x in enumerate(a[i])]
                for j in range(s.size):
                    products = (x * y for x, y in zip(left, self.b[block][j], strict=True))
                    wanted = encoded(signs[2] * self.c[block][i][j] + signs[0] * signs[1] * sum(products), s.result)
                    register, lane, bit, bits = self.place(block, i, j, high)
                    self.put(D + register, lane, bit, bits, wanted)
        for register in range(D, INDEX):
            got = list(self.wave.row(register + 256 * accumulators))
            assert got == self.rows[register], f"{s.name}: v{register} is {got}, not {self.rows[register]}"


@pytest.mark.drawn(24)
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("arch", "name"), CASES)
def test_products(arch: str, name: str, constant: bool) -> None:
    shape = Shape(arch, name)
    if constant and (shape.sparse or shape.result == "bf16"):
        constant = False
    bench = Bench(shape, random.Random(f"{arch} {name} {constant}"), constant)
    bench.operands()
    if not constant:
        bench.addends()
    assert bench.run({}) is Status.BUDGET
    bench.check()


@pytest.mark.drawn(6)
@pytest.mark.parametrize(("arch", "name"), CASES)
def test_products_in_any_order(arch: str, name: str) -> None:
    """On hostile hardware, where sums are exact in each of them."""
    bench = Bench(Shape(arch, name), random.Random(f"{arch} {name}"), hostile=True)
    bench.operands()
    for _ in range(3):
        bench.addends()
        assert bench.run({}) is Status.BUDGET
        bench.check()


ROUNDED = [("gfx1100", "v_wmma_f32_16x16x16_f16"), ("gfx1201", "v_wmma_f32_16x16x16_bf16"),
           ("gfx942", "v_mfma_f32_16x16x16_f16"), ("gfx942", "v_mfma_f32_16x16x4_f32"),
           ("gfx942", "v_mfma_f64_16x16x4_f64"), ("gfx950", "v_mfma_f32_16x16x32_bf16")]  # fmt: skip


def rounded_sums(bench: Bench) -> set[tuple[int, ...]]:
    """What comes of one product several times; each sum is as near as its roundings allow.

    Raises:
      AssertionError: if one is not.
    """
    s, of = bench.shape, FORMATS[bench.shape.result]
    found, size = set[tuple[int, ...]](), range(bench.shape.size)
    for _ in range(8):
        assert bench.run({}) is Status.BUDGET
        got = []
        for i in size:
            for j in size:
                terms = [Fraction(x) * Fraction(y) for x, y in zip(bench.a[0][i], bench.b[0][j], strict=True)]
                terms.append(Fraction(bench.c[0][i][j]))
                register, lane, _, bits = bench.place(0, i, j)
                word = bench.wave.row(D + register)[lane]
                word |= bench.wave.row(D + register + 1)[lane] << 32 if bits == 64 else 0
                most = sum(map(abs, terms)) * len(terms) * Fraction(1, 1 << of.fraction + 1)
                assert abs(of.value(word) - sum(terms)) <= most, f"{s.name}: {float(of.value(word) - sum(terms))}"
                got.append(word)
        found.add(tuple(got))
    return found


@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.parametrize(("arch", "name"), ROUNDED)
def test_the_order_of_sums_is_drawn(arch: str, name: str, hostile: bool) -> None:
    """Of numbers whose sums must be rounded, hostile hardware gives several, and other hardware always the same."""
    shape, rng = Shape(arch, name), random.Random(f"{arch} {name}")
    bench = Bench(shape, rng, hostile=hostile)
    for operand, kind in zip((bench.a, bench.b, bench.c), (*shape.kinds, shape.result), strict=True):
        of = FORMATS[kind]
        for columns in itertools.chain.from_iterable(operand):
            # of all digits, and between 2**-6 and 2**6
            numbers = (rng.choice([-1, 1]) * rng.uniform(1, 2) * 2.0 ** rng.randrange(-6, 6) for _ in columns)
            columns[:] = [float(of.value(of.round(Fraction(number)))) for number in numbers]
    bench.operands()
    bench.addends()
    found = rounded_sums(bench)
    assert len(found) > 2 if hostile else len(found) == 1


@pytest.mark.parametrize("mask", [0xF, 1 << 24])
def test_an_order_that_is_none_is_found(mask: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: terms that are taken twice while others are not, and none of the groups but the first."""

    def constant(e: Emitter, lanes: int = 0) -> Value:
        return e.value(e.field(state.DRAWN).type.of(lanes), mask)

    arch, shape = architecture("gfx1100", 32), Shape("gfx1100", "v_wmma_f32_16x16x16_f16")
    monkeypatch.setattr(Emitter, "drawn", constant)
    if mask == 0xF:
        monkeypatch.setattr(matrices, "swapped", lambda k, by: k | by)
    else:
        monkeypatch.setattr(matrices, "first", lambda e, last, addend: addend)
    bench = Bench(shape, random.Random(1), hostile=True)
    bench.bench = LanesBench(arch, instruction_set.__wrapped__(arch), hostile=True)
    bench.operands()
    bench.addends()
    assert bench.run({}) is Status.BUDGET
    with pytest.raises(AssertionError, match="v_wmma"):
        bench.check()


def test_what_is_not_executed_is_named() -> None:
    """All other products are, and each reason holds for something."""
    reasons = set[str]()
    for arch, lanes in ARCHS.items():
        handlers = {name.partition(".")[0] for name in LanesBench(architecture(arch, lanes)).instructions.handlers}
        for name in names(arch):
            why = {pattern for pattern in REFUSED if re.fullmatch(pattern, name)}
            assert (name in handlers) != bool(why), (arch, name)
            reasons |= why
    assert reasons == set(REFUSED)


@pytest.mark.parametrize("name", [n for n in names("gfx942") if re.search(r"_\d+b_(?!f64)", n)])
def test_a_block_of_a_for_all_or_some(name: str) -> None:
    """CBSZ and ABID (CDNA 4, 7.1.6.1): the lane ``l % S + S * ABID``, where ``S`` is 64 / 2 ** CBSZ."""
    shape, rng = Shape("gfx942", name), random.Random(name)
    for cbsz in range(1, shape.blocks.bit_length()):
        bench = Bench(shape, rng)
        bench.operands()
        bench.addends()
        abid, size = rng.randrange(1 << cbsz), 64 >> cbsz
        assert bench.run({"cbsz": cbsz, "abid": abid}) is Status.BUDGET
        bench.check(source={b: (b * shape.size % size + size * abid) // shape.size for b in range(shape.blocks)})
    for fields in ({"cbsz": shape.blocks.bit_length()}, {"abid": 1}, {"cbsz": 1, "abid": 2}):
        with pytest.raises(Undecodable, match="there is no block of A for cbsz"):
            Bench(shape, rng).run(fields)


PERMUTATIONS = {
    1: lambda lane: lane % 32, 2: lambda lane: lane % 32 + 32, 3: lambda lane: (lane + 16) % 64,
    4: lambda lane: lane % 16, 5: lambda lane: lane % 16 + 16, 6: lambda lane: lane % 16 + 32,
    7: lambda lane: lane % 16 + 48,
}  # fmt: skip
"""Which lane another one takes B from, by BLGP (CDNA 4, table 29)."""


@pytest.mark.parametrize("blgp", PERMUTATIONS)
@pytest.mark.parametrize("name", ["v_mfma_f32_4x4x1_16b_f32", "v_mfma_f32_16x16x16_f16", "v_mfma_f32_32x32x2_f32",
                                  "v_mfma_i32_16x16x4_4b_i8"])  # fmt: skip
def test_lanes_of_b(name: str, blgp: int) -> None:
    shape = Shape("gfx942", name)
    bench = Bench(shape, random.Random(f"{name} {blgp}"))
    bench.operands()
    bench.addends()
    assert bench.run({"blgp": blgp}) is Status.BUDGET
    held = {shape.operand(b, j, k, 1): bench.b[b][j][k]
            for b in range(shape.blocks) for j in range(shape.size) for k in range(shape.inner)}  # fmt: skip
    for b in range(shape.blocks):
        for j in range(shape.size):
            for k in range(shape.inner):
                lane, item = shape.operand(b, j, k, 1)
                bench.b[b][j][k] = held[PERMUTATIONS[blgp](lane), item]
    bench.check()


@pytest.mark.parametrize("blgp", range(1, 8))
@pytest.mark.parametrize("name", ["v_mfma_f64_16x16x4_f64", "v_mfma_f64_4x4x4_4b_f64"])
def test_signs_of_doubles(name: str, blgp: int) -> None:
    """BLGP negates A, B and C; CBSZ and ABID are ignored, and so is MODE (CDNA 4, 7.1.6.4 and 7.4)."""
    bench = Bench(Shape("gfx942", name), random.Random(f"{name} {blgp}"))
    bench.operands()
    bench.addends()
    assert bench.run({"blgp": blgp, "cbsz": 1, "abid": 3}, mode=0x0F) is Status.BUDGET
    first, second, third = (-1 if blgp >> n & 1 else 1 for n in range(3))
    bench.check(signs=(first, second, third))


@pytest.mark.parametrize("name", ["v_mfma_f32_32x32x8_f16", "v_mfma_f64_16x16x4_f64", "v_mfma_i32_4x4x4_16b_i8"])
def test_results_in_accumulation_registers(name: str) -> None:
    bench = Bench(Shape("gfx942", name), random.Random(name))
    bench.operands()
    bench.addends()
    assert bench.run({"vdst": D}, accumulators=True) is Status.BUDGET
    bench.check(accumulators=True)


@pytest.mark.parametrize("name", ["v_wmma_f16_16x16x16_f16", "v_wmma_bf16_16x16x16_bf16"])
def test_results_in_upper_halves(name: str) -> None:
    """OPSEL[2] says in which halves C and D are; the others stay (RDNA 3, 7.9)."""
    bench = Bench(Shape("gfx1100", name), random.Random(name))
    bench.operands()
    bench.addends(high=True)
    assert bench.run({"src2_modifiers": 12}) is Status.BUDGET
    bench.check(high=True)


@pytest.mark.parametrize(("arch", "name"), [
    ("gfx1100", "v_wmma_f32_16x16x16_f16"), ("gfx1201", "v_wmma_f16_16x16x16_f16"),
    ("gfx1201", "v_swmmac_f32_16x16x32_bf16"), ("gfx1201", "v_wmma_f32_16x16x16_fp8_bf8"),
])  # fmt: skip
def test_signs_of_floats(arch: str, name: str) -> None:
    """NEG_LO and NEG_HI together negate A and B; of C one negates, and the other takes the sign away before."""
    shape = Shape(arch, name)
    for which in range(5):
        bench = Bench(shape, random.Random(f"{name} {which}"))
        bench.operands()
        bench.addends()
        row = [field for field, _ in row_of(arch, name).fields]
        field = ("src0_modifiers", "src1_modifiers", "src2_modifiers")[min(which, 2)]
        if field not in row:
            continue
        value = 3 if which < 2 else which - 1
        assert bench.run({field: 8 | value}) is Status.BUDGET
        if which > 2:
            bench.c = [[[abs(n) for n in columns] for columns in rows] for rows in bench.c]
        signs = [-1 if which == n else 1 for n in range(3)]
        signs[2] = -1 if which in (2, 4) else 1
        bench.check(signs=(signs[0], signs[1], signs[2]))
    if arch == "gfx1100":
        with pytest.raises(Undecodable, match="every other element"):
            Bench(shape, random.Random(1)).run({"src0_modifiers": 9})


@pytest.mark.drawn(6)
@pytest.mark.parametrize(("arch", "name"), [c for c in CASES if Shape(*c).sparse])
def test_sets_of_indices(arch: str, name: str) -> None:
    """An index register holds as many as fit; CBSZ selects the first (CDNA 4, 7.5), and there are no others."""
    shape, rng = Shape(arch, name), random.Random(name)
    kept = shape.per_lane
    fields = [field for field, _ in row_of(arch, name).fields]
    for number in range(32 // kept):
        bench = Bench(shape, rng)
        bench.operands(shift=number * kept)
        bench.addends()
        if shape.lanes == 32 and "index_key_16bit" not in fields:
            assert number == 0
        how = {"index_key_16bit": number} if shape.lanes == 32 else {"abid": number}
        assert bench.run(how) is Status.BUDGET
        bench.check()
    if shape.lanes == 64:
        bench = Bench(shape, rng)
        bench.operands()
        bench.addends()
        assert bench.run({"cbsz": 2, "abid": 1}) is Status.BUDGET
        bench.check()
        for how in ({"abid": 32 // kept}, {"cbsz": 4}):
            with pytest.raises(Undecodable, match="there is no index"):
                Bench(shape, rng).run(how)


def test_every_byte_is_its_number() -> None:
    """One element of A by 1, for all 256; those that are no number give none."""
    for arch, kind in (("gfx942", "fp8"), ("gfx942", "bf8"), ("gfx950", "fp8"), ("gfx950", "bf8"), ("gfx1201", "bf8")):
        family = "wmma_f32_16x16x16" if arch == "gfx1201" else "mfma_f32_16x16x32"
        shape = Shape(arch, f"v_{family}_{kind}_{kind}")
        numbers = {byte: number for number, byte in bytes_of(shape.kinds[0]).items()}
        one = bytes_of(shape.kinds[0])[Fraction(1)]
        for start in range(0, 256, 16):
            bench = Bench(shape, random.Random(start))
            for register in (*range(A, A + 8), *range(B, B + 8), *range(C, C + 8)):
                bench.rows[register] = [0] * shape.lanes
            for i in range(16):
                bench.put(A, i, 0, 8, start + i)
                bench.put(B, i, 0, 8, one)
            assert bench.run({}) is Status.BUDGET
            for i in range(16):
                register, lane, _, _ = bench.place(0, i, 3)
                got = bench.wave.row(D + register)[lane]
                if start + i in numbers or (start + i == 0x80 and shape.kinds[0][-1] != "z"):
                    assert SINGLE.value(got) == numbers.get(start + i, 0), (arch, kind, start + i)
                elif shape.kinds[0] == "bf8" and (start + i) & 3 == 0:
                    assert SINGLE.is_infinite(got)
                else:
                    assert SINGLE.is_nan(got), (arch, kind, start + i)


NUMBERS = {"fp8": (8, 3, 7), "bf8": (8, 2, 15), "fp6": (6, 3, 1), "bf6": (6, 2, 3), "fp4": (4, 1, 1)}
"""Bits of a format, of its fraction, and the bias, by CBSZ and BLGP (CDNA 4, 7.1.5; OCP, MX 1.0, 5.3)."""


def value_of(kind: str, code: int) -> Fraction:
    """A number of one of these formats; of 8 bits no code of infinity or of what is no number is asked for."""
    bits, fraction, bias = NUMBERS[kind]
    biased, rest = code >> fraction & (1 << bits - 1 - fraction) - 1, code & (1 << fraction) - 1
    size = Fraction(rest + (1 << fraction if biased else 0)) * Fraction(2) ** (max(biased, 1) - bias - fraction)
    return -size if code >> bits - 1 else size


class NamedProduct:
    """A product of two formats with random operands; scales are powers of two, of 32 elements each."""

    def __init__(self, name: str, formats: tuple[int, int], rng: random.Random, hostile: bool = False) -> None:
        parsed = re.search(r"(\d+)x\d+x(\d+)", name)
        assert parsed is not None
        self.name, self.rng, self.size, self.inner = name, rng, int(parsed[1]), int(parsed[2])
        self.formats, self.scaled = formats, "_scale" in name
        self.bench = LanesBench(architecture("gfx950", 64), hostile=hostile)
        self.rows = {register: [rng.getrandbits(32) for _ in range(64)] for register in range(32, 160)}
        self.bytes = (rng.randrange(4), rng.randrange(4))
        kinds = [list(NUMBERS)[number] for number in formats]
        self.operands = [self._operand(kind, first) for kind, first in zip(kinds, (A, B), strict=True)]
        self.scales = [self._scales(register, byte) for register, byte in zip((128, 129), self.bytes, strict=True)]
        self.c = [[rng.randrange(-99, 100) for _ in range(self.size)] for _ in range(self.size)]
        for i in range(self.size):
            for j in range(self.size):
                self.put(C + self.place(i, j)[0], self.place(i, j)[1], 0, 32, SINGLE.round(Fraction(self.c[i][j])))

    def put(self, register: int, lane: int, bit: int, bits: int, value: int) -> None:
        """Writes some bits of a lane's registers, which may be parts of two."""
        for n in range(bits):
            at = bit + n
            row = self.rows[register + at // 32]
            row[lane] = row[lane] & ~(1 << at % 32) | (value >> n & 1) << at % 32

    def place(self, i: int, j: int) -> tuple[int, int]:
        """Register and lane of an element of C and D."""
        groups = 64 // self.size
        return i % 4 + 4 * (i // (4 * groups)), j + self.size * (i // 4 % groups)

    def _operand(self, kind: str, first: int) -> list[list[Fraction]]:
        bits, groups = NUMBERS[kind][0], 64 // self.size
        codes = [code for code in range(1 << bits) if abs(value_of(kind, code)) <= 8
                 and (value_of(kind, code) * 8).denominator == 1]  # fmt: skip
        run = 16 if bits == 8 else 32
        found: list[list[Fraction]] = [[] for _ in range(self.size)]
        for i in range(self.size):
            for k in range(self.inner):
                code = self.rng.choice(codes)
                lane, item = i + self.size * (k // run % groups), k // (run * groups) * run + k % run
                self.put(first, lane, bits * item, bits, code)
                found[i].append(value_of(kind, code))
        return found

    def _scales(self, register: int, byte: int) -> list[list[Fraction]]:
        found: list[list[Fraction]] = [[] for _ in range(self.size)]
        for i in range(self.size):
            for block in range(self.inner // 32):
                power = self.rng.choice((-1, 0, 1))
                self.put(register, i + self.size * block, 8 * byte, 8, 127 + power)
                found[i].append(Fraction(2) ** power if self.scaled else Fraction(1))
        return found

    def run(self) -> tuple[Status, Wave]:
        """Executes it."""
        wave = Wave(self.bench.layout, rng=self.rng)
        for register, values in self.rows.items():
            wave.set_row(register, values)
        wave.exec = (1 << 64) - 1
        wave.put(state.DRAWN, self.rng.getrandbits(64), 2)
        wave.set_scalar("mode", FLOATS)
        fields = {"src0": 256 + A, "src1": 256 + B, "src2": 256 + C, "vdst": D, "cbsz": self.formats[0],
                  "blgp": self.formats[1]}  # fmt: skip
        if self.scaled:
            fields |= {"scale_src0": 256 + 128, "scale_src1": 256 + 129}
            fields |= {f"src{n}_modifiers": (byte & 1) << 2 | (byte >> 1) << 3 for n, byte in enumerate(self.bytes)}
        rows = [row for row in table("gfx950") if row.name == self.name]
        row = next(row for row in rows if row.operands["vdst"].register_class.startswith("VReg"))
        return self.bench.run(wave, row, fields), wave

    def check(self) -> None:
        """Compares the result."""
        status, wave = self.run()
        assert status is Status.BUDGET
        (a, b), (s, t) = self.operands, self.scales
        scaled = [[[x * w[k // 32] for k, x in enumerate(row)] for row, w in zip(of, ws, strict=True)]
                  for of, ws in ((a, s), (b, t))]  # fmt: skip
        left, right = ([[float(x) for x in row] for row in rows] for rows in scaled)
        for i in range(self.size):
            for j in range(self.size):
                total = self.c[i][j] + sum(x * y for x, y in zip(left[i], right[j], strict=True))
                register, lane = self.place(i, j)
                got = wave.row(D + register)[lane]
                assert SINGLE.value(got) == total, f"{self.name} {self.formats}: D[{i}, {j}]"


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", NAMED)
def test_products_of_named_formats(name: str) -> None:
    """Each format of A with each of B; on hostile hardware some, too."""
    rng = random.Random(name)
    every = [(a, b) for a in range(5) for b in range(5)]
    some = every if name == NAMED[2] else [(0, 4), (4, 0), (2, 1), (1, 3), (3, 2)]
    for pair in some:
        NamedProduct(name, pair, rng).check()
    NamedProduct(name, (rng.randrange(5), rng.randrange(5)), rng, hostile=True).check()
    product = NamedProduct(name, (0, 0), rng)
    product.formats = 0, 5
    with pytest.raises(Undecodable, match="cannot have|not executed"):
        product.run()


def test_scales_that_no_float_holds() -> None:
    """A scale of 255 makes what is no number; one that leads out of the normal floats is a fault."""
    for exponent, wanted in ((255, Status.BUDGET), (254, Status.FAULT), (0, Status.FAULT)):
        product = NamedProduct("v_mfma_scale_f32_16x16x128_f8f6f4", (0, 0), random.Random(exponent))
        product.put(128, 3, 8 * product.bytes[0], 8, exponent)
        status, wave = product.run()
        assert status is wanted
        if wanted is Status.BUDGET:
            nans = [i for i in range(16) if SINGLE.is_nan(wave.row(D + product.place(i, 5)[0])[product.place(i, 5)[1]])]
            assert nans == [3]


def test_what_xf32_loses_is_not_known() -> None:
    bench = Bench(Shape("gfx942", "v_mfma_f32_16x16x8_xf32"), random.Random(5))
    bench.operands()
    bench.addends()
    bench.rows[A][17] |= 1 << 12
    assert bench.run({}) is Status.FAULT


@pytest.mark.parametrize(("mask", "mode"), [(0xFFFF, FLOATS), (0xFFFFFFFF, 0xC0), (0xFFFFFFFF, FLOATS | 1 << 23)])
def test_a_product_of_some_lanes_is_refused(mask: int, mode: int) -> None:
    """EXEC must be all ones (RDNA 3, 7.9), and other modes are not known."""
    bench = LanesBench(architecture("gfx1100", 32))
    fields = {"src0": 256 + A, "src1": 256 + B, "src2": 256 + C, "vdst": D, "src0_modifiers": 8, "src1_modifiers": 8,
              "src2_modifiers": 8}  # fmt: skip
    wave = Wave(bench.layout, rng=random.Random(1))
    wave.exec = mask
    wave.set_scalar("mode", mode)
    assert bench.run(wave, row_of("gfx1100", "v_wmma_f32_16x16x16_f16"), fields) is Status.FAULT
