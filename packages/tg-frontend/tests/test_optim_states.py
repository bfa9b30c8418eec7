"""States of PyTorch's optimisers before their first step, and parameters with names and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn

NAMES = ["Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop",
         "SGD"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_state_before_the_first_step(name: str) -> None:
    """PyTorch keeps nothing of a parameter before its first step: the state begins anew."""
    kind: Any = getattr(nn.optim, name)
    one, other = (Tensor(np.array([[1.0, 2.0]], np.float32)) for _ in range(2))
    optimizer, fresh = kind([one], lr=0.25), kind([other], lr=0.5)
    for _ in range(2):
        (one * one).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0], "lr": 0.5}]})
    one.assign(other.detach())
    for x, each in ((one, optimizer), (other, fresh)):
        (x * x).sum().backward()
        each.step()
    np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_all_parameters_have_names_or_none() -> None:
    a, b = Tensor([1.0]), Tensor([2.0])
    mixed: list[Any] = [("a", a), b]
    with pytest.raises(ValueError, match="^SGD: parameters with names and without"):
        nn.optim.SGD(mixed)
    groups: list[dict[str, Any]] = [{"params": [a]}, {"params": [("b", b)]}]
    with pytest.raises(ValueError, match="^SGD: parameters with names and without"):
        nn.optim.SGD(groups)
    optimizer = nn.optim.SGD([("a", a)])
    with pytest.raises(ValueError, match="parameters with names and without"):
        optimizer.add_param_group({"params": [b]})
    optimizer.add_param_group({"params": [("b", b)]})
    assert [group["param_names"] for group in optimizer.param_groups] == [["a"], ["b"]]


def _pair() -> tuple[Any, Any]:
    optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
    of = nn.optim.lr_scheduler
    parts = [of.ConstantLR(optimizer, 0.5, 3), of.ExponentialLR(optimizer, 0.5)]
    return optimizer, parts


def test_states_of_composed_schedules_of_pytorch() -> None:
    """The states of parts are a list; source: ``ChainedScheduler.state_dict`` of PyTorch 2.13, after two steps."""
    optimizer, parts = _pair()
    chain = nn.optim.lr_scheduler.ChainedScheduler(parts)
    parts_state = [{"base_lrs": [0.5], "last_epoch": 2, "factor": 0.5}, {"base_lrs": [0.5], "last_epoch": 2}]
    chain.load_state_dict({"_schedulers": parts_state, "_last_lr": [0.0625]})
    assert (optimizer.param_groups[0]["lr"], chain.last_epoch) == (0.0625, 2)
    chain.step()
    assert optimizer.param_groups[0]["lr"] == 0.0625  # twice as much, as the factor ends, and half of that
    optimizer, parts = _pair()
    turns = nn.optim.lr_scheduler.SequentialLR(optimizer, parts, [1])
    parts_state[1]["last_epoch"] = 1
    turns.load_state_dict({"_schedulers": parts_state, "_milestones": [1], "last_epoch": 2, "_last_lr": [0.25]})
    turns.step()
    assert optimizer.param_groups[0]["lr"] == 0.125


def test_the_state_of_a_plateau_of_pytorch() -> None:
    optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
    schedule = nn.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
    state = {"best": 1.0, "num_bad_epochs": 1, "cooldown_counter": 0, "last_epoch": 3, "_last_lr": [0.25]}
    schedule.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.25
    schedule.step(2.0)
    assert optimizer.param_groups[0]["lr"] == 0.125


def test_settings_that_are_tensors_of_pytorch() -> None:
    class Number:
        __module__ = "torch"

        def numel(self) -> int:
            return 1

        def item(self) -> float:
            return 0.125

    optimizer = nn.optim.Adam([Tensor([1.0])])
    group = {"params": [0], "lr": Number(), "betas": [Number(), 0.5], "fused": True}
    optimizer.load_state_dict({"state": {}, "param_groups": [group]})
    assert (optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["betas"]) == (0.125, (0.125, 0.5))
