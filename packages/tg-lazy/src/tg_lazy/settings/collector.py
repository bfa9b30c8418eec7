"""The garbage collector, out of the way for a moment."""

from __future__ import annotations

import gc
from types import TracebackType


class Uncollected:
    """Turns the collector off inside a ``with`` block, for work that makes many objects and few cycles.

    In a large graph the collector's walks over everything that is alive take longer than the work itself. Where it is
    off already it stays so.

    Example:
      >>> import gc
      >>> with Uncollected():
      ...     gc.isenabled()
      False
      >>> gc.isenabled()
      True
    """

    __slots__ = ("_on",)

    def __enter__(self) -> None:
        self._on = gc.isenabled()
        gc.disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._on:
            gc.enable()
