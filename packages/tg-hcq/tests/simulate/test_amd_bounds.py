"""What hostile hardware leaves open: functions anywhere inside the manual's bound, sums in any order.

True values have 60 digits; the draws must fill the bound on both sides, and leave what the manual says as it says.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from tg_hcq.simulate.amd.architecture import Architecture, architecture
from tg_hcq.simulate.amd.registers import FLOATS
from tg_hcq.simulate.amd.semantics import instruction_set
from tg_hcq.simulate.amd.semantics.vector import bounds
from tg_hcq.simulate.amd.testing.lane_floats import true_value
from tg_hcq.simulate.amd.testing.lanes import LanesBench
from tg_hcq.simulate.engine import Emitter, Value, Wave, state
from tg_hcq.simulate.engine.testing import DOUBLE, HALF, SINGLE, Format

ARCHS = {"gfx1030": 32, "gfx1100": 32, "gfx1201": 32, "gfx942": 64, "gfx950": 64}
FORMATS = {"f16": HALF, "f32": SINGLE, "f64": DOUBLE}
DOUBLES = "rcp", "rsq", "sqrt"
FUNCTIONS = [(name, kind) for kind in FORMATS for name in bounds.EXACT if kind != "f64" or name in DOUBLES]
SLACK = Fraction(1, 1 << 20)  # units in the last place: the software card computes with doubles
ROUNDS = 6

_MATH: dict[str, Callable[[float], float]] = {
    "rcp": lambda x: 1 / x, "rsq": lambda x: 1 / math.sqrt(x), "sqrt": math.sqrt, "exp": lambda x: 2.0**x,
    "log": math.log2,
}  # fmt: skip


def unit(of: Format, x: Fraction) -> Fraction:
    """In the last place of a number; of one that a double takes for a power of two, that of this power."""
    x *= 1 + Fraction(1, 1 << 50)
    power = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    power -= abs(x) < Fraction(2) ** power
    return Fraction(2) ** (max(power, 2 - (1 << of.exponent - 1)) - of.fraction)


@functools.cache
def between(name: str) -> list[int]:
    """Halves whose results lie within a hundredth of a unit of the middle of two numbers."""
    found = []
    for x in range(1, 0x7C00):
        number = float(HALF.value(x))
        try:
            true = _MATH[name](number)
        except OverflowError:
            continue
        if not 2.0**-14 < abs(true) < 65000:
            continue
        rest = abs(math.fmod(math.ldexp(true, 11 - math.frexp(true)[1]), 1.0))
        if 0.491 < rest < 0.509:
            found.append(x)
    return found


def documented(name: str, of: Format) -> list[int]:
    """The arguments of which the manuals give the result."""
    return [of.round(Fraction(x), of.sign if math.copysign(1, x) < 0 else 0) for x in bounds.EXACT[name]]


@functools.cache
def arguments(name: str, kind: str) -> list[int]:
    """Numbers of all sizes, those of which the manual gives the result, and powers of two."""
    rng, of = random.Random(f"{name} {kind}"), FORMATS[kind]
    found = [*documented(name, of), 0, of.sign, of.infinity, of.infinity | of.sign, of.nan]
    found += [of.round(Fraction(2) ** power) for power in range(-8, 9)]
    if kind == "f32":  # the reciprocal is the least normal number: below it is 0, which is not within a unit
        found += [SINGLE.round(Fraction(sign) * 2**126) for sign in (1, -1)] * 3
    found += [of.round(Fraction(rng.randrange(-(1 << 30), 1 << 30), 1 << 27)) for _ in range(20)]
    found += [of.round(Fraction(rng.randrange(1, 1 << 30), 1 << rng.randrange(60))) for _ in range(20)]
    found += [rng.getrandbits(of.bits) for _ in range(30)]
    if kind == "f16" and name in _MATH:
        found += rng.sample(between(name), min(len(between(name)), 40))
    return found


@functools.cache
def true(name: str, kind: str, x: int) -> Fraction | int:
    return true_value(name, FORMATS[kind], x)


def results(bench: LanesBench, name: str, kind: str, numbers: list[int], seed: int) -> list[int]:
    """What an instruction makes of numbers, one in each lane."""
    wide, found = kind == "f64", list[int]()
    wave = Wave(bench.layout, rng=random.Random(seed))
    wave.put(state.DRAWN, random.Random(seed).getrandbits(64), 2)
    wave.set_scalar("mode", FLOATS)
    for start in range(0, len(numbers), bench.lanes):
        part = numbers[start : start + bench.lanes]
        rows = part + [0] * (bench.lanes - len(part))
        wave.set_row(4, [x & 0xFFFFFFFF for x in rows])
        wave.set_row(5, [x >> 32 for x in rows])
        bench.step(wave, f"v_{name}_{kind}", (bench.layout.vector(8), bench.layout.vector(4)))
        low, high = wave.row(8), wave.row(9)
        ones = (1 << FORMATS[kind].bits) - 1
        found += [(low[lane] | (high[lane] << 32 if wide else 0)) & ones for lane in range(len(part))]
    return found


def same(of: Format, got: int, wanted: int) -> bool:
    return got == wanted or (of.is_nan(got) and of.is_nan(wanted))


def check(bench: LanesBench, name: str, kind: str, of_arch: bounds.Bound) -> None:
    """Everything is inside the bound, and draws go to both sides, of what a format holds exactly, too.

    Raises:
      AssertionError: if not.
    """
    of, numbers = FORMATS[kind], arguments(name, kind)
    exact = documented(name, of)
    above = below = moved = 0
    for seed in range(ROUNDS):
        for x, got in zip(numbers, results(bench, name, kind, numbers, seed), strict=True):
            wanted = true(name, kind, x)
            if isinstance(wanted, int):
                assert same(of, got, wanted), f"{name} of {x:#x} is {got:#x}, not {wanted:#x}"
                continue
            nearest = of.round(wanted, x & of.sign if name == "sin" else 0)
            if x in exact or of.is_infinite(nearest) or (not nearest & ~of.sign and not of_arch.absolute):
                assert got == nearest or of.is_infinite(nearest), f"{name} of {x:#x} is {got:#x}, not {nearest:#x}"
                continue
            assert not of.is_nan(got), f"{name} of {x:#x} is no number"
            if of.is_infinite(got) or (of is SINGLE and abs(wanted) < Fraction(1, 1 << 126)):
                continue  # at the ends of the range
            away = of.value(got) - wanted
            most = of_arch.absolute + unit(of, wanted) * (of_arch.ulps + SLACK)
            assert abs(away) <= most, f"{name} of {x:#x} is {got:#x}, {float(away / unit(of, wanted))} units off"
            above += away > 0 and got != nearest
            below += away < 0 and got != nearest
            moved += of.value(nearest) == wanted and got != nearest
    assert above >= 3 and below >= 3, f"{name}_{kind}: results are {above} times above, {below} times below the nearest"
    assert moved >= 3 or of_arch.ulps < 1, f"{name}_{kind}: results that can be exact always are"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("arch", ARCHS)
def test_functions_are_anywhere_inside_the_bound(arch: str) -> None:
    of_arch = architecture(arch, ARCHS[arch])
    bench = LanesBench(of_arch, hostile=True)
    for name, kind in FUNCTIONS:
        check(bench, name, kind, bounds.bound(name, kind, of_arch))


def test_draws_come_of_the_seed() -> None:
    bench, numbers = LanesBench(architecture("gfx1100", 32), hostile=True), arguments("sqrt", "f32")
    runs = [results(bench, "sqrt", "f32", numbers, seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    # and each instruction draws anew
    again = results(bench, "sqrt", "f32", [SINGLE.round(Fraction(2))] * 256, 1)
    assert len(set(again)) == 2 and len({tuple(again[at : at + 32]) for at in range(0, 256, 32)}) > 1


def wrong_bench(arch: Architecture) -> LanesBench:
    """With handlers that are made anew."""
    return LanesBench(arch, instruction_set.__wrapped__(arch), hostile=True)


@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_a_bound_that_is_too_wide_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arch = architecture("gfx1100", 32)
    real = bounds.bound("rcp", kind, arch)
    monkeypatch.setattr(bounds, "BOUNDS", [replace(row, ulps=Fraction(1000)) for row in bounds.BOUNDS])
    with pytest.raises(AssertionError, match="units off"):
        check(wrong_bench(arch), "rcp", kind, real)


@pytest.mark.parametrize("bits", [0, 1 << 62])
def test_draws_that_go_one_way_are_found(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def constant(e: Emitter, lanes: int = 0) -> Value:
        return e.value(e.field(state.DRAWN).type.of(lanes), bits)

    monkeypatch.setattr(Emitter, "drawn", constant)
    arch = architecture("gfx1100", 32)
    with pytest.raises(AssertionError, match="times above"):
        check(wrong_bench(arch), "rcp", "f32", bounds.bound("rcp", "f32", arch))
