"""Complex numbers in functions that are formulas of others: values beside numpy's, gradients beside differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor
from tg_frontend.nn import functional as F

Numbers = Any
_SIZES = np.random.default_rng(20).choice([1, 2, 3, 5, 7, 11], size=(40, 2))


def _drawn(shape: tuple[int, ...], seed: int) -> Numbers:
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def _renorm(z: Numbers) -> Numbers:
    length = np.sqrt((abs(z) ** 2).sum(1, keepdims=True))
    return np.where(length > 0.7, z * 0.7 / (length + 1e-7), z)


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "silu": (lambda x: x.silu(), lambda z: z / (1 + np.exp(-z))),
    "swish": (lambda x: x.swish(), lambda z: z / (1 + np.exp(-z))),
    "softsign": (lambda x: F.softsign(x), lambda z: z / (1 + abs(z))),
    "tanhshrink": (lambda x: x.tanhshrink(), lambda z: z - np.tanh(z)),
    "sinc": (lambda x: x.sinc(), np.sinc),
    "sinc near 0": (lambda x: (x * 1e-4).sinc(), lambda z: np.sinc(z * 1e-4)),
    "ldexp": (lambda x: x.ldexp(Tensor(3)), lambda z: z * 8),
    "ldexp complex": (lambda x: x.ldexp(x), lambda z: z * 2**z),
    "logaddexp": (lambda x: x.logaddexp(x * 2 + 1).exp(), lambda z: np.exp(z) + np.exp(z * 2 + 1)),
    "logsumexp": (lambda x: x.logsumexp(1), lambda z: np.log(np.exp(z).sum(1))),
    "logsumexp all": (lambda x: x.logsumexp(), lambda z: np.log(np.exp(z).sum())),
    "logcumsumexp": (lambda x: x.logcumsumexp(0), lambda z: np.log(np.exp(z).cumsum(0))),
    "var_mean": (lambda x: x.var_mean(1, correction=0)[0] + x.var_mean(1)[1], lambda z: z.var(1) + z.mean(1)),
    "std_mean": (lambda x: x.std_mean(1, correction=0)[0] + 0j, lambda z: z.std(1) + 0j),
    "cov": (lambda x: x.cov(0), lambda z: np.cov(z, ddof=0)),
    "corrcoef": (lambda x: x.corrcoef(), np.corrcoef),
    "renorm": (lambda x: x.renorm(2, 0, 0.7), _renorm),
    "normalize": (lambda x: F.normalize(x, dim=1), lambda z: z / np.sqrt((abs(z) ** 2).sum(1, keepdims=True))),
    "pairwise_distance": (
        lambda x: F.pairwise_distance(x, x * 2) + 0j, lambda z: np.sqrt((abs(1e-6 - z) ** 2).sum(1)) + 0j,
    ),
    "l1_loss": (lambda x: F.l1_loss(x, x * 3) + 0j, lambda z: abs(2 * z).mean() + 0j),
    "rms_norm": (
        lambda x: F.rms_norm(x, x.shape[1], eps=0.5), lambda z: z / np.sqrt((z * z).mean(1, keepdims=True) + 0.5),
    ),
    "as_strided": (lambda x: x.as_strided((3,), (1,)), lambda z: z.reshape(-1)[:3]),
    "as_strided_scatter": (
        lambda x: x.as_strided_scatter(x[0, :1] * 2, (1,), (1,)),
        lambda z: np.concatenate([2 * z.reshape(-1)[:1], z.reshape(-1)[1:]]).reshape(z.shape),
    ),
    "combinations": (lambda x: x[:, 0].combinations(1), lambda z: z[:, :1]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    ours, theirs = CASES[name]
    seed = list(CASES).index(name)
    rows, columns = (int(n) + 1 for n in _SIZES[seed])
    z = _drawn((rows, columns), seed)
    x = Tensor(z, requires_grad=True)
    out, want = ours(x), np.asarray(theirs(z))
    assert out.dtype is dtypes.complex128
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-9, atol=1e-9)
    weight = _drawn(want.shape, 99)
    (out * Tensor(weight).conj()).real.sum().backward()
    assert x.grad is not None
    way, step = _drawn(z.shape, 98), 1e-6
    change = [(weight.conj() * theirs(z + side * way)).real.sum() for side in (step, -step)]
    slope = (x.grad.numpy().conj() * way).real.sum()
    np.testing.assert_allclose(slope, (change[0] - change[1]) / (2 * step), rtol=2e-5, atol=2e-6)


def test_sums_of_powers_that_are_no_numbers() -> None:
    inf = float("inf")
    big = Tensor([1000 + 1j, -1000 + 2j, -inf + 3j, 2 + 0j], requires_grad=True)
    other = Tensor([999 + 1j, -999 + 2j, -inf + 1j, -inf + 5j])
    found = big.logaddexp(other)
    step = np.log1p(np.exp(-1.0))
    np.testing.assert_allclose(found.real.numpy(), [1000 + step, -999 + step, -inf, 2], rtol=1e-6)
    np.testing.assert_allclose(found.imag.numpy()[[0, 1, 3]], [1, 2, 0], atol=1e-6)
    found[:2].real.sum().backward()
    assert big.grad is not None and np.isfinite(big.grad.numpy()).all()
    total = Tensor([1000 + 1j, 1000 + 1j]).logsumexp(0)
    np.testing.assert_allclose(total.numpy(), 1000 + np.log(2) + 1j, rtol=1e-6)
    assert Tensor([[-inf + 0j]]).logsumexp(1).real.tolist() == [-inf]


def test_weights_of_observations() -> None:
    z = _drawn((3, 7), 3)
    often, much = np.array([1, 2, 0, 3, 1, 1, 4]), np.array([0.5, 1.0, 2.0, 0.25, 3.0, 1.0, 1.5])
    found = Tensor(z).cov(1, Tensor(often), Tensor(much))
    np.testing.assert_allclose(found.numpy(), np.cov(z, ddof=1, fweights=often, aweights=much), rtol=1e-9)
    both = Tensor(z[:2]).cov(y=Tensor(z[2:]))
    np.testing.assert_allclose(both.numpy(), np.cov(z[:2], z[2:]), rtol=1e-9)
    np.testing.assert_allclose(Tensor(z).cov(rowvar=False).numpy(), np.cov(z, rowvar=False), rtol=1e-9)
    assert np.isnan(Tensor(z).cov(1, None, Tensor(-much)).real.numpy()).all()
    with pytest.raises(TypeError, match="fweights are integers"):
        Tensor(z).cov(1, Tensor(much))
    with pytest.raises(ValueError, match="weights of shape"):
        Tensor(z).cov(1, None, Tensor(much[:3]))


def test_windows_as_columns() -> None:
    z = _drawn((2, 3, 5, 4), 5)
    columns = F.unfold(Tensor(z), 2)
    for part in ("real", "imag"):
        np.testing.assert_allclose(
            getattr(columns, part).numpy(), F.unfold(Tensor(getattr(z, part).copy()), 2).numpy(), rtol=1e-12
        )
    counts = F.fold(F.unfold(Tensor(np.ones_like(z)), 2), (5, 4), 2)
    np.testing.assert_allclose((F.fold(columns, (5, 4), 2) / counts).numpy(), z, rtol=1e-9)


def test_powers_with_complex_exponents() -> None:
    base: Any = 2j
    found = Tensor.logspace(0, 1, 3, base=base, dtype="complex128")
    np.testing.assert_allclose(found.numpy(), (2j) ** np.linspace(0, 1, 3), rtol=1e-9)
    assert Tensor.logspace(0, 2, 3, dtype="complex64").tolist() == pytest.approx([1, 10, 100])


def test_a_signal_under_a_complex_window_comes_back() -> None:
    z, window = _drawn((23,), 6), _drawn((8,), 7)
    spectrum = Tensor(z).stft(8, 2, window=Tensor(window), onesided=False, return_complex=True)
    back = spectrum.istft(8, 2, window=Tensor(window), onesided=False, length=23, return_complex=True)
    np.testing.assert_allclose(back.numpy()[:20], z[:20], rtol=1e-8, atol=1e-8)


def test_what_has_no_order_wants_a_dtype() -> None:
    z = Tensor([1 + 2j, 3 - 1j])
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        found = z.softmax(0, dtype="float64")
    np.testing.assert_allclose(found.numpy(), Tensor([1.0, 3.0]).softmax(0).numpy(), rtol=1e-6)
    with pytest.raises(TypeError, match="softmax: complex numbers have no order"):
        z.softmax(0)


def test_what_is_drawn_and_what_is_found() -> None:
    Tensor.manual_seed(4)
    drawn = Tensor(np.zeros(20_001, np.complex128)).normal_(1.0, 2.0).numpy()
    assert abs(drawn.real.mean() - 1) < 0.05 and abs(drawn.imag.mean() - 1) < 0.05 and abs(drawn.std() - 2) < 0.05
    flat = Tensor(np.zeros(101, np.complex64)).uniform_(2.0, 3.0).numpy()
    assert ((flat.real >= 2) & (flat.real < 3) & (flat.imag >= 2) & (flat.imag < 3)).all()
    assert Tensor([0j, 1j, 2 + 0j]).nonzero_static(size=3).tolist() == [[1], [2], [-1]]
    a, b, c = (Tensor(_drawn((2, 3), seed)) for seed in (1, 2, 3))
    near, far = (np.sqrt((abs(a.numpy() - other.numpy() + 1e-6) ** 2).sum(1)) for other in (b, c))
    np.testing.assert_allclose(F.triplet_margin_loss(a, b, c).item(), np.maximum(near - far + 1, 0).mean(), rtol=1e-9)
