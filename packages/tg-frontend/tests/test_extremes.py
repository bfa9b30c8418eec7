"""Activations where x is 0, at their bounds, or so large that a square or a difference of it is lost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tg_frontend import Tensor

Values = npt.NDArray[Any]
X = np.array([0, -0.0, 6, -6, 3, -3, 1, -1, 0.5, -0.5, 100, -100, 1e7, -1e7, 1e19, -1e19, 1e38, -1e38, 3e38, -3e38])
FINITE = X.astype(np.float32)
A, G = 1.6732632423543772, 1.0507009873554805


def _sigmoid(x: Values) -> Values:
    return 0.5 * (1 + np.tanh(x / 2))


def _erf(x: Values) -> Values:
    return np.array([math.erf(v) for v in x])


def _gelu_slope(x: Values) -> Values:
    near = np.clip(x, -50, 50)
    u = math.sqrt(8 / math.pi) * near * (1 + 0.044715 * near**2)
    s = _sigmoid(u)
    return np.where(x > 50, 1, s + near * s * (1 - s) * math.sqrt(8 / math.pi) * (1 + 3 * 0.044715 * near**2))


def _near(x: Values) -> Values:
    return np.clip(x, -700, 700)


# What each is, and its slope: where there are two, the one that PyTorch has.
CASES: dict[str, tuple[Callable[[Values], Values], Callable[[Values], Values]]] = {
    "relu": (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0),
    "relu6": (lambda x: np.clip(x, 0, 6), lambda x: ((x > 0) & (x < 6)) * 1.0),
    "hardswish": (
        lambda x: np.where(x >= 3, x, np.clip(x, -3, 3) * (np.clip(x, -3, 3) + 3) / 6),
        lambda x: np.where(x >= 3, 1, np.where(x <= -3, 0, np.clip(x, -3, 3) / 3 + 0.5)),
    ),
    "leaky_relu": (lambda x: np.where(x > 0, x, 0.01 * x), lambda x: np.where(x > 0, 1, 0.01)),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), lambda x: np.exp(np.minimum(x, 0))),
    "celu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), lambda x: np.exp(np.minimum(x, 0))),
    "selu": (
        lambda x: G * np.where(x > 0, x, A * np.expm1(np.minimum(x, 0))),
        lambda x: G * np.where(x > 0, 1, A * np.exp(np.minimum(x, 0))),
    ),
    "gelu": (lambda x: x * _sigmoid(math.sqrt(8 / math.pi) * x * (1 + 0.044715 * np.minimum(x * x, 1e4))), _gelu_slope),
    "silu": (
        lambda x: x * _sigmoid(x),
        lambda x: _sigmoid(x) + _near(x) * _sigmoid(_near(x)) * (1 - _sigmoid(_near(x))),
    ),
    "sigmoid": (_sigmoid, lambda x: _sigmoid(x) * (1 - _sigmoid(x))),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "softplus": (lambda x: np.logaddexp(0, x), _sigmoid),
    "logsigmoid": (lambda x: -np.logaddexp(0, -x), lambda x: _sigmoid(-x)),
    "softsign": (lambda x: x / (1 + abs(x)), lambda x: 1 / (1 + abs(x)) ** 2),
    "hardtanh": (lambda x: np.clip(x, -1, 1), lambda x: np.where(abs(x) == 1, np.nan, abs(x) < 1)),
    "hardshrink": (lambda x: np.where(abs(x) > 0.5, x, 0), lambda x: (abs(x) > 0.5) * 1.0),
    "softshrink": (lambda x: np.sign(x) * np.maximum(abs(x) - 0.5, 0), lambda x: (abs(x) > 0.5) * 1.0),
    "erf": (_erf, lambda x: 2 / math.sqrt(math.pi) * np.exp(-np.minimum(x * x, 700))),
}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("name", CASES)
def test_values_and_slopes(name: str) -> None:
    of, slope = CASES[name]
    x = Tensor(FINITE, requires_grad=True)
    out = getattr(x, name)()
    want = of(FINITE.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-5, atol=1e-6)
    out.sum().backward()
    assert x.grad is not None
    slopes = slope(FINITE.astype(np.float64))
    known = ~np.isnan(slopes)  # at a bound, where any slope between is one
    np.testing.assert_allclose(x.grad.numpy()[known], slopes[known], rtol=1e-4, atol=1e-6)


def test_sinc_near_zero() -> None:
    for dtype, rtol in ((np.float32, 1e-6), (np.float64, 1e-13)):
        x = np.array([0, 1e-40, 1e-20, 1e-9, 1e-4, 9.99e-4, 1.01e-3, 0.1, 1, 2.5], dtype)
        t = Tensor(x, requires_grad=True)
        np.testing.assert_allclose(t.sinc().numpy(), np.sinc(x.astype(np.float64)), rtol=rtol, atol=rtol)
        t.sinc().sum().backward()
        w = np.pi * x.astype(np.longdouble)
        with np.errstate(all="ignore"):
            want = np.where(abs(x) < 1e-3, -(w / 3 - w**3 / 30) * np.pi, np.pi * (np.cos(w) / w - np.sin(w) / w**2))
        assert t.grad is not None
        atol = 1e-3 if dtype is np.float32 else 1e-9
        np.testing.assert_allclose(t.grad.numpy(), want.astype(np.float64), rtol=1e-3, atol=atol)


def _slopes(of: Callable[..., Tensor], *values: npt.ArrayLike) -> list[npt.NDArray[np.float32]]:
    """The gradient of the sum for each operand."""
    operands = [Tensor(np.asarray(value, np.float32), requires_grad=True) for value in values]
    of(*operands).sum().backward()
    grads = [operand.grad for operand in operands]
    assert all(grad is not None for grad in grads)
    return [grad.numpy() for grad in grads if grad is not None]


def test_a_vector_of_zeros_has_a_direction_without_nan() -> None:
    rows = [[0.0, 0.0, 0.0], [3.0, 4.0, 0.0]]
    for p in (0, 1, 2, 3, math.inf):
        (grad,) = _slopes(lambda x, p=p: x.normalize(p), rows)
        assert np.isfinite(grad).all() and (grad[0] == np.float32(1e12)).all()
    for of in (
        lambda x: x.cdist(x.detach()), lambda x: x.cosine_similarity(x.detach(), 1), lambda x: x.std(1),
        lambda x: x.pairwise_distance(x.detach()), lambda x: x.layernorm(), lambda x: x.softmax(),
        lambda x: x.dist(x * 0),
    ):  # fmt: skip
        assert np.isfinite(_slopes(of, rows)[0]).all()


def test_the_slope_of_xlogy_at_zero() -> None:
    x, y = _slopes(Tensor.xlogy, [0.0, 0.0, 0.0, 2.0], [2.5, 1e-40, 0.0, 0.5])
    np.testing.assert_allclose(x, [math.log(2.5), math.log(1e-40), 0, math.log(0.5)], rtol=1e-4)
    np.testing.assert_allclose(y, [0, 0, 0, 4], rtol=1e-6)
    got = Tensor([0.0, 0.0, 0.0, 0.0, 0.0]).xlogy(Tensor([0.0, math.inf, -1.0, 2.0, math.nan])).tolist()
    assert got[:4] == [0, 0, 0, 0] and math.isnan(got[4])


def test_the_slope_of_an_angle() -> None:
    points = np.array([[0, 0], [0, -1], [1e-30, 2e-30], [-1e25, 3e25], [1, 0], [3, -4], [1e-30, 1e30]])
    y, x = points.T.astype(np.float32).astype(np.float64)
    square = np.where(x * x + y * y == 0, 1, x * x + y * y)
    by, bx = _slopes(Tensor.atan2, y, x)
    np.testing.assert_allclose(by, x / square, rtol=1e-5)
    np.testing.assert_allclose(bx, -y / square, rtol=1e-5, atol=1e-44)


def test_certain_probabilities() -> None:
    """A certainty that is right costs nothing, one that is wrong 100."""
    p, y = Tensor([0.0, 1.0, 0.0, 1.0, 0.5]), Tensor([0.0, 1.0, 1.0, 0.0, 1.0])
    want = [0, 0, 100, 100, math.log(2)]
    np.testing.assert_allclose(p.binary_crossentropy(y, "none").numpy(), want, rtol=1e-6)
    (grad,) = _slopes(lambda x: x.binary_crossentropy(y, "none"), p.numpy())
    assert np.isfinite(grad).all()
