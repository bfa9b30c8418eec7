"""Views that are runs of the host's memory are read where they lie; what is read is right, whatever the view."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor
from tg_runtime import GlobalCounters


def drawn(draw: random.Random, x: Any, values: Any) -> tuple[Any, Any, bool]:
    """A view of a tensor and of an array, and whether it is one run of memory for sure."""
    run = True
    for _ in range(draw.randint(1, 4)):
        kind = draw.randrange(6)
        if kind <= 2 and values.ndim:  # the first axis is cut, or an element of it taken
            n = values.shape[0]
            cut: Any = draw.randrange(n) if kind else slice(low := draw.randrange(n), draw.randint(low + 1, n))
            x, values = x[cut], values[cut]
        elif kind == 3:
            x, values = x.unsqueeze(0), values[None]
        elif kind == 4:
            x, values = x.reshape(-1), values.reshape(-1)
        elif values.ndim > 1:
            axes = draw.sample(range(values.ndim), values.ndim)
            x, values, run = x.permute(*axes), values.transpose(axes), run and axes == sorted(axes)
        elif values.ndim and draw.random() < 0.3:
            x, values, run = x.flip(0), values[::-1], False
    return x, values, run


@pytest.mark.parametrize("seed", range(60))
def test_views_are_read(seed: int, backend: str) -> None:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    shape = tuple(draw.randint(1, 7) for _ in range(draw.randint(1, 4)))
    dtype = draw.choice(("float32", "int8", "float64", "bool", "int64", "float16", "complex64"))
    values = (rng.integers(0, 2, shape) if dtype == "bool" else rng.integers(-9, 9, shape)).astype(dtype)
    x = Tensor(values).realize()
    view, want, run = drawn(draw, x, values)
    before = GlobalCounters.kernel_count
    assert view.tolist() == want.tolist()
    assert not run or GlobalCounters.kernel_count == before
    np.testing.assert_array_equal(view.numpy(), want)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(view)).numpy(), want)
    assert repr(view) == repr(Tensor(want.copy())) or dtype == "complex64"
    if want.size == 1:
        assert view.item() == want.item()


def test_elements_are_read_without_a_kernel_for_each(backend: str) -> None:
    x = Tensor(np.arange(331, dtype=np.float32)).realize()
    before = GlobalCounters.kernel_count
    assert [x[n].item() for n in range(331)] == list(range(331))
    assert GlobalCounters.kernel_count == before


def test_what_was_read_does_not_change_with_memory(backend: str) -> None:
    x = Tensor(np.arange(21, dtype=np.int32).reshape(7, 3)).realize()
    rows, kept = x[2:5], x[3].numpy()
    before = rows.numpy()
    x[3] = 9
    assert kept.tolist() == [9, 10, 11] and before.tolist() == [[6, 7, 8], [9, 10, 11], [12, 13, 14]]
    assert rows.tolist() == [[6, 7, 8], [9, 9, 9], [12, 13, 14]] and x[3, 1].item() == 9
    x += 1
    assert rows[0].tolist() == [7, 8, 9]


def test_a_view_that_was_read_keeps_its_gradient() -> None:
    w = Tensor(np.arange(6, dtype=np.float32).reshape(3, 2), requires_grad=True)
    w.realize()
    row = w[1]
    assert row.tolist() == [2, 3]
    (row * row).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [[0, 0], [4, 6], [0, 0]]
