"""Decompositions of matrices: of a size that blocks divide, in single precision, and of a prime one, in double.

And of thousands of small matrices at once, whose numbers and sizes are mostly odd.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..case import Array, aligned, normal
from ..workload import Goal, Registry

SIZE, PRIME = 512, 509
MANY = ((4007, 5), (1511, 13), (701, 31))  # how many small matrices, and of how many rows
SIDES = 3  # right sides of a system that has few
COLD = ("cholesky", "solve", "qr", "eigh", "svd", "eig")


def general(n: int) -> list[Array]:
    """A matrix of normally distributed numbers."""
    return [normal(n, n)]


def symmetric(n: int) -> list[Array]:
    """The symmetric part of one."""
    x = normal(n, n)
    return [aligned((x + x.T) / 2)]


def definite(n: int) -> list[Array]:
    """A positive definite matrix, whose condition is about 10."""
    x = normal(n, n)
    return [aligned(x @ x.T / np.float32(n) + np.eye(n, dtype=np.float32) / 2)]


def system(n: int) -> list[Array]:
    """A matrix, and as many right sides as it has rows."""
    return [normal(n, n), normal(n, n, seed=1)]


def few_sides(n: int) -> list[Array]:
    """A matrix, and a few right sides."""
    return [normal(n, n), normal(n, SIDES)]


def batch(count: int, n: int) -> list[Array]:
    """Matrices of normally distributed numbers, with more on the diagonals, so that none is nearly singular."""
    return [aligned(normal(count, n, n) + 2 * np.sqrt(np.float32(n)) * np.eye(n, dtype=np.float32))]


def symmetric_batch(count: int, n: int) -> list[Array]:
    """The symmetric parts of such."""
    x = normal(count, n, n)
    return [aligned((x + x.transpose(0, 2, 1)) / 2)]


def definite_batch(count: int, n: int) -> list[Array]:
    """Positive definite matrices."""
    x = normal(count, n, n)
    return [aligned(x @ x.transpose(0, 2, 1) / np.float32(n) + np.eye(n, dtype=np.float32) / 2)]


def sides_batch(count: int, n: int) -> list[Array]:
    """Matrices, and a few right sides of each."""
    return [*batch(count, n), normal(count, n, SIDES)]


def logarithm(library: Any, a: Any) -> Any:
    """The logarithm of the determinant's magnitude: the determinant itself is beyond all floats."""
    return library.linalg.slogdet(a)[1]


def triangles(library: Any, a: Any) -> Any:
    """Both factors of a decomposition whose columns may have other signs."""
    q, r = library.linalg.qr(a)
    return abs(q) + abs(r)


def lengths(library: Any, a: Any) -> Any:
    """Products of what is in R, which do not depend on the signs of its rows."""
    _, r = library.linalg.qr(a)
    return r * r


def spectrum(library: Any, a: Any) -> Any:
    """The matrix again, made of its eigenvalues and eigenvectors."""
    values, vectors = library.linalg.eigh(a)
    return (vectors * values) @ library.transposed(vectors)


def singular(library: Any, a: Any) -> Any:
    """The matrix again, made of its singular values and vectors."""
    u, s, vh = library.linalg.svd(a, full_matrices=False)
    return (u * s) @ vh


def squared(library: Any, a: Any) -> Any:
    """The square of a matrix, made of its eigenvalues and eigenvectors, whose signs do not matter then.

    It is made symmetric first: libraries differ in which triangle gets the gradient.
    """
    values, vectors = library.linalg.eigh((a + library.transposed(a)) / 2)
    return (vectors * values**2) @ library.transposed(vectors)


def stretched(library: Any, a: Any) -> Any:
    """A matrix whose singular values are the cubes of those of another."""
    u, s, vh = library.linalg.svd(a, full_matrices=False)
    return (u * s**3) @ vh


def eigenvalues(library: Any, a: Any) -> Any:
    """Magnitudes of the eigenvalues in order, times the lengths of the eigenvectors, which are 1."""
    values, vectors = library.linalg.eig(a)
    return library.sort(abs(values)) * (abs(vectors) ** 2).sum(0)


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    torch_first = ("torch", "jax")
    named: tuple[tuple[str, Callable[[int], list[Array]], Callable[..., Any]], ...] = (
        ("cholesky", definite, lambda library, a: library.linalg.cholesky(a)),
        ("solve", system, lambda library, a, b: library.linalg.solve(a, b)),
        (f"solve, {SIDES} sides", few_sides, lambda library, a, b: library.linalg.solve(a, b)),
        ("inv", general, lambda library, a: library.linalg.inv(a)),
        ("slogdet", general, logarithm),
        ("lu", general, lambda library, a: library.triangular_factors(a)),
        ("qr", general, triangles),
        ("eigh", symmetric, spectrum),
        ("eigvalsh", symmetric, lambda library, a: library.linalg.eigvalsh(a)),
        ("svd", general, singular),
        ("svdvals", general, lambda library, a: library.linalg.svdvals(a)),
        ("eig", general, eigenvalues),
        (f"lstsq, {SIDES} sides", few_sides, lambda library, a, b: library.linalg.lstsq(a, b)[0]),
        ("pinv", general, lambda library, a: library.linalg.pinv(a)),
        ("matrix_exp", symmetric, lambda library, a: library.exponential(a / 8)),
    )
    differentiated: tuple[tuple[str, Callable[[int], list[Array]], Callable[..., Any]], ...] = (
        ("cholesky", definite, lambda library, a: library.linalg.cholesky(a)),
        ("solve", few_sides, lambda library, a, b: library.linalg.solve(a, b)),
        ("inv", definite, lambda library, a: library.linalg.inv(a)),
        ("qr", general, lengths),
        ("lstsq", few_sides, lambda library, a, b: library.linalg.lstsq(a, b)[0]),
        ("eigh", symmetric, squared),
        ("svd", general, stretched),
    )
    for name, arrays, function in named:
        for n, dtype, tolerance in ((SIZE, "float32", 2e-2), (PRIME, "float64", 1e-4)):

            def drawn(arrays: Callable[[int], list[Array]] = arrays, n: int = n, dtype: str = dtype) -> list[Array]:
                return [aligned(one.astype(dtype)) for one in arrays(n)]

            registry.kernel(
                f"{name}, {dtype} {n}", "decompositions", drawn, function, "ms", 1.0, tolerance=tolerance,
                goals=(Goal("torch", 0.2),), cold=n == SIZE and name in COLD,
                reference=torch_first if name in ("lu", "matrix_exp") else ("numpy", *torch_first),
            )  # fmt: skip
    small: tuple[tuple[str, Callable[[int, int], list[Array]], Callable[..., Any]], ...] = (
        ("cholesky", definite_batch, lambda library, a: library.linalg.cholesky(a)),
        (f"solve, {SIDES} sides", sides_batch, lambda library, a, b: library.linalg.solve(a, b)),
        ("inv", batch, lambda library, a: library.linalg.inv(a)),
        ("slogdet", batch, logarithm),
        ("eigvalsh", symmetric_batch, lambda library, a: library.linalg.eigvalsh(a)),
        ("svdvals", batch, lambda library, a: library.linalg.svdvals(a)),
    )
    for count, n in MANY:
        for name, several, function in small:
            registry.kernel(
                f"{name}, float32 {count} of {n}", "decompositions", partial(several, count, n), function, "ms", 1.0,
                tolerance=2e-3, goals=(Goal("torch", 0.2),), reference=("numpy", *torch_first),
            )  # fmt: skip
    for n in (SIZE, PRIME):
        for name, arrays, function in differentiated:
            shape = (n, SIDES) if arrays is few_sides else (n, n)
            registry.gradient(
                f"gradient of {name}, float32 {n}", "decompositions", partial(arrays, n), function, shape,
                tolerance=2e-2, goals=(Goal("torch", 0.2),),
            )  # fmt: skip
