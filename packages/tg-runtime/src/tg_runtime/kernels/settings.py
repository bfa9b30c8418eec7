"""Settings of kernels: how hard the code generator tries."""

from __future__ import annotations

from tg_lazy import STRICT, ContextVar

NOOPT: ContextVar[int] = ContextVar("NOOPT", 0)
BEAM: ContextVar[int] = ContextVar("BEAM", 0)


def generation() -> tuple[int, ...]:
    """What decides how kernels are generated: programs made under other settings are others."""
    return NOOPT.value, BEAM.value, STRICT.value
