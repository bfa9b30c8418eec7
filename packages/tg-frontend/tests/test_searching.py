"""searchsorted, bucketize and isin, against numpy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit
from tg_shape import Variable


@pytest.mark.parametrize("name", ["uint8", "int64", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 31, 1000])
def test_positions(n: int, name: str, backend: str) -> None:
    rng = np.random.default_rng(n)
    floats = [-math.inf, -2, -0.0, 0, 0.5, math.inf, math.nan]
    pool = np.array([0, 1, 2, 3, 5, 250] if "int" in name else floats)
    x, values = (np.asarray(rng.choice(pool, size)).astype(name) for size in (n, (3, 5)))
    x = np.sort(x)
    for side in ("left", "right"):
        wanted = np.searchsorted(x, values, side=side)
        assert Tensor(x).searchsorted(Tensor(values), right=side == "right").tolist() == wanted.tolist()
        assert Tensor(x).searchsorted(Tensor(values), side=side).tolist() == wanted.tolist()
        assert Tensor(values).bucketize(Tensor(x), right=side == "right").tolist() == wanted.tolist()


def test_rows_numbers_and_nothing() -> None:
    rng = np.random.default_rng(0)
    x, values = np.sort(rng.integers(0, 50, (2, 3, 17)), -1), rng.integers(0, 50, (2, 3, 4))
    found = Tensor(x).searchsorted(Tensor(values)).numpy()
    for row in np.ndindex(2, 3):
        assert found[row].tolist() == np.searchsorted(x[row], values[row]).tolist()
    shuffled = rng.permutation(x[0, 0])
    t = Tensor(shuffled)
    assert t.searchsorted(25, sorter=t.argsort()).item() == np.searchsorted(x[0, 0], 25)
    assert Tensor([1, 2]).searchsorted(1.5).item() == 1 and Tensor([1, 2]).searchsorted([0, 3]).tolist() == [0, 2]
    assert Tensor.zeros(0).searchsorted(Tensor([1.0])).tolist() == [0]
    assert Tensor([1.0]).searchsorted(Tensor.zeros(0)).shape == (0,)
    assert Tensor(7).bucketize([1, 9]).item() == 1


@pytest.mark.parametrize("count", [0, 1, 5, 16, 17, 300])
def test_membership(count: int, backend: str) -> None:
    rng = np.random.default_rng(count)
    for name in ("int16", "float32"):
        x, others = rng.integers(-90, 90, (7, 9)).astype(name), rng.integers(-90, 90, count).astype(name)
        if name == "float32" and count:
            x[0, 0] = others[0] = math.nan
        assert Tensor(x).isin(Tensor(others)).tolist() == np.isin(x, others).tolist()
        assert Tensor(x).isin(Tensor(others), invert=True).tolist() == np.isin(x, others, invert=True).tolist()
    assert Tensor([1, 2]).isin(2).tolist() == [False, True]
    assert Tensor([1, 2]).isin([1.0, 5.0]).tolist() == [True, False]


def test_a_length_of_each_call() -> None:
    data = np.sort(np.random.default_rng(2).standard_normal(40)).astype(np.float32)
    held, values = Tensor(data).realize(), Tensor([-0.5, 0.0, 9.0, math.nan]).realize()
    jitted = TinyJit(lambda x: x.searchsorted(values, right=True).realize())
    for count in (30, 40, 7, 22):
        part = held.shrink(((0, Variable("n", 1, 40).bind(count)),))
        assert jitted(part).tolist() == np.searchsorted(data[:count], values.numpy(), side="right").tolist()


BAD: dict[str, tuple[Callable[[Tensor], object], str]] = {
    "side": (lambda t: t[0].searchsorted(1, side="up"), "searchsorted: side 'up'"),  # type: ignore[arg-type]
    "rows": (lambda t: t.searchsorted(Tensor([1.0])),
             r"searchsorted: values of shape \(1,\) in rows of shape \(2, 3\)"),
    "number": (lambda t: Tensor(1.0).searchsorted(t), "searchsorted: one number"),
    "boundaries": (lambda t: t.bucketize(t), r"bucketize: boundaries are a vector, got shape \(2, 3\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_named(name: str) -> None:
    function, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        function(Tensor([[1.0, 2, 3], [4, 5, 6]]))
