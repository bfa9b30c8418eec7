"""What proves an instruction set's handlers: specifications of a lane in Python, and exactly rounded floats."""

from __future__ import annotations

from .exact import DOUBLE, HALF, SINGLE, Format
from .fuzz import Bench, Specification

__all__ = ["DOUBLE", "HALF", "SINGLE", "Bench", "Format", "Specification"]
