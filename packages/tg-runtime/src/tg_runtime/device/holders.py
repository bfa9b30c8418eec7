"""Who holds memory: the table that :class:`~tg_runtime.errors.OutOfMemory` shows."""

from __future__ import annotations

import gc
from collections.abc import Iterable

from tg_lazy import LazyBuffer, Storage

from ..telemetry.counters import human

_ROWS = 8


def table(holders: Iterable[object], used: int) -> list[str]:
    """A line for each of the largest holders, and one for all others.

    Args:
      holders: buffers, with ``nbytes``.
      used: bytes that are held in all.
    """
    found = sorted(((int(getattr(h, "nbytes", 0)), repr(h), h) for h in holders), key=lambda row: (-row[0], row[1]))
    lines = []
    for nbytes, text, holder in found[:_ROWS]:
        lazy = node_of(holder)
        told = "" if lazy is None else f", of shape {lazy.base.shape}, made at {lazy.origin[0]}:{lazy.origin[1]}"
        lines.append(f"  {human(nbytes, 'B', 1024):>12}  {text}{told}")
    left = used - sum(nbytes for nbytes, _, _ in found[:_ROWS])
    if lines and left > 0:
        lines.append(f"  {human(left, 'B', 1024):>12}  others")
    return lines


def node_of(holder: object) -> LazyBuffer | None:
    """A node whose value a buffer holds, with the line that made it; None if no such node is known."""
    for storage in gc.get_referrers(holder):
        if isinstance(storage, Storage):
            for lazy in gc.get_referrers(storage):
                if isinstance(lazy, LazyBuffer) and lazy.origin[0]:
                    return lazy
    return None
