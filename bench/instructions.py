"""What instructions of software GPUs are measured, and what they may cost; see :mod:`bench.engine`."""

from __future__ import annotations

from collections.abc import Mapping

GOALS_NS: Mapping[str, float] = {"wave64_mix_ns": 30.0}
"""Most nanoseconds of each."""
SHOWN: Mapping[str, str] = {
    "wave64_mix_ns": "a mix of arithmetic, loads, stores, shared memory and waits, waves of 64 lanes",
    "wave32_mix_ns": "the same with waves of 32 lanes",
    "integers_ns": "an addition of integers in 64 lanes",
    "fma_ns": "a fused multiply-add of floats in 64 lanes",
    "scalar_ns": "a scalar addition",
    "load_ns": "a load of 4 bytes beside one another",
    "load_strided_ns": "a load of 4 bytes that are 68 bytes apart",
    "load_16_bytes_ns": "a load of 16 bytes that are 68 bytes apart",
    "shared_load_ns": "a load of 4 bytes from shared memory",
    "wait_ns": "a wait",
}
"""What each is, for the page."""
