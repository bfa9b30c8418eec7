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
    with pytest.raises(ValueError, match="^SGD: parameters with names and without"):
        nn.optim.SGD([("a", a), b])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="^SGD: parameters with names and without"):
        nn.optim.SGD([{"params": [a]}, {"params": [("b", b)]}])
    optimizer = nn.optim.SGD([("a", a)])
    with pytest.raises(ValueError, match="parameters with names and without"):
        optimizer.add_param_group({"params": [b]})
    optimizer.add_param_group({"params": [("b", b)]})
    assert [group["param_names"] for group in optimizer.param_groups] == [["a"], ["b"]]
