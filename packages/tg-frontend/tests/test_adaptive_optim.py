"""Optimisers that scale each element's steps, against their definitions stepped by hand in numpy, and PyTorch's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tg_frontend import Tensor, TinyJit, nn

Array = NDArray[np.float64]
Rule = Callable[[Array, Array, dict[str, Any], int], Array]
RNG = np.random.default_rng(20261124)
START, GRADIENTS = RNG.standard_normal((3, 5)), RNG.standard_normal((12, 3, 5))


def rmsprop(w: Array, g: Array, s: dict[str, Any], t: int) -> Array:
    s["v"], s["m"] = 0.8 * s["v"] + 0.2 * g * g, 0.8 * s["m"] + 0.2 * g
    s["b"] = 0.9 * s["b"] + g / (np.sqrt(s["v"] - s["m"] ** 2) + 1e-8)
    return np.asarray(w - 0.1 * s["b"])


def adagrad(w: Array, g: Array, s: dict[str, Any], t: int) -> Array:
    s["v"] = s["v"] + g * g + (0.5 if t == 1 else 0)
    return np.asarray(w - 0.3 / (1 + (t - 1) * 0.2) * g / (np.sqrt(s["v"]) + 1e-10))


def adadelta(w: Array, g: Array, s: dict[str, Any], t: int) -> Array:
    s["v"] = 0.7 * s["v"] + 0.3 * g * g
    step = np.sqrt(s["m"] + 1e-3) / np.sqrt(s["v"] + 1e-3) * g
    s["m"] = 0.7 * s["m"] + 0.3 * step * step
    return np.asarray(w - 0.5 * step)


def adamax(w: Array, g: Array, s: dict[str, Any], t: int) -> Array:
    s["m"], s["v"] = 0.7 * s["m"] + 0.3 * g, np.maximum(0.8 * s["v"], np.abs(g) + 1e-8)
    return np.asarray(w - 0.1 / (1 - 0.7**t) * s["m"] / s["v"])


def nadam(w: Array, g: Array, s: dict[str, Any], t: int) -> Array:
    mu, after = (0.7 * (1 - 0.5 * 0.96 ** (n * 0.05)) for n in (t, t + 1))
    s["mu"] = mu * s.get("mu", 1.0)
    s["m"], s["v"] = 0.7 * s["m"] + 0.3 * g, 0.8 * s["v"] + 0.2 * g * g
    root = np.sqrt(s["v"] / (1 - 0.8**t)) + 1e-8
    return np.asarray(w - 0.1 * ((1 - mu) / (1 - s["mu"]) * g + after / (1 - s["mu"] * after) * s["m"]) / root)


def radam(w: Array, g: Array, s: dict[str, Any], t: int) -> Array:
    s["m"], s["v"] = 0.8 * s["m"] + 0.2 * g, 0.9 * s["v"] + 0.1 * g * g
    most, mean = 2 / 0.1 - 1, s["m"] / (1 - 0.8**t)
    length = most - 2 * t * 0.9**t / (1 - 0.9**t)
    if length <= 5:
        return np.asarray(w - 0.1 * mean)
    share = np.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
    return np.asarray(w - 0.1 * mean * share * np.sqrt(1 - 0.9**t) / (np.sqrt(s["v"]) + 1e-8))


def lion(w: Array, g: Array, s: dict[str, Any], t: int) -> Array:
    way = np.sign(0.7 * s["m"] + 0.3 * g)
    s["m"] = 0.8 * s["m"] + 0.2 * g
    return np.asarray(w * (1 - 0.1 * 0.2) - 0.1 * way)


CASES: dict[str, tuple[Rule, dict[str, Any]]] = {
    "RMSprop": (rmsprop, {"lr": 0.1, "alpha": 0.8, "momentum": 0.9, "centered": True}),
    "Adagrad": (adagrad, {"lr": 0.3, "lr_decay": 0.2, "initial_accumulator_value": 0.5}),
    "Adadelta": (adadelta, {"lr": 0.5, "rho": 0.7, "eps": 1e-3}),
    "Adamax": (adamax, {"lr": 0.1, "b1": 0.7, "b2": 0.8}),
    "NAdam": (nadam, {"lr": 0.1, "b1": 0.7, "b2": 0.8, "momentum_decay": 0.05}),
    "RAdam": (radam, {"lr": 0.1, "b1": 0.8, "b2": 0.9}),
    "Lion": (lion, {"lr": 0.1, "b1": 0.7, "b2": 0.8, "weight_decay": 0.2}),
}


def stepped(optimizer: nn.optim.Optimizer, w: Tensor, recorded: bool) -> Tensor:
    def step(g: Tensor) -> None:
        optimizer.zero_grad()
        (w * g).sum().backward()
        optimizer.step()

    run = TinyJit(step) if recorded else step
    for gradient in GRADIENTS:
        run(Tensor(gradient, dtype=w.dtype).realize())
    return w


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_steps(name: str, recorded: bool, backend: str) -> None:
    rule, settings = CASES[name]
    want, state = START.copy(), {key: np.zeros_like(START) for key in "vmb"}
    for t, gradient in enumerate(GRADIENTS, start=1):
        want = rule(want, gradient, state, t)
    w = Tensor(START, requires_grad=True)
    optimizer = getattr(nn.optim, name)(iter([w]), **settings)
    np.testing.assert_allclose(stepped(optimizer, w, recorded).numpy(), want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", [name for name in CASES if name != "Lion"])
def test_steps_with_the_settings_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    for settings in ({}, {"weight_decay": 0.1, "lr": 0.05}):
        theirs = torch.tensor(START, requires_grad=True)
        other = getattr(torch.optim, name)([theirs], **settings)
        for gradient in GRADIENTS:
            theirs.grad = torch.tensor(gradient)
            other.step()
        w = Tensor(START, requires_grad=True)
        stepped(getattr(nn.optim, name)([w], **settings), w, recorded=False)
        np.testing.assert_allclose(w.numpy(), theirs.detach().numpy(), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_a_state_goes_on_where_it_was(name: str) -> None:
    _, settings = CASES[name]
    w, other = Tensor(START, requires_grad=True), Tensor(START, requires_grad=True)
    first = getattr(nn.optim, name)([w], **settings)
    stepped(first, w, recorded=False)
    second = getattr(nn.optim, name)([other], **settings)
    saved = nn.state.get_state_dict(first.state_dict())
    second.load_state_dict({key: tensor.clone() for key, tensor in saved.items()})
    other.assign(w.detach().clone())
    np.testing.assert_array_equal(stepped(first, w, False).numpy(), stepped(second, other, False).numpy())


EVERY = sorted(
    name for name, kind in vars(nn.optim).items()
    if isinstance(kind, type) and issubclass(kind, nn.optim.Optimizer) and "lr" in inspect.signature(kind).parameters
    and name not in ("LBFGS", "Optimizer", "SparseAdam")
)  # fmt: skip


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_the_first_step_has_the_rate_that_is_set_then(name: str, recorded: bool) -> None:
    """As a schedule sets it, which begins with another rate than that of the optimiser."""
    w, other = Tensor(START, requires_grad=True), Tensor(START, requires_grad=True)
    first, second = (getattr(nn.optim, name)([x], lr=lr) for x, lr in ((w, 0.0625), (other, 0.5)))
    second.param_groups[0]["lr"] = 0.0625
    np.testing.assert_array_equal(stepped(first, w, recorded).numpy(), stepped(second, other, recorded).numpy())


@pytest.mark.parametrize("name", CASES)
def test_half_precision_keeps_its_dtype_and_bad_numbers_are_refused(name: str) -> None:
    w = Tensor.ones(3, dtype="float16", requires_grad=True)
    optimizer = getattr(nn.optim, name)([w])
    (w * 2).sum().backward()
    optimizer.step()
    assert w.dtype.name == "float16" and next(iter(optimizer.state[w].values())).dtype.name == "float32"
    with pytest.raises(ValueError, match=f"{name}: weight_decay is -1"):
        getattr(nn.optim, name)([w], weight_decay=-1)
