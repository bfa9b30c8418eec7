"""Optimisers, against their definitions stepped by hand in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tg_dtype import dtypes
from tg_frontend import Tensor, TinyJit, nn
from tg_frontend.nn.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, LRScheduler, MultiStepLR, StepLR
from tg_frontend.nn.optim import SGD, Adam, AdamW, Optimizer, OptimizerGroup
from tg_frontend.nn.state import get_state_dict
from tg_runtime import Device, GlobalCounters

Array = NDArray[np.float64]
GRADIENTS = np.random.default_rng(1).standard_normal((6, 3, 2))
START = np.random.default_rng(0).standard_normal((3, 2))


def sgd(lr: float, momentum: float = 0, decay: float = 0, nesterov: bool = False) -> Array:
    w, b = START.copy(), np.zeros_like(START)
    for gradient in GRADIENTS:
        g = gradient + decay * w
        b = momentum * b + g
        w = w - lr * (g + momentum * b if nesterov else b if momentum else g)
    return w


def adam(lr: float, b1: float, b2: float, eps: float, decay: float) -> Array:
    w, m, v = START.copy(), np.zeros_like(START), np.zeros_like(START)
    for t, g in enumerate(GRADIENTS, start=1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        w = w - lr * (m / (1 - b1**t) / (np.sqrt(v / (1 - b2**t)) + eps) + decay * w)
    return w


CASES: dict[str, tuple[Callable[[list[Tensor]], Optimizer], Array]] = {
    "sgd": (lambda p: SGD(p, lr=0.1), sgd(0.1)),
    "momentum": (lambda p: SGD(p, lr=0.1, momentum=0.9), sgd(0.1, 0.9)),
    "nesterov": (lambda p: SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True), sgd(0.1, 0.9, 0.01, True)),
    "adam": (lambda p: Adam(p, lr=0.1), adam(0.1, 0.9, 0.999, 1e-8, 0)),
    "adam with an eps that counts": (lambda p: Adam(p, lr=0.1, eps=0.5), adam(0.1, 0.9, 0.999, 0.5, 0)),
    "adamw": (lambda p: AdamW(p, lr=0.1, b1=0.8, weight_decay=0.05), adam(0.1, 0.8, 0.999, 1e-8, 0.05)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps(name: str, dtype: str, backend: str) -> None:
    make, want = CASES[name]
    w = Tensor(START, dtype=dtype)
    optimizer = make([w])
    storages = set()
    for gradient in GRADIENTS:
        optimizer.zero_grad()
        (w * Tensor(gradient, dtype=dtype)).sum().backward()
        optimizer.step()
        storages.add(w.lazydata.storage)
    np.testing.assert_allclose(w.numpy(), want, rtol=1e-4, atol=1e-5)
    assert w.dtype.name == dtype and len(storages) == 1, "in place, from the first step"


@pytest.mark.parametrize("borrowed", [False, True])
def test_the_second_step_is_like_the_first(borrowed: bool, backend: str) -> None:
    given = np.arange(21, dtype=np.float32)
    w = Tensor(given) if borrowed else Tensor(given).reshape(3, 7).T
    optimizer, made = Adam([w], lr=0.5), []
    for _ in range(3):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        made.append(len(Device[w.device].programs))
    assert made[0] == made[1] == made[2], "no kernel is for one step only"
    assert given.tolist() == list(range(21)), "what was borrowed is not written"


def test_half_precision_parameters() -> None:
    w = Tensor.ones(3, dtype="float16")
    optimizer = Adam([w], lr=0.25)
    (w * 2).sum().backward()
    optimizer.step()
    assert w.dtype is dtypes.float16 and np.allclose(w.numpy(), 0.75, atol=1e-3)
    assert optimizer.state[w]["exp_avg"].dtype is dtypes.float32


def test_the_loss_is_that_of_the_old_parameters(backend: str) -> None:
    w = Tensor([3.0])
    optimizer = SGD([w], lr=0.5)
    loss = (w * w).sum().backward()
    doubled = w * 2
    optimizer.step()
    assert loss.item() == 9.0 and w.tolist() == [0.0] and doubled.tolist() == [6.0]


def test_which_tensors_are_optimised() -> None:
    open_, fixed = Tensor([1.0]), Tensor([2.0], requires_grad=False)
    yes, number = Tensor([3.0], requires_grad=True), Tensor([4])
    optimizer = SGD([open_, fixed, yes, number, yes], lr=1.0)
    assert optimizer.params == [open_, yes] and optimizer.buffers == [fixed, number]  # compares by identity
    assert open_.requires_grad is True and number.requires_grad is False
    unused = Tensor([5.0])
    optimizer = SGD([yes, unused], lr=1.0)
    (yes * 2).sum().backward()
    optimizer.step()
    assert yes.tolist() == [1.0] and unused.tolist() == [5.0]
    optimizer.zero_grad()
    assert yes.grad is None


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("thaws", [3, 6])
@pytest.mark.parametrize("name", ["momentum", "adam"])
def test_layers_learn_exactly_while_they_require_a_gradient(name: str, thaws: int, jitted: bool) -> None:
    """Frozen and thawed at any time, before an optimiser gets them or later, recorded or not: none stops silently."""
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    model[0].requires_grad_(False)
    optimizer, x = CASES[name][0](list(model.parameters())), Tensor([[1.0, -2.0], [0.5, 1.5]]).realize()
    assert [len(group["params"]) for group in optimizer.param_groups] == [4]

    def learn(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (model(x) - 9).square().sum().backward()
        optimizer.step()
        return loss.realize()

    step = TinyJit(learn) if jitted else learn
    for number in range(12):
        if number in (0, thaws, 9):
            model[0].requires_grad_(number == thaws)
        before = [layer.weight.numpy().copy() for layer in (model[0], model[2])]
        kept = optimizer.state[model[0].weight].values()
        assert number >= thaws or not any(one.is_realized for one in kept if one.ndim == 2), "frozen: no memory"
        with Tensor.train():
            step(x)
        changed = [(model[n].weight.numpy() != old).any() for n, old in zip((0, 2), before, strict=True)]
        assert changed == [thaws <= number < 9, True], number


def test_two_steps_may_freeze_and_thaw_what_both_use() -> None:
    """As of a generator and a discriminator: the steps set the flags themselves, and are recorded a few times only."""
    first, second = nn.Linear(2, 2), nn.Linear(2, 1)
    x, calls = Tensor([[1.0, -2.0]]).realize(), [0, 0]

    def step_of(number: int, learns: Any, other: Any) -> Callable[[Tensor], Tensor]:
        optimizer = SGD(learns.parameters(), lr=0.01)

        def step(x: Tensor) -> Tensor:
            calls[number] += 1
            learns.requires_grad_(True)
            other.requires_grad_(False)
            optimizer.zero_grad()
            loss = (second(first(x)) - 9).square().sum().backward()
            optimizer.step()
            return loss.realize()

        return TinyJit(step)

    steps = step_of(0, first, second), step_of(1, second, first)
    for number in range(10):
        for step, learns, other in zip(steps, (first, second), (second, first), strict=True):
            before = learns.weight.numpy().copy(), other.weight.numpy().copy()
            with Tensor.train():
                step(x)
            assert (learns.weight.numpy() != before[0]).any() and (other.weight.numpy() == before[1]).all(), number
    assert max(calls) <= 4, calls


def test_groups_that_are_frozen_keep_their_place() -> None:
    first, second = nn.Linear(2, 3).requires_grad_(False), nn.Linear(3, 1)
    fixed = Tensor([1.0], requires_grad=False)
    groups: list[dict[str, Any]] = [{"params": [fixed]}, {"params": first.parameters(), "lr": 0.25}]
    groups.append({"params": second.parameters()})
    optimizer = SGD(groups, lr=1.0)
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 0.25, 1.0]
    assert [len(group["params"]) for group in optimizer.param_groups] == [0, 2, 2]
    with pytest.raises(ValueError, match="none of the 2 parameters requires a gradient"):
        SGD(first.parameters())
    (second(first(Tensor.ones(1, 2))).sum() * fixed.requires_grad_()).sum().backward()
    with pytest.raises(RuntimeError, match=r"SGD.step: a tensor of shape \(1,\) has a gradient, but required none"):
        optimizer.step()
    optimizer.add_param_group({"params": [fixed]})
    optimizer.step()
    assert not optimizer.buffers and fixed.item() != 1.0


def test_buffers_are_realised_with_a_step() -> None:
    w, count = Tensor([1.0]), Tensor([0.0], requires_grad=False)
    optimizer = SGD([w, count], lr=1.0)
    count.assign(count + 1)
    (w * 2).sum().backward()
    optimizer.step()
    assert count.is_realized and count.tolist() == [1.0]


def test_the_learning_rate_can_be_changed() -> None:
    w = Tensor([1.0])
    optimizer = SGD([w], lr=1.0)
    optimizer.lr.assign([0.25])
    (w * 2).sum().backward()
    optimizer.step()
    assert w.tolist() == [0.5]


def test_groups() -> None:
    a, b = Tensor([1.0]), Tensor([1.0])
    group = OptimizerGroup(SGD([a], lr=0.5), Adam([b], lr=0.25))
    (a + b).sum().backward()
    group.step()
    assert a.tolist() == [0.5] and abs(float(b) - 0.75) < 1e-4 and isinstance(group[1], Adam)
    group.zero_grad()
    assert a.grad is None and b.grad is None
    with pytest.raises(ValueError, match="at least one"):
        OptimizerGroup()


def test_mistakes_are_named() -> None:
    x = Tensor([1.0], requires_grad=True)
    bad: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: SGD([]), ValueError, "none of the 0 parameters"),
        (lambda: SGD([Tensor([1.0], requires_grad=False)]), ValueError, "none of the 1 parameters"),
        (lambda: SGD([x * 2]), ValueError, "is a result, not a leaf"),
        (lambda: SGD([x, 3]), TypeError, "parameter 1 is a int"),  # type: ignore[arg-type]
        (lambda: SGD([x, Tensor([1.0], device="NULL")]), ValueError, "parameters on NUMPY and NULL"),
        (lambda: SGD([x], nesterov=True), ValueError, "nesterov"),
        (lambda: Adam([x], b1=1.0), ValueError, "betas is"),
        (lambda: SGD([x]).step(), RuntimeError, r"call backward\(\) before step"),
    ]
    for function, kind, message in bad:
        with pytest.raises(kind, match=message):
            function()


def test_a_step_passes_over_each_parameter_once() -> None:
    """The parameter and its two averages are read and written by one kernel; the step's number is counted beside."""

    def kernels(count: int) -> int:
        params = [Tensor(np.ones((64 + i, 64), np.float32)) for i in range(count)]
        adam = Adam(params)
        for _ in range(2):
            for param in params:
                param.grad = Tensor(np.ones(param.shape, np.float32)).realize()
            before = GlobalCounters.kernel_count
            adam.step()
        return GlobalCounters.kernel_count - before

    assert kernels(3) - kernels(2) == kernels(2) - kernels(1) == 1


OPTIMIZERS: dict[str, Callable[[list[Tensor]], Optimizer]] = {
    "sgd": lambda p: SGD(p, lr=0.1), "momentum": lambda p: SGD(p, lr=0.1, momentum=0.9),
    "adamw": lambda p: AdamW(p, lr=0.1),
    "group": lambda p: OptimizerGroup(SGD(p[:1], lr=0.1, momentum=0.5), Adam(p[1:], lr=0.2)),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_state_is_saved_and_restored(name: str, backend: str) -> None:
    def steps(params: list[Tensor], optimizer: Optimizer, count: int) -> list[Any]:
        for _ in range(count):
            optimizer.zero_grad()
            (params[0].square().sum() + (params[1] * params[0]).sum()).backward()
            optimizer.step()
        return [param.tolist() for param in params]

    def start() -> tuple[list[Tensor], Optimizer]:
        params = [Tensor([1.0, 2.0]), Tensor([3.0, -1.0])]
        return params, OPTIMIZERS[name](params)

    params, optimizer = start()
    steps(params, optimizer, 3)
    optimizer.lr = 0.05
    state = {key: tensor.numpy() for key, tensor in get_state_dict(optimizer.state_dict()).items()}
    middle = [param.numpy() for param in params]
    want = steps(params, optimizer, 3)
    params, optimizer = start()
    for param, value in zip(params, middle, strict=True):
        param.assign(Tensor(value))
    optimizer.load_state_dict({key: Tensor(value) for key, value in state.items()})
    assert steps(params, optimizer, 3) == want
    with pytest.raises(KeyError, match="not in the state"):
        optimizer.load_state_dict({})


def test_the_learning_rate_is_checked() -> None:
    optimizer = SGD([Tensor([1.0])], lr=0.5)
    memory = optimizer.lr
    optimizer.lr = 0.25
    assert optimizer.lr is memory and memory.item() == 0.25
    optimizer.lr *= 2
    assert memory.item() == 0.5
    with pytest.raises(ValueError, match="negative"):
        optimizer.lr = -1.0
    with pytest.raises(ValueError, match="negative"):
        optimizer.lr = float("nan")
    with pytest.raises(TypeError, match="is a str"):
        optimizer.lr = "0.1"  # type: ignore[assignment]
    group = OptimizerGroup(optimizer, Adam([Tensor([1.0])], lr=0.1))
    group.lr = 0.125
    assert [one.lr.item() for one in group.optimizers] == [0.125, 0.125]
    inside = TinyJit(lambda: setattr(optimizer, "lr", 0.5))
    inside()
    with pytest.raises(RuntimeError, match="every replay would set the same"):
        inside()


SCHEDULES: dict[str, tuple[Callable[[Optimizer], LRScheduler], list[float]]] = {
    "lambda": (lambda o: LambdaLR(o, lambda step: 1 / (1 + step)), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]),
    "step": (lambda o: StepLR(o, 2, 0.5), [1, 1, 0.5, 0.5, 0.25]),
    "milestones": (lambda o: MultiStepLR(o, [3, 1], 0.5), [1, 0.5, 0.5, 0.25, 0.25]),
    "line": (lambda o: LinearLR(o, 0.5, 1.0, 2), [0.5, 0.75, 1, 1, 1]),
    "cosine": (lambda o: CosineAnnealingLR(o, 4), [1, 0.5 + 0.125**0.5, 0.5, 0.5 - 0.125**0.5, 0]),
    "warm-up": (lambda o: CosineAnnealingLR(o, 2, 0.5, warmup=1), [0.5, 1, 0.75, 0.5, 0.5]),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str) -> None:
    make, want = SCHEDULES[name]
    optimizer = SGD([Tensor([1.0])], lr=1.0)
    schedule, rates = make(optimizer), []
    states = []
    for _ in want:
        rates.append(optimizer.lr.item())
        assert schedule.get_last_lr() == pytest.approx([rates[-1]])
        states.append({key: tensor.numpy() for key, tensor in schedule.state_dict().items()})
        schedule.step()
    np.testing.assert_allclose(np.array(rates, np.float64), want, rtol=1e-6, atol=1e-7)
    for n, state in enumerate(states):
        other = SGD([Tensor([1.0])], lr=0.3)
        again = make(other)
        again.load_state_dict({key: Tensor(value) for key, value in state.items()})
        np.testing.assert_allclose(np.array(other.lr.item(), np.float64), want[n], rtol=1e-6, atol=1e-7)
        assert again.last_epoch == n
    with pytest.raises(KeyError, match="last_epoch"):
        schedule.load_state_dict({})
