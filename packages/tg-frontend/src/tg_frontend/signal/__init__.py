"""Windows of signals."""

from . import windows

__all__ = ["windows"]
