"""Instructions of lanes of the software GPU of AMD against their specification: drawn, decoded, executed, compared.

Each row of each table with a specification is drawn with random operands, modifiers, masks and modes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import pytest

from tg_hcq.simulate.amd.architecture import architecture
from tg_hcq.simulate.amd.instructions import decoder
from tg_hcq.simulate.amd.isa import Row, table
from tg_hcq.simulate.amd.registers import FLOATS, SCALARS, vectors
from tg_hcq.simulate.amd.semantics import instruction_set
from tg_hcq.simulate.amd.semantics.vector import modified
from tg_hcq.simulate.amd.semantics.vector.alu import Alu
from tg_hcq.simulate.amd.testing.lane_floats import order
from tg_hcq.simulate.amd.testing.lanes import LanesBench, Refused, rule_of
from tg_hcq.simulate.engine import (
    Emitter,
    FaultKind,
    InstructionSet,
    Status,
    Undecodable,
    Value,
    Wave,
    engine,
    state,
)
from tg_hcq.simulate.engine.testing import DOUBLE, HALF, SINGLE, Bench, Format

ARCHS = [("gfx1100", 32), ("gfx1201", 32), ("gfx1030", 32), ("gfx942", 64), ("gfx950", 64)]
Drawn = Callable[[list[Row], int], Sequence[Row]]
PLAIN = {"gfx1100": 2400, "gfx1201": 2300, "gfx1030": 1500, "gfx942": 1700, "gfx950": 1700}
"""At least so many trials come to a comparison."""


def trials(bench: LanesBench, rows: Sequence[Row], rounds: int, seed: str) -> tuple[int, Counter[str]]:
    """Draws and checks; how many were compared, and why others were not."""
    compared, refused = 0, Counter[str]()
    for row in rows:
        rng = random.Random(f"{seed} {row.record}")
        for number in range(rounds):
            try:
                trial = bench.execute(bench.draw(row, rng, plain=number == 0), rng)
            except (Refused, Undecodable) as error:
                refused[f"{row.name}: {error}"] += 1
                continue
            bench.check(trial, rng)
            compared += 1
    return compared, refused


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("arch", "lanes"), ARCHS)
def test_every_row_agrees_with_its_specification(arch: str, lanes: int, drawn: Drawn) -> None:
    """A run of the whole suite draws a third of the rows."""
    bench = LanesBench(architecture(arch, lanes))
    every = list(bench.rows())
    rows = drawn(every, len(every) // 3)
    compared, _ = trials(bench, rows, 2, "rows")
    assert compared >= PLAIN[arch] * (1 if len(rows) == len(every) else 0.25)


@pytest.mark.dense
@pytest.mark.parametrize(("arch", "lanes"), [*ARCHS, ("gfx1030", 64), ("gfx1100", 64), ("gfx1201", 64)])
def test_every_row_agrees_with_its_specification_at_length(arch: str, lanes: int) -> None:
    bench = LanesBench(architecture(arch, lanes))
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    trials(bench, list(bench.rows()), 24, str(seed))


@pytest.mark.parametrize("lanes", [32, 64])
def test_a_mask_of_64_lanes_has_no_place_in_m0(lanes: int) -> None:
    """It would take the register behind M0, too, which is another one."""
    bench = LanesBench(architecture("gfx1100", lanes))
    row = next(r for r in table("gfx1100") if r.record == "V_CMP_EQ_I32_e64_gfx11")
    wave = Wave(bench.layout, rng=random.Random(1))
    wave.set_scalar("mode", FLOATS)
    if lanes == 64:
        with pytest.raises(Undecodable, match="m0 has 32 bits"):
            bench.run(wave, row, {"sdst": 125, "src0": 256, "src1": 257})
    else:
        assert bench.run(wave, row, {"sdst": 125, "src0": 256, "src1": 257}) is Status.BUDGET


@pytest.mark.parametrize(("kind", "of", "shift"), [("f32", SINGLE, 64), ("f64", DOUBLE, 128)])
def test_scaled_products_are_rounded_once(kind: str, of: Format, shift: int) -> None:
    """V_DIV_FMAS near the middle of two subnormals: the product, of which nothing is left in the sum, says where to."""
    bench, rng = LanesBench(architecture("gfx1100", 32)), random.Random(kind)
    row = next(r for r in table("gfx1100") if r.name == f"v_div_fmas_{kind}" and r.encoding == "VOP3")
    smallest = of.value(1)
    for _ in range(8):
        wave, wanted = Wave(bench.layout, rng=rng), []
        values: dict[int, list[int]] = {4: [], 6: [], 8: []}
        for _ in range(32):
            sign = rng.choice((1, -1))
            most = 1 << of.fraction - 2
            z = sign * (rng.randrange(most, 2 * most) * 2 + 1) * smallest / 2 * 2**shift
            x = rng.choice((0, 1, -1)) * abs(z) * Fraction(2) ** -(of.fraction + 7)
            for register, number in ((4, x), (6, Fraction(1)), (8, z)):
                values[register].append(of.round(number))
            wanted.append(of.round((of.value(values[4][-1]) + z) / 2**shift))
        for register, numbers in values.items():
            for word in range(of.bits // 32):
                wave.set_row(register + word, [n >> 32 * word & 0xFFFFFFFF for n in numbers])
        wave.exec = 0xFFFFFFFF
        wave.set_scalar("mode", FLOATS)
        wave.set_scalar("s", 0xFFFFFFFF, 106)
        assert bench.run(wave, row, {"vdst": 10, "src0": 260, "src1": 262, "src2": 264}) is Status.BUDGET
        words = [wave.row(10 + word) for word in range(of.bits // 32)]
        assert [sum(row[lane] << 32 * w for w, row in enumerate(words)) for lane in range(32)] == wanted


def patterns(of: Format, rng: random.Random, count: int) -> list[list[int]]:
    """Words of numbers near the largest and the smallest normal one, one in each lane."""
    numbers = list[int]()
    for _ in range(count):
        size = rng.choice((of.infinity - 1, of.infinity - (1 << of.fraction) - 1, 1 << of.fraction, 3 << of.fraction))
        numbers.append(rng.choice((0, of.sign)) | size - rng.choice((0, 0, 1)) | rng.choice((0, 1, 3)))
    if of is HALF:
        numbers = [number | other << 16 for number, other in zip(numbers, reversed(numbers), strict=True)]
    return [[number >> at & 0xFFFFFFFF for number in numbers] for at in range(0, max(of.bits, 32), 32)]


FLOAT_KINDS = {"f16": HALF, "pf16": HALF, "mix": SINGLE, "f32": SINGLE, "f64": DOUBLE}


def test_every_product_of_an_output_modifier_is_rounded_by_the_mode() -> None:
    """Of numbers that it brings beyond the largest or below the smallest one, also where the rest has one rounding."""
    arch, lanes = "gfx1100", 32
    bench, rng, compared = LanesBench(architecture(arch, lanes)), random.Random(arch), set[str]()
    for row in bench.rows():
        rule = rule_of(row.name, arch)
        assert rule is not None
        if row.encoding != "VOP3" or "omod" not in dict(row.fields):
            continue
        for mode in (0x0F, rng.randrange(1, 15) | rng.choice((0, 0x50))):
            fields = {"vdst": 10, "sdst": 106, "src0": 260, "src1": 262, "src2": 264, "omod": rng.randrange(1, 4)}
            rows = dict[int, list[int]]()
            for number, kind in enumerate(kind for kind in rule.sources if kind != "mask"):
                if kind in FLOAT_KINDS:
                    words = patterns(FLOAT_KINDS[kind], rng, lanes)
                    rows |= {4 + 2 * number + at: word for at, word in enumerate(words)}
            mode |= rng.choice((0, 0x100))
            try:
                trial = bench.execute(bench.take(row, fields), rng, mode, (1 << lanes) - 1, rows)
            except (Refused, Undecodable):
                continue
            bench.check(trial, rng)
            compared.add(row.name)
    assert {"v_floor_f32", "v_floor_f16", "v_rndne_f64", "v_add_f32", "v_cvt_f32_f64"} <= compared
    assert len(compared) > 90


@pytest.mark.parametrize(("kind", "of"), [("f32", SINGLE), ("f64", DOUBLE)])
def test_scaled_products_overflow_before_they_are_scaled(kind: str, of: Format) -> None:
    """V_DIV_FMAS of a sum beyond all numbers, which is infinite or the largest number before it is scaled down."""
    bench, rng = LanesBench(architecture("gfx1100", 32)), random.Random(kind)
    row = next(r for r in table("gfx1100") if r.name == f"v_div_fmas_{kind}" and r.encoding == "VOP3")
    for rounding in range(16):
        rows = dict[int, list[int]]()
        for register, power in ((4, of.exponent * 9), (6, (1 << of.exponent - 1) - 1), (8, -1)):
            least = Fraction(2) ** power
            sizes = [least * (1 + Fraction(rng.getrandbits(23), 1 << 23)) for _ in range(32)]
            numbers = [of.round(rng.choice((1, -1)) * size) for size in sizes]
            rows |= {register + at: [n >> 32 * at & 0xFFFFFFFF for n in numbers] for at in range(of.bits // 32)}
        found = bench.take(row, {"vdst": 10, "src0": 260, "src1": 262, "src2": 264})
        trial = bench.execute(found, rng, 0xF0 | rounding, 0xFFFFFFFF, rows)
        bench.check(trial, rng, lanes=32)


def test_every_part_of_a_nan() -> None:
    """Which NaN a result is is not specified, so neither is a byte of it that SDWA writes; all else of the word is."""
    arch, lanes = "gfx1030", 32
    bench, rng, compared = LanesBench(architecture(arch, lanes)), random.Random(arch), set[str]()
    for row in bench.rows():
        rule = rule_of(row.name, arch)
        assert rule is not None
        if "dst_sel" not in dict(row.fields) or not {*rule.sources} & {"f16", "f32"}:
            continue
        for part in range(6):
            fields = {"vdst": 10, "src0": 4, "src1": 6, "src0_sel": 6, "src1_sel": 6, "dst_sel": part,
                      "dst_unused": rng.randrange(3)}  # fmt: skip
            nan = [rng.choice((0x7E007E00, 0xFE017E01, 0x7FC07FC0, 0xFFFF7FFF, 0x7FC12345)) for _ in range(lanes)]
            trial = bench.execute(bench.take(row, fields), rng, 0xF0, (1 << lanes) - 1, {4: nan, 6: nan})
            bench.check(trial, rng)
            compared.add(row.name)
    assert {"v_cvt_pkrtz_f16_f32", "v_add_f32", "v_add_f16"} <= compared and len(compared) > 40


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_pairs_read_before_either_writes(arch: str) -> None:
    """Some pairs, and of each half one."""
    bench, rng = LanesBench(architecture(arch, 32)), random.Random(arch)
    pairs = list(bench.pairs())
    halves = sorted({half for row in pairs for half in row.name.split(" :: ")})
    rows = [rng.choice([row for row in pairs if half in row.name.split(" :: ")]) for half in halves]
    compared, _ = trials(bench, rows + rng.sample(pairs, 50), 3, "pairs")
    assert compared > 100


def test_plain_forms_are_all_executed() -> None:
    """Whatever has a specification has a handler."""
    for arch, lanes in ARCHS:
        bench = LanesBench(architecture(arch, lanes))
        names = {row.name for row in bench.rows()}
        missing = {n for n in names if not any(h.partition(".")[0] == n for h in bench.instructions.handlers)}
        assert all(name.startswith("v_accvgpr_") for name in missing), (arch, missing)


# planted mistakes


def _mutants() -> Mapping[str, Callable[..., Value | tuple[Value, Value]]]:
    def add(e: Emitter, x: Value, y: Value) -> Value:
        return e.select(e.compare("oeq", x, y), x, x + y)

    def high(e: Emitter, n: Value, x: Value) -> Value:
        return e.binary("ashr", x, e.intrinsic("umin", n, 31))

    def less(e: Emitter, x: Value, y: Value) -> Value:
        return e.compare("ult", x, y)

    def maximum(e: Emitter, x: Value, y: Value) -> Value:
        return e.select(e.compare("ogt", x, y), x, y)

    def carry(e: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
        return x + y, e.compare("ugt", x + y, x)

    def field(e: Emitter, x: Value, offset: Value, width: Value) -> Value:
        return x >> (offset & 31) & ((e.value(x.type, 1) << (width & 15)) - 1)

    return {"v_add_f32": add, "v_ashrrev_i32": high, "v_cmp_lt_f32": less, "v_max_f32": maximum, "v_add_co_u32": carry,
            "v_bfe_u32": field}  # fmt: skip


def test_planted_semantics_are_found() -> None:
    """Each of these is right for most operands."""
    arch = architecture("gfx1100", 32)
    real = LanesBench(arch)
    wrong = InstructionSet("mutants", dict(SCALARS), vectors(arch))
    modified.add(wrong, arch)
    for name, semantics in _mutants().items():
        handler = real.instructions.handlers[name]
        assert isinstance(handler, Alu)
        wrong.add(Alu(name, semantics, handler.result_kinds, handler.source_kinds, floats=handler.floats,
                      keeps=handler.keeps))  # fmt: skip
    bench = LanesBench(arch, wrong)
    for name in _mutants():
        rows = [row for row in bench.rows() if row.name == name]
        with pytest.raises(AssertionError, match=name):
            trials(bench, rows, 40, "mutants")


@pytest.mark.parametrize("of", ["_ROUNDINGS", "SINGLES_IN", "OTHERS_OUT", "NAN_CLAMPS"])
def test_planted_modes_are_found(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The routine of modifiers with another rounding, or a bit of MODE that is not looked at."""
    monkeypatch.setattr(modified, of, 0 if of == "_ROUNDINGS" else 1 << 30)
    arch = architecture("gfx1100", 32)
    real = LanesBench(arch)
    wrong = InstructionSet("modes", dict(SCALARS), vectors(arch))
    modified.add(wrong, arch)
    names = "v_add_f32", "v_mul_f32", "v_add_f16", "v_mul_f16"
    for name in names:
        wrong.add(real.instructions.handlers[name])
    bench = LanesBench(arch, wrong)
    with pytest.raises(AssertionError, match=r"v_(add|mul)_f"):
        trials(bench, [row for row in bench.rows() if row.name in names], 60, "modes")


# every number of 16 bits


def unary() -> dict[str, tuple[str, int]]:
    """Instructions of one source of 16 bits, and the first architecture that has it."""
    found = dict[str, tuple[str, int]]()
    for arch, lanes in ARCHS:
        for row in table(arch):
            rule = rule_of(row.name, arch) if row.encoding == "VOP1" else None
            if rule is not None and rule.sources in (("f16",), ("b16",)):
                found.setdefault(row.name, (arch, lanes))
    return found


UNARY = unary()


@pytest.mark.drawn(9)
@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_every_half(name: str) -> None:
    exhaust(name, range(0, 1 << 16, UNARY[name][1]))


@pytest.mark.parametrize("name", UNARY)
def test_some_halves(name: str) -> None:
    rng = random.Random(name)
    exhaust(name, sorted({0, 0x03C0, 0x7BC0, 0x7C00, 0xFC00, *(rng.randrange(0, 1 << 16, 64) for _ in range(6))}))


def exhaust(name: str, starts: range | list[int]) -> None:
    """Numbers of a source from each start on, one in each lane."""
    arch, lanes = UNARY[name]
    bench = LanesBench(architecture(arch, lanes))
    row = min((r for r in table(arch) if r.name == name and r.encoding == "VOP1"), key=lambda r: "fake16" in r.record)
    rng = random.Random(1)
    while True:
        found = bench.draw(row, rng, plain=True)
        if found.fields["src0"] & 0x180 == 0x100 and found.fields["vdst"] != found.fields["src0"] & 0x7F:
            break
    register, ones = found.fields["src0"] & 0x7F, (1 << lanes) - 1
    for start in starts:
        numbers = [start + i for i in range(lanes)]
        trial = bench.execute(found, rng, mode=0x3F0, rows={register: numbers}, mask=ones)
        bench.check(trial, rng, lanes=lanes)


# lanes by number


def test_lanes_by_number() -> None:
    """Reads of the first active lane and of one by number, writes of one, against Python."""
    for arch_name, lanes in ARCHS:
        arch = architecture(arch_name, lanes)
        bench = LanesBench(arch)
        rng = random.Random(arch_name)
        for _ in range(40):
            for name in ("v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32"):
                _cross(bench, name, rng)


def _cross(bench: LanesBench, name: str, rng: random.Random) -> None:
    wave = Wave(bench.layout, rng=rng)
    values = [rng.getrandbits(32) for _ in range(bench.lanes)]
    wave.set_row(3, values)
    wave.exec = rng.choice([0, 1 << rng.randrange(bench.lanes), rng.getrandbits(bench.lanes)])
    wave.set_scalar("s", rng.getrandbits(32), 5)
    wave.set_scalar("s", rng.getrandbits(32), 6)
    lane, scalar, row = wave.scalar("s", 5) % bench.lanes, bench.layout.scalar, bench.layout.vector(3)
    operands = {
        "v_readfirstlane_b32": (scalar("s", 7), row), "v_readlane_b32": (scalar("s", 7), row, scalar("s", 5)),
        "v_writelane_b32": (row, scalar("s", 6), scalar("s", 5)),
    }[name]  # fmt: skip
    bench.step(wave, name, operands)
    first = (wave.exec & -wave.exec).bit_length() - 1 if wave.exec else 0
    if name == "v_writelane_b32":
        values[lane] = wave.scalar("s", 6)
    else:
        assert wave.scalar("s", 7) == values[first if "first" in name else lane]
    assert list(wave.row(3)) == values


@pytest.mark.parametrize("form", [SINGLE, HALF], ids=["f32", "f16"])
@pytest.mark.parametrize("name", ["exp", "log", "rcp", "rsq", "sqrt"])
def test_functions_of_scalars(name: str, form: Format) -> None:
    """As those of lanes, which the specification knows; with signs that are changed and taken away."""
    suffix = f"f{form.bits}"
    bench, rng, found = LanesBench(architecture("gfx1201", 32)), random.Random(name), rule_of(f"v_{name}_{suffix}")
    row = next(r for r in table("gfx1201") if r.name == f"v_s_{name}_{suffix}")
    assert found is not None
    special = [0, form.sign, form.infinity, form.nan, 1]
    for number in [*special, *(rng.getrandbits(form.bits) for _ in range(60))]:
        for signs in range(4):
            wave = Wave(bench.layout, rng=rng)
            wave.set_scalar("mode", FLOATS)
            wave.set_scalar("s", number | rng.getrandbits(32) << form.bits & 0xFFFFFFFF, 9)
            bench.run(wave, row, {"src0": 9, "vdst": 7, "src0_modifiers": signs})
            argument = (number & ~form.sign if signs & 2 else number) ^ (form.sign if signs & 1 else 0)
            wanted, got = found.compute(None, argument), wave.scalar("s", 7)
            assert isinstance(wanted, int) and got >> form.bits == 0
            assert (form.is_nan(wanted) and form.is_nan(got)) or abs(order(form, wanted) - order(form, got)) <= 1
    for constant in (128, 193, 240) if form is HALF else ():
        with pytest.raises(Undecodable, match="takes no inline constant"):
            bench.run(Wave(bench.layout, rng=rng), row, {"src0": constant, "vdst": 7})


PENDING = {
    "v_add_f32_e32 v1, v2, v3": "02070206",
    "v_add_f32_e64 v1, v2, -v3": "010003d502070240",
    "v_add_f32_dpp v1, v3, v2 row_shr:1": "fa040206031101ff",
    "v_dual_add_f32 v1, v2, v3 :: v_dual_mul_f32 v4, v5, v6": "020706c9050d0401",
    "v_dual_add_f32 v1, v2, v7 :: v_dual_mul_f32 v4, v3, v6": "020f06c9030d0401",
    "v_readlane_b32 s1, v3, s2": "010060d703050000",
    "v_fmac_f32_e32 v3, v1, v2": "01050656",
    "v_add_f64 v[4:5], v[6:7], -v[2:3]": "040027d706050240",
}
"""Instructions that read ``v3``, and their bytes by ``llvm-mc -mcpu=gfx1100``."""


@pytest.mark.parametrize("line", PENDING)
def test_every_way_to_read_a_register_waits_for_it(line: str) -> None:
    """On hostile hardware a register that was loaded and not waited for is a fault; the one after it is not read."""
    arch = architecture("gfx1100", 32)
    instructions = instruction_set(arch)
    native = engine(instructions, 32, hostile=True)
    made = decoder(arch, instructions)(0x1000, bytes.fromhex(PENDING[line]) + bytes(16))
    # v4 is written by some, and read by none
    for register in (None, 4, 8, 3):
        waits = register == 3
        wave = Wave(native.layout, rng=random.Random(3))
        wave.exec = 1
        wave.set_scalar("mode", 0xF0)
        if register is not None:
            wave.view[state.PENDING + state.PENDING_ROWS + register] = 1
        parts = [native.addresses[name] for name in made.parts]
        status = Bench(native, "s", "s").step(wave, made.handler, made.operands, made.immediate, parts)
        assert status is (Status.FAULT if waits else Status.BUDGET)
        assert not waits or FaultKind(wave.get(state.KIND)) is FaultKind.PENDING
