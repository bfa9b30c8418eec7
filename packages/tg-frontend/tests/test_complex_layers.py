"""Layers of complex numbers: made so, turned so, moved, learnt and saved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor, nn
from tg_frontend.nn import functional

F: Any = functional
RNG = np.random.default_rng(4)


def _drawn(*shape: int) -> Any:
    return (RNG.uniform(-1, 1, shape) + 1j * RNG.uniform(-1, 1, shape)).astype(np.complex64)


def test_a_layer_turns_complex_in_its_own_place() -> None:
    layer = nn.Linear(3, 2)
    weight, before = layer.weight, layer.weight.numpy()
    assert layer.to("complex64") is layer and layer.weight is weight and weight.dtype is dtypes.complex64
    np.testing.assert_array_equal(weight.numpy(), before)
    x = _drawn(4, 3)
    assert layer.bias is not None
    out = layer(Tensor(x))
    np.testing.assert_allclose(out.numpy(), x @ before.T + layer.bias.numpy(), rtol=1e-5, atol=1e-6)
    (out.abs() ** 2).sum().backward()
    assert weight.grad is not None
    np.testing.assert_allclose(weight.grad.numpy(), 2 * out.detach().numpy().T @ x.conj(), rtol=1e-4, atol=1e-5)
    layer.load_state_dict({"weight": Tensor(_drawn(2, 3)), "bias": Tensor(_drawn(2))})
    assert layer.weight is weight and layer.to("complex128").weight.dtype is dtypes.complex128
    assert layer.double().weight.dtype is dtypes.complex128 and layer.to_empty(device="NUMPY").weight.device == "NUMPY"
    with pytest.raises(TypeError, match="would lose their imaginary parts"):
        layer.to("float32")
    with pytest.raises(TypeError, match="a dtype of floats or complex numbers"):
        layer.to("int32")


def test_where_a_tensor_is() -> None:
    other = Tensor([1.0], device="NUMPY", dtype="float64")
    layer = nn.Linear(3, 2).to(other, non_blocking=True)
    assert (layer.weight.device, layer.weight.dtype) == ("NUMPY", dtypes.float64)


@pytest.mark.parametrize("name", ["Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d"])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(name: str, groups: int) -> None:
    """Linear in the input: of a real and an imaginary one the sum of what the layer makes of either."""
    layer = getattr(nn, name)(4, 2, 2, groups=groups, padding=1, dtype="complex64")
    x = _drawn(2, 4, *(5,) * layer.weight[0, 0].ndim)
    re, im = (layer(Tensor(part)).numpy() for part in (x.real.copy(), x.imag.copy()))
    bias = layer.bias.numpy().reshape(-1, *(1,) * layer.weight[0, 0].ndim)
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), re + 1j * (im - bias), rtol=1e-4, atol=1e-5)
    assert layer(Tensor(x[0])).shape == layer(Tensor(x)).shape[1:]


def test_what_has_no_complex_meaning_is_refused() -> None:
    with pytest.raises(TypeError, match="complex numbers are not taken"):
        nn.LayerNorm(3)(Tensor(_drawn(2, 3)))
    with pytest.raises(TypeError, match="complex"):
        F.avg_pool1d(Tensor(_drawn(1, 1, 4)), 2)
    with pytest.raises(TypeError, match="no node itself"):
        _ = Tensor(_drawn(2)).lazydata
