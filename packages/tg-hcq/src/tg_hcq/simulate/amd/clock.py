"""The card's clocks: the counter of timestamps, which command processors read, too, and the processor's cycles."""

from __future__ import annotations

import time
from typing import Final

CLOCK_HZ: Final = 100_000_000
"""Of the counter that timestamps are of (``gpu_counter_freq`` in AMDGPU_INFO)."""


def clock() -> int:
    """The counter."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) * (CLOCK_HZ // 1_000_000) // 1000


def cycles() -> int:
    """What counts the clock of the processor, here one of 1 GHz."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
