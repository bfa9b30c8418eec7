"""Decompositions of complex matrices: errors bounded by the theory, numpy's values, gradients against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Function, FunctionContext, Tensor, associative_scan, cond, linalg, scan, while_loop
from tg_frontend.transform.traced_once import traced_once

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(20261128)
EPS = {"complex64": 2.0**-23, "complex128": 2.0**-52}


def some(*shape: int, dtype: str = "complex128") -> Array:
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)


def adjoint(x: Array) -> Array:
    return np.swapaxes(x, -1, -2).conj()


def definite(*shape: int, dtype: str = "complex128") -> Array:
    a = some(*shape)
    return np.asarray(a @ adjoint(a) + np.eye(shape[-2])).astype(dtype)


def all_of(found: tuple[Tensor, ...]) -> list[Array]:
    return [one.numpy() for one in found]


class Bounds:
    """Errors of c * n * eps * norm (Higham, "Accuracy and Stability of Numerical Algorithms", 2002)."""

    def __init__(self, a: Array) -> None:
        self.bound = 30 * max(a.shape[-2:]) * EPS[a.dtype.name]

    def same(self, got: Array, want: Array) -> None:
        assert got.shape == want.shape
        size = np.linalg.norm(want.astype("complex128"), axis=(-2, -1)).max(initial=0)
        assert np.abs(got - want).max(initial=0) <= self.bound * size

    def unitary(self, q: Array) -> None:
        assert np.abs(adjoint(q) @ q - np.eye(q.shape[-1])).max(initial=0) <= self.bound


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", [(7, 5), (2, 4, 6), (1, 1), (2, 1, 1), (3, 0)], ids=str)
def test_unitary_factors(shape: tuple[int, ...], dtype: str) -> None:
    a = some(*shape, dtype=dtype)
    (m, n), k, bounds = shape[-2:], min(shape[-2:]), Bounds(a)
    for mode in ("reduced", "complete"):
        q, r = all_of(linalg.qr(Tensor(a), mode))
        assert q.shape[-1] == (m if mode == "complete" else k) and np.array_equal(r, np.triu(r))
        assert not np.diagonal(r, 0, -2, -1).imag.any()
        bounds.same(q @ r, a)
        bounds.unitary(q)
    for full in (False, True):
        u, s, vh = all_of(linalg.svd(Tensor(a), full))
        assert u.shape[-1] == (m if full else k) and vh.shape[-2] == (n if full else k) and s.dtype.kind == "f"
        assert (np.diff(s, axis=-1) <= 0).all() and (s >= 0).all()
        bounds.same(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a)
        bounds.unitary(u)
        bounds.unitary(adjoint(vh))
    want = np.linalg.svd(a, compute_uv=False) if 0 not in shape else np.zeros(0)
    np.testing.assert_allclose(linalg.svdvals(Tensor(a)).numpy(), want, atol=20 * bounds.bound)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 4, 4), (1, 1)], ids=str)
def test_hermitian_matrices(shape: tuple[int, ...], dtype: str) -> None:
    s = definite(*shape, dtype=dtype)
    bounds, noise = Bounds(s), np.triu(some(*shape, dtype=dtype), 1) + 1j * np.eye(shape[-1], dtype=dtype)
    given = (np.tril(s) + noise).astype(dtype)  # what is above the diagonal, or imaginary on it, is not read
    low = linalg.cholesky(Tensor(given)).numpy()
    assert np.array_equal(low, np.tril(low)) and not np.diagonal(low, 0, -2, -1).imag.any()
    bounds.same(low @ adjoint(low), s)
    bounds.same(linalg.cholesky(Tensor(adjoint(given)), upper=True).numpy(), adjoint(low))
    values, vectors = all_of(linalg.eigh(Tensor(given)))
    assert values.dtype.kind == "f" and (np.diff(values, axis=-1) >= 0).all()
    bounds.same(vectors * values[..., None, :] @ adjoint(vectors), s)
    bounds.unitary(vectors)
    size = np.abs(s).sum()
    for found in (linalg.eigvalsh(Tensor(given)), linalg.eigvalsh(Tensor(adjoint(given)), "U")):
        assert np.abs(found.numpy() - np.linalg.eigvalsh(s)).max() <= bounds.bound * size
    b = some(*shape[:-1], 2, dtype=dtype)
    x = linalg.cholesky_solve(Tensor(b), Tensor(low)).numpy()
    assert np.abs(s @ x - b).max() <= bounds.bound * size * np.abs(x).max()
    assert linalg.cholesky_ex(Tensor(given)).info.max().item() == 0
    assert linalg.cholesky_ex(Tensor(given - 2 * s[..., :1, :1].real * np.eye(shape[-1]))).info.numpy().min() == 1


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("lead", [(), (2, 1)], ids=str)
def test_elimination(lead: tuple[int, ...], dtype: str) -> None:
    a, b, wide = some(*lead, 6, 6, dtype=dtype), some(*lead, 6, 2, dtype=dtype), some(*lead, 3, 5, dtype=dtype)
    bounds = Bounds(a)
    for one in (a, wide):
        p, below, above = all_of(linalg.lu(Tensor(one)))
        bounds.same(p @ below @ above, one)
        assert np.abs(below).max() < 1.5
        assert np.array_equal(below, np.tril(below)) and np.array_equal(above, np.triu(above))
    size = np.abs(a).sum()

    def solves(matrix: Array, x: Array, want: Array) -> None:
        assert np.abs(matrix @ x - want).max() <= bounds.bound * size * np.abs(x).max()

    t, right = Tensor(a), Tensor(b)
    solves(a, linalg.solve(t, right).numpy(), b)
    solves(np.swapaxes(a, -1, -2), np.swapaxes(linalg.solve(t, right.mT, left=False).numpy(), -1, -2), b)
    solves(a, linalg.inv(t).numpy(), np.broadcast_to(np.eye(6), a.shape))
    factors = linalg.lu_factor(t)
    solves(adjoint(a), linalg.lu_solve(*factors, right, adjoint=True).numpy(), b)
    solves(np.swapaxes(a, -1, -2), np.swapaxes(linalg.lu_solve(*factors, right.mT, left=False).numpy(), -1, -2), b)
    triangle = np.triu(a) + 5 * np.eye(6, dtype=dtype)
    solves(triangle, linalg.solve_triangular(Tensor(triangle), right, upper=True).numpy(), b)
    tolerance = 200 * EPS[dtype]
    np.testing.assert_allclose(linalg.det(t).numpy(), np.linalg.det(a), rtol=tolerance)
    for got, want in zip(linalg.slogdet(t), np.linalg.slogdet(a), strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(t.logdet().exp().numpy(), np.linalg.det(a), rtol=tolerance)
    assert linalg.slogdet(Tensor(a * 0)).logabsdet.max().item() == -np.inf
    assert (linalg.slogdet(Tensor(a * 0)).sign.numpy() == 0).all()


def test_pivots_are_those_of_lapack() -> None:
    """The greatest sum of both parts' magnitudes, which neither the magnitude nor the greater part is."""
    for column, first in (([3 + 3j, 4 + 1j], 1), ([5 + 0j, 3 + 3j], 2), ([1j, 1 + 0j], 1)):
        assert linalg.lu_factor(Tensor(np.array(column)[:, None])).pivots.tolist() == [first]


def test_several_blocks() -> None:
    a, s, b = some(70, 70), definite(70, 70), some(70, 3)
    bounds = Bounds(a)
    p, left, right = all_of(linalg.lu(Tensor(a)))
    bounds.same(p @ left @ right, a)
    x = linalg.solve(Tensor(a), Tensor(b)).numpy()
    assert np.abs(a @ x - b).max() <= bounds.bound * np.abs(a).sum(-1).max() * np.abs(x).max()
    q, r = all_of(linalg.qr(Tensor(a)))
    bounds.same(q @ r, a)
    bounds.unitary(q)
    low = linalg.cholesky(Tensor(s)).numpy()
    bounds.same(low @ adjoint(low), s)
    values, vectors = all_of(linalg.eigh(Tensor(s)))
    bounds.same(vectors * values @ adjoint(vectors), s)
    bounds.unitary(vectors)


def hard(n: int) -> Array:
    """Matrices on which shortcuts fail, of norms of about 1."""
    a = some(n, n) / n
    return np.stack([
        a * 0, np.eye(n), np.eye(n) * 1j, np.ones((n, n)), np.outer(a[0], a[1]), np.triu(a, 1), np.tril(a),
        np.diag(a[0]), a * 2.0 ** -np.arange(0, 10 * n, 10), np.roll(np.eye(n), 1, 0) * np.exp(1j), a.real, a.imag * 1j,
        np.linalg.qr(a)[0], np.where(np.arange(n) == 1, 0, a), np.where(np.arange(n) == 2, a[:, :1], a),
    ])  # fmt: skip


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("power", [0, -1, 1])
def test_hard_matrices_of_every_scale(power: int, dtype: str) -> None:
    """Of norms near both ends of the floats, too."""
    scale = {"complex64": 2.0**100, "complex128": 2.0**900}[dtype] ** power
    plain = hard(5)
    a, bounds = (plain * scale).astype(dtype), Bounds(plain.astype(dtype))

    def same(*parts: Array) -> None:
        """The product of the parts, of which one has the scale."""
        total = np.eye(5) + 0j
        for part in parts:
            big = np.abs(part).max() > 1e6 or np.abs(part).max() < 1e-6
            total = total @ (part.astype("complex128") / scale if big and power else part.astype("complex128"))
        for got, want in zip(total, (a.astype("complex128") / scale), strict=True):
            assert np.abs(got - want).max() <= bounds.bound * max(np.linalg.norm(want), 1e-30)

    q, r = all_of(linalg.qr(Tensor(a)))
    same(q, r)
    bounds.unitary(q)
    u, s, vh = all_of(linalg.svd(Tensor(a)))
    same(u, s[:, :, None] * np.eye(5), vh)
    bounds.unitary(u)
    bounds.unitary(adjoint(vh))
    p, left, right = all_of(linalg.lu(Tensor(a)))
    same(p, left, right)


def stretched(u: Tensor, s: Tensor, vh: Tensor) -> Tensor:
    out: Tensor = (u * s**2) @ vh
    return out


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[], Array]]] = {
    "cholesky": (lambda a: linalg.cholesky(a @ a.mH + Tensor.eye(4, dtype=a.dtype)), lambda: some(4, 4)),
    "inv": (linalg.inv, lambda: some(4, 4) + 3 * np.eye(4)),
    "det": (linalg.det, lambda: some(4, 4)),
    "slogdet": (lambda a: linalg.slogdet(a).logabsdet + linalg.slogdet(a).sign ** 2, lambda: some(3, 3)),
    "lu": (lambda a: linalg.lu(a).L @ linalg.lu(a).U ** 2, lambda: some(4, 4)),
    "lu of a long matrix": (lambda a: linalg.lu(a).L.sin() @ linalg.lu(a).U ** 2, lambda: some(2, 7, 3)),
    "lu of a wide matrix": (lambda a: linalg.lu(a).L.sin() @ linalg.lu(a).U ** 2, lambda: some(2, 3, 5)),
    "qr": (lambda a: linalg.qr(a).Q + linalg.qr(a).R.sum(), lambda: some(5, 3)),
    "qr wide": (lambda a: linalg.qr(a).R, lambda: some(3, 5)),
    "eigh": (
        lambda a: linalg.eigh(a + a.mH).eigenvectors.abs() * linalg.eigh(a + a.mH).eigenvalues, lambda: some(4, 4)),
    "svd": (lambda a: linalg.svd(a, False).U.abs() * linalg.svd(a, False).S, lambda: some(5, 3)),
    "svd of both sides": (lambda a: stretched(*linalg.svd(a, False)), lambda: some(3, 5)),
    "eigvalsh": (lambda a: linalg.eigvalsh(a + a.mH) ** 3, lambda: some(4, 4)),
    "svdvals": (lambda a: linalg.svdvals(a) ** 3, lambda: some(3, 5)),
    "eigvals": (lambda a: linalg.eigvals(a).abs().sum(), lambda: some(3, 3)),
    "lstsq": (lambda a: linalg.lstsq(a, a.sin()[:, :2]).solution, lambda: some(5, 3)),
    "pinv": (linalg.pinv, lambda: some(5, 3)),
    "pinv of hermitian": (lambda a: linalg.pinv(a + a.mH, hermitian=True), lambda: some(4, 4)),
    "geqrf": (lambda a: a.geqrf().a.sin() + a.geqrf().tau.unsqueeze(1), lambda: some(2, 5, 3)),
    "logdet": (lambda a: a.logdet(), lambda: some(3, 3) + 3 * np.eye(3)),
    "matrix_exp": (linalg.matrix_exp, lambda: some(4, 4)),
    "triangular": (lambda a: linalg.solve_triangular(a, a @ a, upper=True), lambda: some(4, 4) + 3 * np.eye(4)),
    "norms": (lambda a: linalg.matrix_norm(a, "nuc") + linalg.vector_norm(a, 3) + linalg.norm(a), lambda: some(3, 4)),
}  # fmt: skip


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
        total: Tensor = (out * Tensor(weights[0])).real.sum()
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
    np.testing.assert_allclose((grad.conj() * direction).real.sum(), first, rtol=1e-5, atol=1e-6)
    x = Tensor(a, requires_grad=True)
    (once,) = Tensor.gradient(value(x), x)
    (twice,) = Tensor.gradient((once * Tensor(direction.conj())).real.sum(), x)
    want = (above[1] - below[1]) / (2 * h)
    np.testing.assert_allclose(twice.numpy(), want, rtol=1e-4, atol=1e-4 * max(1.0, np.abs(want).max()))


def test_gradients_that_depend_on_a_phase_are_nan() -> None:
    s = definite(3, 3)
    functions: list[Callable[[Tensor], Tensor]]
    functions = [lambda a: linalg.eigh(a).eigenvectors.real, lambda a: linalg.svd(a).U.real]
    for f in functions:
        x = Tensor(s, requires_grad=True)
        (f(x) * Tensor(some(3, 3)).real).sum().backward()
        assert x.grad is not None and np.isnan(x.grad.numpy()).all()


def test_gradients_of_eigenvectors_are_hermitian() -> None:
    """Whichever triangle is read, the other one is a copy of it."""
    for given in (definite(4, 4), definite(4, 4).real):
        a = Tensor(given, requires_grad=True)
        (linalg.eigh(a).eigenvectors.abs() * Tensor(some(4, 4)).real).sum().backward()
        assert a.grad is not None
        np.testing.assert_allclose(a.grad.numpy(), adjoint(a.grad.numpy()), atol=1e-13)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (70, 33), (2, 6, 6)])
def test_signs_of_qr_are_those_of_lapack(shape: tuple[int, ...]) -> None:
    """Who compares matrices element by element finds them where numpy has them."""
    a = some(*shape)
    a[..., :, 0] = np.where(np.arange(shape[-2]) > 0, 0, -1.5)  # nothing to reflect: LAPACK leaves it
    for part in (a, a.real):
        for mode in ("reduced", "complete"):
            for got, want in zip(linalg.qr(Tensor(part), mode), np.linalg.qr(part, mode), strict=True):
                np.testing.assert_allclose(got.numpy(), want, atol=1e-12)


def test_gradients_of_inverses_of_hermitian_matrices_are_hermitian() -> None:
    for given in (definite(4, 4), definite(4, 4).real):
        a = Tensor(given, requires_grad=True)
        (linalg.pinv(a, hermitian=True).abs() * Tensor(some(4, 4)).real).sum().backward()
        assert a.grad is not None
        np.testing.assert_allclose(a.grad.numpy(), adjoint(a.grad.numpy()), atol=1e-13)


def test_methods_and_what_is_made_of_decompositions() -> None:
    a, t = some(5, 3), Tensor(some(4, 4))
    np.testing.assert_allclose(linalg.pinv(Tensor(a)).numpy(), np.linalg.pinv(a), atol=1e-12)
    want = np.linalg.lstsq(a, a[:, :2] + 1j, rcond=None)
    got = linalg.lstsq(Tensor(a), Tensor(a[:, :2] + 1j))
    np.testing.assert_allclose(got.solution.numpy(), want[0], atol=1e-12)
    np.testing.assert_allclose(got.residuals.numpy(), want[1], atol=1e-12)
    assert got.rank.item() == want[2] == linalg.matrix_rank(Tensor(a)).item()
    for order in ("fro", "nuc", 1, 2, np.inf):
        np.testing.assert_allclose(linalg.matrix_norm(Tensor(a), order).item(), np.linalg.norm(a, order))
    np.testing.assert_allclose(linalg.cond(t, 1).item(), np.linalg.cond(t.numpy(), 1))
    np.testing.assert_allclose(linalg.matrix_power(t, -2).numpy(), np.linalg.matrix_power(t.numpy(), -2), rtol=1e-9)
    values, vectors = np.linalg.eig(t.numpy())
    want = vectors * np.exp(values) @ np.linalg.inv(vectors)
    np.testing.assert_allclose(t.matrix_exp().numpy(), want, atol=1e-9)
    u, s, v = Tensor(a).svd()
    np.testing.assert_allclose(((u * s) @ v.mH).numpy(), a, atol=1e-12)
    packed, tau = Tensor(a).geqrf()
    q = packed.orgqr(tau)
    np.testing.assert_allclose((q @ packed[:3].triu()).numpy(), a, atol=1e-12)
    turned = packed.ormqr(tau, Tensor(a), transpose=True)
    np.testing.assert_allclose(turned.numpy()[:3], packed[:3].triu().numpy(), atol=1e-12)
    np.testing.assert_allclose(t.qr().Q.numpy() @ t.qr().R.numpy(), t.numpy(), atol=1e-12)
    np.testing.assert_allclose(t.inverse().numpy() @ t.numpy(), np.eye(4), atol=1e-11)


def test_loops_of_complex_tensors() -> None:
    steps = Tensor([1j, 2 + 0j, 1 - 1j], requires_grad=True)
    last, kept = scan(lambda z, x: (z * x, (z.real, z + x)), Tensor(1 + 1j), steps)
    assert last.item() == (1 + 1j) * 1j * 2 * (1 - 1j)
    assert kept[0].tolist() == [1, -1, -2] and kept[1].tolist() == [1 + 2j, 1 + 1j, -1 + 1j]
    last.real.backward()
    assert steps.grad is not None
    # dL/dRe + i dL/dIm is the conjugate of the complex derivative
    np.testing.assert_allclose(steps.grad.numpy(), np.conj([4.0, 2j, -2 + 2j]), atol=1e-6)
    for start in (Tensor(1 + 0j), 1 + 0j):
        assert while_loop(lambda z: z.abs() < 9, lambda z: z * (1 + 1j), start).item() == (1 + 1j) ** 7
    assert cond(Tensor(False), lambda z: (z, 1j), lambda z: (z * 2, 3j), 1j)[1].item() == 3j
    total = associative_scan(lambda a, b: a * b, Tensor([1j, 2 + 0j, 1 + 1j]))
    assert total.tolist() == [1j, 2j, -2 + 2j]
    x = Tensor([1j, 2 + 1j], requires_grad=True)
    chosen = cond(x.real.sum() > 0, lambda z: z * 1j, lambda z: z, x)
    assert chosen.tolist() == [-1, -1 + 2j]
    chosen.imag.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1, 1]
    calls = []

    @traced_once
    def doubled(z: Tensor) -> tuple[Tensor, Tensor]:
        calls.append(z)
        return z * 2, z.real

    with Tensor.no_grad():
        for value in (1j, 2 + 1j):
            two, re = doubled(Tensor([value]))
            assert two.tolist() == [2 * value] and re.tolist() == [complex(value).real]
    assert len(calls) == 1


def test_functions_of_complex_tensors() -> None:
    class Product(Function):
        @staticmethod
        def forward(ctx: FunctionContext, z: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            ctx.save_for_backward(z, x)
            return z * x, z.real * 1

        @staticmethod
        def backward(ctx: FunctionContext, *grads: Tensor) -> tuple[Tensor, Tensor]:
            z, x = ctx.saved_tensors
            return grads[0] * x + grads[1], grads[0] * z.conj()  # at a real argument, the real part counts

    z, x = Tensor([1 + 2j, 3j], requires_grad=True), Tensor([2.0, -1.0], requires_grad=True)
    both, re = Product.apply(z, x)
    assert both.tolist() == [2 + 4j, -3j] and re.tolist() == [1, 0]
    ((both * Tensor([1j, 2 + 0j])).real.sum() + re.sum()).backward()
    own, other = Tensor([1 + 2j, 3j], requires_grad=True), Tensor([2.0, -1.0], requires_grad=True)
    ((own * other * Tensor([1j, 2 + 0j])).real.sum() + own.real.sum()).backward()
    assert z.grad is not None and own.grad is not None and z.grad.tolist() == own.grad.tolist()
    assert x.grad is not None and other.grad is not None and x.grad.tolist() == other.grad.tolist()


@pytest.mark.parametrize(("match", "bad"), [
    ("lobpcg: .*complex numbers", lambda: linalg.lobpcg(Tensor(some(4, 4)))),
    ("ldl_solve: matrices of complex128 and right sides of float64",
     lambda: linalg.ldl_solve(Tensor(some(2, 2)), Tensor([1, 2]), Tensor.ones(2, 1, dtype="float64"))),
    ("solve: matrices of complex128 and right sides of float64",
     lambda: linalg.solve(Tensor(some(2, 2)), Tensor.ones(2, 1, dtype="float64"))),
    ("inv: matrices of int", lambda: linalg.inv(Tensor([[1, 2], [3, 4]]))),
    ("lstsq: a matrix of complex128 and right sides of float64",
     lambda: linalg.lstsq(Tensor(some(3, 2)), Tensor.ones(3, 1, dtype="float64"))),
    ("carry has the form ., and the function returns one of complex",
     lambda: scan(lambda z, x: (z * x, z), Tensor(1.0), Tensor([1j]))),
    ("vector_norm: .* not in float64", lambda: linalg.vector_norm(Tensor(some(3)), dtype="float64")),
    ("matrix_norm: .* not in float32", lambda: linalg.matrix_norm(Tensor(some(3, 3)), dtype="float32")),
])  # fmt: skip
def test_what_is_wrong_is_named(match: str, bad: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=match):
        bad()
