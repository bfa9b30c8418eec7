"""What one set of handlers is made for: an instruction set's generation and features, and the lanes of a wave."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from .isa import table


@dataclass(frozen=True, slots=True)
class Architecture:
    """An AMD GPU as its instructions see it.

    Attributes:
      name: for example ``gfx1100``.
      generation: 9, 10, 11 or 12.
      lanes: of a wave, 32 or 64.
      features: LLVM's, for example ``FeatureGFX940Insts``.
    """

    name: str
    generation: int
    lanes: int
    features: frozenset[str]

    def has(self, feature: str) -> bool:
        """Whether LLVM counts a feature, named without ``Feature``."""
        return f"Feature{feature}" in self.features

    @property
    def wave_sizes(self) -> tuple[int, ...]:
        """How many lanes waves can have (RDNA 3, 2.1; CDNA 3, 2)."""
        return (64,) if self.generation == 9 else (32, 64)

    @property
    def null(self) -> int | None:
        """The number of the scalar register that is always zero (RDNA 3, 3.3; RDNA 2 has 125; CDNA 3 has none)."""
        return {9: None, 10: 125}.get(self.generation, 124)

    @property
    def m0(self) -> int:
        """The number of ``m0`` among scalar operands."""
        return 125 if self.generation >= 11 else 124

    @property
    def accumulators(self) -> int:
        """How many accumulation registers stand behind the vector registers (CDNA 3, 3.6)."""
        return 256 if self.has("MAIInsts") else 0


@functools.cache
def architecture(name: str, lanes: int) -> Architecture:
    """The architecture of a processor with waves of so many lanes.

    Raises:
      ValueError: if there is no instruction table of it.
    """
    of = table(name)
    return Architecture(name, of.generation, lanes, of.features)
