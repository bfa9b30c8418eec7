"""Checkpoints: gradients, random numbers and statistics are those without; the memory is not kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, nn
from tg_runtime import GlobalCounters

X = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)


def plain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def leaf(*values: float) -> Tensor:
    return Tensor(list(values), requires_grad=True)


def both(program: Callable[[Any], list[Tensor]]) -> None:
    """A program gives the same without checkpoints and with."""
    Tensor.manual_seed(1)
    want = [t.numpy() for t in program(plain)]
    Tensor.manual_seed(1)
    got = [t.numpy() for t in program(nn.checkpoint)]
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def grad(tensor: Tensor) -> Tensor:
    assert tensor.grad is not None
    return tensor.grad


@pytest.mark.parametrize("jit", [False, True])
def test_a_training_step(jit: bool, backend: str) -> None:
    """Dropout drops the same elements, BatchNorm counts a batch once, and what is drawn later is the same."""
    def program(checkpoint: Any) -> list[Tensor]:
        blocks = [
            [nn.Linear(5, 9), nn.BatchNorm(9), Tensor.tanh, lambda t: t.dropout(0.3), nn.Linear(9, 5)]
            for _ in range(2)
        ]
        optimizer = nn.optim.SGD(nn.state.get_parameters(blocks), lr=0.1, momentum=0.9)

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            with Tensor.train():
                for block in blocks:
                    x = checkpoint(lambda t, block: t + t.sequential(block), x, block)
                loss = x.square().mean()
            loss.backward()  # where dropout would not drop
            optimizer.step()
            return loss

        run: Any = TinyJit(step) if jit else step
        losses = [run(Tensor(X)).realize() for _ in range(4)]
        return [*losses, *nn.state.get_state_dict(blocks).values(), Tensor.rand(3)]

    both(program)


def test_tensors_from_outside(backend: str) -> None:
    """Leaves and results that the function finds in its closure; one is also what its argument comes from."""
    def program(checkpoint: Any) -> list[Tensor]:
        w, v = leaf(1.5, -2.0, 0.5), leaf(0.3, 0.2, 0.1)
        h = (w * 2).sin()
        y = checkpoint(lambda x: (x * w + h).exp() * v, w * v)
        y.sum().backward()
        return [y, grad(w), grad(v)]

    both(program)


def test_gradients_of_intermediates(backend: str) -> None:
    def program(checkpoint: Any) -> list[Tensor]:
        w = leaf(1.5, -2.0, 0.5)
        h = (w * 2).sin()
        y = checkpoint(lambda x: x * h.exp(), h).square().sum()
        return [*y.gradient(w, h), *y.gradient(h)]

    both(program)


def test_several_results(backend: str) -> None:
    """A tuple with results of other shapes and dtypes, an argument, and what has no gradient."""
    def program(checkpoint: Any) -> list[Tensor]:
        x, w = Tensor(X, requires_grad=True), leaf(1.0, 2.0, 3.0, 4.0, 5.0)

        def part(x: Tensor, by: float) -> tuple[Any, ...]:
            y = x.tanh() * w
            return y * by, y.sum(0).cast("float64"), y.argmax(1), x, 7, (y * y).mean()

        a, b, place, same, seven, c = checkpoint(part, x, by=0.5)
        assert isinstance(checkpoint(part, x, by=0.5), tuple) and same is x and seven == 7
        assert a.dtype.name == "float32" and b.dtype.name == "float64" and place.dtype.name == "int32"
        (a.square().sum() + b.sin().sum().cast("float32") + c * 3).backward()
        return [a, b, place, c, grad(x), grad(w)]

    both(program)


def test_a_checkpoint_in_a_checkpoint(backend: str) -> None:
    def program(checkpoint: Any) -> list[Tensor]:
        x, w = Tensor(X, requires_grad=True), leaf(0.5, 1.0, 1.5, 2.0, 2.5)
        with Tensor.train():
            y = checkpoint(lambda t: checkpoint(lambda u: (u * w).dropout(0.5), t.sin()).cos().dropout(0.5), x)
        y.sum().backward()
        return [y, grad(x), grad(w), Tensor.rand(2)]

    both(program)


def test_twice_through_a_retained_graph(backend: str) -> None:
    def program(checkpoint: Any) -> list[Tensor]:
        w = leaf(1.5, -2.0)
        y = checkpoint(lambda x: (x * x).exp(), w).sum()
        y.backward(retain_graph=True)
        y.backward()
        return [grad(w)]

    both(program)


def test_parameters_without_a_wish(backend: str) -> None:
    """Without an optimizer, parameters of layers get gradients where nothing asks for one."""
    def program(checkpoint: Any) -> list[Tensor]:
        layer = nn.Linear(5, 3)
        checkpoint(lambda x: layer(x).tanh(), Tensor(X)).sum().backward()
        return [grad(layer.weight), grad(layer.bias)] if layer.bias is not None else []

    both(program)


def test_where_no_gradient_is_wanted(backend: str) -> None:
    calls = []

    def part(x: Tensor) -> Tensor:
        calls.append(1)
        return x * 2

    with Tensor.no_grad():
        assert nn.checkpoint(part, leaf(3.0)).requires_grad is False
    assert nn.checkpoint(part, Tensor([3.0], requires_grad=False)).tolist() == [6.0]
    assert len(calls) == 2
    assert nn.checkpoint(part, leaf(3.0), use_reentrant=False, preserve_rng_state=True).tolist() == [6.0]


@pytest.mark.parametrize("backend", ["CPU"], indirect=True)
@pytest.mark.usefixtures("collected")
def test_only_what_lies_between_is_kept(backend: str) -> None:
    """Six parts, each of which makes eight times what it is given."""
    def peak(checkpoint: Any, width: int) -> tuple[int, Any]:
        Tensor.manual_seed(0)
        layers = [(nn.Linear(width, 8 * width), nn.Linear(8 * width, width)) for _ in range(6)]
        Tensor.realize(*nn.state.get_parameters(layers))
        x = Tensor(np.random.default_rng(0).standard_normal((1003, width)).astype(np.float32)).realize()
        GlobalCounters.reset()
        before = GlobalCounters.mem_used
        for first, last in layers:
            x = checkpoint(lambda x, first, last: x + last(first(x).sin()), x, first, last)
        x.square().mean().backward()
        parameters = nn.state.get_parameters(layers)
        Tensor.realize(*[grad(p) for p in parameters])
        return GlobalCounters.mem_peak - before, [grad(p).numpy() for p in parameters]

    with_all, want = peak(plain, 13)
    with_few, got = peak(nn.checkpoint, 13)
    between, inside = 1003 * 13 * 4, 8 * 1003 * 13 * 4
    assert with_all > 6 * inside
    assert with_few < 6 * between + 4 * inside
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_what_was_written_since_is_told(backend: str) -> None:
    w, x = leaf(1.0, 2.0), Tensor([3.0, 4.0]).realize()
    for target in (w, x):
        y = nn.checkpoint(lambda x: x * w, x).sum()
        with Tensor.no_grad():
            target += 1
        with pytest.raises(RuntimeError, match=r"of shape \(2,\) that .*lambda.* computes with was written"):
            y.backward()


def test_a_function_that_writes_is_told() -> None:
    x = Tensor([3.0, 4.0]).realize()

    def part(w: Tensor) -> Tensor:
        x.assign(x + 1)
        return x * w

    with pytest.raises(RuntimeError, match="part computes with was written to in place by that, and would be again"):
        nn.checkpoint(part, leaf(1.0, 2.0))


def test_a_function_that_changes_its_mind_is_told() -> None:
    calls: list[int] = []
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def other_shape(x: Tensor) -> Tensor:
        calls.append(1)
        return x * 2 if len(calls) % 2 else x.sum()

    def other_tensor(x: Tensor) -> Tensor:
        calls.append(1)
        return x * (w if len(calls) % 2 else v)

    def fewer(x: Tensor) -> Any:
        calls.append(1)
        return (x * 2, x * 3) if len(calls) % 2 else (x * 2,)

    def more_numbers(x: Tensor) -> Tensor:
        calls.append(1)
        return x * Tensor.rand(2) * (1 if len(calls) % 2 else Tensor.rand(2))

    for function, says in (
        (other_shape, r"shape \(\), not \(2,\)"), (other_tensor, "that it did not use before"),
        (fewer, "returned 1 results the second time"), (more_numbers, "drawn again, but more of them"),
    ):  # fmt: skip
        calls.clear()
        made = nn.checkpoint(function, w)
        with pytest.raises(RuntimeError, match=says):
            (made[1] if isinstance(made, tuple) else made).sum().backward()
