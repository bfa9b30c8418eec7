"""Order: sorting, selection, searching, counting, and what flows back through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..case import Array, Case, aligned, normal
from ..libraries import Library
from ..workload import Registry, Workload

ROWS = 64
SHORT, LONG = 16384, 32000
ODD_ROWS, ODD = 61, 9973  # primes: no vector, block or thread divides them
MANY = 1 << 20
SORTED = 1 << 16
VALUES = 10_000  # different ones among many integers
K = 101
BINS = 100


def integers() -> list[Array]:
    """Many integers, each value about a hundred times."""
    return [aligned(np.random.default_rng(0).integers(0, VALUES, MANY).astype(np.int32))]


def digits() -> list[Array]:
    """Rows of integers, each value about a hundred times in each."""
    return [aligned(np.random.default_rng(0).integers(0, ODD // 100, (ODD_ROWS, ODD)).astype(np.int32))]


def queries() -> list[Array]:
    """A vector in order, and many values."""
    return [aligned(np.sort(normal(SORTED, seed=1))), normal(MANY, seed=2)]


def odd() -> list[Array]:
    """Rows of numbers that differ, so that each has one place in order."""
    every = np.broadcast_to(np.arange(ODD, dtype=np.float32) / ODD - 0.5, (ODD_ROWS, ODD))
    return [aligned(np.random.default_rng(0).permuted(every, axis=1))]


def eagerly(
    method: Callable[[Library], Callable[..., Any]], arrays: Callable[[], Sequence[Array]], library: Library
) -> Case:  # fmt: skip
    """A method of a library whose result has a size that depends on values."""
    return library.eager(method(library), arrays())


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    odd_size = f"{ODD_ROWS}x{ODD}"
    ordered: tuple[tuple[str, Callable[[], Sequence[Array]], Callable[..., Any]], ...] = (
        (f"sort {ROWS}x{SHORT}", lambda: [normal(ROWS, SHORT)], lambda library, x: library.sort(x)),
        ("sort of 1M", lambda: [normal(MANY)], lambda library, x: library.sort(x)),
        (f"argsort {odd_size}", odd, lambda library, x: library.argsort(x)),
        (f"topk 50 of {ROWS}x{LONG}", lambda: [normal(ROWS, LONG)], lambda library, x: library.largest(x, 50)),
        (f"median {ROWS}x{LONG + 1}", lambda: [normal(ROWS, LONG + 1)], lambda library, x: library.median(x)),
        (f"kthvalue {K} of {odd_size}", odd, lambda library, x: library.kth(x, K)),
        (f"quantile 0.9 of {odd_size}", odd, lambda library, x: library.quantile(x, 0.9)),
        ("searchsorted 1M in 64K", queries, lambda library, x, values: library.searchsorted(x, values)),
        (
            f"histogram of 1M in {BINS} bins", lambda: [normal(MANY)],
            lambda library, x: library.histogram(x, BINS, -4.0, 4.0),
        ),
    )  # fmt: skip
    for name, arrays, function in ordered:
        # a number at the edge of a bin may count in either
        registry.kernel(name, "order", arrays, function, "ms", 1.0, tolerance=1e-3 if "histogram" in name else 1e-4)
    registry.kernel(
        f"mode {odd_size}", "order", digits, lambda library, x: library.most_common(x), "ms", 1.0,
        reference=("torch", "jax", "tinygrad"),
    )  # fmt: skip
    sized: tuple[tuple[str, Callable[[], Sequence[Array]], Callable[[Library], Callable[..., Any]]], ...] = (
        ("unique of 1M", integers, lambda library: library.unique),
        ("unique of 999983 numbers", lambda: [normal(999_983)], lambda library: library.unique),
        ("bincount of 1M", integers, lambda library: library.bincount),
    )
    for name, arrays, method in sized:
        registry.add(Workload(name, "order", partial(eagerly, method, arrays), "ms"))
    backward: tuple[tuple[str, Callable[..., Any], tuple[int, ...]], ...] = (
        (f"sort {odd_size}", lambda library, x: library.sort(x), (ODD_ROWS, ODD)),
        (f"topk 50 of {odd_size}", lambda library, x: library.largest(x, 50), (ODD_ROWS, 50)),
        (f"median {odd_size}", lambda library, x: library.median(x), (ODD_ROWS,)),
        (f"kthvalue {K} of {odd_size}", lambda library, x: library.kth(x, K), (ODD_ROWS,)),
    )
    for name, function, shape in backward:
        registry.gradient(f"gradient of {name}", "order", odd, function, shape)
