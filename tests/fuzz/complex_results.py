"""What shares memory with a complex result of a recorded function, as :mod:`tests.fuzz.results` asks of floats.

A function makes parts, conjugates, views, copies and constants of complex tensors, and writes to some in place.

    hatch run fuzz complex_results [--seconds 60] [--seed 0] [--device NUMPY]
"""

from __future__ import annotations

from typing import Any

from tg_frontend import Tensor

from .results import Finding, World
from .results import attempt as attempt_of

KINDS = (
    "add", "turn", "conj", "real", "imag", "abs", "of parts", "full", "view of w", "constant", "view of x", "detach",
    "again", "slice", "flip", "reshape", "double", "copy element", "set element", "set real part", "keep", "realize",
)  # fmt: skip


class ComplexWorld(World):
    """What a program works on: numbers in one direction of the complex plane."""

    factor: Any = 1 - 0.5j

    def _made(self, kind: str, other: bool, value: Tensor, x: Tensor) -> Tensor | None:
        made: dict[str, Any] = {
            "turn": lambda: value * 1j,
            "conj": value.conj,
            "real": lambda: value.real,
            "imag": lambda: value.imag if value.is_complex() else value * 2,
            "abs": lambda: value.abs(),
            "of parts": lambda: Tensor.complex(value.real, value.real * 2),
            "add": lambda: value + 1j,
            "full": lambda: Tensor.full((4,), 3.0) * 1j,
        }
        if kind == "set real part":
            value.real[0] = 5.0
            return None
        return made[kind]() if kind in made else super()._made(kind, other, value, x)


def attempt(seed: int) -> Finding | None:
    """What is wrong with the function of a seed."""
    return attempt_of(seed, KINDS, ComplexWorld)
