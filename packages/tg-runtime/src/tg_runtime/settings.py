"""Settings of kernels: how hard the code generator tries."""

from __future__ import annotations

from tg_lazy import ContextVar

NOOPT: ContextVar[int] = ContextVar("NOOPT", 0)
BEAM: ContextVar[int] = ContextVar("BEAM", 0)
