"""Order: sorting, selection, searching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..case import Array, Case, aligned, normal
from ..libraries import Library
from ..workload import Registry, Workload

ROWS = 64
SHORT, LONG = 16384, 32000
MANY = 1 << 20
SORTED = 1 << 16
VALUES = 10_000  # different ones among many integers


def integers() -> list[Array]:
    """Many integers, each value about a hundred times."""
    return [aligned(np.random.default_rng(0).integers(0, VALUES, MANY).astype(np.int32))]


def queries() -> list[Array]:
    """A vector in order, and many values."""
    return [aligned(np.sort(normal(SORTED, seed=1))), normal(MANY, seed=2)]


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    ordered: tuple[tuple[str, Callable[[], Sequence[Array]], Callable[..., Any]], ...] = (
        (f"sort {ROWS}x{SHORT}", lambda: [normal(ROWS, SHORT)], lambda library, x: library.sort(x)),
        ("sort of 1M", lambda: [normal(MANY)], lambda library, x: library.sort(x)),
        (f"topk 50 of {ROWS}x{LONG}", lambda: [normal(ROWS, LONG)], lambda library, x: library.largest(x, 50)),
        (f"median {ROWS}x{LONG + 1}", lambda: [normal(ROWS, LONG + 1)], lambda library, x: library.median(x)),
        ("searchsorted 1M in 64K", queries, lambda library, x, values: library.searchsorted(x, values)),
    )
    for name, arrays, function in ordered:
        registry.kernel(name, "order", arrays, function, "ms", 1.0)

    def unique(library: Library) -> Case:
        return library.eager(library.unique, integers())

    registry.add(Workload("unique of 1M", "order", unique, "ms"))
