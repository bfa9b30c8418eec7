"""Fourier transforms: one long one, many short ones, of a length that is prime, of a plane, of real numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..case import Array, aligned, normal
from ..workload import Registry

LONG, PRIME = 1 << 20, 100003


def numbers(*shape: int) -> Callable[[], Sequence[Array]]:
    """Complex numbers, both parts normally distributed."""
    return lambda: [aligned((normal(*shape, seed=1) + 1j * normal(*shape, seed=2)).astype("complex64"))]


def operations(count: int, n: int) -> float:
    """Of so many transforms of length n, as they are usually counted: 5 n log2 n, whatever is really done."""
    return 5.0 * count * n * math.log2(n)


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    complexes: tuple[tuple[str, tuple[int, ...], tuple[int, ...], float, bool], ...] = (
        ("fft of 1M", (LONG,), (0,), operations(1, LONG), False),
        ("fft 64x4096", (64, 4096), (1,), operations(64, 4096), True),
        (f"fft of {PRIME}, a prime", (PRIME,), (0,), operations(1, PRIME), False),
        ("fft2 1024x1024", (1024, 1024), (0, 1), operations(2048, 1024), False),
    )
    for name, shape, axes, work, quick in complexes:

        def transform(library: Any, x: Any, axes: tuple[int, ...] = axes) -> Any:
            return library.fourier(x, axes)

        registry.kernel(name, "fourier", numbers(*shape), transform, "GFLOP/s", work, quick=quick, limit="")
    registry.kernel(
        "rfft of 1M", "fourier", lambda: [normal(LONG)], lambda library, x: library.real_fourier(x), "GFLOP/s",
        operations(1, LONG) / 2, limit="",
    )  # fmt: skip
