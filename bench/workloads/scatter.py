"""Rows that are added at computed positions: scatters, counts, gradients of embeddings and of what is looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..case import Array, aligned, normal
from ..libraries import Library
from ..workload import Goal, Registry, Workload


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


def training(registry: Registry, name: str, adam: bool) -> None:
    """Appends a workload: a step of an optimiser on the 4096 rows of 1,000,000 that a batch reads."""
    rows, width, count = 1_000_000, 64, 4096
    registry.add(
        Workload(
            name, "scatter",
            lambda library: library.training_of_rows(normal(rows, width), positions(count, rows), 0.01, adam), "us",
            goals=(Goal("torch", 1.0),), reference=("torch",),
        )  # fmt: skip
    )


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    adding(registry, "100000 rows of 16 into 10000 added", 100_000, 16, 10_000, quick=True)
    adding(registry, "4096 rows of 256 into 20000 added", 4096, 256, 20_000)
    adding(registry, "1M numbers into 1000 bins added", 1 << 20, 1, 1000)
    rows, wide, narrow = 997, 2003, 499  # primes

    def columns() -> Array:
        return aligned(np.random.default_rng(7).integers(0, wide, (rows, narrow), np.int32))

    registry.gradient(
        f"gradient of gather {rows}x{narrow} of {wide}", "scatter", lambda: [normal(rows, wide), columns()],
        lambda library, x, index: library.gather(x, index), (rows, narrow),
    )  # fmt: skip
    registry.gradient(
        f"gradient of scatter_add {rows}x{narrow} into {wide}", "scatter", lambda: [normal(rows, narrow), columns()],
        lambda library, values, index: library.scatter_add(values, index, wide), (rows, wide),
    )  # fmt: skip
    registry.gradient(
        "gradient of index_add 100003 rows of 17 into 10007", "scatter",
        lambda: [normal(100_003, 17), positions(100_003, 10_007)],
        lambda library, values, index: library.added_rows(values, index, 10_007), (10_007, 17),
    )  # fmt: skip
    words, tokens, width = 20_011, 4093, 256
    for eager in (False, True):
        registry.gradient(
            f"gradient of an embedding, {tokens} of {words}x{width}{', eager' if eager else ''}", "scatter",
            lambda: [normal(words, width), positions(tokens, words)],
            lambda library, table, index: library.embed(table, index), (tokens, width), eager,
        )  # fmt: skip
    training(registry, "SGD on 4096 rows of 1M x 64", adam=False)
    training(registry, "SparseAdam on 4096 rows of 1M x 64", adam=True)
