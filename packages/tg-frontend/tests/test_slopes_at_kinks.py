"""First and second slopes at points that algorithms treat apart: zeros, ones, equal operands, the axes of the plane.

Random numbers never meet them. An algorithm that takes an absolute value, the greater of two numbers or another formula
there may give the right value and a slope that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor

Array = Any
STEP, FIRST, SECOND = 1e-5, 1e-6, 1e-4

PLANE = [
    (0.0, 1.0), (0.0, -2.0), (0.0, 0.25), (0.0, 0.5), (1.0, 0.0), (2.5, 0.0), (0.5, 0.0), (-0.5, 0.0), (1.0, 1.0),
    (1.0, -1.0), (-0.5, 0.5), (0.7, 0.7), (-3.0, 3.0), (0.6, 0.8), (-2.0, 1.5), (-1.0, 0.5), (0.5, -1.0),
]  # fmt: skip


def method(name: str) -> Callable[..., Tensor]:
    """The method of this name of the first argument."""

    def call(x: Tensor, *others: Tensor) -> Tensor:
        found: Tensor = getattr(x, name)()
        return found

    return call


COMPLEX: dict[str, Callable[[Tensor], Tensor]] = {
    name: method(name)
    for name in (
        "abs", "angle", "sgn", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sinh", "cosh",
        "tanh", "sin", "cos", "tan", "asin", "acos", "atan", "asinh", "acosh", "atanh", "square", "reciprocal",
        "sigmoid",
    )
} | {
    "pow 2.5": lambda z: z**2.5, "pow -3": lambda z: z**-3, "pow 1j": lambda z: z ** (1j), "2 pow": lambda z: 2.0**z,
    "pow itself": lambda z: z**z, "divided": lambda z: (1 + 2j) / z, "by its conjugate": lambda z: z / z.conj(),
}  # fmt: skip
REAL: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    name: method(name)
    for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos",
        "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "sinc", "sigmoid", "logsigmoid",
        "softplus", "silu", "gelu", "mish", "square", "reciprocal", "lgamma", "digamma", "i0",
    )
} | {
    "hypot": Tensor.hypot, "atan2": Tensor.atan2, "logaddexp": Tensor.logaddexp, "logaddexp2": Tensor.logaddexp2,
    "xlogy": Tensor.xlogy,
    "pow": Tensor.pow, "cube": lambda x, y: x**3, "pow 2.5": lambda x, y: x**2.5,
    "logsumexp": lambda x, y: x.stack(y, x).logsumexp(0), "softmax": lambda x, y: x.stack(y, x).softmax(0)[0],
    "logcumsumexp": lambda x, y: x.stack(y, x).logcumsumexp(0)[2], "prod": lambda x, y: x.stack(y, x).prod(0),
    "cumprod": lambda x, y: x.stack(y, x).cumprod(0)[2], "norm": lambda x, y: x.stack(y, x).square().sum(0).sqrt(),
    "var": lambda x, y: x.stack(y, x).var(0),
}  # fmt: skip


def slopes(function: Callable[..., Tensor], first: Array, second: Array) -> None:
    """Checks both slopes against differences, at all points at once, wherever the function is smooth."""
    weights = np.random.default_rng(5).uniform(0.5, 1.5, 4)

    def total(x: Tensor, y: Tensor) -> Tensor:
        out = function(x, y)
        one, two = weights[:2].tolist()
        found: Tensor = out.real * one + out.imag * two if out.is_complex() else out * one
        return found

    def value(x: Array, y: Array) -> Array:
        found: Array = total(Tensor(x), Tensor(y)).numpy()
        return found

    def graph(x: Array, y: Array) -> tuple[list[Tensor], list[Tensor]]:
        leaves = [Tensor(x, requires_grad=True), Tensor(y, requires_grad=True)]
        return leaves, Tensor.gradient(total(*leaves).sum(), *leaves, materialize_grads=True)

    def slope(x: Array, y: Array) -> Array:
        _, (p, q) = graph(x, y)
        found: Array = p.numpy() * weights[2] + q.numpy() * weights[3]
        return found

    leaves, once = graph(first, second)
    along = (once[0] * weights[2] + once[1] * weights[3]).sum()
    twice = Tensor.gradient(along, *leaves, materialize_grads=True)
    here, seen = value(first, second), 0
    for place, (one, two) in enumerate(zip(once, twice, strict=True)):
        moved = [(first + h * (place == 0), second + h * (place == 1)) for h in (STEP, -STEP)]
        with np.errstate(all="ignore"):
            after, before = (value(*at) for at in moved)
            # no jump, and one slope on both sides
            smooth = (np.abs(after + before - 2 * here) < 1e-2 * STEP) & (np.abs(after - before) < 0.1)
            above, below = (slope(*at) for at in moved)
            size = 1 + np.abs(above) + np.abs(below)
            # of a slope that has a kink of its own there is no second one
            again = smooth & (np.abs(above + below - 2 * slope(first, second)) < 1e-2 * STEP * size)
            wanted = (after - before) / (2 * STEP)
            first_off = np.abs(one.numpy() - wanted) / (1 + np.abs(wanted))
            wanted = (above - below) / (2 * STEP)
            second_off = np.abs(two.numpy() - wanted) / (1 + np.abs(wanted))
        seen += int(smooth.sum())
        np.testing.assert_array_less(first_off[smooth], FIRST)
        np.testing.assert_array_less(second_off[again], SECOND)
    assert seen >= 8


@pytest.mark.drawn(12)
@pytest.mark.parametrize("name", COMPLEX)
def test_of_complex_numbers(name: str) -> None:
    points = np.array(PLANE)
    slopes(lambda x, y: COMPLEX[name](Tensor.complex(x, y)), points[:, 0].copy(), points[:, 1].copy())


@pytest.mark.drawn(20)
@pytest.mark.parametrize("name", REAL)
def test_of_real_numbers(name: str) -> None:
    some = np.array([0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 0.25])
    x, y = (part.ravel().copy() for part in np.meshgrid(some, some))
    slopes(REAL[name], x, y)


def test_on_the_cut_of_the_square_root() -> None:
    """The sign of a zero says on which side."""
    for imag in (0.0, -0.0):
        leaf = Tensor(np.array(imag), requires_grad=True)
        one, two = Tensor.complex(Tensor(np.array(-4.0)), leaf).sqrt().real.gradient(leaf)[0], np.copysign(0.25, imag)
        assert one.item() == two


@pytest.mark.parametrize(("dtype", "least"), [("float16", 1e-5), ("bfloat16", 1e-39), ("float32", 1e-39),
                                              ("float64", 1e-310)])  # fmt: skip
def test_the_power_0_of_numbers_whose_inverse_is_infinite(dtype: str, least: float) -> None:
    x = Tensor([least, -least, 0.0, 0.5], dtype=dtype, requires_grad=True)
    (x ** Tensor([0.0] * 4, dtype=dtype)).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0] * 4
