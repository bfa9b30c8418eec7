"""Instructions of lanes that are no lane's own, and all that is executed without a specification of one lane.

Sources: AMD, "RDNA3 Instruction Set Architecture", 16.8 and 16.10; "AMD Instinct CDNA4 Instruction Set Architecture",
12.8 (swaps of rows) and 12.7 (V_PK_MOV_B32).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from tg_hcq.simulate.amd.architecture import architecture
from tg_hcq.simulate.amd.isa import Row, table
from tg_hcq.simulate.amd.testing.assembler import LLVM_MC, MISSING
from tg_hcq.simulate.amd.testing.lanes import LanesBench, rule_of
from tg_hcq.simulate.amd.testing.program import Bed
from tg_hcq.simulate.engine import EngineFault, Status, Wave

ARCHS = (("gfx1030", 32), ("gfx1030", 64), ("gfx1100", 32), ("gfx1100", 64), ("gfx1201", 32), ("gfx1201", 64),
         ("gfx942", 64), ("gfx950", 64))  # fmt: skip
ELSEWHERE = {
    r"v_(wmma|swmmac|mfma|smfmac)_.*": "test_amd_matrices.py",
    r"v_cvt_scalef32_.*": "test_amd_scaled.py",
    r"v_s_(exp|log|rcp|rsq|sqrt)_f(16|32)": "test_amd_lanes.py",
    r"v_(readlane|readfirstlane|writelane)_b32": "test_amd_lanes.py", r"v_nop": "it does nothing",
}  # fmt: skip
"""What else has no specification of a lane, and where it is tested."""
D, A, B = 3, 5, 7  # registers
LOW, HIGH = 4, 5  # scalar registers

Rows = list[list[int]]
Expected = Callable[[list[int], list[int], int, int, dict[str, int]], tuple[list[int], list[int]]]
"""What both rows become, of both rows before, the mask, the selections and the fields."""


def gathered(crosses: bool) -> Expected:
    """Of sixteen selections; what is not active is not read unless it is fetched, and then 0 or nothing is written."""

    def expected(target: list[int], row: list[int], mask: int, selections: int, fields: dict[str, int]
                 ) -> tuple[list[int], list[int]]:  # fmt: skip
        found = list(target)
        fetches, zeros = fields["src0_modifiers"] & 4, fields["src1_modifiers"] & 4
        for lane in range(len(row)):
            source = lane // 16 * 16 + (selections >> 4 * (lane % 16) & 15)
            source = source ^ 16 if crosses else source
            if not mask >> lane & 1:
                continue
            if fetches or mask >> source & 1:
                found[lane] = row[source]
            elif zeros:
                found[lane] = 0
        return found, row

    return expected


def halves(target: list[int], row: list[int], mask: int, _: int, __: dict[str, int]) -> tuple[list[int], list[int]]:
    """The halves of a wave of 64."""
    if len(row) == 32:
        return target, row
    return [row[lane ^ 32] if mask >> lane & 1 else target[lane] for lane in range(64)], row


def swapped(target: list[int], row: list[int], mask: int, _: int, __: dict[str, int]) -> tuple[list[int], list[int]]:
    """Both registers, where lanes are active."""
    first = [b if mask >> lane & 1 else a for lane, (a, b) in enumerate(zip(target, row, strict=True))]
    return first, [a if mask >> lane & 1 else b for lane, (a, b) in enumerate(zip(target, row, strict=True))]


def groups(size: int) -> Expected:
    """Every other group of lanes of the first register, with the one before it of the second."""

    def expected(target: list[int], row: list[int], mask: int, _: int, __: dict[str, int]
                 ) -> tuple[list[int], list[int]]:  # fmt: skip
        first, second = list(target), list(row)
        for start in range(0, 64, 2 * size):
            first[start + size : start + 2 * size] = row[start : start + size]
            second[start : start + size] = target[start + size : start + 2 * size]
        return first, second

    return expected


INSTRUCTIONS: dict[str, tuple[Expected, bool]] = {
    "v_permlane16_b32": (gathered(False), True), "v_permlanex16_b32": (gathered(True), True),
    "v_permlane64_b32": (halves, True), "v_swap_b32": (swapped, True),
    "v_permlane16_swap_b32": (groups(16), False), "v_permlane32_swap_b32": (groups(32), False),
}  # fmt: skip
"""What they do, and whether some lanes may be inactive."""


def row_of(arch: str, name: str) -> Row:
    return next(r for r in table(arch) if r.name == name and r.encoding in ("VOP1", "VOP3", "VOP3P"))


NAMES = {arch: {row.name for row in table(arch)} for arch, _ in ARCHS}
CASES = [(arch, lanes, name) for arch, lanes in ARCHS for name in INSTRUCTIONS if name in NAMES[arch]]


@pytest.mark.drawn(9)
@pytest.mark.parametrize(("arch", "lanes", "name"), CASES)
def test_lanes_change_places(arch: str, lanes: int, name: str) -> None:
    bench, rng = LanesBench(architecture(arch, lanes)), random.Random(f"{arch} {lanes} {name}")
    expected, partly = INSTRUCTIONS[name]
    ones = (1 << lanes) - 1
    for _ in range(40):
        wave = Wave(bench.layout, rng=rng)
        before = {n: [rng.getrandbits(32) for _ in range(lanes)] for n in range(16)}
        for number, values in before.items():
            wave.set_row(number, values)
        wave.exec = mask = rng.choice([ones, rng.getrandbits(lanes), 1 << rng.randrange(lanes), 0]) if partly else ones
        selections = rng.getrandbits(64)
        wave.set_scalar("s", selections & 0xFFFFFFFF, LOW)
        wave.set_scalar("s", selections >> 32, HIGH)
        fields = {"vdst": D, "src0": 256 + A, "src1": LOW, "src2": HIGH,
                  "src0_modifiers": 4 * rng.getrandbits(1), "src1_modifiers": 4 * rng.getrandbits(1)}  # fmt: skip
        assert bench.run(wave, row_of(arch, name), fields) is Status.BUDGET
        before[D], before[A] = expected(before[D], before[A], mask, selections, fields)
        assert {n: list(wave.row(n)) for n in before} == before, (name, hex(mask))


@pytest.mark.parametrize("name", ["v_permlane16_swap_b32", "v_permlane32_swap_b32"])
def test_rows_of_some_lanes_are_not_swapped(name: str) -> None:
    bench = LanesBench(architecture("gfx950", 64))
    wave = Wave(bench.layout, rng=random.Random(1))
    wave.exec = (1 << 64) - 2
    assert bench.run(wave, row_of("gfx950", name), {"vdst": D, "src0": 256 + A}) is Status.FAULT


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_two_registers_from_two_pairs(arch: str) -> None:
    """V_PK_MOV_B32: OP_SEL says which of each pair; a pair may be scalar."""
    bench, rng = LanesBench(architecture(arch, 64)), random.Random(arch)
    for _ in range(40):
        wave = Wave(bench.layout, rng=rng)
        before = {n: [rng.getrandbits(32) for _ in range(64)] for n in range(16)}
        for number, values in before.items():
            wave.set_row(number, values)
        scalars = [rng.getrandbits(32) for _ in range(4)]
        for number, value in enumerate(scalars):
            wave.set_scalar("s", value, 8 + number)
        wave.exec = mask = rng.choice([(1 << 64) - 1, rng.getrandbits(64)])
        picks, of_scalar = [rng.getrandbits(1) for _ in range(2)], rng.randrange(3)
        sources = [8 if of_scalar == 0 else 256 + 4, 10 if of_scalar == 1 else 256 + 6]
        fields = {"vdst": 2, "src0": sources[0], "src1": sources[1],
                  "src0_modifiers": 8 | 4 * picks[0], "src1_modifiers": 8 | 4 * picks[1]}  # fmt: skip
        assert bench.run(wave, row_of(arch, "v_pk_mov_b32"), fields) is Status.BUDGET
        for lane in range(64):
            if mask >> lane & 1:
                for which, (source, pick) in enumerate(zip(sources, picks, strict=True)):
                    value = scalars[source - 8 + pick] if source < 256 else before[source - 256 + pick][lane]
                    before[2 + which][lane] = value
        assert {n: list(wave.row(n)) for n in before} == before


COUNTED = {
    "v_movreld_b32": (None, 0), "v_movrels_b32": (0, None), "v_movrelsd_b32": (0, 0), "v_movrelsd_2_b32": (0, 16),
    "v_swaprel_b32": (0, 16),
}  # fmt: skip
"""Where the bits of M0 begin that count the source and the result; of 32 bits, of 10 where there are two."""


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("arch", "lanes"), [pair for pair in ARCHS if not pair[0].startswith("gfx9")])
def test_rows_that_m0_counts_from(arch: str, lanes: int) -> None:
    """Beyond the last row is a fault, and nothing is written."""
    bench, rng = LanesBench(architecture(arch, lanes)), random.Random(f"{arch} {lanes}")
    for name, counts in COUNTED.items():
        for number in range(30):
            wave, first = Wave(bench.layout, rng=rng), rng.choice([0, 200])
            before = {n: [rng.getrandbits(32) for _ in range(lanes)] for n in range(first, first + 56)}
            for row, values in before.items():
                wave.set_row(row, values)
            wave.exec = mask = rng.getrandbits(lanes)
            numbers = [rng.randrange(20) for _ in range(2)]
            split = name in ("v_movrelsd_2_b32", "v_swaprel_b32")
            junk = (rng.getrandbits(6) << 10 | rng.getrandbits(6) << 26) if split else 0
            wave.set_scalar("m0", numbers[0] | (numbers[1] << 16 if split else 0) | junk)
            if not split:
                numbers[1] = numbers[0]
            places = [first + 5, first + 30]
            of_scalar = name == "v_movreld_b32" and number % 3 == 0
            fields = {"vdst": places[1], "src0": 256 + places[0]}
            if of_scalar:
                fields["src0"] = 8 if number % 2 else 193
                wave.set_scalar("s", 12345, 8)
            source, target = (place + (n if shift is not None else 0)
                              for place, n, shift in zip(places, numbers, counts, strict=True))  # fmt: skip
            status = bench.run(wave, row_of(arch, name), fields)
            outside = target > 255 or (source > 255 and not of_scalar)
            assert status is (Status.FAULT if outside else Status.BUDGET), name
            after = {n: list(values) for n, values in before.items()}
            for lane in (n for n in range(lanes) if mask >> n & 1 and not outside):
                value = before[source][lane] if not of_scalar else 12345 if number % 2 else 0xFFFFFFFF
                after[target][lane] = value
                if name == "v_swaprel_b32":
                    after[source][lane] = before[target][lane]
            assert {n: list(wave.row(n)) for n in before} == after, name


@pytest.mark.skipif(LLVM_MC is None, reason=MISSING)
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_rows_that_an_index_counts(arch: str) -> None:
    """A move between what begins and ends indexing, as LLVM writes it; anything else there is a fault."""
    rng = random.Random(arch)
    before = {n: [rng.getrandbits(32) for _ in range(64)] for n in range(5, 40)}
    for how, number, places in (("SRC0", 7, (10, 17)), ("DST", 9, (19, 10)), ("SRC0,DST", 3, (13, 13))):
        mask = rng.getrandbits(64)

        def setup(wave: Wave, number: int = number, mask: int = mask) -> None:
            for row, values in before.items():
                wave.set_row(row, values)
            wave.set_scalar("s", 0xFF00 | number, 4)
            wave.exec = mask

        bed = Bed(arch, 64)
        bed.run(f"s_set_gpr_idx_on s4, gpr_idx({how})\n v_mov_b32 v10, v10\n s_set_gpr_idx_off\n s_endpgm", setup=setup)
        (wave,), (target, source) = bed.waves, places
        after = {n: list(values) for n, values in before.items()}
        for lane in (n for n in range(64) if mask >> n & 1):
            after[target][lane] = before[source][lane]
        assert {n: list(wave.row(n)) for n in before} == after, how
        assert wave.scalar("m0") & 0xF0FF == number | {"SRC0": 1, "DST": 8}.get(how, 9) << 12
    for text in ("v_mov_b32 v10, v10\n v_nop", "v_add_u32 v10, v10, v10\n s_set_gpr_idx_off", "v_mov_b32 v10, s2\n"
                 "s_set_gpr_idx_off"):  # fmt: skip
        with pytest.raises(EngineFault, match="index"):
            Bed(arch, 64).run(f"s_set_gpr_idx_on s4, gpr_idx(SRC0)\n {text}\n s_endpgm", setup=setup)


def test_nothing_is_executed_without_a_specification_or_a_test() -> None:
    """Of arithmetic of lanes, on every architecture."""
    covered, reasons = {*INSTRUCTIONS, *COUNTED, "v_pk_mov_b32"}, set[str]()
    for arch, lanes in ARCHS:
        handlers = {name.partition(".")[0] for name in LanesBench(architecture(arch, lanes)).instructions.handlers}
        names = {half for row in table(arch) if row.encoding.startswith("VOP")
                 for half in row.name.replace("v_dual_", "v_").split(" :: ")}  # fmt: skip
        for name in sorted((names & handlers) - covered):
            where = {pattern for pattern in ELSEWHERE if re.fullmatch(pattern, name)}
            assert where or rule_of(name, arch) is not None, f"{name} of {arch} has no specification"
            reasons |= where
    assert reasons == set(ELSEWHERE)
