"""Many small matrices at once: each has what it has alone, within the bounds of its backward error."""

from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, linalg
from tg_frontend.linalg.lanes import grouped, in_lanes, singly

RNG = np.random.default_rng(17)
Array = np.ndarray[Any, Any]
KINDS = ("float32", "float64", "complex64")


def matrices(count: int, m: int, n: int, kind: str) -> Array:
    made = RNG.standard_normal((count, m, n))
    both = made + 1j * RNG.standard_normal(made.shape) if kind.startswith("complex") else made
    return both.astype(kind)


def size(x: Array) -> Array:
    """The greatest sum of a row's magnitudes: numpy's norm of order infinity."""
    sums: Array = np.abs(x).sum(2).max(1)
    return sums


def near(found: Array, wanted: Array, scale: Array, terms: int, kind: str) -> None:
    """Asserts that the rows differ by no more than `terms` roundings of what was added up."""
    assert found.shape == wanted.shape
    assert (size(found - wanted) <= 4 * terms * np.finfo(kind).eps * scale).all()


def test_which() -> None:
    assert in_lanes(Tensor.zeros(4, 3, 5)) and in_lanes(Tensor.zeros(1000, 32, 32))
    assert not in_lanes(Tensor.zeros(3, 3, 5)) and not in_lanes(Tensor.zeros(1000, 33, 1))
    assert not in_lanes(Tensor.zeros(1000, 0, 5))


def test_groups() -> None:
    """Every matrix is where it was; of many groups a power of two divides the number, which few are added for."""
    for count in map(int, (*RNG.integers(4, 300, size=4), *RNG.integers(300, 9000, size=4))):
        a = matrices(count, 2, 3, "float32")
        groups = grouped(Tensor(a))
        np.testing.assert_array_equal(singly(groups, count).numpy(), a)
        least, number = -(-count // 16), int(groups.shape[0])
        assert least <= number <= least * 17 / 16
        assert least < 32 or number % 2 == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("count", "n", "m"), [(545, 3, 2), (19, 6, 2), (4, int(RNG.integers(9, 16)), 3), (33, 1, 1), (6, 5, 40)]
)
def test_systems(count: int, n: int, m: int, kind: str) -> None:
    """Wilkinson: what is found solves a system near the given one. Growth by pivots of random matrices is small."""
    a, b = matrices(count, n, n, kind), matrices(count, n, m, kind)
    x = linalg.solve(Tensor(a), Tensor(b)).numpy()
    near(a @ x, b, size(a) * size(x) + size(b), n, kind)
    found = linalg.inv(Tensor(a)).numpy()
    near(a @ found, np.broadcast_to(np.eye(n), a.shape), size(a) * size(found), n, kind)
    for upper in (False, True):
        half = (np.triu(a) if upper else np.tril(a)) + 2 * n * np.eye(n, dtype=kind)
        x = linalg.solve_triangular(Tensor(half), Tensor(b), upper=upper).numpy()
        near(half @ x, b, size(half) * size(x), n, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "m", "n"), [(19, 6, 6), (21, 4, 9), (18, 8, 3)])
def test_factors(count: int, m: int, n: int, kind: str) -> None:
    a = matrices(count, m, n, kind)
    a[1] = 0
    a[2, 1:] = a[2, :1]  # of rank one, with equal candidates for a pivot
    p, left, right = (part.numpy() for part in linalg.lu(Tensor(a)))
    near(p @ left @ right, a, size(left) * size(right), min(m, n), kind)
    assert (np.abs(left) <= (1.5 if kind.startswith("complex") else 1)).all()
    both, pivots = (part.numpy() for part in linalg.lu_factor(Tensor(a)))
    for one in range(3):  # alone, they go the way of a single matrix
        alone, own = (part.numpy() for part in linalg.lu_factor(Tensor(a[one])))
        np.testing.assert_array_equal(pivots[one], own)
        np.testing.assert_allclose(both[one], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_determinants(kind: str) -> None:
    a = matrices(20, 5, 5, kind)
    a[3, 4] = a[3, 0] * 2
    a[4] = 0
    wanted = np.linalg.det(a.astype(complex))
    bound = 40 * np.finfo(kind).eps * np.prod(np.linalg.norm(a, axis=2), axis=1)  # Hadamard's
    assert (np.abs(linalg.det(Tensor(a)).numpy() - wanted) <= bound).all()
    sign, logarithm = (part.numpy() for part in linalg.slogdet(Tensor(a)))
    assert (np.abs(sign * np.exp(logarithm) - wanted) <= bound).all()
    assert sign[4] == 0 and logarithm[4] == -np.inf


@pytest.mark.parametrize("kind", KINDS)
def test_positive_definite(kind: str) -> None:
    half = matrices(37, 7, 7, kind)
    a = half @ half.conj().transpose(0, 2, 1) + np.eye(7, dtype=kind)
    given = a + np.triu(np.full((7, 7), np.nan), 1)  # only the lower triangle is read
    factor = linalg.cholesky(Tensor(given.astype(kind))).numpy()
    near(factor @ factor.conj().transpose(0, 2, 1), a, size(factor) ** 2, 7, kind)
    a[5, 3, 3] = -1
    found, info = linalg.cholesky_ex(Tensor(a))
    assert info.tolist() == [4 if n == 5 else 0 for n in range(37)]
    assert np.isnan(found.numpy()[5]).any() and not np.isnan(found.numpy()[4]).any()


def test_singular_and_not_finite() -> None:
    """One that is singular, or has an infinity or NaN, has what it has alone, and leaves the others as they are."""
    a = matrices(20, 5, 5, "float64")
    a[3, 4], a[7] = a[3, 0] * 2, 0
    a[11, 2, 2], a[13, 1, 0], a[14, 0, 3] = np.inf, np.nan, -np.inf
    found, info = linalg.inv_ex(Tensor(a))
    assert info.numpy()[7] == 1 and not info.numpy()[:3].any()
    good = np.isfinite(a).all((1, 2)) & ~np.isin(np.arange(20), (3, 7))
    np.testing.assert_allclose(found.numpy()[good], np.linalg.inv(a[good]), rtol=1e-9, atol=1e-9)
    for one in (7, 13):  # with an infinity as its pivot, an inverse is what it tends to
        assert not np.isfinite(found.numpy()[one]).all()
    both, pivots = (part.numpy() for part in linalg.lu_factor(Tensor(a)))
    for one in (3, 7, 11, 13, 14):
        alone, own = (part.numpy() for part in linalg.lu_factor(Tensor(a[one])))
        np.testing.assert_array_equal(pivots[one], own)
        np.testing.assert_allclose(both[one], alone, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, int(RNG.integers(4, 12)), 17, 31])
def test_eigenvalues(n: int, kind: str) -> None:
    """Weyl: eigenvalues move by no more than the norm of what a matrix is wrong by. Many are equal, or far apart."""
    a = matrices(23, n, n, kind)
    a = a + a.conj().transpose(0, 2, 1)
    a[1], a[2], a[3] = 0, np.eye(n), np.ones((n, n))
    a[4] *= np.outer(*(10.0 ** -np.arange(n),) * 2)
    a[5], a[6] = a[5] * 2.0**-90, a[6] * 2.0**90
    wanted = np.linalg.eigvalsh(a.astype("complex128" if kind.startswith("complex") else "float64"))
    found = linalg.eigvalsh(Tensor(a)).numpy()
    assert found.dtype == np.finfo(kind).dtype
    bound = 8 * n * np.finfo(kind).eps * np.abs(wanted).max(1, keepdims=True)
    assert (np.abs(found - wanted) <= bound).all()
    assert (found[1] == 0).all() and (np.diff(found, axis=1) >= 0).all()
    a[7, 0, 0], a[8, n - 1, 0] = np.nan, np.inf
    spoiled = linalg.eigvalsh(Tensor(a)).numpy()
    assert np.isnan(spoiled[7:9]).all()
    np.testing.assert_array_equal(np.delete(spoiled, (7, 8), 0), np.delete(found, (7, 8), 0))


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 3, 4, int(RNG.integers(5, 12)), 32])
def test_eigenvalues_where_minors_are_zero(n: int, kind: str) -> None:
    """Paths, exchanges and integers: halving begins at 0, where the leading minors of such matrices are 0, too."""
    a = RNG.integers(-1, 2, (37, n, n)).astype(kind)
    a = np.tril(a, -1) + np.tril(a, -1).transpose(0, 2, 1)
    a[0], a[1] = np.eye(n, k=1) + np.eye(n, k=-1), np.fliplr(np.eye(n))
    a[2], a[3] = 0, np.kron(np.eye(n), [[0, 1], [1, 0]])[:n, :n]
    a[2, n - 1, 0] = a[2, 0, n - 1] = 1
    a[20:] += np.eye(n, dtype=kind) * RNG.integers(-1, 2, (17, 1, n))
    wanted = np.linalg.eigvalsh(a.astype("float64"))
    found = linalg.eigvalsh(Tensor(a)).numpy()
    assert (np.abs(found - wanted) <= 8 * n * np.finfo(kind).eps * np.abs(wanted).max(1, keepdims=True)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 2), (2, 7), (int(RNG.integers(4, 12)), 9), (31, 31)])
def test_singular_values(m: int, n: int, kind: str) -> None:
    a = matrices(21, m, n, kind)
    a[1], a[2], a[3] = 0, np.eye(m, n), np.ones((m, n))
    a[4] *= 10.0 ** -np.arange(n)
    a[5], a[6] = a[5] * 2.0**-90, a[6] * 2.0**90
    wanted = np.linalg.svd(a.astype("complex128" if kind.startswith("complex") else "float64"), compute_uv=False)
    found = linalg.svdvals(Tensor(a)).numpy()
    bound = 8 * max(m, n) * np.finfo(kind).eps * wanted.max(1, keepdims=True)
    assert (np.abs(found - wanted) <= bound).all() and (found >= 0).all()
    assert (found[1] == 0).all() and (np.diff(found, axis=1) <= 0).all()
    a[7, 0, n - 1] = np.nan
    assert np.isnan(linalg.svdvals(Tensor(a)).numpy()[7]).all()


@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "lu", "eigvalsh", "svdvals"])
def test_gradients(name: str) -> None:
    """By differences: along one direction for all matrices."""

    def value(a: Tensor) -> Tensor:
        if name == "cholesky":
            a = a @ a.mT + Tensor.eye(4, dtype=a.dtype)
        if name == "lu":
            _, left, right = linalg.lu(a)
            return ((left.sin() + right.cos()) * weights).sum()
        if name == "eigvalsh":
            a = a + a.mT
        found: Tensor = getattr(linalg, name)(a)
        return (found * (weights[:, 0, 0] if found.ndim == 1 else weights if found.ndim == 3 else weights[:, 0])).sum()

    weights = Tensor(matrices(6, 4, 4, "float64"))
    a, along = matrices(6, 4, 4, "float64") + 3 * np.eye(4), matrices(6, 4, 4, "float64")
    given = Tensor(a, requires_grad=True)
    value(given).backward()
    assert given.grad is not None
    step = 1e-6
    slope = (value(Tensor(a + step * along)) - value(Tensor(a - step * along))).item() / (2 * step)
    np.testing.assert_allclose((given.grad.numpy() * along).sum(), slope, rtol=1e-6)
