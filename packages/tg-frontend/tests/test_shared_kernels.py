"""Loops over the parts of a tensor: one kernel does for all that differ in where they begin, and each is right."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit
from tg_lazy import Context
from tg_runtime import GlobalCounters

Array = np.ndarray[Any, np.dtype[Any]]


def rows(x: Any, y: Any, n: int) -> list[Any]:
    return [x[k] * 2 + y[k] for k in range(n)]


def columns(x: Any, y: Any, n: int) -> list[Any]:
    return [x[:, k] * y[:, (k + 1) % n] for k in range(n)]


def neighbours(x: Any, y: Any, n: int) -> list[Any]:
    return [x[k] - x[k + 1] + y[0] for k in range(n - 1)]


def blocks(x: Any, y: Any, n: int) -> list[Any]:
    return [(x[k : k + 3, : n - 5] * y[2:5, k : k + n - 5]).sum(0) for k in range(5)]


def turned(x: Any, y: Any, n: int) -> list[Any]:
    return [x[k].flip(0) + y[:, k] if isinstance(x, Tensor) else x[k][::-1] + y[:, k] for k in range(n)]


def padded(x: Any, y: Any, n: int) -> list[Any]:
    if isinstance(x, Tensor):
        return [x[k].pad((1, 1)) * y[k].sum() for k in range(n)]
    return [np.pad(x[k], 1) * y[k].sum() for k in range(n)]


def products(x: Any, y: Any, n: int) -> list[Any]:
    return [y[k] @ x for k in range(n)]


PROGRAMS = [rows, columns, neighbours, blocks, turned, padded, products]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("seed", range(3))
def test_parts_are_right(program: Callable[..., list[Any]], seed: int, backend: str) -> None:
    n = random.Random(seed).choice((7, 11, 13, 19))
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-9, 9, (n, n)).astype(np.float32) for _ in range(2))
    x, y = Tensor(a).realize(), Tensor(b).realize()
    for _ in range(2):  # the second time, schedules are remembered
        for got, want in zip(program(x, y, n), program(a, b, n), strict=True):
            np.testing.assert_array_equal(got.numpy(), want)
    together = Tensor.stack(*program(x, y, n))
    np.testing.assert_array_equal(together.numpy(), np.stack(program(a, b, n)))


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_written_where_they_are(seed: int, backend: str) -> None:
    draw, n = random.Random(seed), 17
    a = np.random.default_rng(seed).integers(-9, 9, (n, n)).astype(np.float32)
    x = Tensor(a).realize()
    for _ in range(3 * n):
        k, m = draw.randrange(n - 1), draw.randrange(n - 1)
        match draw.randrange(3):
            case 0:
                x[k], a[k] = x[m] * 0.5, a[m] * 0.5
            case 1:
                x[:, k], a[:, k] = x[m] + 1, a[m] + 1
            case _:
                x[k : k + 2, m], a[k : k + 2, m] = float(m), float(m)
        if draw.random() < 0.4:
            x.realize()
    np.testing.assert_array_equal(x.numpy(), a)


def test_a_loop_over_a_sequence_makes_few_kernels() -> None:
    """A recurrence of many steps: the first two and the last are kernels of their own, at the most."""
    count, width = 61, 7
    a = np.random.default_rng(0).standard_normal((5, count, width)).astype(np.float32)
    w = np.random.default_rng(1).standard_normal((width, width)).astype(np.float32) * 0.3
    with Context(DEV="CPU"):
        x, weight = Tensor(a).realize(), Tensor(w).realize()
        before = GlobalCounters.compile_count
        hidden, want = Tensor.zeros(5, width), np.zeros((5, width), np.float32)
        for n in range(count):
            hidden = (hidden @ weight + x[:, n]).tanh()
            want = np.tanh(want @ w + a[:, n])
        np.testing.assert_allclose(hidden.numpy(), want, rtol=1e-4, atol=1e-5)
        assert 0 < GlobalCounters.compile_count - before <= 6


def test_records_have_kernels_of_their_own() -> None:
    a = np.arange(91, dtype=np.float32).reshape(13, 7)
    x = Tensor(a).realize()

    @TinyJit
    def sums(scale: Tensor) -> Tensor:
        return Tensor.stack(*[(x[n] * scale).sum() for n in range(13)])

    for k in range(6):
        np.testing.assert_array_equal(sums(Tensor(float(k)).realize()).numpy(), (a * k).sum(1))
