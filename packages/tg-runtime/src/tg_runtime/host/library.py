"""Shared libraries of drivers: the one that a variable names, or the first of the usual names that loads."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable


def open_first(variable: str, names: Iterable[str]) -> ctypes.CDLL | None:
    """The library that the environment's ``variable`` names, else the first of ``names`` that loads; None if none does.

    Example:
      >>> open_first("NO_SUCH_VARIABLE", ["no-such-library.so"]) is None
      True
    """
    chosen = os.environ.get(variable)
    for name in (chosen,) if chosen else names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def not_loaded(variable: str) -> str | None:
    """Why the library that a variable names is not there, in words; None if it names none."""
    chosen = os.environ.get(variable)
    return f"the library that {variable} names cannot be loaded: {chosen}" if chosen else None
