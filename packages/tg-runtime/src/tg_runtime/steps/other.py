"""Steps other than kernels and copies: a buffer gets its memory, a function of the caller is called."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..memory.buffer import Buffer
from .runner import Runner, Vars


class ViewOp(Runner):
    """Makes a buffer a part of another, without copying. Buffers: the view, its base."""

    on_device = False

    def __init__(self, offset: int, device: str) -> None:
        super().__init__(f"view at byte {offset}", device)
        self.offset = offset

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Points the view at its base."""
        bufs[0].rebase(bufs[1], self.offset)
        return 0.0 if wait else None


class EmptyOp(Runner):
    """Gives a buffer memory with undefined content."""

    on_device = False

    def __init__(self, device: str) -> None:
        super().__init__("empty", device)

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Allocates."""
        bufs[0].ensure_allocated()
        return 0.0 if wait else None


class CustomOp(Runner):
    """A caller's function on whole buffers: ``fxn(*buffers)``, outputs first."""

    def __init__(self, fxn: Callable[..., object], device: str) -> None:
        super().__init__(getattr(fxn, "__name__", "custom"), device)
        self.fxn = fxn

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Calls the function."""
        start = time.perf_counter()
        self.fxn(*bufs)
        return time.perf_counter() - start if wait else None
