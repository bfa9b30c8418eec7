"""What a tensor says of itself, and tensors that are made or moved by its example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor

RNG = np.random.default_rng()


def drawn(dtype: str = "float32") -> tuple[Tensor, Any]:
    """A matrix of any size, and what numpy has of it."""
    rows, cols = (int(n) for n in RNG.integers(3, 9, 2))
    array = RNG.integers(-9, 9, (rows, cols)).astype(dtype)
    return Tensor(array), array


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "float64", "complex64"])
def test_sizes_and_strides_are_those_of_numpy(dtype: str) -> None:
    x, array = drawn(dtype)
    assert x.shape == x.size() == array.shape and x.ndim == x.dim() == 2
    assert x.size(-1) == array.shape[1] and x.numel() == x.nelement() == array.size
    assert x.element_size() == x.itemsize == array.itemsize and x.nbytes() == array.nbytes
    assert x.dtype.name == dtype and x.type() == dtype
    for view, wanted in ((x, array), (x.T, array.T), (x[1:, ::2], array[1:, ::2])):
        steps = tuple(step // array.itemsize for step in wanted.strides)
        assert view.stride() == steps and view.stride(0) == steps[0]
        assert view.is_contiguous() == bool(wanted.flags.c_contiguous)
    assert (x[1:, 1:].storage_offset(), x.storage_offset()) == (array.shape[1] + 1, 0)
    assert x.is_same_size(Tensor(array + array)) and not x.is_same_size(x.reshape(-1))


def test_kinds_of_numbers() -> None:
    for dtype, signed, floating, is_complex in (
        ("bool", False, False, False), ("uint8", False, False, False), ("int32", True, False, False),
        ("bfloat16", True, True, False), ("float64", True, True, False), ("complex128", True, False, True),
    ):  # fmt: skip
        x = Tensor.ones(3, dtype=dtype)
        assert (x.is_signed(), x.is_floating_point(), x.is_complex()) == (signed, floating, is_complex), dtype
        assert not (x.is_conj() or x.is_neg() or x.is_nested or x.is_quantized or x.is_mps or x.is_meta or x.is_cuda)
    z = Tensor([1 + 2j])
    assert not z.conj().is_conj() and not (-z).is_neg()  # both are computed
    assert Tensor([2.5]).is_nonzero() and not Tensor([[0]]).is_nonzero() and Tensor([1j]).is_nonzero()
    with pytest.raises((ValueError, RuntimeError), match="is_nonzero"):
        Tensor([1, 2]).is_nonzero()


def test_where_a_tensor_is() -> None:
    x, array = drawn()
    place: Any = "NUMPY"
    here = x.to(place)
    assert here.device == "NUMPY" and here.get_device() == -1 and not here.is_cuda
    assert x.cpu().is_cpu and x.cpu().cpu().device == "CPU" and x.get_device() == -1
    assert here.to_device("CPU").device == "CPU" and here.to_("CPU") is here and here.device == "CPU"
    np.testing.assert_array_equal(here.numpy(), array)
    with pytest.raises(TypeError, match="device is an integer"):
        x.cuda(place)


def test_what_gradients_say() -> None:
    w, plain = Tensor([1.5, -2.0], requires_grad=True), Tensor([1.0, 3.0])
    y = w * plain
    assert w.requires_grad and not plain.requires_grad and y.requires_grad
    assert (w.is_leaf, plain.is_leaf, y.is_leaf) == (True, True, False)
    assert w.grad_fn is None and plain.grad_fn is None and y.grad_fn is not None
    assert not (w.retains_grad or y.retains_grad)
    y.retain_grad()
    assert y.retains_grad and y.detach().is_leaf and not y.detach().requires_grad
    (slope,) = y.sum().gradient(w)
    assert slope.tolist() == [1, 3] and w.grad is None
    y.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [1, 3] and y.grad is not None and y.grad.tolist() == [1, 1]
    assert plain.requires_grad_() is plain and plain.requires_grad and not plain.requires_grad_(False).requires_grad


def test_tensors_like_another() -> None:
    x, array = drawn("int16")
    for made in (x.empty_like(), x.new_empty(*array.shape), x.const_like(3), x.new(*array.shape)):
        assert made.shape == array.shape and made.dtype is dtypes.int16 and made.device == x.device
    assert Tensor.empty(*array.shape, dtype="uint8").numpy().shape == array.shape
    assert x.const_like(3).tolist() == np.full_like(array, 3).tolist()
    assert x.new([1, 2]).tolist() == x.new_tensor([1, 2]).tolist() == [1, 2]
    assert x.new_tensor([1.5], dtype="float64").dtype is dtypes.float64 and x.new_tensor([4]).dtype is dtypes.int16
    one = Tensor.scalar_tensor(3)
    assert one.shape == () and one.dtype is dtypes.default_float and one.item() == 3


def test_whether_all_of_two_tensors_agree() -> None:
    x, array = drawn()
    near = array.copy()
    near[-1, -1] += 5e-9 + 1e-6 * abs(near[-1, -1])  # within 1e-8 + 1e-5 * |x|, also at 0
    far = array.copy()
    far[RNG.integers(len(far)), 0] += 1
    assert x.equal(Tensor(array)) and not x.equal(Tensor(near)) and not x.equal(x.reshape(-1))
    assert x.allclose(Tensor(near)) and not x.allclose(Tensor(far)) and not x.allclose(Tensor(near), 0, 0)
    assert not Tensor([np.nan]).allclose(Tensor([np.nan])) and not Tensor([np.nan]).equal(Tensor([np.nan]))
    assert Tensor([np.nan]).allclose(Tensor([np.nan]), equal_nan=True)


def test_how_dtypes_and_shapes_meet() -> None:
    assert Tensor.broadcast_shapes((4, 1), (3,), ()) == np.broadcast_shapes((4, 1), (3,), ())
    assert Tensor.result_type(Tensor([1], dtype="int8"), Tensor([1], dtype="uint8")) is dtypes.int16
    assert Tensor.result_type(Tensor([1.0], dtype="float16"), 2.5) is dtypes.float16
    with pytest.raises(ValueError, match="broadcast_shapes"):
        Tensor.broadcast_shapes((4, 2), (3,))


def test_integers_like_another_tensor_are_within_their_bounds() -> None:
    x, array = drawn()
    low, high = -int(RNG.integers(1, 9)), int(RNG.integers(1, 9))
    found = x.randint_like(low, high).numpy()
    assert found.shape == array.shape and found.min() >= low and found.max() < high


def test_turned_matrices() -> None:
    x, array = drawn()
    z = RNG.normal(size=(2, *array.shape)) + 1j * RNG.normal(size=(2, *array.shape))
    np.testing.assert_array_equal(x.T.numpy(), array.T)
    np.testing.assert_array_equal(x.H.numpy(), array.T)
    np.testing.assert_array_equal(Tensor(z).mT.numpy(), z.swapaxes(1, 2))
    np.testing.assert_array_equal(Tensor(z).mH.numpy(), z.conj().swapaxes(1, 2))
    np.testing.assert_array_equal(Tensor(z[0]).H.numpy(), z[0].conj().T)
