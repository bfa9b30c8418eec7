"""Floats of 8 bits of the software GPU of AMD: each of them, and the numbers between each two."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from tg_hcq.simulate.amd.architecture import architecture
from tg_hcq.simulate.amd.isa import Decoded, table
from tg_hcq.simulate.amd.testing.lane_small import of_single, single_of, small_value
from tg_hcq.simulate.amd.testing.lanes import LanesBench
from tg_hcq.simulate.engine.testing import SINGLE

CASES = [(arch, lanes, name) for arch, lanes in (("gfx942", 64), ("gfx950", 64), ("gfx1201", 32))
         for name in ("fp8", "bf8")]  # fmt: skip


def kind_of(arch: str, name: str) -> str:
    return f"{name}z" if arch == "gfx942" else name


def drawn(bench: LanesBench, name: str, rng: random.Random) -> tuple[Decoded, list[int]]:
    """The instruction with vector registers of its own, and the numbers of those it reads."""
    row = next(r for r in table(bench.arch.name) if r.name == name and r.encoding in ("VOP1", "VOP3"))
    while True:
        found = bench.draw(row, rng, plain=True)
        sources = [found.fields[f] for f in ("src0", "src1") if f in found.fields]
        if all(256 <= s for s in sources) and len({found.fields["vdst"], *(s - 256 for s in sources)}) > len(sources):
            return found, [s - 256 for s in sources]


def run(arch: str, lanes: int, name: str, values: list[list[int]]) -> None:
    """The instruction on these values, a lane each, compared with its specification."""
    bench, rng = LanesBench(architecture(arch, lanes)), random.Random(name)
    found, registers = drawn(bench, name, rng)
    for start in range(0, len(values[0]), lanes):
        rows = {r: (v[start : start + lanes] + [0] * lanes)[:lanes] for r, v in zip(registers, values, strict=True)}
        trial = bench.execute(found, rng, mode=0xF0, rows=rows, mask=(1 << lanes) - 1)
        bench.check(trial, rng, lanes=lanes)


@pytest.mark.parametrize(("arch", "lanes", "name"), CASES)
def test_every_byte(arch: str, lanes: int, name: str) -> None:
    run(arch, lanes, f"v_cvt_f32_{name}", [list(range(256))])
    run(arch, lanes, f"v_cvt_pk_f32_{name}", [[byte | byte * 7 % 256 << 8 for byte in range(256)]])


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("arch", "lanes", "name"), CASES)
def test_numbers_between_bytes(arch: str, lanes: int, name: str) -> None:
    """Each number, what lies in the middle of it and the next one, and what lies beside that."""
    kind = kind_of(arch, name)
    sizes = sorted(n for n in (small_value(byte, kind) for byte in range(128)) if isinstance(n, Fraction))
    last = 2 * sizes[-1] - sizes[-2]
    values = [0x7F800000, 0x7FC00000, 0x7F800001, 0x7F7FFFFF, 1, SINGLE.round(last * 2)]
    for low, high in zip(sizes, [*sizes[1:], last], strict=True):
        middle = SINGLE.round((low + high) / 2)
        values += [SINGLE.round(low), middle - 1, middle, middle + 1]
    both = values + [value | SINGLE.sign for value in values]
    run(arch, lanes, f"v_cvt_pk_{name}_f32", [both, both[::-1]])


def test_the_specification_by_known_numbers() -> None:
    """OCP's tables, and those of ``Float8E4M3FNUZ`` and ``Float8E5M2FNUZ`` in LLVM."""
    assert [small_value(0x7E, "fp8"), small_value(0x01, "fp8")] == [448, Fraction(1, 512)]
    assert [small_value(0x7B, "bf8"), small_value(0x7C, "bf8"), small_value(0xFC, "bf8")] == [
        57344, "infinity", "-infinity"]  # fmt: skip
    assert [small_value(0x7F, "fp8z"), small_value(0x7F, "bf8z"), small_value(0x80, "fp8z")] == [240, 57344, "nan"]
    for kind in ("fp8", "bf8", "fp8z", "bf8z"):
        for byte in range(256):
            if isinstance(small_value(byte, kind), Fraction):
                assert of_single(single_of(byte, kind), kind) == byte
