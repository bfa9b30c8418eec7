"""A specification of an instruction of lanes: kinds of its operands and what one lane computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...engine.testing import DOUBLE, HALF, SINGLE, Format
from .assembly import Assembly

ROUNDINGS = ("even", "up", "down", "zero")
"""By the numbers of MODE.FP_ROUND (RDNA 3, 3.4.1)."""


@dataclass(frozen=True)
class Mode:
    """What of MODE floats obey.

    Attributes:
      bits: the register.
      generation: of the processor; RDNA 4 has no IEEE and no DX10_CLAMP.
    """

    bits: int
    generation: int

    def format(self, kind: str) -> Format:
        """A format with the rounding of its kind."""
        base = {"f16": HALF, "f32": SINGLE, "f64": DOUBLE}[kind]
        number = self.bits & 3 if kind == "f32" else self.bits >> 2 & 3
        return Format(base.exponent, base.fraction, ROUNDINGS[number])

    def keeps_subnormals(self, kind: str, results: bool) -> bool:
        """Whether subnormal sources or results of a kind are allowed."""
        return bool(self.bits >> (4 if kind == "f32" else 6) + results & 1)

    @property
    def ieee(self) -> bool:
        """Whether a signalling NaN wins a minimum, and OMOD is ignored."""
        return self.generation < 12 and bool(self.bits & 0x200)

    @property
    def nan_clamps(self) -> bool:
        """Whether the clamp makes zero of a NaN."""
        return self.generation >= 12 or bool(self.bits & 0x100)


@dataclass(frozen=True)
class Rule:
    """A specification.

    Attributes:
      pattern: of names, a regular expression.
      results: kinds: ``b16``, ``b32``, ``b64``, ``f16``, ``f32``, ``f64``, ``mask``; packed ``pi16``, ``pf16``,
        ``pf32``.
      sources: the same, and ``mix``.
      compute: the results' bits from an environment and the sources' bits; more bits than there are are dropped.
      clamps: whether it obeys the clamp itself.
      plain: floats are only moved: subnormals stay.
      fixed: rounds as it says itself.
      ulps: how far a float may be off; 0 is exact.
    """

    @dataclass(frozen=True)
    class Environment:
        """What beside its sources a lane sees."""

        assembly: Assembly
        mode: Mode
        lane: int
        clamps: bool

    pattern: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    compute: Callable[..., int | tuple[int, ...]]
    clamps: bool = False
    plain: bool = False
    fixed: bool = False
    ulps: int = 0


def rule(
    pattern: str, results: Sequence[str], sources: Sequence[str], compute: Callable[..., int | tuple[int, ...]], *,
    clamps: bool = False, plain: bool = False, fixed: bool = False, ulps: int = 0,
) -> Rule:  # fmt: skip
    """A specification."""
    return Rule(pattern, tuple(results), tuple(sources), compute, clamps, plain, fixed, ulps)
