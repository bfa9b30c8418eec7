"""Symmetric matrices that are not definite, LU taken apart, low ranks, and a few eigenvalues."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor, linalg
from tg_frontend.functions import chain_matmul, constant_pad_nd
from tg_runtime import GlobalCounters

RNG = np.random.default_rng(11)


def symmetric(*shape: int, hollow: bool = False) -> Any:
    """Symmetric matrices, with nothing on the diagonal if they are hollow: then blocks have two rows."""
    a = RNG.normal(size=shape)
    a = a + a.swapaxes(-1, -2)
    return a * (1 - np.eye(shape[-1])) if hollow else a


def like(a: Any, hermitian: bool) -> Any:
    """The transposes, conjugated if they are to be."""
    return a.swapaxes(-1, -2).conj() if hermitian else a.swapaxes(-1, -2)


def complex_symmetric(*shape: int, hermitian: bool, hollow: bool) -> Any:
    """Complex matrices that are their own transposes, or the conjugates of those; see :func:`symmetric`."""
    a = RNG.normal(size=shape) + 1j * RNG.normal(size=shape)
    a = a + like(a, hermitian)
    return a * (1 - np.eye(shape[-1])) if hollow else a


def assembled(both: Any, pivots: Any, hermitian: bool = False) -> Any:
    """The matrix of which these are the factors, by LAPACK's description of them."""
    n = len(both)
    left, middle, k = np.eye(n, dtype=both.dtype), np.zeros_like(both), 0
    while k < n:
        size = 1 if pivots[k] > 0 else 2
        last = k + size - 1
        swap = np.eye(n)
        swap[[last, abs(pivots[last]) - 1]] = swap[[abs(pivots[last]) - 1, last]]
        step = np.eye(n, dtype=both.dtype)
        step[k + size :, k : k + size] = both[k + size :, k : k + size]
        left = left @ swap @ step
        block = np.tril(both[k : k + size, k : k + size])
        middle[k : k + size, k : k + size] = block + like(np.tril(block, -1), hermitian)
        k += size
    return left @ middle @ like(left, hermitian)


@pytest.mark.parametrize("hollow", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 13])
def test_ldl(n: int, hollow: bool) -> None:
    a = symmetric(3, n, n, hollow=hollow and n > 1)
    found = linalg.ldl_factor_ex(Tensor(np.tril(a) + np.triu(np.full((n, n), 9.0), 1)))  # what is above is not read
    assert found.pivots.dtype is dtypes.int32 and found.info.tolist() == [0, 0, 0]
    for both, pivots, wanted in zip(found.LD.numpy(), found.pivots.numpy(), a, strict=True):
        assert (np.triu(both, 1) == 0).all()
        np.testing.assert_allclose(assembled(both, pivots), wanted, atol=1e-10)
    if hollow and n > 1:
        assert (found.pivots.numpy() < 0).any()
    b = RNG.normal(size=(3, n, 2))
    np.testing.assert_allclose(a @ linalg.ldl_solve(found.LD, found.pivots, Tensor(b)).numpy(), b, atol=1e-8)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("hollow", [False, True])
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl_of_complex_matrices(hermitian: bool, hollow: bool, dtype: str) -> None:
    n = int(RNG.integers(2, 15))
    a = complex_symmetric(3, n, n, hermitian=hermitian, hollow=hollow).astype(dtype)
    garbage = np.triu(np.full((n, n), 9 + 3j), 1) + 5j * hermitian * np.eye(n)  # is not read
    found = linalg.ldl_factor_ex(Tensor((np.tril(a) + garbage).astype(dtype)), hermitian=hermitian)
    assert found.LD.dtype.name == dtype and found.info.tolist() == [0, 0, 0]
    size = 2e-4 if dtype == "complex64" else 1e-10
    for both, pivots, wanted in zip(found.LD.numpy(), found.pivots.numpy(), a, strict=True):
        assert (np.triu(both, 1) == 0).all() and not (hermitian and both.diagonal().imag.any())
        np.testing.assert_allclose(assembled(both, pivots, hermitian), wanted, atol=size)
    if hollow:
        assert (found.pivots.numpy() < 0).any()
    b = (RNG.normal(size=(3, n, 2)) + 1j * RNG.normal(size=(3, n, 2))).astype(dtype)
    x = linalg.ldl_solve(found.LD, found.pivots, Tensor(b), hermitian=hermitian).numpy()
    residual = np.abs(a @ x - b).max((1, 2)) / (np.abs(a).sum(2).max(1) * np.abs(x).max((1, 2)) + 1)
    assert (residual < size).all()


def test_exchanges_of_complex_matrices_are_those_of_lapack() -> None:
    a = np.zeros((5, 5), np.complex128)
    a[np.tril_indices(5, -1)] = [3 + 2.9j, 4 + 0j, 1j, 2, 1 - 2j, 5j, 2 + 2j, -1, 3 - 4j, 1.5]
    wanted = [-2, -2, -5, -5, 5], [-2, -2, -4, -4, 5]
    for hermitian, pivots in zip((False, True), wanted, strict=True):  # zsytrf, zhetrf
        assert linalg.ldl_factor(Tensor(a), hermitian=hermitian).pivots.tolist() == pivots


@pytest.mark.parametrize("hermitian", [False, True])
def test_gradients_of_ldl_of_complex_matrices(hermitian: bool) -> None:
    a = complex_symmetric(2, 5, 5, hermitian=hermitian, hollow=True)
    b = RNG.normal(size=(2, 5, 3)) + 1j * RNG.normal(size=(2, 5, 3))
    both, right = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    linalg.ldl_solve(*linalg.ldl_factor(both, hermitian=hermitian), right, hermitian=hermitian).abs().sum().backward()
    other, sides = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    linalg.solve(other, sides).abs().sum().backward()
    grads: list[Any] = [one.grad for one in (both, right, other, sides)]
    mine, right_mine, full, right_full = (one.numpy() for one in grads)
    np.testing.assert_allclose(right_mine, right_full, atol=1e-8)
    full = full + like(full, hermitian)  # what is below stands for what is above, too
    full = np.tril(full, -1) + (full * np.eye(5) / 2)
    np.testing.assert_allclose(mine, full.real * np.eye(5) + np.tril(full, -1) if hermitian else full, atol=1e-8)


def test_exchanges_are_those_of_lapack() -> None:
    a = np.zeros((5, 5))
    a[np.tril_indices(5, -1)] = [-0.46, 1.19, -1.85, -0.55, -0.29, 2.13, 1.47, -0.57, -0.98, -2.26]
    both, pivots = linalg.ldl_factor(Tensor(a))
    assert pivots.tolist() == [-5, -5, -4, -4, 5]  # dsytrf
    np.testing.assert_allclose(both.numpy()[:, 0], [0, 1.47, -98 / 147, -226 / 147, -57 / 147], atol=1e-12)


def test_gradients_of_ldl() -> None:
    a, w, b = symmetric(2, 5, 5, hollow=True), RNG.normal(size=(2, 5, 5)), RNG.normal(size=(2, 5, 3))

    def value(a: Any) -> float:
        return float((linalg.ldl_factor(Tensor(a)).LD.numpy() * w).sum())

    x = Tensor(a, requires_grad=True)
    (linalg.ldl_factor(x).LD * Tensor(w)).sum().backward()
    assert x.grad is not None
    for place in ((0, 1, 0), (0, 3, 3), (1, 4, 2), (1, 2, 4)):
        step = np.zeros_like(a)
        step[place] = 1e-6
        slope = (value(a + step) - value(a - step)) / 2e-6
        assert x.grad.numpy()[place] == pytest.approx(slope, abs=1e-6)
    both, right = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    linalg.ldl_solve(*linalg.ldl_factor(both), right).square().sum().backward()
    other, sides = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    linalg.solve(other, sides).square().sum().backward()
    assert both.grad is not None and right.grad is not None and other.grad is not None and sides.grad is not None
    np.testing.assert_allclose(right.grad.numpy(), sides.grad.numpy(), atol=1e-8)
    full = other.grad.numpy()
    np.testing.assert_allclose(both.grad.numpy(), np.tril(full) + np.tril(full.swapaxes(1, 2), -1), atol=1e-8)


def test_singular_matrices_raise_where_that_is_checked() -> None:
    zeros = Tensor.zeros(3, 3)
    found = linalg.ldl_factor_ex(zeros)
    assert found.info.item() == 1 and found.pivots.tolist() == [1, 2, 3] and (found.LD == 0).all().item()
    assert linalg.ldl_factor_ex(Tensor.ones(3, 3)).info.item() == 2
    negative = Tensor([[1.0, 0.0], [0.0, -1.0]])
    for call, said in (
        (lambda: linalg.ldl_factor_ex(zeros, check_errors=True), "0 is the block number 1"),
        (lambda: linalg.lu_factor_ex(zeros, check_errors=True), "0 is the pivot number 1"),
        (lambda: linalg.inv_ex(Tensor.ones(2, 2), check_errors=True), "0 is the pivot number 2"),
        (lambda: linalg.solve_ex(zeros, zeros, check_errors=True), "0 is the pivot number 1"),
        (lambda: linalg.cholesky_ex(negative, check_errors=True), "minor number 2"),
    ):
        for kind in (linalg.LinAlgError, ValueError, RuntimeError):
            with pytest.raises(kind, match=said):
                call()
    for wrong in (Tensor.ones(2, 3), Tensor.ones(3)):
        with pytest.raises(ValueError, match="not square|no matrix"):
            linalg.ldl_factor(wrong)
    with pytest.raises(ValueError, match="do not fit"):
        linalg.ldl_solve(zeros, Tensor([1, 2]), zeros)
    with pytest.raises(TypeError, match="pivots are integers"):
        linalg.ldl_solve(zeros, Tensor([1.0, 2.0, 3.0]), zeros)
    assert linalg.ldl_factor(Tensor.zeros(2, 0, 0)).pivots.shape == (2, 0)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4), (0, 3), (3, 0), (0, 2, 3)])
def test_lu_taken_apart(shape: tuple[int, ...]) -> None:
    a = Tensor(RNG.normal(size=shape))
    whole, parts = linalg.lu(a), linalg.lu_unpack(*linalg.lu_factor(a))
    for mine, wanted in zip(parts, whole, strict=True):
        assert mine.shape == wanted.shape
        np.testing.assert_allclose(mine.numpy(), wanted.numpy(), atol=1e-12)
    left = linalg.lu_unpack(*linalg.lu_factor(a), unpack_data=False)
    assert left.P.shape == whole.P.shape and left.L.shape == left.U.shape == (0,)
    assert linalg.lu_unpack(*linalg.lu_factor(a), unpack_pivots=False).P.shape == (0,)
    with pytest.raises(ValueError, match="pivots of shape"):
        linalg.lu_unpack(a, Tensor([1] * 9))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("shape", [(9, 7), (5, 8), (2, 7, 7)])
def test_low_ranks(shape: tuple[int, ...]) -> None:
    Tensor.manual_seed(5)
    a = RNG.normal(size=(*shape[:-1], 3)) @ RNG.normal(size=(3, shape[-1]))
    u, s, v = linalg.svd_lowrank(Tensor(a), q=4)
    assert u.shape == (*shape[:-1], 4) and v.shape == (*shape[:-2], shape[-1], 4)
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(a)[1][..., :4], atol=1e-10)
    np.testing.assert_allclose((u * s.unsqueeze(-2) @ v.mT).numpy(), a, atol=1e-10)
    mean = a.mean(-2, keepdims=True)
    np.testing.assert_allclose(linalg.svd_lowrank(Tensor(a), 4, M=Tensor(mean)).S.numpy(),
                               linalg.pca_lowrank(Tensor(a), 4).S.numpy(), atol=1e-10)  # fmt: skip
    wanted = np.linalg.svd(a - mean)[1]
    found = linalg.pca_lowrank(Tensor(a)).S.numpy()
    np.testing.assert_allclose(found, wanted[..., : found.shape[-1]], atol=1e-10)
    np.testing.assert_allclose(linalg.pca_lowrank(Tensor(a), 3, center=False).S.numpy(), s.numpy()[..., :3], atol=1e-10)


def test_gradient_of_a_low_rank() -> None:
    a = RNG.normal(size=(6, 2)) @ RNG.normal(size=(2, 5))
    x, y = Tensor(a, requires_grad=True), Tensor(a, requires_grad=True)
    linalg.svd_lowrank(x, q=2).S.sum().backward()
    linalg.svdvals(y)[:2].sum().backward()
    assert x.grad is not None and y.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), atol=1e-8)
    for q, niter in ((6, 2), (-1, 2), (2, -1)):
        with pytest.raises(ValueError, match="svd_lowrank: "):
            linalg.svd_lowrank(x, q, niter)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("shape", "k", "general"), [((11, 11), 2, False), ((2, 7, 7), 1, True)])
def test_a_few_eigenvalues(shape: tuple[int, ...], k: int, general: bool, largest: bool) -> None:
    Tensor.manual_seed(2)
    m = shape[-1]
    a = symmetric(*shape).astype(np.float32)
    square = RNG.normal(size=shape)
    b = (square @ square.swapaxes(-1, -2) + m * np.eye(m)).astype(np.float32) if general else None
    values, vectors = linalg.lobpcg(Tensor(a), k, B=None if b is None else Tensor(b), largest=largest)
    metric = np.eye(m) if b is None else b
    root = np.linalg.inv(np.linalg.cholesky(metric))
    exact = np.linalg.eigvalsh(root @ a @ root.swapaxes(-1, -2))
    np.testing.assert_allclose(values.numpy(), exact[..., ::-1][..., :k] if largest else exact[..., :k], atol=2e-4)
    v = vectors.numpy()
    np.testing.assert_allclose(a @ v, metric @ v * values.numpy()[..., None, :], atol=5e-2)
    np.testing.assert_allclose(
        v.swapaxes(-1, -2) @ metric @ v, np.broadcast_to(np.eye(k), (*shape[:-2], k, k)), atol=1e-5
    )


def test_all_steps_to_a_few_eigenvalues_are_of_one_shape() -> None:
    """What is compiled for one step is all that is ever compiled."""
    a = symmetric(31, 31)
    linalg.lobpcg(Tensor(a), 2, niter=1)[0].realize()
    before = GlobalCounters.compile_count
    linalg.lobpcg(Tensor(a), 2, niter=5)[0].realize()
    assert GlobalCounters.compile_count == before


def test_eigenvalues_with_a_gradient_and_what_is_refused() -> None:
    a = symmetric(7, 7)
    x, y = Tensor(a, requires_grad=True), Tensor(a, requires_grad=True)
    w = Tensor([1.0, 3.0], dtype="float64")
    (linalg.lobpcg(x, 2).eigenvalues * w).sum().backward()
    (linalg.eigvalsh(y).flip(0)[:2] * w).sum().backward()
    assert x.grad is not None and y.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), atol=1e-10)
    t = Tensor(a)
    preconditioned = linalg.lobpcg(t, 1, iK=linalg.inv(t), X=Tensor(a[:, :2]), niter=60)
    assert preconditioned.eigenvalues.item() == pytest.approx(np.linalg.eigvalsh(a)[-1])
    wrong: list[dict[str, Any]] = [
        {"k": 3}, {"k": 2, "n": 1}, {"method": "other"}, {"B": Tensor(a[:3, :3])}, {"X": Tensor(a[:3])}
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises(ValueError, match="lobpcg: "):
            linalg.lobpcg(t, **options)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("tol", [0.0, -1.0, float("nan"), 1e-30])
def test_lobpcg_ends_where_rounding_leaves_no_better_pair(
    dtype: str, tol: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, steps = sys.modules["tg_frontend.linalg.lobpcg"], list[int]()
    ritz: Any = vars(module)["_ritz"]

    def counted(*given: Any) -> Any:
        steps.append(1)
        return ritz(*given)

    monkeypatch.setattr(module, "_ritz", counted)
    rng = np.random.default_rng()
    n = int(rng.integers(6, 14))
    a = rng.normal(size=(n, n)).astype(dtype)
    a = a @ a.T / n
    found = linalg.lobpcg(Tensor(a, device="NUMPY"), 1, tol=tol).eigenvalues.numpy()
    np.testing.assert_allclose(found, np.linalg.eigvalsh(a)[-1:], 1e-4 if dtype == "float32" else 1e-12)
    assert len(steps) < 900


def test_chains_and_constants() -> None:
    parts = [RNG.normal(size=shape) for shape in ((2, 5), (5, 3), (3, 7))]
    np.testing.assert_allclose(chain_matmul(*map(Tensor, parts)).numpy(), np.linalg.multi_dot(parts))
    x = Tensor(parts[0])
    assert chain_matmul(x) is x
    np.testing.assert_allclose(constant_pad_nd(x, (1, 0, 0, -1), 3.0).numpy(), np.pad(parts[0][:1], ((0, 0), (1, 0)),
                                                                                    constant_values=3))  # fmt: skip
