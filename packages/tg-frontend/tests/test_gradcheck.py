"""Gradients beside differences: each way to compute derivatives is compared, and what is wrong in one is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_frontend import Function, FunctionContext, Tensor
from tg_frontend.transform.gradcheck import GradcheckError, gradcheck, gradgradcheck

RNG = np.random.default_rng(59)


def draw(*shape: int, imaginary: bool = False) -> Tensor:
    values = RNG.uniform(0.5, 2, shape) + 1j * RNG.uniform(0.5, 2, shape) * imaginary
    return Tensor(values if imaginary else values.real).requires_grad_()


class Cube(Function):
    """A cube whose gradient is off, or that of whose gradient is."""

    first, second = 3.0, 6.0

    @staticmethod
    def forward(ctx: FunctionContext, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return Slope.apply(x) * grads[0] * (Cube.first / 3)


class Slope(Function):
    """3 x²."""

    @staticmethod
    def forward(ctx: FunctionContext, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x * 3

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        return ctx.saved_tensors[0] * grads[0] * Cube.second


WAYS: list[dict[str, Any]] = [
    {}, {"check_batched_grad": True}, {"check_forward_ad": True},
    {"check_forward_ad": True, "check_backward_ad": False},
    {"fast_mode": True, "check_undefined_grad": False, "check_grad_dtypes": True},
]  # fmt: skip


@pytest.mark.parametrize("ways", WAYS, ids=str)
def test_what_is_right_and_what_is_wrong(ways: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, z = draw(2, 3), draw(3), draw(2, imaginary=True)
    assert gradcheck(lambda x, y, n: (x * y, (Cube.apply(x) + y).sum(), n), (x, y, 3), **ways)
    assert gradcheck(lambda z, y: (z * z, z.abs() * y.sum()), (z, y), **ways)
    assert gradcheck(lambda x, y: (y * 2, x.floor()), (x, y), **ways)
    assert gradcheck(lambda x: x * 2, Tensor(np.zeros((0, 2))).requires_grad_(), **ways)
    monkeypatch.setattr(Cube, "first", 3.1)
    assert not gradcheck(Cube.apply, x, raise_exception=False, **ways)
    how = "along that element" if ways.get("check_backward_ad") is False else "by gradients"
    with pytest.raises(GradcheckError, match=f"is [0-9.]+ {how}, [0-9.]+ by differences"):
        gradcheck(lambda x, y: (y, Cube.apply(x)), (x, y), **ways)


@pytest.mark.parametrize(
    "ways", [{}, {"check_batched_grad": True}, {"check_fwd_over_rev": True, "check_rev_over_rev": False}], ids=str
)
def test_gradients_of_gradients(ways: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x = draw(3)
    assert gradgradcheck(lambda x: Cube.apply(x), (x,), **ways)
    monkeypatch.setattr(Cube, "second", 6.1)
    assert gradcheck(lambda x: Cube.apply(x), (x,))
    assert not gradgradcheck(lambda x: Cube.apply(x), (x,), raise_exception=False, **ways)


def test_nothing_to_compare() -> None:
    with pytest.raises(ValueError, match="nothing is compared"):
        gradcheck(Tensor.exp, draw(2), check_backward_ad=False)
    with pytest.raises(ValueError, match="is about gradients"):
        gradcheck(Tensor.exp, draw(2), check_backward_ad=False, check_forward_ad=True, check_batched_grad=True)
