"""A kernel's source as ``DEBUG=4`` and ``DEBUG=5`` print it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tg_lazy import DEBUG

if TYPE_CHECKING:
    from tg_codegen import ProgramSpec

LISTING = 40
"""Most lines of a kernel's source that ``DEBUG=4`` prints; ``DEBUG=5`` prints all."""

_MOST_SHOWN = 1 << 10
"""Kernels that are remembered as printed."""

_shown: dict[tuple[str, bool], None] = {}


def show_source(spec: ProgramSpec) -> None:
    """Prints a kernel's source, once in a process: at ``DEBUG=4`` the beginning of it, from ``DEBUG=5`` on all."""
    whole = DEBUG.value >= 5
    if (spec.src, whole) in _shown:
        return
    _shown[spec.src, whole] = None
    while len(_shown) > _MOST_SHOWN:
        del _shown[next(iter(_shown))]
    lines = spec.src.rstrip().splitlines()
    if not whole and len(lines) > LISTING:
        more = len(lines) - LISTING
        lines = [*lines[:LISTING], f"… {more} more lines of {spec.name}, with DEBUG=5"]
    print("\n".join(lines))
