"""Linear algebra: values against numpy, errors bounded by the theory, gradients against differences, bad input."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, linalg

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(20261124)
EPS = {"float32": 2.0**-23, "float64": 2.0**-52}
LEADS = [(), (3,), (2, 1), (7,)]


def some(*shape: int, dtype: str = "float64") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def definite(*shape: int, dtype: str = "float64") -> Array:
    a = some(*shape)
    return np.asarray(a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])).astype(dtype)


def size() -> int:
    return int(RNG.integers(1, 14))


def close(got: Tensor, want: Any, tolerance: float = 1e-9) -> None:
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


def orthonormal(q: Array, eps: float) -> None:
    """The columns are so, to a few bits for each."""
    if q.size:
        assert np.abs(np.swapaxes(q, -1, -2) @ q - np.eye(q.shape[-1])).max() < 20 * q.shape[-2] * eps


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lead", LEADS, ids=str)
def test_factors_multiply_to_the_matrix(lead: tuple[int, ...], dtype: str, backend: str) -> None:
    """Backward errors of c * n * eps * norm (Higham, "Accuracy and Stability of Numerical Algorithms", 2002)."""
    eps, m, n = EPS[dtype], size(), size()
    a, s = some(*lead, m, n, dtype=dtype), definite(*lead, n, n, dtype=dtype)
    bound = 30 * max(m, n) * eps

    def same(got: Array, want: Array) -> None:
        assert np.abs(got - want).max(initial=0) <= bound * np.linalg.norm(want, axis=(-2, -1)).max(initial=0)

    low = linalg.cholesky(Tensor(s)).numpy()
    same(low @ np.swapaxes(low, -1, -2), s)
    assert np.array_equal(low, np.tril(low))
    p, left, right = (t.numpy() for t in linalg.lu(Tensor(a)))
    same(p @ left @ right, a)
    assert np.abs(left).max() <= 1 and np.array_equal(left, np.tril(left)) and np.array_equal(right, np.triu(right))
    for mode in ("reduced", "complete"):
        q, r = (t.numpy() for t in linalg.qr(Tensor(a), mode))
        assert q.shape == (*lead, m, m if mode == "complete" else min(m, n)) and np.array_equal(r, np.triu(r))
        same(q @ r, a)
        orthonormal(q, eps)
    values, vectors = (t.numpy() for t in linalg.eigh(Tensor(s)))
    same(vectors * values[..., None, :] @ np.swapaxes(vectors, -1, -2), s)
    orthonormal(vectors, eps)
    for full in (False, True):
        u, w, vh = (t.numpy() for t in linalg.svd(Tensor(a), full))
        k = min(m, n)
        same(u[..., :k] * w[..., None, :] @ vh[..., :k, :], a)
        orthonormal(u, eps)
        orthonormal(np.swapaxes(vh, -1, -2), eps)
        assert u.shape[-1] == (m if full else k) and vh.shape[-2] == (n if full else k)
        assert (np.diff(w, axis=-1) <= 0).all() and (w >= 0).all()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(65, 65), (97, 131), (131, 67), (2, 64, 70), (2, 149, 149)], ids=str)
def test_matrices_of_several_blocks(shape: tuple[int, ...], dtype: str) -> None:
    """Backward errors as of small ones; Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 9.3."""
    eps, (m, n) = EPS[dtype], shape[-2:]
    a = some(*shape, dtype=dtype)
    p, left, right = (t.numpy() for t in linalg.lu(Tensor(a)))
    assert np.abs(p @ left @ right - a).max() <= 4 * max(m, n) * eps * np.abs(a).max()
    assert np.abs(left).max() <= 1 and (p.sum(-1) == 1).all() and (p.sum(-2) == 1).all()
    pivots = linalg.lu_factor(Tensor(a)).pivots.numpy()
    for one, swaps in zip(p.reshape(-1, m, m), pivots.reshape(-1, min(m, n)), strict=True):
        order = list(range(m))
        for i, k in enumerate(swaps):
            order[i], order[k - 1] = order[k - 1], order[i]
        assert order == one.argmax(0).tolist()
    if m != n:
        return
    b, s = some(*shape[:-1], 3, dtype=dtype), definite(*shape, dtype=dtype)
    low = linalg.cholesky(Tensor(s)).numpy()
    assert np.abs(low @ np.swapaxes(low, -1, -2) - s).max() <= n * eps * np.abs(s).max()
    assert np.array_equal(low, np.tril(low))

    def solves(matrix: Array, x: Array) -> None:
        size = np.abs(matrix).sum(-1).max() * np.abs(x).max()
        assert np.abs(matrix @ x - b).max() <= 4 * n * eps * size

    solves(a, linalg.solve(Tensor(a), Tensor(b)).numpy())
    for upper in (False, True):
        t = (np.triu(a) if upper else np.tril(a)) + 9 * np.eye(n, dtype=dtype)
        solves(t, linalg.solve_triangular(Tensor(t), Tensor(b), upper=upper).numpy())


HARD: dict[str, Callable[[int], Array]] = {
    "graded columns": lambda n: some(n, n) * 10.0 ** np.linspace(0, -200, n),
    "graded rows": lambda n: some(n, n) * 10.0 ** np.linspace(-100, 100, n)[:, None],
    "Hilbert's": lambda n: 1 / (1.0 + np.arange(n) + np.arange(n)[:, None]),
    "of pivots that grow": lambda n: np.eye(n) - np.tril(np.ones((n, n)), -1) + np.outer(np.ones(n), np.eye(n)[-1]),
    "of signs": lambda n: np.sign(some(n, n)),
    "of little rank": lambda n: some(n, 3) @ some(3, n),
    "a shift": lambda n: np.roll(np.eye(n), 3, 0),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("n", [7, 40, 137])
@pytest.mark.parametrize("name", HARD)
def test_elimination_of_hard_matrices(name: str, n: int) -> None:
    """Backward errors against the factors, which may have grown; Higham, as above, theorem 9.3 and section 8.1."""
    a, b = HARD[name](n), some(n, 2)
    p, left, right = (t.numpy() for t in linalg.lu(Tensor(a)))
    within = n * EPS["float64"] * (np.abs(left) @ np.abs(right))
    assert (np.abs(p.T @ a - left @ right) <= within).all() and np.abs(left).max() <= 1
    x = linalg.solve(Tensor(a), Tensor(b)).numpy()
    if np.isfinite(x).all():
        assert (np.abs(a @ x - b) <= 4 * p @ within @ np.abs(x)).all()
    for upper in (False, True):
        t = right if upper else left
        x = linalg.solve_triangular(Tensor(t), Tensor(b), upper=upper).numpy()
        if np.isfinite(x).all():
            assert (np.abs(t @ x - b) <= n * EPS["float64"] * np.abs(t) @ np.abs(x)).all()


@pytest.mark.parametrize("shape", [(143, 143), (150, 133)], ids=str)
def test_elimination_in_halves(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """As larger matrices are eliminated."""
    monkeypatch.setattr("tg_frontend.linalg.pivoting._HALVES", 128)
    a = some(*shape)
    p, left, right = (t.numpy() for t in linalg.lu(Tensor(a)))
    assert np.abs(p @ left @ right - a).max() <= 4 * max(shape) * EPS["float64"] * np.abs(a).max()
    assert np.abs(left).max() <= 1 and (p.sum(0) == 1).all() and (p.sum(1) == 1).all()


def test_of_pivots_that_are_equal_the_first_is_taken() -> None:
    """As LAPACK does: the first of the rows in the order in which they are by then."""
    many = RNG.integers(-1, 2, (300, 6, 5)).astype(float) * 2.0 ** RNG.integers(0, 2, (300, 6, 5))
    found = linalg.lu_factor(Tensor(many)).pivots.numpy() - 1
    for a, pivots in zip(many, found, strict=True):
        for k in range(5):
            best = k + int(np.abs(a[k:, k]).argmax())
            assert pivots[k] == best
            a[[k, best]] = a[[best, k]]
            if a[k, k]:
                a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


@pytest.mark.parametrize("n", [5, 140])
def test_elimination_of_what_is_no_number(n: int) -> None:
    a = some(2, n, n)
    a[0, n - 2, n // 2] = np.nan
    for out in (linalg.inv(Tensor(a)), linalg.det(Tensor(a)), linalg.solve(Tensor(a), Tensor(some(2, n, 1)))):
        assert np.isnan(out.numpy()[0]).any() and np.isfinite(out.numpy()[1]).all()


def test_a_zero_on_the_diagonal_of_several_blocks_spoils_what_comes_of_it_alone() -> None:
    t = np.tril(some(70, 70)) / 9 + 3 * np.eye(70)
    t[40, 40] = 0
    x = linalg.solve_triangular(Tensor(t), Tensor(np.ones((70, 1))), upper=False).numpy()
    close(Tensor(x[:40]), np.linalg.solve(t[:40, :40], np.ones((40, 1))))
    assert not np.isfinite(x[40:]).any()
    singular = some(80, 80)
    singular[:, 71] = singular[:, 3]
    lost = some(80, 80)
    lost[:, 66] = 0
    assert linalg.lu_factor_ex(Tensor(lost)).info.item() == 67 and linalg.det(Tensor(lost)).item() == 0
    assert linalg.slogdet(Tensor(singular)).logabsdet.item() < np.linalg.slogdet(some(80, 80))[1] - 20


SPECTRA: dict[str, Callable[[int], Array]] = {
    "repeated": lambda n: np.r_[np.ones(n // 2), 2 * np.ones(n - n // 2)],
    "graded": lambda n: 10.0 ** -np.arange(n),
    "of little rank": lambda n: np.r_[np.ones(3), np.zeros(n - 3)],
    "zero": np.zeros,
    "huge": lambda n: 1e150 * np.arange(n),
    "tiny": lambda n: 1e-150 * np.arange(n),
    "of both signs": lambda n: np.arange(n) - n / 2,
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", SPECTRA)
def test_hard_spectra(name: str) -> None:
    n = 23
    q, _ = np.linalg.qr(some(n, n))
    want = SPECTRA[name](n)
    a = (q * want) @ q.T
    a = (a + a.T) / 2
    bound = 100 * EPS["float64"] * max(np.abs(want).max(), 1e-300)
    values, vectors = (t.numpy() for t in linalg.eigh(Tensor(a)))
    assert np.abs(values - np.sort(want)).max() < bound and np.abs(vectors * values @ vectors.T - a).max() < bound
    orthonormal(vectors, EPS["float64"])
    u, w, vh = (t.numpy() for t in linalg.svd(Tensor(a)))
    assert np.abs(w - np.sort(np.abs(want))[::-1]).max() < bound and np.abs(u * w @ vh - a).max() < bound
    orthonormal(u, EPS["float64"])
    orthonormal(vh.T, EPS["float64"])
    q, r = (t.numpy() for t in linalg.qr(Tensor(a)))
    assert np.abs(q @ r - a).max() < bound
    orthonormal(q, EPS["float64"])


def glued(copies: int, beside: float) -> Array:
    """Wilkinson's matrix, with pairs of eigenvalues that nearly agree, several times, with so much between copies."""
    d = np.tile(np.abs(np.arange(-10.0, 11)), copies)
    e = np.tile(np.r_[np.ones(20), beside], copies)[:-1]
    return np.diag(d) + np.diag(e, 1) + np.diag(e, -1)


TORN: dict[str, Callable[[], Array]] = {
    "Wilkinson's": lambda: glued(1, 0.0),
    "copies of Wilkinson's": lambda: glued(4, 0.0),
    "copies that nearly come apart": lambda: glued(3, 1e-15),
    "copies that hang together": lambda: glued(3, 1e-7),
    "second differences": lambda: 2 * np.eye(67) - np.eye(67, k=1) - np.eye(67, k=-1),
    "ones": lambda: np.ones((37, 37)),
    "the identity": lambda: np.eye(33),
    "equal blocks": lambda: np.kron(np.eye(9), [[2.0, 1.0], [1.0, 2.0]]),
    "graded from above": lambda: np.diag(2.0 ** -np.arange(40)) + np.diag(2.0 ** -np.arange(39), 1),
    "graded from below": lambda: np.diag(2.0 ** np.arange(-40, 0)) + np.diag(2.0 ** np.arange(-39, 0), 1),
    "zeros above": lambda: np.diag(np.r_[np.zeros(20), np.ones(13)]) + np.diag(np.r_[np.ones(9), np.zeros(23)], 1),
    "one column": lambda: np.outer(np.ones(35), np.eye(35)[17]),
    "a shift": lambda: np.eye(41, k=1),
    "more than pieces of their own": lambda: np.tril(some(150, 150)) / 9,
    "equal blocks in pieces": lambda: np.kron(np.eye(67), [[2.0, 1.0], [1.0, 2.0]]),
    "copies of Wilkinson's in pieces": lambda: glued(7, 1e-14),
    "a zero row in pieces": lambda: (
        np.diag(np.r_[np.ones(63), 0, np.ones(80)]) + np.diag(np.r_[np.ones(62), 0, 0, np.ones(79)], 1)
    ),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TORN)
def test_spectra_of_matrices_torn_apart(name: str, dtype: str) -> None:
    """Eigenvalues that (nearly) agree, matrices that come apart: what divide and conquer has to look after."""
    a = TORN[name]().astype(dtype)
    bound = 4 * len(a) * EPS[dtype] * max(float(np.linalg.norm(a, 2)), 1e-30)
    s = np.tril(a) + np.tril(a, -1).T
    values, vectors = (t.numpy() for t in linalg.eigh(Tensor(a)))
    assert np.abs(s @ vectors - vectors * values).max() <= bound
    assert np.abs(values - np.linalg.eigvalsh(s.astype("float64"))).max() <= bound
    orthonormal(vectors, EPS[dtype])
    assert np.abs(linalg.eigvalsh(Tensor(a)).numpy() - values).max() <= bound
    u, w, vh = (t.numpy() for t in linalg.svd(Tensor(a)))
    assert np.abs(u * w @ vh - a).max() <= bound and (np.diff(w) <= 0).all()
    assert np.abs(w - np.linalg.svd(a.astype("float64"), compute_uv=False)).max() <= bound
    orthonormal(u, EPS[dtype])
    orthonormal(vh.T, EPS[dtype])
    assert np.abs(linalg.svdvals(Tensor(a)).numpy() - w).max() <= bound


@pytest.mark.drawn(1)
@pytest.mark.parametrize("shape", [(170, 137), (2, 139, 150), (33, 150)], ids=str)
def test_reflections_by_blocks_and_halves(shape: tuple[int, ...]) -> None:
    """Factors of long and wide matrices that are condensed in two halves, and of those that blocks do not divide."""
    a, eps = some(*shape), EPS["float64"]
    bound = max(shape) * eps * np.linalg.norm(a, 2, axis=(-2, -1)).max()
    u, w, vh = (t.numpy() for t in linalg.svd(Tensor(a), False))
    assert np.abs(u * w[..., None, :] @ vh - a).max() <= bound
    assert np.abs(linalg.svdvals(Tensor(a)).numpy() - np.linalg.svd(a, compute_uv=False)).max() <= bound
    for mode in ("reduced", "complete"):
        q, r = (t.numpy() for t in linalg.qr(Tensor(a), mode))
        assert np.abs(q @ r - a).max() <= bound and np.array_equal(r, np.triu(r))
        orthonormal(q, eps)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("bad", [np.nan, inf, -inf])
def test_spectra_of_what_is_not_finite_are_nan_and_others_beside_it_are_not(bad: float) -> None:
    a = some(2, 35, 35)
    a[0, 20, 3] = bad
    for out in (*linalg.eigh(Tensor(a)), linalg.eigvalsh(Tensor(a)), *linalg.svd(Tensor(a)), linalg.svdvals(Tensor(a))):
        found = out.numpy()
        assert np.isnan(found[0]).all() and np.isfinite(found[1]).all()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("lead", LEADS, ids=str)
def test_systems_of_equations(lead: tuple[int, ...], backend: str) -> None:
    n, m = size(), size()
    a, b = some(*lead, n, n) + 3 * np.eye(n), some(*lead, n, m)
    x = np.linalg.solve(a, b)
    close(linalg.solve(Tensor(a), Tensor(b)), x)
    close(linalg.solve(Tensor(a), Tensor(np.swapaxes(b, -1, -2).copy()), left=False),
          np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), b), -1, -2))  # fmt: skip
    close(linalg.solve(Tensor(a), Tensor(b[..., 0])), x[..., 0])
    factors = linalg.lu_factor(Tensor(a))
    close(linalg.lu_solve(*factors, Tensor(b)), x)
    turned, across = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)
    close(linalg.lu_solve(*factors, Tensor(b), adjoint=True), np.linalg.solve(turned, b))
    close(linalg.lu_solve(*factors, Tensor(across.copy()), left=False), across @ np.linalg.inv(a))
    close(linalg.lu_solve(*factors, Tensor(across.copy()), left=False, adjoint=True), across @ np.linalg.inv(turned))
    many = some(2, *(1,) * len(lead), n, m)
    close(linalg.lu_solve(*factors, Tensor(many)), np.linalg.solve(a, many))
    close(linalg.inv(Tensor(a)), np.linalg.inv(a))
    sign, magnitude = np.linalg.slogdet(a)
    got = linalg.slogdet(Tensor(a))
    close(got.sign, sign)
    close(got.logabsdet, magnitude)
    close(linalg.det(Tensor(a)), np.linalg.det(a))
    s = definite(*lead, n, n)
    low = linalg.cholesky(Tensor(s))
    close(linalg.cholesky_solve(Tensor(b), low), np.linalg.solve(s, b), 1e-6)
    close(linalg.cholesky_inverse(low), np.linalg.inv(s), 1e-6)
    for upper in (False, True):
        t = np.triu(a) if upper else np.tril(a)
        close(linalg.solve_triangular(Tensor(a), Tensor(b), upper=upper), np.linalg.solve(t, b))
        unit = t - np.eye(n) * t + np.eye(n)
        close(linalg.solve_triangular(Tensor(a), Tensor(b), upper=upper, unitriangular=True),
              np.linalg.solve(unit, b), 1e-6)  # fmt: skip


def test_inverses_of_as_many_matrices_as_rows() -> None:
    """(n, n, n): the identity is no stack of right sides."""
    a = some(6, 6, 6) + 3 * np.eye(6)
    close(linalg.inv(Tensor(a)), np.linalg.inv(a))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("shape", [(11, 5), (5, 11), (6, 6), (2, 7, 3)], ids=str)
def test_what_is_made_of_singular_values(shape: tuple[int, ...]) -> None:
    a = some(*shape)
    close(linalg.pinv(Tensor(a)), np.linalg.pinv(a))
    close(linalg.svdvals(Tensor(a)), np.linalg.svd(a, compute_uv=False))
    close(linalg.cond(Tensor(a)), np.linalg.cond(a), 1e-7)
    thin = a[..., :1] @ some(*shape[:-2], 1, shape[-1])
    assert linalg.matrix_rank(Tensor(thin)).numpy().tolist() == np.linalg.matrix_rank(thin).tolist()
    close(linalg.pinv(Tensor(thin)), np.linalg.pinv(thin))
    b = some(*shape[:-1], 2)
    found = linalg.lstsq(Tensor(a), Tensor(b), driver="gelsd")
    close(found.solution, np.linalg.pinv(a) @ b)
    assert found.rank.numpy().tolist() == np.linalg.matrix_rank(a).tolist()


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, inf, -inf])
def test_norms_of_matrices(order: Any) -> None:
    a = some(2, 5, 7)
    close(linalg.matrix_norm(Tensor(a), order), np.linalg.norm(a, order, axis=(1, 2)))
    close(linalg.norm(Tensor(a), order, (0, 2), keepdim=True), np.linalg.norm(a, order, axis=(0, 2), keepdims=True))


@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 3, inf, -inf])
def test_norms_of_vectors(order: float) -> None:
    a = some(3, 5)
    close(linalg.vector_norm(Tensor(a), order, 1), np.linalg.norm(a, order, axis=1))
    close(linalg.vector_norm(Tensor(a), order), np.linalg.norm(a.ravel(), order))


def test_powers_and_exponentials() -> None:
    a = some(2, 5, 5) + 2 * np.eye(5)
    for n in (-3, -1, 0, 1, 2, 5):
        close(linalg.matrix_power(Tensor(a), n), np.linalg.matrix_power(a, n), 1e-7)
    for scale in (0.0, 1e-3, 1.0, 10.0):
        values, vectors = np.linalg.eigh(definite(5, 5))
        want = vectors * np.exp(values * scale / 10) @ vectors.T
        got = linalg.matrix_exp(Tensor(vectors * values @ vectors.T * (scale / 10))).numpy()
        assert np.abs(got - want).max() < 1e-12 * np.abs(want).max()
    chain = [some(3, 9), some(9, 2), some(2, 8), some(8)]
    close(linalg.multi_dot([Tensor(one) for one in chain]), np.linalg.multi_dot(chain))


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[], Array]]] = {
    "cholesky": (lambda a: linalg.cholesky(a @ a.T + Tensor.eye(4, dtype=a.dtype)), lambda: some(4, 4)),
    "inv": (linalg.inv, lambda: some(4, 4) + 3 * np.eye(4)),
    "det": (linalg.det, lambda: some(4, 4)),
    "slogdet": (lambda a: linalg.slogdet(a).logabsdet, lambda: some(3, 3) + 3 * np.eye(3)),
    "lu": (lambda a: linalg.lu(a).L @ linalg.lu(a).U ** 2, lambda: some(4, 4)),
    "lu of a long matrix": (lambda a: linalg.lu(a).L.sin() @ linalg.lu(a).U ** 2, lambda: some(2, 7, 3)),
    "lu of a wide matrix": (lambda a: linalg.lu(a).L.sin() @ linalg.lu(a).U ** 2, lambda: some(2, 3, 5)),
    "lu_factor of one column": (lambda a: linalg.lu_factor(a).LU ** 2, lambda: some(5, 1)),
    "lu_solve": (lambda a: linalg.lu_solve(*linalg.lu_factor(a), a, adjoint=True), lambda: some(4, 4)),
    "qr": (lambda a: linalg.qr(a).Q + linalg.qr(a).R.sum(), lambda: some(5, 3)),
    "qr wide": (lambda a: linalg.qr(a).R, lambda: some(3, 5)),
    "eigh": (lambda a: linalg.eigh(a + a.T).eigenvectors ** 2 * linalg.eigh(a + a.T).eigenvalues, lambda: some(4, 4)),
    "svd": (lambda a: linalg.svd(a, False).U ** 2 * linalg.svd(a, False).S, lambda: some(5, 3)),
    "eigvalsh": (lambda a: linalg.eigvalsh(a + a.T) ** 3, lambda: some(4, 4)),
    "svdvals": (lambda a: linalg.svdvals(a) ** 3, lambda: some(3, 5)),
    "lstsq": (lambda a: linalg.lstsq(a, a.sin()[:, :2]).solution, lambda: some(5, 3)),
    "pinv": (linalg.pinv, lambda: some(5, 3)),
    "geqrf": (lambda a: a.geqrf().a.sin() + a.geqrf().tau.unsqueeze(1), lambda: some(2, 5, 3)),
    "ormqr": (lambda a: a.ormqr(a[0], a @ a.T, transpose=True), lambda: some(5, 3)),
    "logdet": (lambda a: (a @ a.T).logdet(), lambda: some(3, 3) + 3 * np.eye(3)),
    "the method svd": (lambda a: a.svd().U ** 2 * a.svd().S + a.svd().V.sum(0) ** 2, lambda: some(5, 3)),
    "matrix_exp": (linalg.matrix_exp, lambda: some(4, 4) * 3),
    "triangular": (lambda a: linalg.solve_triangular(a, a @ a, upper=True), lambda: some(4, 4) + 3 * np.eye(4)),
    "nuclear": (lambda a: linalg.matrix_norm(a, "nuc"), lambda: some(3, 4)),
}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_to_second_order(name: str) -> None:
    """Along a direction, against differences of what is one order less."""
    f, draw = FUNCTIONS[name]
    a = draw()
    weights: list[Array] = []

    def value(x: Tensor) -> Tensor:
        out = f(x)
        if not weights:
            weights.append(some(*out.shape))
        total: Tensor = (out * Tensor(weights[0])).sum()
        return total

    def slope(at: Array) -> tuple[float, Array]:
        x = Tensor(at, requires_grad=True)
        total = value(x)
        (grad,) = Tensor.gradient(total, x)
        return total.item(), grad.numpy()

    direction, h = some(*a.shape), 1e-5
    _, grad = slope(a)
    above, below = slope(a + h * direction), slope(a - h * direction)
    first = (above[0] - below[0]) / (2 * h)
    np.testing.assert_allclose((grad * direction).sum(), first, rtol=1e-5, atol=1e-6)
    x = Tensor(a, requires_grad=True)
    (once,) = Tensor.gradient(value(x), x)
    (twice,) = Tensor.gradient((once * Tensor(direction)).sum(), x)
    want = (above[1] - below[1]) / (2 * h)
    np.testing.assert_allclose(twice.numpy(), want, rtol=1e-4, atol=1e-4 * max(1.0, np.abs(want).max()))


@pytest.mark.parametrize("shape", [(0, 0), (3, 0, 0), (0, 3, 3), (4, 0), (0, 4), (2, 4, 0)], ids=str)
def test_empty_matrices(shape: tuple[int, ...]) -> None:
    x, (m, n) = Tensor.zeros(*shape), shape[-2:]
    k = min(m, n)
    assert [t.shape[-2:] for t in linalg.qr(x)] == [(m, k), (k, n)]
    assert linalg.svdvals(x).shape == (*shape[:-2], k) and linalg.pinv(x).shape == (*shape[:-2], n, m)
    found = linalg.lstsq(x, Tensor.ones(*shape[:-1], 2))
    assert found.solution.tolist() == np.zeros((*shape[:-2], n, 2)).tolist() and not found.rank.numpy().any()
    if m == n:
        for f in (linalg.inv, linalg.cholesky, linalg.matrix_exp):
            assert f(x).shape == shape
        assert linalg.det(x).tolist() == np.linalg.det(np.zeros(shape)).tolist()


def test_what_is_singular_says_so() -> None:
    assert not np.isfinite(linalg.inv(Tensor.ones(3, 3)).numpy()).all()
    assert linalg.slogdet(Tensor.ones(3, 3)).logabsdet.item() == -inf and linalg.det(Tensor.ones(3, 3)).item() == 0
    assert np.isnan(linalg.cholesky(Tensor([[1.0, 2.0], [2.0, 1.0]])).numpy()).any()


def test_in_a_record() -> None:
    solve = TinyJit(lambda a, b: linalg.solve(a, b).realize())
    largest = TinyJit(lambda a: linalg.svdvals(a).realize())
    for _ in range(4):
        a, b = some(9, 9) + 4 * np.eye(9), some(9, 2)
        close(solve(Tensor(a), Tensor(b)), np.linalg.solve(a, b))
        close(largest(Tensor(a)), np.linalg.svd(a, compute_uv=False))


BAD: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (ValueError, "inv: matrices of shape .* are not square", lambda: linalg.inv(Tensor.ones(2, 3))),
    (ValueError, "cholesky: .* no matrix", lambda: linalg.cholesky(Tensor.ones(3))),
    (TypeError, "qr: matrices of float16; float32, float64, comp", lambda: linalg.qr(Tensor.ones(2, 2).half())),
    (TypeError, "det: matrices of int", lambda: linalg.det(Tensor([[1, 2], [3, 4]]))),
    (ValueError, "qr: mode 'full'", lambda: linalg.qr(Tensor.ones(2, 2), "full")),
    (ValueError, "eigh: UPLO 'X'", lambda: linalg.eigh(Tensor.ones(2, 2), "X")),
    (ValueError, "solve: a matrix of shape", lambda: linalg.solve(Tensor.ones(2, 2), Tensor.ones(3, 1))),
    (TypeError, "solve: .*float32 and .*float64",
     lambda: linalg.solve(Tensor.ones(2, 2), Tensor.ones(2, 1, dtype="float64"))),
    (ValueError, "solve: shapes .* do not broadcast", lambda: linalg.solve(Tensor.ones(2, 3, 3), Tensor.ones(5, 3, 1))),
    (TypeError, "matrix_power: n is an integer", lambda: linalg.matrix_power(Tensor.eye(2), 1.5)),  # type: ignore[arg-type]
    (ValueError, "multi_dot: two tensors or more", lambda: linalg.multi_dot([Tensor.ones(2, 2)])),
    (ValueError, "multi_dot: shapes", lambda: linalg.multi_dot([Tensor.ones(2, 2), Tensor.ones(3, 2)])),
    (ValueError, "matrix_norm: ord 'max'", lambda: linalg.matrix_norm(Tensor.ones(2, 2), "max")),
    (TypeError, "vector_norm: floats or complex numbers are wanted", lambda: linalg.vector_norm(Tensor([1, 2]))),
    (ValueError, r"lu_solve: shapes .*\(1, 2\) do not fit",
     lambda: linalg.lu_solve(*linalg.lu_factor(Tensor.eye(3)), Tensor.ones(1, 2), left=False)),
    (TypeError, "lu_solve: pivots are integers",
     lambda: linalg.lu_solve(Tensor.eye(3), Tensor.ones(3), Tensor.ones(3, 2))),
    (ValueError, "lu_solve: shapes .* do not broadcast",
     lambda: linalg.lu_solve(Tensor.ones(2, 3, 3), Tensor.ones(2, 3, dtype="int32"), Tensor.ones(5, 3, 1))),
    (ValueError, "lstsq: driver 'gelx'", lambda: linalg.lstsq(Tensor.ones(3, 2), Tensor.ones(3, 1), driver="gelx")),
    (ValueError, "lu: elimination without", lambda: linalg.lu(Tensor.ones(3, 2), pivot=False)),
    (ValueError, "lu_factor: elimination without", lambda: linalg.lu_factor(Tensor.ones(3, 2), pivot=False)),
    (ValueError, "lu_factor: elimination without",
     lambda: linalg.lu_factor_ex(Tensor.ones(3, 2), pivot=False)),
    (ValueError, "lstsq: a matrix of shape", lambda: linalg.lstsq(Tensor.ones(3, 2), Tensor.ones(2, 1))),
    (ValueError, "tensorinv: shape", lambda: linalg.tensorinv(Tensor.ones(2, 3, 4))),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "match", "bad"), BAD)
def test_what_is_wrong_is_named(kind: type[Exception], match: str, bad: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=match):
        bad()


@pytest.mark.parametrize("check", [False, True])
def test_what_failed_is_told(check: bool) -> None:
    """For each of some matrices the place of the first failure, beside what the plain functions give."""
    rng = np.random.default_rng(0)
    good = rng.standard_normal((3, 5, 5)) + 5 * np.eye(5)
    ones = good @ good.transpose(0, 2, 1)
    bad, singular = ones.copy(), good.copy()
    bad[1, 3, 3], singular[2, :, 2] = -1, 0
    side = Tensor(rng.standard_normal((3, 5, 2)))
    calls = {
        "cholesky_ex": (ones, bad, [0, 4, 0], linalg.cholesky), "inv_ex": (good, singular, [0, 0, 3], linalg.inv),
        "solve_ex": (good, singular, [0, 0, 3], linalg.solve), "lu_factor_ex": (good, singular, [0, 0, 3], None),
    }  # fmt: skip
    for name, (right, wrong, info, plain) in calls.items():
        call, rest = getattr(linalg, name), (side,) if name == "solve_ex" else ()
        found = call(Tensor(right), *rest, check_errors=check)
        assert found.info.tolist() == [0, 0, 0] and found.info.dtype.name == "int32"
        if callable(plain):
            np.testing.assert_array_equal(found[0].numpy(), plain(Tensor(right), *rest).numpy())
        if check:
            with pytest.raises(ValueError, match=rf"{name}: .* {max(info)}$"):
                call(Tensor(wrong), *rest, check_errors=True)
        else:
            assert call(Tensor(wrong), *rest).info.tolist() == info
    with pytest.raises(ValueError, match="without exchanged rows"):
        linalg.lu_factor_ex(Tensor(good), pivot=False)
    sides = rng.standard_normal((4, 3, 5, 2))  # of which there are more than matrices
    for matrices in (singular, singular[:, None][2:].swapaxes(0, 1)):
        found = linalg.solve_ex(Tensor(matrices), Tensor(sides))
        assert found.result.shape == sides.shape
        assert found.info.numpy().ravel().tolist() == ([0, 0, 3] if len(matrices) == 3 else [3])
        assert found.info.shape == matrices.shape[:-2]


@pytest.mark.parametrize(("m", "n", "k"), [(5, 3, 3), (4, 4, 4), (7, 1, 1), (6, 5, 2)])
def test_products_of_reflections(m: int, n: int, k: int) -> None:
    x = np.random.default_rng(m).standard_normal((2, m, n))
    raw = [np.linalg.qr(each, mode="raw") for each in x]
    kept, factors = np.stack([h.T for h, _ in raw]), np.stack([tau[:k] for _, tau in raw])
    found = linalg.householder_product(Tensor(kept), Tensor(factors)).numpy()
    if k == n:
        np.testing.assert_allclose(found, np.stack([np.linalg.qr(each)[0] for each in x]), atol=1e-12)
    whole = [np.eye(m) for _ in range(2)]
    for each, (h, tau) in enumerate(zip(kept, factors, strict=True)):
        for i in range(k):
            v = np.concatenate([np.zeros(i), [1], h[i + 1 :, i]])
            whole[each] = whole[each] @ (np.eye(m) - tau[i] * np.outer(v, v))
    np.testing.assert_allclose(found, np.stack(whole)[:, :, :n], atol=1e-12)
    with pytest.raises(ValueError, match="do not fit"):
        linalg.householder_product(Tensor(kept[:, :1]), Tensor(factors)) if n > 1 else linalg.householder_product(
            Tensor(kept), Tensor(factors[0])
        )


def test_gradients_of_products_of_reflections() -> None:
    rng = np.random.default_rng(0)
    kept, factors = rng.standard_normal((4, 3)), rng.standard_normal(3)
    a, tau = Tensor(kept, requires_grad=True), Tensor(factors, requires_grad=True)
    weight = rng.standard_normal((4, 3))
    (linalg.householder_product(a, tau) * Tensor(weight)).sum().backward()
    assert a.grad is not None and tau.grad is not None
    for grad, value, which in ((a.grad.numpy(), kept, 0), (tau.grad.numpy(), factors, 1)):
        way = rng.standard_normal(value.shape)
        ends = []
        for step in (1e-6, -1e-6):
            moved = [kept, factors]
            moved[which] = value + step * way
            ends.append((linalg.householder_product(*map(Tensor, moved)).numpy() * weight).sum())
        np.testing.assert_allclose((grad * way).sum(), (ends[0] - ends[1]) / 2e-6, rtol=1e-5)


def test_names_of_methods_take_complex_numbers() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3)) for _ in range(2))
    np.testing.assert_allclose(linalg.cross(Tensor(a), Tensor(b)).numpy(), np.cross(a, b), atol=1e-14)
    np.testing.assert_array_equal(linalg.diagonal(Tensor(a), offset=1).numpy(), np.diagonal(a, 1))
    np.testing.assert_allclose(linalg.matmul(Tensor(a), Tensor(b.T)).numpy(), a @ b.T, atol=1e-14)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 3, 7, 1), (1, 6), (0, 3), (2, 3, 0)], ids=str)
def test_reflections_as_lapack_keeps_them(shape: tuple[int, ...]) -> None:
    """Q times R is the matrix, and Q is applied from both sides as it is."""
    a = some(*shape)
    *lead, m, n = shape
    kept, tau = Tensor(a).geqrf()
    assert kept.shape == shape and tau.shape == (*lead, min(m, n))

    def each(t: Array) -> list[Array]:
        return list(t.reshape(-1, *t.shape[len(lead) :])) if t.size else []

    for one, got, factors in zip(*map(each, (a, kept.numpy(), tau.numpy())), strict=True):
        h, theirs = np.linalg.qr(one, mode="raw")
        np.testing.assert_allclose(got, h.T, atol=1e-12)
        np.testing.assert_allclose(factors, theirs, atol=1e-12)
    right = np.triu(kept.numpy())
    close(kept.ormqr(tau, Tensor(right)), a)
    close(kept.ormqr(tau, Tensor(a), transpose=True), right)
    b = some(*lead, 2, m)
    whole = kept.ormqr(tau, Tensor(np.broadcast_to(np.eye(m), (*lead, m, m)).copy())).numpy()
    close(kept.ormqr(tau, Tensor(b), left=False), b @ whole)
    close(kept.ormqr(tau, Tensor(b), left=False, transpose=True), b @ np.swapaxes(whole, -1, -2))
    if m >= n:
        close(kept.orgqr(tau), whole[..., :n])


def test_columns_that_need_no_reflection() -> None:
    kept, tau = Tensor([[2.0, 1.0], [0.0, 3.0]]).geqrf()
    assert kept.tolist() == [[2.0, 1.0], [0.0, 3.0]] and tau.tolist() == [0.0, 0.0]
    kept, tau = Tensor.zeros(3, 2).geqrf()
    assert kept.tolist() == [[0.0, 0.0]] * 3 and tau.tolist() == [0.0, 0.0]


def test_methods_of_tensors() -> None:
    """What PyTorch's methods have that its module of functions has not."""
    a, b, s = some(5, 5) + 3 * np.eye(5), some(5, 2), definite(5, 5)
    x = Tensor(a)
    close(x.adjoint(), a.T)
    close(x.inverse(), np.linalg.inv(a))
    close(Tensor(s).cholesky(upper=True), np.linalg.cholesky(s).T)
    close(Tensor(b).cholesky_solve(Tensor(s).cholesky(True), True), np.linalg.solve(s, b), 1e-6)
    close(Tensor(s).logdet(), np.linalg.slogdet(s)[1])
    assert np.isnan(Tensor([[0.0, 1.0], [1.0, 0.0]]).logdet().item())
    assert Tensor.zeros(2, 2).logdet().item() == -inf
    both, pivots = x.lu()
    close(Tensor(b).lu_solve(both, pivots), np.linalg.solve(a, b))
    assert [t.tolist() for t in Tensor.ones(2, 2).lu(get_infos=True)] == [[[1.0, 1.0], [1.0, 0.0]], [1, 2], 2]
    for upper in (False, True):
        for transpose in (False, True):
            t = np.triu(a) if upper else np.tril(a)
            got = Tensor(b).triangular_solve(x, upper, transpose)
            close(got.solution, np.linalg.solve(t.T if transpose else t, b))
            close(got.cloned_coefficient, a)
    close(x.pinverse(), np.linalg.pinv(a))
    near = np.diag([1.0, 1e-3])
    close(Tensor(near).pinverse(1e-2), np.diag([1.0, 0.0]))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4)], ids=str)
def test_the_forms_of_svd_and_qr(shape: tuple[int, ...]) -> None:
    a = some(*shape)
    m, n = shape[-2:]
    k = min(m, n)
    want = np.linalg.svd(a, compute_uv=False)

    def product(u: Array, s: Array, vh: Array) -> None:
        close(Tensor(u[..., :k] * s[..., None, :] @ vh[..., :k, :]), a)
        close(Tensor(s), want)

    u, s, v = (t.numpy() for t in Tensor(a).svd())
    assert u.shape[-2:] == (m, k) and v.shape[-2:] == (n, k)
    product(u, s, np.swapaxes(v, -1, -2))
    u, s, v = (t.numpy() for t in Tensor(a).svd(some=False))
    assert u.shape[-2:] == (m, m) and v.shape[-2:] == (n, n)
    product(u, s, np.swapaxes(v, -1, -2))
    for full in (False, True):
        u, s, vh = (t.numpy() for t in Tensor(a).svd(full_matrices=full))
        assert u.shape[-1] == (m if full else k) and vh.shape[-2] == (n if full else k)
        product(u, s, vh)
    u, s, v = (t.numpy() for t in Tensor(a).svd(compute_uv=False))
    assert not u.any() and not v.any() and u.shape[-2:] == (m, m) and v.shape[-2:] == (n, n)
    close(Tensor(s), want)
    q, r = Tensor(a).qr(some=False)
    assert q.shape[-2:] == (m, m) and r.shape == shape
    close(q @ r, a)
    with pytest.raises(TypeError, match=r"^Tensor.svd: some and full_matrices"):
        Tensor(a).svd(some=False, full_matrices=True)


def test_iterations_of_newton_and_schulz() -> None:
    for shape in ((5, 3), (3, 5), (2, 4, 4)):
        a = some(*shape)
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        close(Tensor(a).newton_schulz(60, (1.5, -0.5)), u @ vh, 1e-6)
        s = s / np.linalg.norm(s, axis=-1, keepdims=True)
        for params in ((2.0,), (3.4445, -4.775, 2.0315), (1.0, 0.0, 0.0, -1.0)):
            once = sum(p * s ** (2 * k + 1) for k, p in enumerate(params))
            close(Tensor(a).newton_schulz(1, params, 0.0), u * np.asarray(once)[..., None, :] @ vh)


METHODS: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (ValueError, "inverse: .*are not square", lambda: Tensor.ones(2, 3).inverse()),
    (TypeError, "det: .*matrices of int32", lambda: Tensor([[1, 2], [3, 4]]).det()),
    (TypeError, "matrix_power: .*n is an integer", lambda: Tensor.eye(2).matrix_power(1.5)),  # type: ignore[arg-type]
    (ValueError, "lu: .*without exchanged rows", lambda: Tensor.eye(2).lu(pivot=False)),
    (ValueError, "ormqr: shapes", lambda: Tensor.eye(3).ormqr(Tensor.ones(3), Tensor.ones(2, 2))),
    (ValueError, "ormqr: reflections of shape", lambda: Tensor.eye(3).ormqr(Tensor.ones(2, 3), Tensor.ones(3, 2))),
    (TypeError, "ormqr: reflections of float32 and",
     lambda: Tensor.eye(3).ormqr(Tensor.ones(3), Tensor.ones(3, 2, dtype="float64"))),
    (ValueError, "triangular_solve: .*are not square", lambda: Tensor.ones(2, 1).triangular_solve(Tensor.ones(2, 3))),
    (ValueError, "geqrf: .* no matrix", lambda: Tensor.ones(3).geqrf()),
    (ValueError, "newton_schulz: .* no matrix", lambda: Tensor.ones(3).newton_schulz(1, (1.0,))),
    (ValueError, "newton_schulz: a number of steps and one coefficient", lambda: Tensor.eye(2).newton_schulz(1, ())),
    (ValueError, "newton_schulz: a number of steps", lambda: Tensor.eye(2).newton_schulz(-1, (1.0,))),
    (ValueError, "adjoint: .*a matrix is wanted", lambda: Tensor.ones(3).adjoint()),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "match", "bad"), METHODS)
def test_what_is_wrong_names_the_method(kind: type[Exception], match: str, bad: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=rf"^Tensor\.{match}"):
        bad()


@pytest.mark.parametrize("name", ["eye", "zeros", "ones", "repeated"])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
def test_slopes_of_spectra_with_equal_values(name: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    m, n = shape
    matrix = {
        "eye": np.eye(m, n), "zeros": np.zeros(shape), "ones": np.ones(shape),
        "repeated": np.linalg.qr(rng.normal(size=(m, m)))[0][:, :n] if m >= n else np.eye(m, n) * 2,
    }[name]  # fmt: skip
    x = Tensor(matrix, requires_grad=True)
    linalg.svdvals(x).sum().backward()
    assert x.grad is not None
    slope = x.grad.numpy()
    assert np.linalg.norm(slope, 2) <= 1 + 1e-9  # a subgradient of the sum of singular values, whose norm that is
    assert np.isclose((slope * matrix).sum(), np.linalg.norm(matrix, "nuc"))


def test_slopes_of_equal_eigenvalues() -> None:
    for values in (linalg.eigvalsh, lambda a: linalg.eigvals(a).real):
        x = Tensor(np.eye(3), requires_grad=True)
        values(x).sum().backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), np.eye(3), atol=1e-12)  # of the trace


def test_the_nuclear_norm_is_a_method_too() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(2, 4, 3))
    want = np.linalg.norm(x, "nuc", (0, 2))
    close(Tensor(x).norm("nuc", (0, 2)), want)
    close(Tensor(x).norm("nuc", (0, 2), keepdim=True), want.reshape(1, 4, 1))
    with pytest.raises(ValueError, match=r"Tensor\.norm: 'nuc' of shape \(2, 4, 3\) along None; the two axes"):
        Tensor(x).norm("nuc")
