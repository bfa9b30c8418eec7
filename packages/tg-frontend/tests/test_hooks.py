"""Hooks, gradients in between, modes, and functions with gradients of a person's own."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tg_frontend import Function, FunctionContext, Tensor, grad, vmap


def test_a_hook_sees_and_changes_a_gradient() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    seen: list[Any] = []
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    other = y.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: g + 1)
    (y.square() + y).sum().backward()
    assert seen == [[7.0, 13.0]]  # all of it
    assert x.grad is not None and x.grad.tolist() == [43.0, 79.0]
    assert (x * 1).sum().gradient(x)[0].tolist() == [2.0, 2.0]
    handle.remove()
    handle.remove()
    other.remove()
    assert (x * 3).sum().gradient(x)[0].tolist() == [4.0, 4.0]


def test_a_hook_of_a_gradient_that_is_differentiated() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x**3
    y.register_hook(lambda g: g * x)
    (slope,) = y.sum().gradient(x)
    assert slope.tolist() == [3.0, 24.0]  # 3 x**3
    assert slope.sum().gradient(x)[0].tolist() == [9.0, 36.0]


def test_retained_gradients() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = (x * 3).retain_grad()
    y.sum().gradient(x)
    assert y.grad is None
    y.square().sum().backward()
    assert y.grad is not None and y.grad.tolist() == [6.0, 12.0]
    assert x.retain_grad() is x
    z = (x * 3).retain_grad()
    z.square().sum().backward(create_graph=True)
    assert z.grad is not None and z.grad.sum().gradient(x)[0].tolist() == [6.0, 6.0]


def test_what_hooks_refuse() -> None:
    x = Tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="register_hook: .* refuses a gradient"):
        x.detach().register_hook(lambda g: g)
    with pytest.raises(RuntimeError, match="retain_grad: .* refuses a gradient"):
        x.detach().retain_grad()
    y = x * 2
    handle = y.register_hook(lambda g: g.reshape(1, 1))
    with pytest.raises(ValueError, match=r"a hook returned a gradient of shape \(1, 1\)"):
        y.sum().gradient(x)
    handle.remove()
    y.register_hook(lambda g: 3)  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="a hook returned a int"):
        y.sum().gradient(x)


def test_modes() -> None:
    x = Tensor([1.0], requires_grad=True)
    with Tensor.no_grad():
        with Tensor.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
        with Tensor.set_grad_enabled(True):
            assert (x * 2).requires_grad
    with Tensor.set_grad_enabled(False):
        assert not (x * 2).requires_grad


class Waves(Function):
    """A function of two results, one of which is kept."""

    @staticmethod
    def forward(ctx: FunctionContext, x: Tensor, factor: float) -> tuple[Tensor, Tensor]:
        wave = (x * factor).exp()
        ctx.factor = factor  # type: ignore[attr-defined]
        ctx.save_for_backward(wave, x)
        return wave, x * x

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        wave, x = ctx.saved_tensors
        return grads[0] * wave * ctx.factor + grads[1] * x * 2, None  # type: ignore[attr-defined]


class Apart(Waves):
    """The same, with what is kept for the gradient said apart."""

    @staticmethod
    def forward(x: Tensor, factor: float) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return (x * factor).exp(), x * x

    @staticmethod
    def setup_context(ctx: FunctionContext, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.factor = inputs[1]  # type: ignore[attr-defined]
        ctx.save_for_backward(output[0], inputs[0])


def whole(x: Tensor, kind: type[Function] = Waves) -> Tensor:
    wave, square = kind.apply(x, 2.0)
    return (wave * square).sum()  # type: ignore[no-any-return]


def test_a_function_of_ones_own() -> None:
    array = np.array([0.5, 1.0, -0.3])
    x, e = Tensor(array, requires_grad=True), np.exp(2 * array)
    first, second = e * (2 * array**2 + 2 * array), e * (4 * array**2 + 8 * array + 2)
    whole(x).backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), first)
    np.testing.assert_allclose(grad(lambda x: whole(x, Apart))(Tensor(array)).numpy(), first)
    np.testing.assert_allclose(grad(lambda x: grad(whole)(x).sum())(Tensor(array)).numpy(), second)
    np.testing.assert_allclose(vmap(grad(lambda x: whole(x.reshape(1))))(Tensor(array)).numpy(), first)
    with Tensor.no_grad():
        assert Waves.apply(x, 2.0)[0].requires_grad is False


class Bad(Function):
    """Returns what it is told to."""

    @staticmethod
    def forward(ctx: FunctionContext, x: Tensor, out: Any) -> Any:
        ctx.out = out  # type: ignore[attr-defined]
        return x * 2

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        return ctx.out  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("out", "kind", "message"),
    [
        (None, RuntimeError, "Bad.backward returned 1 gradients; forward was given 2"),
        ((3, None), TypeError, "Bad.backward returned a int for argument 0"),
        ((Tensor([1.0, 2.0, 3.0]), None), RuntimeError, r"returned shape \(3,\) for argument 0, of shape \(2,\)"),
    ],
)
def test_bad_gradients_of_ones_own(out: Any, kind: type[Exception], message: str) -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(kind, match=message):
        Bad.apply(x, out).sum().backward()


def test_what_was_saved_and_overwritten_is_noticed() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = Waves.apply(x, 2.0)[0].sum()
    with Tensor.no_grad():
        x.assign([5.0, 6.0])
    with pytest.raises(RuntimeError, match="written to in place"):
        y.backward()


def _written(name: str, y: Tensor) -> None:
    if name == "mul":
        y.mul_(5)
    elif name == "part":
        y[0] = 7.0
    elif name == "view":
        y[1:].mul_(5)
    else:
        y.copy_(y * 5)


@pytest.mark.parametrize("second", ["mul", "part", "view", "copy"])
@pytest.mark.parametrize("first", ["mul", "part", "view", "copy"])
def test_a_hook_sees_the_gradient_of_the_elements_there_were(first: str, second: str) -> None:
    def gradients(written: bool) -> tuple[list[list[float]], list[float]]:
        """Of the tensor before, between and after two writes, and of the leaf: by writing, or by copies."""
        seen: dict[int, list[float]] = {}

        def kept(step: int, grad: Tensor) -> None:
            seen[step] = grad.tolist()

        a = Tensor([1.0, 2.0, 3.0], requires_grad=True)
        y, total = a * 2, Tensor([0.0, 0.0, 0.0])
        weights = (Tensor([3.0, 1.0, 2.0]), Tensor([1.0, 7.0, 2.0]), Tensor([5.0, 1.0, 4.0]))
        for step, weight in enumerate(weights):
            if step and not written:
                y = y.clone()
            if step:
                _written((first, second)[step - 1], y)
            if not written:
                y = y * 1  # a version of its own
            y.register_hook(partial(kept, step))
            total = total + y * weight
        total.sum().backward()
        assert a.grad is not None
        return [seen[step] for step in range(3)], a.grad.tolist()

    assert gradients(True) == gradients(False)


def test_a_hook_that_changes_a_gradient_before_a_write() -> None:
    a = Tensor([1.0, 2.0], requires_grad=True)
    y = a * 2
    handle, other = y.register_hook(lambda grad: grad * 10), y.register_hook(lambda grad: grad * 0)
    t = y * 3
    y.mul_(5)
    other.remove()
    (y.sum() + t.sum()).backward()
    assert a.grad is not None and a.grad.tolist() == [160.0, 160.0]
    handle.remove()


def test_a_kept_gradient_is_that_of_the_newest_elements() -> None:
    a = Tensor([1.0, 2.0], requires_grad=True)
    y = (a * 2).retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert y.grad is not None and y.grad.tolist() == [1.0, 1.0]
