"""A small instruction set, of no hardware: it proves the engine, and shows how one is written."""

from __future__ import annotations

from .assembler import assemble
from .encoding import decoder
from .gpu import ToyGpu
from .instructions import TOY

__all__ = ["TOY", "ToyGpu", "assemble", "decoder"]
