"""Windows of signals; see :mod:`tg_frontend.signal`."""

from . import windows

__all__ = ["windows"]
