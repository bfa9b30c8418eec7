"""Functions with gradients of a person's own: what they may return, say and be asked; and backward to some inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_frontend import Function, FunctionContext, Tensor
from tg_frontend.transform.custom import once_differentiable
from tg_frontend.transform.outputs import grad

RNG = np.random.default_rng(53)


def draw(*shape: int) -> Tensor:
    return Tensor(RNG.uniform(0.5, 2, shape), dtype="float64", requires_grad=True)


class Parted(Function):
    """Cubes, a word, and whole parts without a gradient."""

    seen: list[Any] = []  # one list for all
    filled = True

    @staticmethod
    def forward(ctx: FunctionContext, x: Tensor) -> Any:
        ctx.save_for_backward(x)
        ctx.set_materialize_grads(Parted.filled)
        whole = x.floor()
        ctx.mark_non_differentiable(whole)
        return x * x * x, "word", whole

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        Parted.seen.append(grads)
        (x,) = ctx.saved_tensors
        return 3 * x * x * grads[0]


@pytest.mark.parametrize("filled", [True, False])
def test_what_is_returned_beside_tensors_with_gradients(filled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parted, "filled", filled)
    monkeypatch.setattr(Parted, "seen", [])
    x = draw(3)
    cubes, word, whole = Parted.apply(x)
    assert word == "word" and not whole.requires_grad and cubes.requires_grad
    assert whole.numpy().tolist() == np.floor(x.numpy()).tolist()
    (cubes.sum() + (whole * 7).sum()).backward()
    assert x.grad is not None and np.allclose(x.grad.numpy(), 3 * x.numpy() ** 2)
    ((_, of_word, of_whole),) = Parted.seen
    assert of_word is None
    assert of_whole.shape == (3,) and not of_whole.numpy().any() if filled else of_whole is None


@pytest.mark.parametrize("order", [1, 2, 3])
def test_backward_is_called_once_for_each_gradient(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parted, "seen", [])
    x = draw(5)
    y = Parted.apply(x)[0].sum()
    for turn in range(order):
        (slope,) = grad(y, x, create_graph=True)
        assert len(Parted.seen) == 1, turn
        y = slope.sum()
    values = x.numpy()
    assert np.allclose(slope.numpy(), [3 * values**2, 6 * values, np.full(5, 6.0)][order - 1])


def test_nothing_but_other_things_is_refused() -> None:
    class Words(Function):
        @staticmethod
        def forward(ctx: FunctionContext, x: Tensor) -> str:
            return "word"

    with pytest.raises(TypeError, match=r"Words\.forward returned a str, not a tensor"):
        Words.apply(draw(2))


class Once(Function):
    """A square whose gradient numpy computes."""

    @staticmethod
    def forward(ctx: FunctionContext, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x + y

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionContext, g: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return Tensor(2 * x.detach().numpy()) * g, None


def test_gradients_that_are_differentiable_once() -> None:
    x, y = draw(3), draw(3)
    (slope,) = grad(Once.apply(x, y).sum(), x, create_graph=True)  # the weights are constants, what was saved is none
    assert np.allclose(slope.numpy(), 2 * x.numpy())
    with pytest.raises(RuntimeError, match="Once.backward is once_differentiable"):
        grad(slope.sum(), x)
    Once.apply(x, y).sum().backward()
    assert x.grad is not None and np.allclose(x.grad.numpy(), 2 * x.numpy()) and y.grad is None


def test_backward_to_some_inputs() -> None:
    a, b = draw(2, 3), draw(3)
    between = a * b
    loss = (between * between).sum() + (a * 5).sum()
    loss.backward(inputs=[between, b], retain_graph=True)
    assert a.grad is None and between.grad is not None and b.grad is not None
    assert np.allclose(between.grad.numpy(), 2 * between.numpy())
    assert np.allclose(b.grad.numpy(), (2 * a.numpy() ** 2 * b.numpy()).sum(0))
    loss.backward(inputs=b)
    assert np.allclose(b.grad.numpy(), 2 * (2 * a.numpy() ** 2 * b.numpy()).sum(0)) and a.grad is None
    with pytest.raises(RuntimeError, match="freed"):
        loss.backward(inputs=b)
    with pytest.raises(ValueError, match="inputs is empty"):
        (a * b).sum().backward(inputs=[])
    with pytest.raises(RuntimeError, match=r"inputs\[1\], of shape \(2,\) and int32, has no gradient"):
        (a * b).sum().backward(inputs=[a, Tensor([1, 2])])


def test_backward_to_complex_inputs() -> None:
    z = Tensor(RNG.standard_normal(3) + 1j * RNG.standard_normal(3)).requires_grad_()
    w = draw(3)
    (z * z * w).abs().sum().backward(inputs=z)
    values = z.detach().numpy()
    assert z.grad is not None and w.grad is None and np.allclose(z.grad.numpy(), 2 * values * w.numpy())
    squares = z * z
    z.grad = None
    squares.backward(Tensor(np.ones(3) + 0j), inputs=[z])
    assert z.grad is not None and np.allclose(z.grad.numpy(), 2 * values.conj())


@pytest.mark.parametrize("filled", [True, False])
@pytest.mark.parametrize("again", [False, True])
def test_what_no_gradient_reaches_is_none_or_zeros(filled: bool, again: bool) -> None:
    seen: list[Any] = []

    class Three(Function):
        @staticmethod
        def forward(ctx: FunctionContext, x: Tensor) -> Any:
            ctx.set_materialize_grads(filled)
            return x * 2, x * 3, x * (1 + 1j)

        @staticmethod
        def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
            seen.append([one if one is None else one.tolist() for one in grads])
            return sum(one.real for one in grads if one is not None)

    x = Tensor([1.0], requires_grad=True)
    one, two, three = Three.apply(x)
    cases: list[tuple[Tensor, list[list[complex]]]] = [
        (one.sum(), [[1], [0], [0]]), (one.sum() + two.sum() * 2, [[1], [2], [0]]), (three.imag.sum(), [[0], [0], [1j]])
    ]  # fmt: skip
    for loss, want in cases:
        loss.backward(retain_graph=True, create_graph=again)
        assert seen.pop() == [value if filled or any(value) else None for value in want]
