"""How near a function comes to its true value: what the manuals bound, from which hostile hardware draws."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ....engine import F64, Emitter, Type, Value
from ...architecture import Architecture
from .numbers import DOUBLE, FORMATS, Format, magnitude, narrowed, pattern, raw, widened


@dataclass(frozen=True, slots=True)
class Bound:
    """How far results may be off.

    Attributes:
      functions: their names, separated by spaces.
      kind: the format of their results, as ``f32``.
      source: who says so.
      ulps: units in the last place of the true value.
      absolute: instead of them, a distance.
      gfx9: whether it holds on CDNA, on later generations, or (None) on all.
    """

    functions: str
    kind: str
    source: str
    ulps: Fraction = Fraction(0)
    absolute: Fraction = Fraction(0)
    gfx9: bool | None = None

    @property
    def text(self) -> str:
        """The bound, for people."""
        where = {None: "", True: ", gfx9", False: ", from gfx10 on"}[self.gfx9]
        if self.absolute:
            return f"2**-{self.absolute.denominator.bit_length() - 1}{where}"
        if self.ulps == 1:
            return f"1 unit{where}"
        whole = self.ulps.denominator == 1
        return f"{f'2**{int(self.ulps).bit_length() - 1}' if whole else f'{float(self.ulps):g}'} units{where}"


_RDNA = 'AMD, "RDNA3 Instruction Set Architecture", 16.8 "VOP1 Instructions"; RDNA 4 and MI300 say the same'
_MI300 = 'AMD, "AMD Instinct MI300 Instruction Set Architecture", "VOP1 Instructions"'
_HALF = 'AMD, "RDNA3 Instruction Set Architecture", 16.8; of RDNA 2: LLVM, "User Guide for AMDGPU Backend", `llvm.exp2`'
_VULKAN = (
    'none of AMD\'s; "Vulkan Specification", "Precision of Individual Operations": what cards must keep whose drivers '
    "use them"
)

BOUNDS = (
    Bound("rcp rsq sqrt exp log", "f32", _RDNA, Fraction(1)),
    Bound("rcp rsq sqrt exp log", "f16", _HALF, Fraction(51, 100), gfx9=False),
    Bound("rcp rsq sqrt exp log", "f16", _MI300, Fraction(1), gfx9=True),
    Bound("rcp rsq sqrt", "f64", _RDNA, Fraction(1 << 29)),
    Bound("sin cos", "f32", _VULKAN, absolute=Fraction(1, 1 << 11)),
    Bound("sin cos", "f16", _VULKAN, absolute=Fraction(1, 1 << 7)),
)
"""All of them."""

EXACT: dict[str, tuple[float, ...]] = {
    "rcp": (-2.0,), "rsq": (4.0,), "sqrt": (4.0,), "exp": (-0.0,), "log": (1.0,), "sin": (0.25,), "cos": (0.25, -0.0),
}  # fmt: skip
"""Arguments of which the manuals give the result, beside zeros, infinities and what is no number."""
BEYOND = 256.0
"""Turns, past which sines and cosines are those of none (16.8, V_SIN_F32: of the largest number)."""


def bound(function: str, kind: str, arch: Architecture) -> Bound:
    """How far a function may be off.

    Args:
      function: as ``rcp``.
      kind: the format of its result, as ``f32``.
      arch: the processor.

    Raises:
      KeyError: if there is none of that kind.
    """
    for row in BOUNDS:
        there = row.gfx9 is None or row.gfx9 == (arch.generation == 9)
        if row.kind == kind and there and function in row.functions.split():
            return row
    raise KeyError(f"{function} of {kind}")


def somewhere(e: Emitter, function: str, x: Value, true: Value, to: Type, of: Bound) -> Value:
    """A result inside the bound, another each time; on hardware that is not hostile the one that is nearest.

    Args:
      e: the function of a handler.
      function: whose documented examples stay as they are.
      x: its argument, as a double.
      true: its result, as a double.
      to: the format of the result.
      of: how far it may be off.
    """
    near = narrowed(e, true, to)
    if not e.hostile:
        return near
    form = next(f for f in FORMATS if f.bits == to.bits)
    bits = e.drawn(true.type.lanes)
    share = e.convert("sitofp", bits, F64) * 2.0**-63  # of the bound, on either side
    # rounding takes half a unit of what there is; a double has no more digits to be rounded from
    if of.absolute:
        moved = true + share * (float(of.absolute) - 2.0 ** -(form.fraction + 2))
        moved = e.intrinsic("minnum", e.intrinsic("maxnum", moved, -1.0), 1.0)
        found = narrowed(e, moved, to)
    else:
        reach = float(of.ulps - (1 if form is DOUBLE else Fraction(1, 2)))
        found = narrowed(e, true + share * _unit(e, true, form) * reach, to)
        if of.ulps >= 1 and form is not DOUBLE:
            whole = e.compare("oeq", widened(e, near, F64), true)
            found = e.select(whole, _neighbour(e, near, bits), found)
        found = e.intrinsic("copysign", found, near)
    infinity = pattern(e, to, form.infinity)
    stays = ~(e.compare("olt", magnitude(e, near), infinity) & e.compare("olt", magnitude(e, found), infinity))
    stays = stays | e.compare("oeq", x if of.absolute else near, 0.0)
    if form.bits == 32:  # a number below the normal ones becomes 0, which is outside of any bound of a normal one
        small, normal = (e.compare(how, magnitude(e, r), _least(form)) for how, r in (("olt", found), ("oge", near)))
        stays = stays | (small & normal)
    if of.absolute:
        stays = stays | e.compare("ogt", magnitude(e, x), BEYOND)
    for argument in EXACT[function]:
        stays = stays | e.compare("eq", raw(e, x), raw(e, e.constant(x.type, argument)))
    return e.select(stays, near, found)


def _unit(e: Emitter, x: Value, form: Format) -> Value:
    """The unit in the last place of a number of a format, which a double holds."""
    power = e.bits(raw(e, x) & DOUBLE.infinity, F64)
    return e.intrinsic("maxnum", power, _least(form)) * 2.0**-form.fraction


def _least(form: Format) -> float:
    """The least normal number of a format."""
    return float(2.0 ** (2 - (1 << form.bits - 2 - form.fraction)))


def _neighbour(e: Emitter, x: Value, bits: Value) -> Value:
    """The number, the one above, or the one below."""
    whole = raw(e, x)
    which = e.convert("trunc", bits & 3, whole.type)
    step = e.select(e.compare("eq", which, 3), e.value(whole.type, -1), which & 1)
    return e.bits(whole + step, x.type)
