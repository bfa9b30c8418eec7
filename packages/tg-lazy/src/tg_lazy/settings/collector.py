"""The garbage collector, paused for a block."""

from __future__ import annotations

import gc
from types import TracebackType


class Uncollected:
    """Pauses the collector inside a ``with`` block, for work that makes many objects and few cycles.

    With a large graph alive, the collector's walks over all of it take longer than the work itself. A collector that is
    off already stays off.

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
