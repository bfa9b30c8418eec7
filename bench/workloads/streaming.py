"""What is bound by memory: rows, chains of elementwise operations, transposition, reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..case import Array, normal, uniform
from ..libraries import Library
from ..workload import Goal, Registry

FLOAT = 4


def chain(library: Library, x: Any) -> Any:
    """Four operations on each element."""
    return library.relu(x * 1.5 + 0.25) - 0.5


def masked(n: int) -> Array:
    """Scores of positions, -inf of later ones."""
    scores = normal(n, n)
    scores[np.triu_indices(n, 1)] = -np.inf
    return scores


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    copying = (Goal("share", 0.85),)
    reading = (Goal("share", 0.95),)
    n = 4096
    registry.kernel(
        f"softmax {n}x{n}", "memory", lambda: [normal(n, n)], lambda library, x: library.softmax(x), "GB/s",
        2.0 * FLOAT * n * n, goals=copying, quick=True,
    )  # fmt: skip
    registry.kernel(
        f"softmax {n}x{n}, half of it masked", "memory", lambda: [masked(n)], lambda library, x: library.softmax(x),
        "GB/s", 2.0 * FLOAT * n * n, goals=copying,
    )  # fmt: skip
    rows, width = 8192, 1024
    registry.kernel(
        f"layernorm {rows}x{width}", "memory",
        lambda: [normal(rows, width, seed=1), normal(width, seed=2), normal(width, seed=3)],
        lambda library, x, w, b: library.layernorm(x, w, b), "GB/s", 2.0 * FLOAT * rows * width, goals=copying,
    )  # fmt: skip
    registry.kernel(
        "4 elementwise operations on 16M", "memory", lambda: [normal(1 << 24)], chain, "GB/s", 2.0 * FLOAT * (1 << 24),
        goals=copying, quick=True,
    )  # fmt: skip
    functions: tuple[tuple[str, Callable[[Library, Any], Any]], ...] = (
        ("sin", lambda library, x: library.sin(x)),
        ("cos", lambda library, x: library.cos(x)),
        ("erf", lambda library, x: library.erf(x)),
    )
    for name, function in functions:
        registry.kernel(
            f"{name} of 16M", "memory", lambda: [normal(1 << 24)], function, "GB/s", 2.0 * FLOAT * (1 << 24),
        )  # fmt: skip
    registry.kernel(
        f"transpose {n}x{n}", "memory", lambda: [normal(n, n)],
        lambda library, x: library.materialized(library.transposed(x)), "GB/s", 2.0 * FLOAT * n * n, goals=copying,
    )  # fmt: skip
    rows, width = 2039, 1987
    registry.kernel(
        f"x.T + y.T {rows}x{width}, row by row", "memory",
        lambda: [normal(rows, width, seed=1), normal(rows, width, seed=2)],
        lambda library, x, y: library.materialized(library.transposed(x) + library.transposed(y)), "GB/s",
        3.0 * FLOAT * rows * width,
    )  # fmt: skip
    registry.kernel(
        "sum of 64M", "memory", lambda: [uniform(1 << 26)], lambda library, x: library.sum(x), "GB/s",
        1.0 * FLOAT * (1 << 26), limit="read", goals=reading,
    )  # fmt: skip
    registry.kernel(
        f"gemv {n}", "memory", lambda: [normal(n, n, seed=1), normal(n, seed=2)],
        lambda library, a, x: library.matmul(a, x), "GB/s", 1.0 * FLOAT * n * n, limit="read", goals=reading,
        quick=True,
    )  # fmt: skip
