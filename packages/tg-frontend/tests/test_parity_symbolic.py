"""Sizes that are bound to another value in every call: numpy computes the same on the slice that is meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit
from tg_shape import Variable

N = Variable("n", 1, 10)
M = Variable("m", 1, 10)
X = np.random.default_rng(0).uniform(-1, 1, (3, 10)).astype(np.float32)
Y = np.random.default_rng(1).uniform(-1, 1, (10, 4)).astype(np.float32)

ONE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "add": (lambda x: x + 1, lambda x: x + 1),
    "transpose": (lambda x: x.T + 0, lambda x: x.T),
    "sum": (lambda x: x.sum(1), lambda x: x.sum(1)),
    "mean": (lambda x: x.mean(1), lambda x: x.mean(1)),
    "var": (lambda x: x.var(axis=1, correction=0), lambda x: x.var(axis=1)),
    "max": (lambda x: x.max(), lambda x: x.max()),
    "softmax": (lambda x: x.softmax(1), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "flip": (lambda x: x.flip(1) * 2, lambda x: x[:, ::-1] * 2),
    "pad": (lambda x: (x + 1).pad(((0, 0), (0, 2))), lambda x: np.pad(x + 1, ((0, 0), (0, 2)))),
    "cat": (lambda x: x.cat(x, dim=1), lambda x: np.concatenate([x, x], 1)),
    "two kernels": (lambda x: (x - x.mean()).exp(), lambda x: np.exp(x - x.mean())),
    "gram": (lambda x: x.T @ x, lambda x: x.T @ x),
}


@pytest.mark.parametrize("name", ONE)
def test_one_variable_in_a_jit(name: str, backend: str) -> None:
    ours, theirs = ONE[name]
    x = Tensor(X).contiguous().realize()
    function = TinyJit(ours)
    for size in (4, 1, 7, 10, 2):
        got = function(x[:, : N.bind(size)])
        np.testing.assert_allclose(got.numpy(), theirs(X[:, :size]), rtol=1e-5, atol=1e-6)
        # what is computed from a result sees the new size, too
        np.testing.assert_allclose((got * 2).sum().item(), theirs(X[:, :size]).sum() * 2, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ONE)
def test_one_variable_without_a_jit(name: str, backend: str) -> None:
    ours, theirs = ONE[name]
    x = Tensor(X)
    for size in (3, 10):
        np.testing.assert_allclose(ours(x[:, : N.bind(size)]).numpy(), theirs(X[:, :size]), rtol=1e-5, atol=1e-6)


def test_a_result_that_is_an_argument(backend: str) -> None:
    x = Tensor(X).contiguous().realize()
    function = TinyJit(lambda a: (a, a * 2))
    for size in (4, 1, 7, 10, 2):
        same, double = function(x[:, : N.bind(size)])
        assert same.tolist() == X[:, :size].tolist() and double.tolist() == (X[:, :size] * 2).tolist()


def test_two_variables_in_a_jit(backend: str) -> None:
    x, y = Tensor(X).contiguous().realize(), Tensor(Y).contiguous().realize()
    product = TinyJit(lambda a, b: a @ b)
    outer = TinyJit(lambda a, b: a.sum(0).unsqueeze(1) * b.sum(1).unsqueeze(0))
    for n, m in ((2, 3), (5, 1), (10, 10), (1, 7), (4, 4)):
        inner = N.bind(n)
        got = product(x[:, :inner], y[:inner, :])
        np.testing.assert_allclose(got.numpy(), X[:, :n] @ Y[:n], rtol=1e-5, atol=1e-6)
        got = outer(x[:, : N.bind(n)], y[: M.bind(m)])
        np.testing.assert_allclose(got.numpy(), np.outer(X[:, :n].sum(0), Y[:m].sum(1)), rtol=1e-5, atol=1e-6)


def test_a_variable_as_a_position(backend: str) -> None:
    cache = Tensor.zeros(12, 4).contiguous().realize()
    want = np.zeros((12, 4), np.float32)
    at = Variable("at", 0, 11)

    @TinyJit
    def write(row: Tensor, place: Any) -> Tensor:
        cache[place : place + 1] = row
        return cache.sum(1)

    for place in (0, 5, 11, 3, 5):
        row = np.full((1, 4), place + 1, np.float32)
        want[place] = row
        np.testing.assert_allclose(write(Tensor(row).contiguous().realize(), at.bind(place)).numpy(), want.sum(1))
    np.testing.assert_array_equal(cache.numpy(), want)


def test_reshape_to_a_bound_size_and_back(backend: str) -> None:
    function = TinyJit(lambda a, b: (a @ b).sum(0) + b.sum(0))
    for size in (2, 1, 5, 10, 3):
        a, b = X[:, :size].copy(), Y[:size].copy()
        n = N.bind(size)
        got = function(Tensor(a.reshape(-1)).reshape(3, n), Tensor(b).reshape(n, 4))
        np.testing.assert_allclose(got.numpy(), (a @ b).sum(0) + b.sum(0), rtol=1e-5, atol=1e-6)
        t = Tensor(a).reshape(3, n)
        assert t.reshape(3, size).tolist() == a.tolist() and t.T.reshape(size * 3).tolist() == a.T.flatten().tolist()
        assert (t + 1).reshape(size, 3).tolist() == (a + 1).reshape(size, 3).tolist()
    for wrong in (N, N.bind(3)):
        with pytest.raises(ValueError, match=r"reshape: \(3, 4\) has 12 elements"):
            Tensor.ones(3, 4).reshape(3, wrong)


def test_variables_beside_tensors(backend: str) -> None:
    n, t, x = N.bind(3), Tensor([1, 2, 5], dtype="int8"), np.array([1, 2, 5], np.int8)
    for got, want in (
        (n + t, 3 + x), (n - t, 3 - x), (n * t, 3 * x), (n // t, 3 // x), (n % t, 3 % x), (n < t, 3 < x),
        (t < n, x < 3), (t * (n + 1), x * 4), (Tensor(n), np.array(3)),
        (Tensor.full((3,), n, dtype="int8"), np.full(3, 3)),
    ):  # fmt: skip
        assert isinstance(got, Tensor) and got.tolist() == want.tolist()
