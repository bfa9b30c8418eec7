"""Rows that are added at computed positions: scatters, counts, gradients of embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..case import Array, aligned, normal
from ..libraries import Library
from ..workload import Goal, Registry


def positions(count: int, rows: int) -> Array:
    """Indices of rows, int32, the same in every process."""
    return aligned(np.random.default_rng((count, rows)).integers(0, rows, count, np.int32))


def adding(registry: Registry, name: str, count: int, width: int, rows: int, quick: bool = False) -> None:
    """Appends a workload: so many rows of a width are added to a table."""
    def arrays() -> Sequence[Array]:
        return [normal(count, width), positions(count, rows)]

    def added(library: Library, values: Any, index: Any) -> Any:
        return library.added_rows(values, index, rows)

    registry.kernel(name, "scatter", arrays, added, "us", 1.0, goals=(Goal("torch", 1.0),), quick=quick)


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    adding(registry, "100000 rows of 16 into 10000 added", 100_000, 16, 10_000, quick=True)
    adding(registry, "4096 rows of 256 into 20000 added", 4096, 256, 20_000)
    adding(registry, "1M numbers into 1000 bins added", 1 << 20, 1, 1000)
