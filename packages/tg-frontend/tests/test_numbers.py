"""Special values, odd shapes and bad input of the operations that go by numpy's and PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor

NAN, INF = float("nan"), float("inf")
SPECIAL = np.array([NAN, INF, -INF, 0.0, -0.0, 1.5, -2.5, 1e38, -1e-40], np.float32)
BESIDE = np.array([1, NAN, NAN, 0.0, INF, -0.0, 3, 1e38, 1e-41], np.float32)


@pytest.mark.parametrize("name", ["fmax", "fmin", "hypot", "heaviside", "logical_and", "logical_or", "logical_xor"])
def test_special_values_of_two(name: str, backend: str) -> None:
    with np.errstate(all="ignore"):
        want = getattr(np, name)(SPECIAL, BESIDE)
    got = getattr(Tensor(SPECIAL), name)(Tensor(BESIDE)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_special_values_of_one(dtype: str, backend: str) -> None:
    with np.errstate(over="ignore"):
        x = SPECIAL.astype(dtype)
    t = Tensor(x)
    assert t.signbit().tolist() == np.signbit(x).tolist()
    np.testing.assert_array_equal(t.nan_to_num().numpy(), np.nan_to_num(x))
    np.testing.assert_array_equal(t.nan_to_num(1, posinf=2, neginf=3).numpy(), np.nan_to_num(x, True, 1, 2, 3))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_number_is_its_mantissa_and_exponent(dtype: str) -> None:
    rng = np.random.default_rng(5)
    powers = rng.integers(-20, 15, 301) if dtype == "float16" else rng.integers(-140, 127, 301)
    x = np.ldexp(rng.uniform(-1, 1, 301), powers).astype(dtype)
    mantissa, exponent = (part.numpy() for part in Tensor(x).frexp())
    wanted = np.frexp(x)
    np.testing.assert_array_equal(mantissa, wanted[0])
    np.testing.assert_array_equal(exponent, wanted[1])
    np.testing.assert_array_equal(Tensor(mantissa).ldexp(Tensor(exponent)).numpy(), x)


def test_a_nan_counts_for_nothing_in_nansum_and_nanmean() -> None:
    x = Tensor([[NAN, 1.0, 2.0], [NAN, NAN, NAN]], requires_grad=True)
    assert x.nansum(1).tolist() == [3.0, 0.0]
    mean = x.nanmean(1)
    assert mean[0].item() == 1.5 and np.isnan(mean[1].item())
    x.nansum().backward()
    assert x.grad is not None and x.grad.tolist() == [[0, 1, 1], [0, 0, 0]]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (7, 1), (5, 3)], ids=str)
def test_odd_shapes(shape: tuple[int, ...], backend: str) -> None:
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    t = Tensor(x)
    for name in ("ravel", "atleast_1d", "atleast_2d", "atleast_3d"):
        np.testing.assert_array_equal(getattr(t, name)().numpy(), getattr(np, name)(x), err_msg=name)
    for name in ("hstack", "vstack", "dstack"):
        np.testing.assert_array_equal(getattr(Tensor, name)([t, t]).numpy(), getattr(np, name)([x, x]), err_msg=name)
    np.testing.assert_array_equal(t.tile(2, 1, 3).numpy(), np.tile(x, (2, 1, 3)))
    np.testing.assert_array_equal(t.kron(Tensor([1.0, 2.0])).numpy(), np.kron(x, np.array([1, 2], np.float32)))
    for parts in (1, 3, 4) if shape else ():
        assert [got.shape for got in t.tensor_split(Tensor(parts))] == [got.shape for got in t.tensor_split(parts)]
        for got, want in zip(t.tensor_split(parts), np.array_split(x, parts), strict=True):
            np.testing.assert_array_equal(got.numpy(), want)


def test_a_view_of_an_axis_shares_memory() -> None:
    x = Tensor.zeros(2, 3).contiguous().realize()
    x.narrow(1, 1, 2).assign(Tensor.ones(2, 2))
    x.select(0, 0).assign(Tensor([5.0, 5.0, 5.0]))
    assert x.tolist() == [[5, 5, 5], [0, 1, 1]]


BAD: dict[str, tuple[Callable[[Tensor], Any], type[Exception], str]] = {
    "movedim": (lambda t: t.movedim((0, 0), (0, 1)), ValueError, "twice"),
    "movedim counts": (lambda t: t.movedim((0, 1), 0), ValueError, "2 axes to 1"),
    "narrow": (lambda t: t.narrow(1, 2, 3), ValueError, "3 positions from 2"),
    "select": (lambda t: t.select(1, 3), IndexError, "position 3"),
    "rot90": (lambda t: t.rot90(1, (0, 0)), ValueError, "two axes"),
    "hsplit": (lambda t: t.hsplit(2), ValueError, "no 2 equal parts"),
    "vsplit": (lambda t: t[0].vsplit(1), ValueError, "at least 2 axes"),
    "tensor_split": (lambda t: t.tensor_split(0), ValueError, "0 is not a number of parts"),
    "tensor_split at nothing": (lambda t: t.tensor_split(None), TypeError, "places are integers, got None"),  # type: ignore[arg-type]
    "block_diag": (lambda t: t.block_diag(Tensor.zeros(1, 1, 1)), ValueError, "matrices are wanted"),
    "outer": (lambda t: t.outer(t), ValueError, "a vector is wanted"),
    "mm": (lambda t: t.mm(t[0]), ValueError, "a matrix is wanted"),
    "bmm": (lambda t: Tensor.zeros(2, 3, 4).bmm(Tensor.zeros(3, 4, 5)), ValueError, "batches of 2 and 3"),
    "tensordot": (lambda t: t.tensordot(t, 1), ValueError, "do not pair"),
    "cross": (lambda t: t.cross(t, 0), ValueError, "not of size 3"),
    "trace": (lambda t: t[0].trace(), ValueError, "a matrix is wanted"),
    "cdist": (lambda t: t.cdist(Tensor.zeros(2, 4)), ValueError, "rows of one length"),
    "glu": (lambda t: t.glu(), ValueError, "no two halves"),
    "prelu": (lambda t: t.prelu(Tensor.zeros(2)), ValueError, "one, or one a channel"),
    "frac": (lambda t: t.int().frac(), TypeError, "takes floats"),
    "positive": (lambda t: t.bool().positive(), TypeError, "takes signed"),
    "mse_loss": (lambda t: t.mse_loss(t[0]), ValueError, "differ"),
    "l1_loss": (lambda t: t.l1_loss(t, "average"), ValueError, "reduction 'average'"),
    "huber_loss": (lambda t: t.huber_loss(t, delta=0), ValueError, "delta 0"),
    "multi_margin_loss": (lambda t: t.multi_margin_loss(t), TypeError, "classes are integers"),
    "triplet_margin_loss": (lambda t: t.triplet_margin_loss(t, t, margin=0), ValueError, "margin 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name: str) -> None:
    call, kind, text = BAD[name]
    with pytest.raises(kind, match=rf"Tensor\.{name.split(' ')[0]}: .*{text}"):
        call(Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


@pytest.mark.parametrize("name", ["gcd", "lcm"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_common_divisors_and_multiples(dtype: str, name: str) -> None:
    """Zeros, the least number, which has no magnitude of its dtype, and neighbours that take most steps."""
    rng, ends, fibonacci = np.random.default_rng(0), np.iinfo(dtype), [1, 1]
    while sum(fibonacci[-2:]) <= ends.max:
        fibonacci.append(sum(fibonacci[-2:]))
    first, second = (rng.integers(ends.min, ends.max, 53, dtype, endpoint=True) for _ in range(2))
    first[:7] = [0, 0, 5, ends.min, ends.max, *fibonacci[-2:]]
    second[:7] = [0, 7, 0, ends.min, ends.min, *fibonacci[-1:-3:-1]]
    found = getattr(Tensor(first), name)(Tensor(second))
    assert found.dtype.name == dtype
    np.testing.assert_array_equal(found.numpy(), getattr(np, name)(first, second))


def test_common_divisors_of_what_is_no_integer() -> None:
    with pytest.raises(TypeError, match="Tensor.gcd: gcd takes signed integers"):
        Tensor([1.5]).gcd(Tensor([2.0]))
    assert (np.gcd(Tensor([12, 18]), 8) == Tensor([4, 2])).all().item()
    assert Tensor([[12], [18]]).gcd(Tensor([8, 27])).tolist() == [[4, 3], [2, 9]] and Tensor(-4).lcm(6).item() == 12
