"""numpy's functions, called with tensors: they give tensors, with what they give for arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor
from tg_frontend.nn import Linear

NP: Any = np  # called with what its stubs do not know
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
    lambda v: np.trace(v), lambda v: np.trace(v, 1),
    lambda v: np.diagonal(v, 1), lambda v: np.tril(v, -1), lambda v: np.swapaxes(v, 0, 1),
    lambda v: np.moveaxis(v, 0, 1),
    lambda v: np.any(v > 1, axis=1), lambda v: np.count_nonzero(v > 0, axis=0), lambda v: np.quantile(v, 0.3),
    lambda v: np.sum(v, where=X > 0), lambda v: np.max(v, 0, where=X > 0, initial=0.0),
    lambda v: np.prod(v, initial=2.0),
    lambda v: np.std(v, 1, where=X < 1, ddof=0.5), lambda v: np.mean(v, where=X[0] > 0, keepdims=True),
    lambda v: np.searchsorted(np.sort(v[0]), v[1]), lambda v: np.unique(np.round(v)), lambda v: np.fft.rfft(v).real,
]  # fmt: skip
ON_THE_HOST: list[Callable[[Any], Any]] = [
    lambda v: np.mean(v, 0, "float64"), lambda v: np.argsort(v, -1, "stable"),
    lambda v: np.sum(v > 0, where=X > 0), lambda v: np.percentile(v, [30, 40]),
    lambda v: np.spacing(v), lambda v: np.cbrt(v), lambda v: np.average(v, weights=np.abs(X)),
    lambda v: np.interp(v, [0, 1], [0, 1]),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_the_result_is_a_tensor(call: Callable[[Any], Any]) -> None:
    got, want = call(Tensor(X)), call(X)
    assert isinstance(got, Tensor)
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("call", ON_THE_HOST)
def test_what_there_is_not_here_numpy_computes(call: Callable[[Any], Any]) -> None:
    got, want = call(Tensor(X)), call(X)
    assert isinstance(got, Tensor)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


SMOOTH = [call for call in ON_THE_HOST if call not in ON_THE_HOST[1:3]]


@pytest.mark.parametrize("call", SMOOTH)
def test_no_gradient_is_lost_on_the_host(call: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"gradient .* does not flow through what numpy computes .*detach"):
        call(Tensor(X, requires_grad=True) * 2)
    with Tensor.no_grad():
        assert call(Tensor(X, requires_grad=True)).requires_grad is not True


def test_positions_and_text_lose_no_gradient() -> None:
    x = Tensor(X, requires_grad=True)
    np.testing.assert_array_equal(NP.argsort(x, -1, "stable").numpy(), np.argsort(X, -1, "stable"))
    assert isinstance(NP.array2string(x), str)


def test_results_of_a_layer_are_not_given_away() -> None:
    out = Linear(4, 2)(Tensor(X))
    calls: list[Callable[[Any], Any]] = [
        NP.asarray, NP.cbrt, NP.array, lambda v: NP.put(v, [0], 1), lambda v: NP.sin(v, out=Tensor(X[:, :2])),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(RuntimeError, match="gradient"):
            call(out)
    NP.median(out).backward()


def test_several_results() -> None:
    found = NP.nonzero(Tensor(X > 0))
    assert all(isinstance(part, Tensor) for part in found)
    np.testing.assert_array_equal([part.tolist() for part in found], np.nonzero(X > 0))


def test_gradients_flow_through_numpys_functions() -> None:
    x = Tensor(X, requires_grad=True)
    NP.mean(NP.square(x)).backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 2 * X / X.size, rtol=1e-6)


def test_tensors_are_written_into() -> None:
    x, out = Tensor(X), Tensor(np.zeros_like(X))
    row = out[1]
    assert NP.sin(X, out=out) is out
    np.testing.assert_allclose(out.numpy(), np.sin(X), rtol=1e-6)
    NP.copyto(row, 3)
    assert out[1].tolist() == [3.0] * 4
    NP.add.at(out, (0, [1, 1]), 2)
    np.testing.assert_allclose(out[0, 1].item(), np.sin(X[0, 1]) + 4, rtol=1e-6)
    total = Tensor(0.0)
    assert NP.sum(x, out=total) is total
    np.testing.assert_allclose(total.item(), X.sum(), rtol=1e-5)
    array = np.zeros_like(X)
    assert NP.cos(x, out=array) is array
    np.testing.assert_allclose(array, np.cos(X), rtol=1e-6)


OUT_BY_PLACE: dict[str, tuple[Any, ...]] = {
    "sum": (0, None), "outer": (X[0],), "clip": (0.0, 1.0), "cumsum": (1, None), "round": (1,), "amax": (1,),
    "dot": (X.T,), "take": ([0, 2], 1), "argmax": (0,), "mean": (0, None), "percentile": (30.0, 0),
}  # fmt: skip
"""Arguments in front of ``out``."""


@pytest.mark.parametrize("name", OUT_BY_PLACE)
def test_what_is_written_may_be_told_by_position(name: str) -> None:
    wanted = getattr(NP, name)(X, *OUT_BY_PLACE[name])
    out = Tensor(np.zeros_like(wanted))
    assert getattr(NP, name)(Tensor(X), *OUT_BY_PLACE[name], out) is out
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-5)
    with pytest.raises(RuntimeError, match="does not flow through what is written to memory"):
        getattr(NP, name)(Tensor(X, requires_grad=True), *OUT_BY_PLACE[name], out)


def test_rules_of_casting_hold_for_what_is_written() -> None:
    with pytest.raises(TypeError, match="same_kind"):
        NP.copyto(Tensor([1, 2, 3]), np.array([1.5, 2, 3]))
    with pytest.raises(TypeError, match="same_kind"):
        NP.add(Tensor([1.5]), 1, out=Tensor([1]))


def test_what_would_be_written_to_a_copy_is_refused() -> None:
    def zeroed(row: Any) -> Any:
        row[0] = 0
        return row

    with pytest.raises(TypeError, match="numpy would write into an argument that is a tensor"):
        NP.apply_along_axis(zeroed, 0, Tensor(X))


def test_what_nan_to_num_is_not_to_copy_is_written_to() -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda v: NP.nan_to_num(v, False), lambda v: NP.nan_to_num(x=v, copy=False, nan=2.0)
    ]  # fmt: skip
    for call in calls:
        array = np.array([1.0, np.nan, -np.inf], dtype=np.float32)
        x = Tensor(array)
        assert call(x) is x
        np.testing.assert_array_equal(x.numpy(), call(array))
    x = Tensor(array)
    assert NP.nan_to_num(x, copy=True) is not x


def test_inputs_that_may_be_overwritten_are_not() -> None:
    for array in (X, (X * 9).astype(np.int32)):
        x = Tensor(array)
        for call in (NP.median, lambda v, **how: NP.percentile(v, [30, 60], **how), NP.nanmedian):
            np.testing.assert_allclose(call(x, overwrite_input=True).numpy(), call(array), 1e-6)
        np.testing.assert_array_equal(x.numpy(), array)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_sums_and_products_of_unsigned_integers_are_unsigned(dtype: str) -> None:
    array = np.random.default_rng().integers(np.iinfo(dtype).max // 3, np.iinfo(dtype).max, (2, 3), dtype, True)
    for function in (NP.sum, NP.prod, NP.cumsum, NP.cumprod, NP.nansum, NP.nanprod, NP.nancumsum, NP.nancumprod):
        for how in ({}, {"axis": 0}, {"dtype": "int64"}):
            with np.errstate(over="ignore"):
                wanted = function(array, **how)
            found = function(Tensor(array), **how).numpy()
            assert found.dtype == wanted.dtype, function
            np.testing.assert_array_equal(found, wanted)


def test_a_leaf_that_requires_a_gradient_is_written_without_one_only() -> None:
    x = Tensor(X, requires_grad=True)
    calls: list[Callable[[], Any]] = [
        lambda: NP.put(x, [0], 1), lambda: NP.add(X, 1, out=x), lambda: NP.add.at(x, 0, 1),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(RuntimeError, match="does not flow through what is written to memory"):
            call()
        with Tensor.no_grad():
            call()
    with pytest.raises(RuntimeError, match="does not flow"):
        NP.copyto(Tensor(X), x * 2)


def test_arrays_stand_beside_a_tensor_on_its_device() -> None:
    x = Tensor(X, device="NUMPY")
    found = (NP.concatenate([X, x]), NP.cbrt(x), NP.where(X > 0, x, X), NP.zeros(3, like=x))
    assert [one.device for one in found] == ["NUMPY"] * 4
