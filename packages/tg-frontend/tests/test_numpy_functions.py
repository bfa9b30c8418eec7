"""numpy's functions, called with tensors: they give tensors, with what they give for arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor

X = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
CALLS: list[Callable[[Any], Any]] = [
    lambda v: np.sin(v), lambda v: np.add(v, X), lambda v: np.add(X, v), lambda v: np.power(2, v),
    lambda v: np.rint(v),
    lambda v: np.maximum(v, 0), lambda v: np.arctan2(v, v), lambda v: np.logical_and(v > 0, v < 1),
    lambda v: np.isnan(v),
    lambda v: np.exp(v, dtype="float64"), lambda v: np.absolute(v), lambda v: np.degrees(v), lambda v: np.square(v),
    lambda v: np.add.reduce(v), lambda v: np.add.reduce(v, 1), lambda v: np.maximum.reduce(v, axis=1, keepdims=True),
    lambda v: np.add.accumulate(v, 1), lambda v: np.multiply.outer(v, v), lambda v: np.negative(v),
    lambda v: np.mean(v), lambda v: np.mean(v, 0), lambda v: np.mean(v, axis=1, keepdims=True), lambda v: np.sum(v, 1),
    lambda v: np.std(v), lambda v: np.std(v, ddof=1), lambda v: np.var(v, 0), lambda v: np.max(v, axis=0),
    lambda v: np.argmax(v, 1), lambda v: np.cumsum(v), lambda v: np.cumsum(v, 1), lambda v: np.cumprod(v, axis=0),
    lambda v: np.concatenate([v, X], axis=1), lambda v: np.stack([v, v], axis=1), lambda v: np.vstack([v, v]),
    lambda v: np.where(v > 0, v, 0), lambda v: np.where(X > 0, v, X), lambda v: np.clip(v, 0, 1),
    lambda v: np.round(v, 1),
    lambda v: np.transpose(v), lambda v: np.reshape(v, (4, 3)), lambda v: np.squeeze(v[None]),
    lambda v: np.tile(v, (2, 1)),
    lambda v: np.expand_dims(v, 0), lambda v: np.roll(v, 1, axis=0), lambda v: np.roll(v, 1), lambda v: np.flip(v, 0),
    lambda v: np.repeat(v, 2, axis=0), lambda v: np.sort(v, axis=0), lambda v: np.argsort(v, 0),
    lambda v: np.diff(v, 1, 0),
    lambda v: np.diff(v, n=2), lambda v: np.take(v, [2, 0], axis=1), lambda v: np.dot(v, v.T),
    lambda v: np.matmul(v, X.T),
    lambda v: np.einsum("ij,kj->ik", v, v), lambda v: np.tensordot(v, v, ([0], [0])), lambda v: np.outer(v[0], v[1]),
    lambda v: np.linalg.norm(v), lambda v: np.linalg.norm(v, axis=1), lambda v: np.linalg.inv(v[:, :3]),
    lambda v: np.zeros_like(v), lambda v: np.full_like(v, 3), lambda v: np.broadcast_to(v, (2, 3, 4)),
    lambda v: np.trace(v),
    lambda v: np.diagonal(v, 1), lambda v: np.tril(v, -1), lambda v: np.swapaxes(v, 0, 1),
    lambda v: np.moveaxis(v, 0, 1),
    lambda v: np.any(v > 1, axis=1), lambda v: np.count_nonzero(v > 0, axis=0), lambda v: np.quantile(v, 0.3),
    lambda v: np.searchsorted(np.sort(v[0]), v[1]), lambda v: np.unique(np.round(v)), lambda v: np.fft.rfft(v).real,
]  # fmt: skip
ARRAYS: list[Callable[[Any], Any]] = [
    lambda v: np.median(v), lambda v: np.mean(v, 0, "float64"), lambda v: np.argsort(v, -1, "stable"),
    lambda v: np.sum(v, where=X > 0), lambda v: np.percentile(v, 30), lambda v: np.trace(v, 1),
    lambda v: np.spacing(v),
    lambda v: np.add(v, 1, where=np.ones_like(X, bool), out=np.zeros_like(X)), lambda v: np.interp(v, [0, 1], [0, 1]),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_the_result_is_a_tensor(call: Callable[[Any], Any]) -> None:
    got, want = call(Tensor(X)), call(X)
    assert isinstance(got, Tensor)
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("call", ARRAYS)
def test_what_there_is_not_here_is_numpys_own(call: Callable[[Any], Any]) -> None:
    got, want = call(Tensor(X)), call(X)
    assert not isinstance(got, Tensor)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_several_results() -> None:
    found = np.nonzero(Tensor(X > 0))
    assert all(isinstance(part, Tensor) for part in found)
    np.testing.assert_array_equal([part.tolist() for part in found], np.nonzero(X > 0))


def test_gradients_flow_through_numpys_functions() -> None:
    x = Tensor(X, requires_grad=True)
    np.mean(np.square(x)).backward()  # type: ignore[attr-defined]
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 2 * X / X.size, rtol=1e-6)


def test_a_tensor_is_not_written_to() -> None:
    with pytest.raises(TypeError, match="numpy cannot write into a tensor"):
        np.sin(X, out=Tensor(X))  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="numpy cannot write into a tensor"):
        np.sum(Tensor(X), out=Tensor(0.0))  # type: ignore[call-overload]
