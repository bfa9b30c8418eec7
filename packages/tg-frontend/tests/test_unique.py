"""unique, unique_consecutive and mode, against numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit

Array = np.ndarray[Any, Any]
ASKED = ("return_index", "return_inverse", "return_counts")


def check(x: Array, axis: int | None = None) -> None:
    """Elements, where they are first, where each element went, and how often each is there."""
    wanted = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    found = Tensor(x).unique(return_index=True, return_inverse=True, return_counts=True, axis=axis)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours.numpy(), np.asarray(theirs).reshape(ours.numpy().shape))
    assert found[2].shape == (x.shape if axis is None else (x.shape[axis],))
    without = Tensor(x).unique(return_inverse=True, return_counts=True, axis=axis)
    for ours, same in zip(without, (found[0], found[2], found[3]), strict=True):
        np.testing.assert_array_equal(ours.numpy(), same.numpy())
    alone = Tensor(x).unique(axis=axis)
    assert isinstance(alone, Tensor)
    np.testing.assert_array_equal(alone.numpy(), wanted[0])


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", [
    "bool", "int8", "uint16", "int32", "uint64", "int64", "float16", "float32", "float64",
])  # fmt: skip
def test_elements(name: str, backend: str) -> None:
    rng = np.random.default_rng(0)
    for shape in ((1,), (5, 7), (301,)):
        x = rng.integers(0 if name[0] in "bu" else -9, 9, shape)
        if name[0] == "f":
            x = np.where(rng.random(shape) < 0.1, math.nan, np.where(rng.random(shape) < 0.1, -math.inf, x / 2))
        check(x.astype(name))
        if name in ("int64", "uint64"):  # too far apart for a table
            check((x.astype(np.int64) * ((1 << 59) + 1)).astype(name))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_slices(axis: int) -> None:
    check(np.random.default_rng(1).integers(0, 2, (9, 4, 3)), axis)
    check(np.random.default_rng(1).integers(0, 2, (40, 2, 1)).astype(np.float32), axis)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_each_nan_may_be_one_of_its_own(axis: int | None) -> None:
    x = np.random.default_rng(2).integers(0, 2, (7, 2)).astype(np.float32)
    x[[0, 2, 6], [1, 0, 1]] = math.nan
    asked: dict[str, Any] = {"return_index": True, "return_inverse": True, "return_counts": True, "axis": axis}
    wanted = np.unique(x, **asked, equal_nan=False)
    for ours, theirs in zip(Tensor(x).unique(**asked, equal_nan=False), wanted, strict=True):
        np.testing.assert_array_equal(ours.numpy(), np.asarray(theirs).reshape(ours.numpy().shape))
    assert len(Tensor(x).unique(equal_nan=False)) == 5
    assert Tensor([1, 1]).unique(equal_nan=False).tolist() == [1]  # type: ignore[union-attr]


def test_nothing_and_one() -> None:
    assert Tensor.zeros(0).unique().shape == (0,)  # type: ignore[union-attr]
    assert [part.shape for part in Tensor.zeros(0, 3).unique(return_counts=True, axis=0)] == [(0, 3), (0,)]
    assert Tensor(4).unique().tolist() == [4]  # type: ignore[union-attr]


def test_a_size_that_is_given_needs_no_look() -> None:
    jitted = TinyJit(lambda x: [part.realize() for part in x.unique(return_counts=True, size=4, fill_value=-1)])
    for row in ([3, 1, 3], [5, 5, 5], [1, 2, 3], [9, 8, 9]):
        values, counts = jitted(Tensor(row).realize())
        theirs, often = np.unique(row, return_counts=True)
        assert values.tolist() == [*theirs.tolist(), *[-1] * (4 - len(theirs))]
        assert counts.tolist() == [*often.tolist(), *[0] * (4 - len(theirs))]
    with pytest.raises(ValueError, match=r"^Tensor.unique: -1 is not a number of elements"):
        Tensor([1]).unique(size=-1)
    with pytest.raises(IndexError, match="axis 1"):
        Tensor([1]).unique(axis=1)


def test_runs(backend: str) -> None:
    for x in (np.random.default_rng(2).integers(0, 2, 200), np.array([math.nan, math.nan, 1.0, -0.0, 0.0]), np.ones(1)):
        values, inverse, counts = Tensor(x).unique_consecutive(return_inverse=True, return_counts=True)
        same = (x[1:] == x[:-1]) | (np.isnan(x[1:]) & np.isnan(x[:-1]))
        starts = np.flatnonzero(np.r_[True, ~same])
        np.testing.assert_array_equal(values.numpy(), x[starts])
        assert counts.tolist() == np.diff(np.r_[starts, len(x)]).tolist()
        np.testing.assert_array_equal(values.numpy()[inverse.numpy()], x)
    rows = np.array([[1, 2], [1, 2], [3, 2], [1, 2]])
    assert Tensor(rows).unique_consecutive(axis=0).tolist() == [[1, 2], [3, 2], [1, 2]]  # type: ignore[union-attr]
    assert Tensor(rows.T.copy()).unique_consecutive(axis=1).tolist() == [[1, 3, 1], [2, 2, 2]]  # type: ignore[union-attr]
    assert Tensor.zeros(0).unique_consecutive().shape == (0,)  # type: ignore[union-attr]


def test_modes(backend: str) -> None:
    rng = np.random.default_rng(3)
    for shape, axis in (((4, 9), 1), ((150, 3), 0), ((2, 1), -1)):
        x = rng.integers(-3, 3, shape).astype(np.float32)
        values, at = Tensor(x).mode(axis, keepdim=True)
        for row, value, place in zip(*(np.moveaxis(a, axis, -1).reshape(-1, a.shape[axis])
                                       for a in (x, values.numpy(), at.numpy())), strict=True):  # fmt: skip
            some, often = np.unique(row, return_counts=True)
            assert value[0] == some[often.argmax()] and place[0] == np.flatnonzero(row == value[0])[0]
    assert Tensor(3).mode()[0].item() == 3
    with pytest.raises(ValueError, match=r"^Tensor.mode: there is no element"):
        Tensor.zeros(2, 0).mode()


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3), (0, 4)])
def test_of_nothing(shape: tuple[int, ...]) -> None:
    """Elements are one axis, whatever the shape was; what tells where each went has that shape."""
    x = Tensor.zeros(*shape)
    for found in (x.unique(True, True, True), x.unique_consecutive(True, True)):
        assert [part.shape for part in found] == [(0,), shape, (0,)]
