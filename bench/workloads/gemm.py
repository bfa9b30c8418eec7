"""Matrix products: sizes, odd shapes, some of which are others each month, transposed operands, bfloat16."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from ..case import Array, aligned, normal
from ..libraries import Library
from ..workload import Goal, Registry


def operands(m: int, n: int, k: int, ta: bool = False, tb: bool = False) -> Callable[[], Sequence[Array]]:
    """What makes two matrices whose product, after transposing those that are marked, is (m, n)."""
    return lambda: [
        normal(*((k, m) if ta else (m, k)), seed=1), normal(*((n, k) if tb else (k, n)), seed=2)
    ]  # fmt: skip


def product(ta: bool = False, tb: bool = False) -> Callable[..., Any]:
    """The product of two matrices, transposing those that are marked."""

    def fn(library: Library, a: Any, b: Any) -> Any:
        return library.matmul(library.transposed(a) if ta else a, library.transposed(b) if tb else b)

    return fn


def odd_sides(seed: int, count: int = 9) -> list[int]:
    """Sides that nobody chose, none of them even.

    >>> odd_sides(0, 3)
    [989, 1061, 283]
    """
    rng = random.Random(seed)
    return [rng.randrange(201, 1500, 2) for _ in range(count)]


def integers(m: int, k: int, n: int, a: str, b: str, tb: bool = False) -> Callable[[], Sequence[Array]]:
    """What makes two matrices of 8-bit integers, whose product is (m, n)."""

    def drawn() -> Sequence[Array]:
        rng = np.random.default_rng(0)
        shapes = ((m, k), (n, k) if tb else (k, n))
        return [
            aligned(rng.integers(np.iinfo(t).min, np.iinfo(t).max, shape, t, endpoint=True))
            for t, shape in zip((a, b), shapes, strict=True)
        ]

    return drawn


def integer_product(tb: bool = False) -> Callable[..., Any]:
    """The product of two matrices of integers, the second transposed if it is marked."""
    return lambda library, a, b: library.integer_product(a, library.transposed(b) if tb else b)


INTEGERS = (
    (512, 512, 512, "int8", False), (511, 511, 511, "int8", False), (512, 512, 512, "int8", True),
    (768, 3072, 768, "int8", True), (1024, 1024, 1024, "int8", False), (509, 1021, 507, "uint8", False),
    (1, 4096, 4096, "int8", True), (5, 4099, 4093, "int8", False), (13, 4099, 4093, "int8", True),
)  # fmt: skip
"""Rows, terms, columns, dtype of the first operand, whether the second is transposed; that is int8."""
SKINNY = (
    (1, 4099, 4093, "", False), (3, 4099, 4093, "", True), (13, 4099, 4093, "", False), (16, 4096, 4096, "", True),
    (1, 4099, 4093, "bfloat16", True), (7, 4099, 4093, "bfloat16", True), (8, 4096, 4096, "bfloat16", False),
    (5, 4099, 4093, "float16", True),
)
"""Rows, terms, columns, dtype, whether the second operand is transposed."""


def chain(library: Library, *operands: Any) -> Any:
    """The product of several matrices, from the left."""
    return reduce(library.matmul, operands)


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    for n, share in ((256, 0.8), (512, 0.8), (1024, 0.9), (2048, 0.9)):
        goals = [Goal("share", share)]
        if n == 1024:
            goals.insert(0, Goal("rate", 200, "first"))
        registry.kernel(
            f"sgemm {n}", "matrix products", operands(n, n, n), product(), "GFLOP/s", 2.0 * n**3,
            goals=tuple(goals), quick=n in (512, 1024), cold=n == 1024,
        )  # fmt: skip
    m, k, n = 1000, 1001, 999
    registry.kernel(
        f"sgemm {m}x{k}x{n}", "matrix products", operands(m, n, k), product(), "GFLOP/s", 2.0 * m * n * k,
        goals=(Goal("share", 0.8),),
    )  # fmt: skip
    registry.kernel(
        "skinny product 8x4096x4096", "matrix products", operands(8, 4096, 4096), product(), "GFLOP/s",
        2.0 * 8 * 4096**2, goals=(Goal("torch", 1.0),), limit="", tolerance=1e-3,
    )  # fmt: skip
    for m, k, n, narrow, tb in SKINNY:
        registry.kernel(
            f"skinny product {m}x{k}x{n}{' B.T' if tb else ''}{f', {narrow}' if narrow else ''}", "matrix products",
            operands(m, n, k, tb=tb), product(tb=tb), "GFLOP/s", 2.0 * m * k * n, dtype=narrow,
            goals=(Goal("torch", 1.0),), limit="", tolerance=2e-2 if narrow else 1e-3,
            reference=("torch", "jax") if narrow else ("numpy", "torch", "jax"),
        )  # fmt: skip
    for m, k, n, a, tb in INTEGERS:
        registry.kernel(
            f"{a} by int8 {m}x{k}x{n}{' B.T' if tb else ''}", "matrix products", integers(m, k, n, a, "int8", tb),
            integer_product(tb), "GFLOP/s", 2.0 * m * k * n, limit="", tolerance=0.0,
            goals=(Goal("torch", 1.0),) if a == "int8" else (), reference=("jax", "numpy"),
        )  # fmt: skip
    for ta, tb in ((True, False), (False, True), (True, True)):
        name = f"sgemm 1024 {'A.T' if ta else 'A'} @ {'B.T' if tb else 'B'}"
        registry.kernel(
            name, "matrix products", operands(1024, 1024, 1024, ta, tb), product(ta, tb), "GFLOP/s", 2.0 * 1024**3,
            goals=(Goal("share", 0.8),),
        )  # fmt: skip
    registry.kernel(
        "bf16 gemm 1024", "matrix products", operands(1024, 1024, 1024), product(), "GFLOP/s", 2.0 * 1024**3,
        dtype="bfloat16", limit="bf16", goals=(Goal("share", 0.9),), tolerance=2e-2, reference=("torch", "jax"),
    )  # fmt: skip
    sides = odd_sides(int(time.strftime("%Y%m", time.gmtime())))  # the same in all processes of a run
    registry.kernel(
        "sgemm, 8 odd shapes of the month", "matrix products",
        lambda: [normal(m, k, seed=n, scale=k**-0.5) for n, (m, k) in enumerate(pairwise(sides))], chain, "GFLOP/s",
        2.0 * sum(sides[0] * k * n for k, n in pairwise(sides[1:])), goals=(Goal("share", 0.8),), tolerance=1e-3,
    )  # fmt: skip
