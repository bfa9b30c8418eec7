"""``x.data``: the elements in their memory, without the graph; called, as memory."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn


@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0], [1, 2, 3], [True, False, True], [1j, 2.0, 3.0]])
def test_what_is_written_to_it_is_written_to_the_tensor(values: Any) -> None:
    x = Tensor(values)
    x[:2].data.zero_()
    assert x.tolist() == [0, 0, values[2]]
    x.data[0] = values[0]
    assert x.tolist() == [values[0], 0, values[2]]
    x.data.assign(Tensor(values))
    assert x.tolist() == values


def test_weights_are_written_whatever_their_gradient() -> None:
    layer = nn.Linear(2, 3)
    weight = layer.weight
    weight.data.fill_(0.5)
    weight.data.mul_(2).add_(1)
    weight.data = weight.data * 2
    assert layer.weight is weight and weight.is_leaf and weight.tolist() == [[4.0, 4.0]] * 3
    layer(Tensor.ones(1, 2)).sum().backward()
    assert weight.grad is not None
    weight.grad.data.zero_()
    assert weight.grad.tolist() == [[0.0, 0.0]] * 3


def test_no_gradient_flows_through_it_and_its_kind_does_not_spread() -> None:
    for x in (Tensor([1.0, -2.0], requires_grad=True), Tensor([1j, 2.0])):
        found = x.data
        assert isinstance(found, Tensor) and not found.requires_grad and found.shape == (2,)
        made = [
            found * 2, x.detach() + found, found.abs(), found[0], found.clone(), found.reshape(1, 2),
            found.cat(found), found.zeros_like(), copy.deepcopy(found), pickle.loads(pickle.dumps(found)),
        ]  # fmt: skip
        assert all(type(one) in (Tensor, type(x)) for one in made)
        np.testing.assert_array_equal(made[-1].numpy(), x.numpy())
        assert not callable(x) and not callable(made[0])
    leaf = Tensor([3.0]).data.requires_grad_()
    (leaf * leaf).backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [6.0]


def test_memory() -> None:
    for array in (np.arange(6.0).reshape(2, 3), np.array([1, 2], np.int16), np.array([1j, 2])):
        view = Tensor(array).data()
        assert isinstance(view, memoryview) and bytes(view) == array.tobytes()


def test_what_is_assigned_to_it() -> None:
    x, y = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0])
    x.data = y
    y[0] = 9.0
    assert x.tolist() == [9.0, 4.0] and x.requires_grad
    x.data = np.array([5.0, 6.0], np.float32)
    assert x.tolist() == [5.0, 6.0]
    for wrong, error in ((Tensor([1.0]), ValueError), (Tensor([1, 2]), TypeError)):
        with pytest.raises(error, match=r"^Tensor\.replace: "):
            x.data = wrong
