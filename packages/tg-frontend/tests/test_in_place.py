"""Names with an underscore: each beside the method that it is made of, in memory that a view shares."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor
from tg_frontend.autograd.hooks import Registered
from tg_frontend.keywords import other_names

RNG = np.random.default_rng(7)
FLOATS = RNG.uniform(0.2, 0.9, (3, 5)).astype(np.float32)
OTHER = RNG.uniform(0.2, 0.9, (3, 5)).astype(np.float32)
WHOLE = RNG.integers(1, 9, (3, 5)).astype(np.int32)
MASK = RNG.uniform(size=(3, 5)) < 0.5
ROWS = np.array([2, 0, 1])
VIEWS = ("squeeze_", "unsqueeze_", "transpose_", "swapaxes_", "swapdims_", "t_")
NAMES = sorted(name for name, known in other_names(Tensor).items() if name.endswith("_") and not known.endswith("_"))
MATRIX, VECTOR, LONG = FLOATS[:, :3], FLOATS[0, :3], FLOATS[0]
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "addbmm": (FLOATS[None, :, :3], OTHER[None, :3, :]), "addmm": (MATRIX, OTHER), "addmv": (OTHER, LONG),
    "addr": (VECTOR, LONG), "baddbmm": (FLOATS[None, :, :3], OTHER[None, :3, :]), "addcmul": (OTHER, OTHER),
    "addcdiv": (OTHER, OTHER), "clamp": (0.3, 0.6), "clip": (0.3, 0.6), "clamp_min": (0.4,), "clamp_max": (0.4,),
    "cumsum": (1,), "cumprod": (1,), "lerp": (OTHER, 0.25), "mvlgamma": (1,), "polygamma": (1,), "renorm": (2, 0, 0.5),
    "index_add": (0, ROWS, OTHER), "index_copy": (0, ROWS, OTHER), "index_fill": (0, ROWS, 0.5),
    "index_put": ((ROWS,), OTHER), "index_reduce": (0, ROWS, OTHER, "prod"), "masked_fill": (MASK, 0.5),
    "masked_scatter": (MASK, OTHER), "put": (ROWS, VECTOR), "scatter": (0, ROWS.reshape(3, 1), OTHER),
    "scatter_add": (0, ROWS.reshape(3, 1), OTHER), "scatter_reduce": (0, ROWS.reshape(3, 1), OTHER, "amax"),
    "threshold": (0.5, 0.1), "dropout": (0.0,), "unsqueeze": (0,), "transpose": (0, 1), "swapaxes": (0, 1),
    "swapdims": (0, 1), "logical_not": (), "hardtanh": (0.3, 0.6), "float_power": (2,),
}  # fmt: skip
BINARY = ("atan2 add sub mul div fmod remainder pow copysign eq ne lt le gt ge floor_divide heaviside hypot "
          "igamma igammac ldexp logical_and logical_or logical_xor nextafter xlogy").split()  # fmt: skip
BITS = "bitwise_and bitwise_or bitwise_xor bitwise_not lshift rshift gcd lcm".split()


def arguments(name: str) -> tuple[Any, tuple[Any, ...]]:
    """An operand for a method, and what it takes beside it."""
    known = inspect.unwrap(getattr(Tensor, name)).__name__
    if known in BITS:
        return WHOLE, () if known == "bitwise_not" else (WHOLE[::-1] % 3,)
    operand = {"baddbmm": FLOATS[None], "addmv": VECTOR}.get(known, FLOATS)
    return operand, ARGUMENTS.get(known, (OTHER,) if known in BINARY else ())


def made(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(made, value))
    return Tensor(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value


def test_there_are_names() -> None:
    assert len(NAMES) > 120


@pytest.mark.parametrize("name", NAMES)
def test_the_result_is_in_the_memory_of_the_tensor(name: str) -> None:
    operand, rest = arguments(name)
    want = getattr(made(operand), name[:-1])(*made(rest))
    x = made(operand).realize()
    view = x[:1]
    out = getattr(x, name)(*made(rest))
    assert out is x
    np.testing.assert_allclose(x.numpy(), want.cast(x.dtype).numpy(), rtol=1e-6, equal_nan=True)
    if name not in VIEWS:
        np.testing.assert_allclose(view.numpy(), x.numpy()[:1], equal_nan=True)
    assert x.dtype is made(operand).dtype


@pytest.mark.parametrize("name", sorted({*NAMES} - {"dropout_", "nextafter_", "igamma_", "igammac_"}))
def test_gradients_flow_as_through_a_new_tensor(name: str) -> None:
    operand, rest = arguments(name)
    if operand.dtype != np.float32 or not getattr(made(operand), name[:-1])(*made(rest)).is_floating_point():
        return
    grads = []
    for called in (name[:-1], name):
        x = Tensor(operand, requires_grad=True)
        y = x * 1
        getattr(y, called)(*made(rest)) if called == name else None
        out = y if called == name else getattr(y, called)(*made(rest))
        (out * out).sum().backward()
        grads.append(None if x.grad is None else x.grad.numpy())
    if grads[0] is not None and grads[1] is not None:
        np.testing.assert_allclose(grads[1], grads[0], rtol=1e-5, atol=1e-6)
    assert (grads[0] is None) == (grads[1] is None)


def test_what_does_not_fit_is_refused_and_nothing_is_written() -> None:
    x = Tensor([1, 2])
    kind = "the result type float32 can't be cast to int32"
    for name, other, why in (("div_", 2, kind), ("add_", Tensor([[1], [2]]), "a result of shape"), ("add_", 1.5, kind)):
        with pytest.raises(RuntimeError, match=rf"^Tensor.{name}: {why}"):
            getattr(x, name)(other)
    assert x.tolist() == [1, 2]
    leaf = Tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf of shape"):
        leaf.mul_(2)
    with pytest.raises(RuntimeError, match="a leaf of shape"):
        leaf.unsqueeze_(0)
    with pytest.raises(TypeError, match=r"^Tensor.add_\(\) got an unexpected keyword 'zzz'"):
        x.add_(zzz=1)  # type: ignore[call-arg]


def test_an_operand_may_be_the_tensor_itself() -> None:
    x = Tensor([2.0, 3.0], requires_grad=True)
    y = x * 2
    y.mul_(y)
    y.sum().backward()
    assert x.grad is not None
    assert y.tolist() == [16.0, 36.0] and x.grad.tolist() == [16.0, 24.0]


def test_a_view_in_place_shares_the_memory() -> None:
    x = Tensor([[1, 2, 3]])
    other = x[0]
    x.t_().add_(1)
    assert x.shape == (3, 1) and other.tolist() == [2, 3, 4]
    leaf = Tensor([[1.0, 2.0]], requires_grad=True)
    y = (leaf * 2).transpose_(0, 1)
    (y * y).sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [[8.0, 16.0]]


def test_copy_detach_fill_diagonal() -> None:
    source = Tensor([1.0, 2.0], requires_grad=True)
    x = Tensor.zeros(3, 2)
    x.copy_(source)
    x.sum().backward()
    assert x.tolist() == [[1.0, 2.0]] * 3 and source.grad is not None and source.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="copy_: a value of shape"):
        Tensor.zeros(2).copy_(Tensor.zeros(2, 2))
    y = source * 2
    assert y.detach_() is y and not y.requires_grad and y.is_leaf
    for shape in ((3, 3), (5, 2), (2, 5), (7, 3)):
        for wrap in (False, True):
            want = np.ones(shape, np.float32)
            np.fill_diagonal(want, 7, wrap)
            assert Tensor.ones(*shape).fill_diagonal_(7, wrap).tolist() == want.tolist()
    with pytest.raises(ValueError, match="fill_diagonal_: shape"):
        Tensor.ones(3).fill_diagonal_(1)


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5)])
def test_what_is_overwritten_has_a_gradient_of_zeros(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], hooked: bool
) -> None:
    """Not None, by which optimisers leave out what they would shrink: whatever writes, and whatever has a hook."""
    monkeypatch.setattr(Registered, "any", hooked)
    ways: list[Callable[[Tensor, Tensor], Any]] = [
        lambda x, y: x.copy_(y * 2), lambda x, y: x.copy_(y), lambda x, y: x.copy_(y.sum()), lambda x, _: x.copy_(1.5),
        lambda x, y: x.__setitem__(..., y * 2), lambda x, _: x.zero_(), lambda x, y: x.reshape(-1).copy_(y.reshape(-1)),
    ]  # fmt: skip
    for write in ways:
        old, new = (Tensor.ones(*shape, requires_grad=True) for _ in range(2))
        x = old * 3
        write(x, new)
        (x * new).sum().backward()
        assert old.grad is not None and not old.grad.numpy().any()


INTO: dict[str, Callable[[Tensor, Tensor], object]] = {
    "copy_": lambda b, a: b.copy_(a),
    "copy_ of a clone": lambda b, a: b.copy_(a.clone()),
    "copy_ to a view": lambda b, a: b.unsqueeze(0).copy_(a),
    "copy_ to a row": lambda b, a: b.reshape(-1).copy_(a.reshape(-1)),
    "copy_ to columns": lambda b, a: b.T.copy_(a.T),
    "an item": lambda b, a: b.__setitem__(..., a),
    "an item of a view": lambda b, a: b.unsqueeze(0).__setitem__(0, a),
    "rows": lambda b, a: b.index_copy_(0, Tensor([0, 1]), a),
    "a mask": lambda b, a: b.masked_scatter_(a > -9, a),
    "a sum": lambda b, a: b.zero_().add_(a),
}


@pytest.mark.parametrize("into", INTO.values(), ids=list(INTO))
def test_what_was_written_shares_no_memory_with_the_value(into: Callable[[Tensor, Tensor], object]) -> None:
    """Whichever is written or read first, and whether a gradient flows from one to the other."""
    values = np.arange(6.0).reshape(2, 3)
    for wanted, computed, realised, read in product((True, None), (False, True), (False, True), (False, True)):
        a, b = Tensor(values.copy(), requires_grad=wanted), Tensor(values * 0)
        a = a * 1.0 if computed else a
        if realised:
            a.realize(b)
        into(b, a)
        with Tensor.no_grad():
            a += 0.5
            assert not read or np.array_equal(a.numpy(), values + 0.5)
            assert np.array_equal(b.numpy(), values), (wanted, computed, realised, read)
            b += 1
        assert np.array_equal(b.numpy(), values + 1) and np.array_equal(a.numpy(), values + 0.5)
