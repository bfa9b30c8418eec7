"""A loader of ELF64 objects, relocatable (ET_REL) and shared (ET_DYN), for this process or any device's memory."""

from .file import ELFFile, Section, Segment, Symbol
from .layout import PAGE, Layout, Region, parse
from .relocation import ELFError, Machine, Patch, Refusal

__all__ = [
    "PAGE", "ELFError", "ELFFile", "Layout", "Machine", "Patch", "Refusal", "Region", "Section", "Segment", "Symbol",
    "parse",
]  # fmt: skip
