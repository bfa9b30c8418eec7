"""A line on the terminal that shows the progress of long work."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO

AFTER_S = 1.0
_EVERY_S = 0.1


class Progress:
    """Tells ``done/total`` on a terminal once the work has taken a second, and takes the line away at the end.

    Args:
      what: what is being done, ``"compiling kernels"``.
      total: how much of it there is.
      stream: where to tell it, standard error if not given; nothing is told where that is no terminal.

    Example:
      >>> with Progress("counting", 3) as progress:
      ...     for n in range(3):
      ...         progress.tell(n)
    """

    def __init__(self, what: str, total: int, stream: TextIO | None = None) -> None:
        self.what, self.total = what, total
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream is not None and self._stream.isatty()
        self._next = time.monotonic() + AFTER_S
        self._width = 0

    def tell(self, done: int) -> None:
        """Updates how much is done."""
        if not self._terminal or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_S
        line = f"{self.what}: {done} of {self.total}"
        self._write(line.ljust(self._width))
        self._width = len(line)

    def _write(self, line: str) -> None:
        self._stream.write(f"\r{line}")
        self._stream.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._width:
            self._write(" " * self._width + "\r")
