"""Decompositions of matrices, beside LAPACK's by numpy. The matrices are new ones, far from singular."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .table import Array, Call, Pool, Ref, row


def _matrices(pool: Pool, m: int, n: int) -> int:
    """Matrices that the diagonal rules."""
    lead = [pool.pick.randint(1, 3) for _ in range(pool.pick.randint(0, 2))]
    i = pool.floats(*lead, m, n)
    return pool.make(pool.values[i].array / 4 + 4 * np.eye(m, n))


def _square(name: str, reference: Callable[..., Any], *, smooth: bool = True, definite: bool = False) -> None:
    def draw(pool: Pool, _: int) -> Call:
        n = pool.pick.choice([1, 2, 3, 5])
        i = _matrices(pool, n, n)
        if definite:
            a = pool.values[i].array
            i = pool.make((a + np.swapaxes(a, -1, -2).conj()) / 2)
        return Call(name, (Ref(i),), {}, reference)

    row(name, draw, wide=True, smooth=smooth)


def _of_any(name: str, reference: Callable[..., Any], smooth: bool = False, **kwargs: Any) -> None:
    def draw(pool: Pool, _: int) -> Call:
        i = _matrices(pool, pool.pick.choice([1, 2, 3, 5]), pool.pick.choice([1, 2, 4]))
        return Call(name, (Ref(i),), kwargs, reference)

    row(name, draw, wide=True, smooth=smooth)


def _inverse(x: Array, upper: bool = False) -> Any:
    low = np.triu(x) if upper else np.tril(x)
    turned = np.swapaxes(low, -1, -2).conj()
    return np.linalg.inv(turned @ low if upper else low @ turned)


def _power(pool: Pool, _: int) -> Call:
    n = pool.pick.choice([1, 2, 3, 5])
    return Call("matrix_power", (Ref(_matrices(pool, n, n)), pool.pick.randint(-2, 3)), {}, np.linalg.matrix_power)


def _exponential(x: Array) -> Array:
    """By halving and Taylor's series."""
    x, power, total = x / 1024, np.eye(x.shape[-1]) + 0 * x, np.eye(x.shape[-1]) + 0 * x
    for k in range(1, 20):
        power = power @ x / k
        total = total + power
    return np.linalg.matrix_power(total, 1024)


def _packed(x: Array, **_: Any) -> Any:
    """What LAPACK's geqrf keeps, and the factors."""
    each = [np.linalg.qr(one, mode="raw") for one in x.reshape(-1, *x.shape[-2:])]
    kept, factors = np.stack([h.T for h, _ in each]), np.stack([tau for _, tau in each])
    return kept.reshape(x.shape), factors.reshape(*x.shape[:-2], -1)


def _lu(x: Array) -> Any:
    """Without exchanges, which the diagonal leaves none to make."""
    out = x.copy()
    for k in range(min(x.shape[-2:])):
        out[..., k + 1 :, k] /= out[..., k, None, k]
        out[..., k + 1 :, k + 1 :] -= out[..., k + 1 :, k, None] * out[..., k, None, k + 1 :]
    least = min(x.shape[-2:])
    return out, np.broadcast_to(np.arange(1, least + 1), (*x.shape[:-2], least))


def _with_side(name: str, reference: Callable[..., Any], **kwargs: Any) -> None:
    """A method of right sides, of which the second operand is the matrix."""

    def draw(pool: Pool, _: int) -> Call:
        n = pool.pick.choice([1, 2, 3, 5])
        i = _matrices(pool, n, n)
        j = pool.floats(*pool.values[i].array.shape[:-1], pool.pick.randint(1, 4))
        return Call(name, (Ref(j), Ref(i)), {key: pool.pick.random() < 0.5 for key in kwargs}, reference)

    row(name, draw, wide=True, smooth=name != "triangular_solve")


def _triangular(b: Array, a: Array, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    t = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        t = t - t * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    return np.linalg.solve(np.swapaxes(t, -1, -2) if transpose else t, b), a


def _lu_solve(pool: Pool, _: int) -> Call:
    n = pool.pick.choice([1, 2, 3, 5])
    i = _matrices(pool, n, n)
    shape = pool.values[i].array.shape
    j, k = pool.floats(*shape[:-1], 2), pool.make(np.broadcast_to(np.arange(1, n + 1), shape[:-1]).copy())

    def solved(b: Array, a: Array, _: Array) -> Any:
        return np.linalg.solve((np.tril(a, -1) + np.eye(n)) @ np.triu(a), b)

    return Call("lu_solve", (Ref(j), Ref(i), Ref(k)), {}, solved)


def _product(a: Array, tau: Array) -> Array:
    """All of the product of reflections."""
    out = np.eye(a.shape[0])
    for i, factor in enumerate(tau):
        v = np.r_[np.zeros(i), 1, a[i + 1 :, i]]
        out = out @ (np.eye(a.shape[0]) - factor * np.outer(v, v.conj()))
    return out


def _orgqr(pool: Pool, _: int) -> Call:
    n = pool.pick.randint(1, 3)
    i, j = pool.floats(n + pool.pick.randint(0, 2), n), pool.floats(pool.pick.randint(1, n))
    return Call("orgqr", (Ref(i), Ref(j)), {}, lambda a, tau: _product(a, tau)[:, : a.shape[1]])


def _ormqr(pool: Pool, _: int) -> Call:
    q, p, n = (pool.pick.randint(1, 4) for _ in range(3))
    left, transpose = (pool.pick.random() < 0.5 for _ in range(2))
    i, j = pool.floats(q, n), pool.floats(pool.pick.randint(1, min(q, n)))
    k = pool.floats(q, p) if left else pool.floats(p, q)

    def reference(a: Array, tau: Array, x: Array, left: bool, transpose: bool) -> Array:
        product = _product(a, tau)
        product = product.conj().T if transpose else product
        return product @ x if left else x @ product

    return Call("ormqr", (Ref(i), Ref(j), Ref(k)), {"left": left, "transpose": transpose}, reference)


def _iterated(x: Array, steps: int, params: tuple[float, ...]) -> Array:
    x = x / (np.sqrt((x * x).sum((-2, -1), keepdims=True)) + 1e-7)
    for _ in range(steps):
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        s = np.asarray(sum(p * s ** (2 * k + 1) for k, p in enumerate(params)))
        x = u * s[..., None, :] @ vh
    return x


_of_any("adjoint", lambda x: np.swapaxes(x, -1, -2).conj(), True)
_square("cholesky", np.linalg.cholesky, definite=True, smooth=False)  # the gradient is that of symmetric matrices
_square("cholesky_inverse", _inverse)
_with_side("cholesky_solve", lambda b, a, upper: _inverse(a, upper) @ b, upper=True)
_square("det", np.linalg.det)
_square("inverse", np.linalg.inv)
_square("logdet", lambda x: np.linalg.slogdet(x)[1])
_square("slogdet", lambda x: tuple(np.linalg.slogdet(x)), smooth=False)
_square("matrix_exp", _exponential)
_of_any("geqrf", _packed)
_of_any("lu", _lu)
_of_any("pinverse", lambda x, rcond: np.linalg.pinv(x, rcond), rcond=1e-5)
_of_any("qr", lambda x: tuple(np.linalg.qr(x)))
_of_any("svd", lambda x, compute_uv: (
    np.zeros((*x.shape[:-1], x.shape[-2])), np.linalg.svd(x, compute_uv=False),
    np.zeros((*x.shape[:-2], x.shape[-1], x.shape[-1]))), compute_uv=False)  # fmt: skip
_of_any("newton_schulz", _iterated, True, steps=2, params=(1.5, -0.5, 0.25))
row("matrix_power", _power, smooth=True, wide=True)
row("lu_solve", _lu_solve, smooth=True, wide=True)
row("orgqr", _orgqr, smooth=True, wide=True)
row("ormqr", _ormqr, smooth=True, wide=True)
_with_side("triangular_solve", _triangular, upper=True, transpose=True, unitriangular=True)
