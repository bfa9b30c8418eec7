"""Ordered updates against the loop that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor
from tg_frontend.ops.updating import OPS, fetch_update, update

FUNCTION: dict[str, Callable[..., Any]] = {
    "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "write": lambda old, new: new,
}  # fmt: skip
SHAPES = [
    ((7,), (11,), 0), ((1,), (1,), 0), ((5, 3), (4, 3), 0), ((5, 13), (7, 11), 0), ((3, 5), (2, 9), 1),
    ((2, 3, 5), (2, 17, 4), 1), ((4, 0), (3, 0), 0), ((6,), (0,), 0), ((3, 4), (5,), 0), ((3, 4), (5,), 1),
    ((31, 16), (97,), 0), ((2, 1, 7), (1, 3, 7), 1),
]  # fmt: skip


def loop(table: Any, index: Any, value: Any, op: str, axis: int) -> tuple[Any, Any]:
    """What the update stands for."""
    table = table.copy()
    old = np.zeros(index.shape, table.dtype)
    for at in np.ndindex(*index.shape):
        if 0 <= index[at] < table.shape[axis]:
            place = (*at[:axis], int(index[at]), *at[axis + 1 :])
            old[at] = table[place]
            table[place] = FUNCTION[op](table[place], value[at])
    return table, old


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("shape, given, axis", SHAPES)
@pytest.mark.parametrize("dtype, kind", [("float32", "int32"), ("int32", "int64"), ("int8", "uint8")])
def test_update(op: str, shape: Any, given: Any, axis: int, dtype: str, kind: str) -> None:
    rng = np.random.default_rng(len(shape) + sum(given))
    n = shape[axis]
    index = rng.integers(0 if kind == "uint8" else -2, n + 3, given).astype(kind)
    whole = given if len(given) == len(shape) else tuple(
        given[0] if i == axis else d for i, d in enumerate(shape))
    table, value = rng.integers(-3, 4, shape).astype(dtype), rng.integers(-3, 4, whole).astype(dtype)
    wide = index if index.shape == whole else np.broadcast_to(
        index.reshape([-1 if i == axis else 1 for i in range(len(shape))]), whole)
    want, old = loop(table, wide, value, op, axis)
    got = update(Tensor(table), Tensor(index), Tensor(value), op, axis)
    assert got.shape == want.shape and np.array_equal(got.numpy(), want)
    after, before = fetch_update(Tensor(table), Tensor(index), Tensor(value), op, axis)
    assert np.array_equal(after.numpy(), want) and np.array_equal(before.numpy(), old)


def test_operands_are_computed_in_the_kernel() -> None:
    index, value = Tensor([0, 1, 2, 3]).realize(), Tensor([1.0, 2.0, 3.0, 4.0]).realize()
    table = Tensor.zeros(4).contiguous().realize()
    found = update(table, (index * 3 + 1) % 4, value * 2 - 1)
    assert len(found.schedule()) == 2  # a copy of the table, and the update
    assert found.tolist() == [3.0, 1.0, 7.0, 5.0]
    assert table.tolist() == [0.0] * 4


def test_reductions_are_operands() -> None:
    x = Tensor([[1, 5, 2], [4, 0, 4]]).realize()
    table = Tensor(np.zeros(4, np.int64))
    assert update(table, x.argmax(1), x.sum(1)).tolist() == [8, 8, 0, 0]
    assert update(table, x.max(0) - 3, x.sum(0), "write").tolist() == [0, 6, 5, 0]


def test_an_operand_is_overwritten_afterwards() -> None:
    index, value = Tensor([1, 1, 0]).realize(), Tensor([1, 2, 3]).realize()
    pending = update(Tensor([0, 0]), index, value)
    index.assign(Tensor([0, 0, 0]))
    value += 10
    value.realize()
    assert pending.tolist() == [3, 3]
    assert update(Tensor([0, 0]), index, value).tolist() == [36, 0]


def test_a_result_is_updated_and_written_to() -> None:
    index = Tensor([1, 1, 0])
    once = update(Tensor([0, 0]), index, 1)
    twice = update(once, index, once[index])
    assert twice.tolist() == [2, 6] and once.tolist() == [1, 2]
    after, before = fetch_update(once, index, 5)
    after += 1
    assert before.tolist() == [2, 7, 1] and after.tolist() == [7, 13]
    before[0] = 9
    assert before.tolist() == [9, 7, 1] and after.tolist() == [7, 13] and once.tolist() == [1, 2]


def test_special_values_are_kept() -> None:
    special = Tensor([-0.0, float("nan"), float("-inf")])
    got = update(Tensor([0.0, 1.0, 2.0]), Tensor([0, 1, 2]), special, "write").numpy()
    assert np.signbit(got[0]) and np.isnan(got[1]) and got[2] == -np.inf
    assert np.isnan(update(Tensor([0.0]), Tensor([0, 0]), Tensor([float("nan"), 3.0]), "maximum").numpy()[0])


def test_far_positions_do_not_wrap() -> None:
    for value in (2**31 + 1, 2**32, 2**63 - 1, -(2**32)):
        assert update(Tensor([0, 0]), Tensor([value]), 1).tolist() == [0, 0]
    assert update(Tensor([0, 0]), Tensor(np.array([2**64 - 1, 1], np.uint64)), 1).tolist() == [0, 1]


def test_bad_input() -> None:
    x = Tensor([[1, 2], [3, 4]])
    with pytest.raises(TypeError, match="indices are integers, got a tensor of float32"):
        update(x, Tensor([0.0]), 1)
    with pytest.raises(ValueError, match="op 'mean'; there are add, multiply, maximum, write"):
        update(x, Tensor([0]), 1, "mean")
    with pytest.raises(ValueError, match=r"an index of shape \(1, 3\) for shape \(2, 2\) along axis 0"):
        update(x, Tensor([[0, 0, 0]]), 1)
    with pytest.raises(ValueError, match=r"a value of shape \(3, 2\) for positions of shape \(1, 2\)"):
        update(x, Tensor([0]), Tensor([[1, 1], [1, 1], [1, 1]]))
    with pytest.raises(ValueError, match="a table of one element"):
        update(Tensor(1), Tensor([0]), 1)
