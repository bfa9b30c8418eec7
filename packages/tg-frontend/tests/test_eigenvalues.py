"""Eigenvalues of general matrices: backward errors, hard matrices, conjugates, gradients to second order."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, linalg, vmap
from tg_lazy import LazyOp
from tg_runtime.execution import loop

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(20261127)


def some(*shape: int, dtype: str = "float64") -> Array:
    out: Any = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        out = out + 1j * RNG.standard_normal(shape)
    return np.asarray(out.astype(dtype))


def decomposed(a: Array, device: str | None = None) -> tuple[Array, Array]:
    """Looked at: every pair is one of a matrix that is near, and every vector as documented."""
    w, v = (t.numpy() for t in linalg.eig(Tensor(a, device=device)))
    n, eps = a.shape[-1], np.finfo(a.dtype).eps
    assert w.shape == a.shape[:-1] and v.shape == a.shape and w.dtype == v.dtype == np.result_type(a.dtype, "complex64")
    norm = np.linalg.norm(a, axis=(-2, -1), keepdims=True)
    assert (np.abs(a @ v - v * w[..., None, :]) <= 5 * n * eps * norm).all()
    np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, rtol=max(4, n / 2) * eps)  # of a sum of n squares
    largest = np.abs(v) >= (1 - 8 * eps) * np.abs(v).max(-2, keepdims=True)  # several are so, but for rounding
    assert (largest & (np.abs(v.imag) <= 4 * eps) & (v.real > 0)).any(-2).all()
    if a.dtype.kind != "c":
        for values in w.reshape(-1, n):
            assert sorted(values.tolist(), key=str) == sorted(values.conj().tolist(), key=str) or len(set(values)) < n
    return w, v


def near(found: Array, wanted: Array, bound: float) -> None:
    """The same eigenvalues, each once, in any order."""
    left = list(wanted)
    for value in found:
        best = min(range(len(left)), key=lambda i: abs(left[i] - value))
        assert abs(left.pop(best) - value) <= bound


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (2, 1, 5, 5), (17, 17)], ids=str)
def test_values_and_vectors(shape: tuple[int, ...], dtype: str) -> None:
    a = some(*shape, dtype=dtype)
    w, v = decomposed(a)
    n = shape[-1]
    for one, values in zip(a.reshape(-1, n, n), w.reshape(-1, n), strict=True):
        wanted, vectors = np.linalg.eig(one)
        worst = np.linalg.cond(vectors) * np.linalg.norm(one)  # Bauer and Fike, "Norms and exclusion theorems", 1960
        near(values, wanted, 10 * n * worst * np.finfo(dtype).eps)
    assert np.linalg.matrix_rank(v).min() == n
    np.testing.assert_array_equal(linalg.eigvals(Tensor(a)).numpy(), w)


def test_on_every_device(backend: str) -> None:
    decomposed(some(2, 4, 4))
    decomposed(some(3, 3, dtype="complex64"))


ROTATION = np.array([[0.0, 1.0], [-1.0, 0.0]])
HARD: dict[str, tuple[Callable[[], Array], Array, float]] = {
    "zero": (lambda: np.zeros((3, 3)), np.zeros(3), 0),
    "identity": (lambda: np.eye(4), np.ones(4), 0),
    "triangular": (lambda: np.triu(some(7, 7), 1) + np.diag(np.arange(7.0)), np.arange(7.0), 0),
    "of rank 1": (lambda: np.ones((5, 5)), np.array([5.0, 0, 0, 0, 0]), 1e-14),
    "of a cycle": (lambda: np.roll(np.eye(7), 1, 0), np.exp(2j * np.pi * np.arange(7) / 7), 1e-14),
    "of a swap": (lambda: np.array([[0.0, 1], [1, 0]]), np.array([1.0, -1]), 1e-15),
    "of equal rotations": (lambda: np.kron(np.eye(3), ROTATION), np.array([1j, -1j] * 3), 1e-15),
    "Jordan's": (lambda: np.eye(9) * 2 + np.eye(9, k=1), np.full(9, 2.0), 0),
    "Jordan's, turned": (lambda: np.eye(9) * 2 + np.eye(9, k=-1), np.full(9, 2.0), 0.04),
    "nilpotent": (lambda: np.eye(6, k=-1), np.zeros(6), 0.01),
    "of a polynomial": (lambda: np.vstack([-np.poly([1, 2, 3, 4, 5])[1:], np.eye(5)[:-1]]),
                        np.arange(1.0, 6), 1e-9),
    "huge": (lambda: 1e150 * np.array([[1.0, 2], [3, 0]]), 1e150 * np.array([3.0, -2]), 1e136),
    "tiny": (lambda: 1e-150 * np.array([[1.0, 2], [3, 0]]), 1e-150 * np.array([3.0, -2]), 1e-164),
    "graded": (lambda: np.diag(10.0 ** -np.arange(8)) + np.tril(np.full((8, 8), 1e-18), -1),
               10.0 ** -np.arange(8), 1e-15),
    "of blocks": (lambda: np.block([[some(3, 3) * 0 + np.diag([1.0, 2, 3]), np.ones((3, 2))],
                                    [np.zeros((2, 3)), ROTATION]]), np.array([1, 2, 3, 1j, -1j]), 1e-14),
}  # fmt: skip


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", HARD)
def test_hard_matrices(name: str) -> None:
    draw, wanted, bound = HARD[name]
    w, _ = decomposed(draw())
    near(w, wanted, bound)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_corners_and_nearly_equal_pairs(dtype: str) -> None:
    """Cycles whose product is next to nothing wait long for an unusual shift; squares of small numbers are zero."""
    corners = [sign * 10.0**-k for k in (1, 8, 14, 15, 16, 17, 18, 25) for sign in (1, -1)]
    decomposed(np.array([[[0, 0, c], [1, 0, 0], [0, 1, 0]] for c in corners], dtype))
    decomposed(np.array([[[0, 0.1, 0], [0, 0, 1e-3], [c, 0, 0]] for c in corners], dtype))
    tiny = [1e-30, 1e-38] if dtype == "float32" else [1e-170, 1e-300]
    for c in tiny:
        decomposed(np.array([[[1, 0], [c, 1]], [[1, c], [c, 1]], [[1, -c], [c, 1]], [[1, c], [0, 1]]], dtype))


def test_a_block_that_is_left_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the first sweeps end before all blocks are short, a matrix has no eigenvalues rather than wrong ones."""
    from tg_frontend.linalg import francis

    calls = []

    def idle(h: Tensor, most: int, bulges: int) -> Tensor:
        calls.append(most)
        return h if len(calls) == 1 else taken_apart(h, most, bulges)

    taken_apart = francis._taken_apart
    monkeypatch.setattr(francis, "_taken_apart", idle)
    condensed: Any = francis.condensed
    *_, begins = condensed.__wrapped__(Tensor(some(66, 66)[None], device="CPU"), False)
    assert calls == [francis._FEW, 2] and not francis.blocks_of_two(begins).item()


def structured(n: int) -> dict[str, Array]:
    """Matrices that are done in part before they are begun, or of which some eigenvalues are hard to tell apart."""
    r = np.random.default_rng(n)
    a, place, half = r.standard_normal((n, n)), np.arange(n), n // 2
    blocks = a * (place // 7 == place[:, None] // 7)
    blocks[:half, half:] = a[:half, half:]
    few = np.linalg.qr(a)[0] @ np.diag(place % 3.0) @ np.linalg.qr(a)[0].T
    defective = np.diag(place // 3 % 8.0) + np.diag(place[1:] % 3 != 0, 1)  # eight eigenvalues, in chains of three
    return {
        "triangular": np.triu(a), "in Hessenberg's form": np.triu(a, -1), "of zero blocks": blocks,
        "graded": a * 10.0 ** -(place + place[:, None]) ** 0.5, "of three eigenvalues": few,
        "defective": np.linalg.solve(a + n * np.eye(n), defective @ (a + n * np.eye(n))),
        "of zero columns": a * (place % 2), "of a polynomial": np.vstack([r.standard_normal(n), np.eye(n)[:-1]]),
    }  # fmt: skip


def test_structured_matrices_side_by_side() -> None:
    """Each converges in its own time, beside others that have done so: in windows, and with rows that are added."""
    n, eps = 66, np.finfo("float64").eps
    kinds = structured(n)
    values = linalg.eigvals(Tensor(np.stack(list(kinds.values())), device="CPU")).numpy()
    for (name, a), w in zip(kinds.items(), values, strict=True):
        norm = np.linalg.norm(a)
        assert abs(w.sum() - np.trace(a)) <= 5 * n * eps * norm, name
        assert abs((w * w).sum() - np.trace(a @ a)) <= 5 * n * eps * norm**2, name
    found = dict(zip(kinds, values, strict=True))
    near(found["triangular"], kinds["triangular"].diagonal(), 4 * eps)
    near(found["of three eigenvalues"], np.arange(n) % 3.0, 5 * n * eps)  # a normal matrix: errors grow by nothing
    near(found["of zero columns"], np.linalg.eigvals(kinds["of zero columns"]), 1e-11)


def large_matrices(n: int) -> dict[str, Array]:
    """Matrices that converge each in a way of its own: chains of many bulges, and windows of blocks side by side."""
    r = np.random.default_rng(n)
    a, jordan = r.standard_normal((n, n)), np.eye(n) * 2 + np.eye(n, k=1)
    apart = 10.0 ** r.integers(-5, 5, n)
    return {
        "random": a, "symmetric": a + a.T, "skew": a - a.T, "orthogonal": np.linalg.qr(a)[0],
        "companion": np.vstack([a[0], np.eye(n)[:-1]]), "of a cycle": np.roll(np.eye(n), 1, 0),
        "Jordan's": jordan, "Jordan's, turned": jordan.T, "nearly Jordan's": jordan + 1e-6 * a,
        "scaled": a * 10.0 ** r.integers(-9, 9, (n, 1)), "of a bad basis": a * apart[:, None] / apart,
        "of rank 1": np.ones((n, n)), "of equal rotations": np.kron(np.eye(n // 2), ROTATION), **structured(n),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_matrices_of_every_kind(dtype: str) -> None:
    n = 101
    for a in large_matrices(n).values():
        a = a.astype(dtype)
        w, _ = decomposed(a, "CPU")  # compiled: interpreted, they take minutes
        # traces: no eigenvalue is there twice, and none is missing
        eps, norm, exact = np.finfo(dtype).eps, np.linalg.norm(a), a.astype("float64")
        assert abs(w.astype("complex128").sum() - np.trace(exact)) <= 5 * n * eps * norm
        assert abs((w.astype("complex128") ** 2).sum() - np.trace(exact @ exact)) <= 5 * n * eps * norm**2


def test_symmetric_matrices_have_real_eigenvalues() -> None:
    a = some(11, 11)
    w, v = decomposed(a + a.T)
    assert (w.imag == 0).all() and (v.imag == 0).all()
    np.testing.assert_allclose(np.sort(w.real), np.linalg.eigvalsh(a + a.T), atol=1e-13)


def test_a_matrix_that_is_not_finite_spoils_itself_alone() -> None:
    a = some(4, 3, 3)
    for place, bad in ((1, nan), (2, inf)):
        a[place, 1, 2] = bad
    w, v = (t.numpy() for t in linalg.eig(Tensor(a)))
    assert np.isnan(w[1:3]).all() and np.isnan(v[1:3]).all()
    near(w[0], np.linalg.eigvals(a[0]), 1e-12)
    near(w[3], np.linalg.eigvals(a[3]), 1e-12)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)], ids=str)
def test_empty_matrices(shape: tuple[int, ...]) -> None:
    for dtype in ("float32", "complex128"):
        w, v = linalg.eig(Tensor.zeros(*shape, dtype=dtype))
        assert w.shape == shape[:-1] and v.shape == shape
        assert w.dtype.name == ("complex64" if dtype == "float32" else dtype)


FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "values": lambda w, v: (w.real * w.real * w.real).sum() + w.abs().sum(),
    "vectors": lambda w, v: (v.abs() ** 4 * Tensor([[1.0], [-2.0], [0.5], [3.0]], dtype="float64")).sum(),
    "both": lambda w, v: (w * w * (v.abs() ** 4).sum(0)).real.sum() + w.imag.abs().sum(),
}
"""Of whatever order and phases there are."""


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_to_second_order(name: str, dtype: str) -> None:
    """Along a direction, against differences of what is one order less."""
    a, way, h = some(4, 4, dtype=dtype), some(4, 4, dtype=dtype), 1e-6

    def slope(at: Array) -> tuple[float, Array]:
        x = Tensor(at, requires_grad=True)
        total = FUNCTIONS[name](*linalg.eig(x))
        total.backward()
        assert x.grad is not None
        return total.item(), x.grad.numpy()

    (above, after), (below, before) = slope(a + h * way), slope(a - h * way)
    _, grad = slope(a)
    along = (grad.conj() * way).real.sum()
    np.testing.assert_allclose(along, (above - below) / (2 * h), rtol=1e-5, atol=1e-6)
    if dtype == "float64":
        x = Tensor(a, requires_grad=True)
        (once,) = Tensor.gradient(FUNCTIONS[name](*linalg.eig(x)), x)
        (twice,) = Tensor.gradient((once * Tensor(way)).sum(), x)
        wanted = (after - before) / (2 * h)
        np.testing.assert_allclose(twice.numpy(), wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_gradients_of_values_alone() -> None:
    """Those of the eigenvalues that come with the vectors, whichever order both are in."""
    a = some(2, 4, 4)
    weights = Tensor(some(2, 4, dtype="complex128"))
    grads: list[Array] = []
    ways: list[Callable[[Tensor], Tensor]] = [linalg.eigvals, lambda x: linalg.eig(x).eigenvalues]
    for values in ways:
        x = Tensor(a, requires_grad=True)
        (values(x) * weights).real.sum().backward()
        assert x.grad is not None
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-9, atol=1e-9)


def test_gradients_along_phases_are_not_known() -> None:
    x = Tensor([[0.0, 2.0], [-1.0, 0.5]], requires_grad=True)
    linalg.eig(x).eigenvectors.imag.sum().backward()
    assert x.grad is not None and np.isnan(x.grad.numpy()).all()
    real = Tensor([[2.0, 1.0], [0.5, 3.0]], requires_grad=True)  # whose vectors are real: nothing goes along a phase
    linalg.eig(real).eigenvectors.real.sum().backward()
    assert real.grad is not None and np.isfinite(real.grad.numpy()).all()


def test_in_a_record_and_for_many() -> None:
    values = TinyJit(lambda a: linalg.eig(a).eigenvalues.abs().realize())
    for _ in range(4):
        a = some(5, 5)
        np.testing.assert_allclose(np.sort(values(Tensor(a)).numpy()), np.sort(np.abs(np.linalg.eigvals(a))), rtol=1e-9)
    many = some(3, 4, 4)
    found = vmap(lambda a: linalg.eigvals(a).abs())(Tensor(many))
    np.testing.assert_allclose(np.sort(found.numpy()), np.sort(np.abs(np.linalg.eigvals(many))), rtol=1e-9)


def test_what_is_wrong_is_named() -> None:
    for function in (linalg.eig, linalg.eigvals):
        with pytest.raises(ValueError, match=r"matrices of shape \(2, 3\) are not square"):
            function(Tensor.ones(2, 3))
        with pytest.raises(ValueError, match="is no matrix"):
            function(Tensor.ones(3))
        with pytest.raises(TypeError, match="matrices of int32"):
            function(Tensor.ones(3, 3, dtype="int32"))


@pytest.mark.parametrize(("n", "most"), [(512, 120), (60, 88)])
def test_how_many_kernels_it_takes(n: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is generated and compiled before the first matrix of a size is decomposed."""
    found: set[LazyOp] = set()
    monkeypatch.setattr(loop, "foreseen", lambda work, _: found.update(kernel for _, kernel in work))
    with Tensor.no_grad():
        linalg.eig(Tensor(some(n, n, dtype="float32"), device="NULL"))
    assert most // 2 < len(found) <= most
