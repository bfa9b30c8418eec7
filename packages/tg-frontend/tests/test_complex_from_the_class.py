"""``Tensor.mul_(z, w)`` is ``z.mul_(w)``: what a method does to a complex tensor, it does when its class is asked."""

from __future__ import annotations

from inspect import getattr_static
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor

RNG = np.random.default_rng()
DRAWN = ("uniform_", "normal_", "dropout", "dropout_", "rand_like", "randn_like", "empty_like", "bernoulli")
LEFT = {"backward", "numpy", *DRAWN}
NAMES = [
    name
    for name in dir(Tensor)
    if not name.startswith("_")
    and name not in LEFT
    and callable(getattr(Tensor, name))
    and not isinstance(getattr_static(Tensor, name), (staticmethod, classmethod))
]
SIZE = int(RNG.choice([2, 3, 5]))
Z, W = (RNG.normal(size=(SIZE, SIZE)) + 1j * RNG.normal(size=(SIZE, SIZE)) for _ in range(2))
MASK = RNG.random((SIZE, SIZE)) < 0.5
GIVEN: tuple[tuple[Any, ...], ...] = ((), (W,), (0,), (2.0,), (MASK,), (MASK, 3j), (0, 1), (W, 0.5), ([0, 0],))


def _tensors(given: tuple[Any, ...]) -> list[Any]:
    return [Tensor(part) if isinstance(part, np.ndarray) else part for part in given]


def _values(found: Any) -> Any:
    if isinstance(found, Tensor):
        return found.numpy()
    return [_values(part) for part in found] if isinstance(found, (list, tuple)) else found


def _first_taken(name: str) -> tuple[Any, tuple[Any, ...]] | None:
    """What a bound method gives, and what it leaves in its tensor, for the first arguments that it takes."""
    for given in GIVEN:
        z = Tensor(Z)
        try:
            return given, (_values(getattr(z, name)(*_tensors(given))), z.numpy())
        except (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError, OverflowError, AttributeError):
            continue
    return None


def _error(name: str, given: tuple[Any, ...]) -> Exception | None:
    """What a method raises when its class is asked, if it does."""
    try:
        getattr(Tensor, name)(Tensor(Z), *_tensors(given))
    except Exception as error:
        return error
    return None


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("name", NAMES)
def test_the_class_does_what_the_tensor_does(name: str) -> None:
    found = _first_taken(name)
    if found is None:  # complex numbers are refused, or other arguments are wanted
        for given in GIVEN:
            error = _error(name, given)
            assert error is not None, f"the class takes {given}, the tensor does not"
            assert not isinstance(error, (AttributeError, RecursionError))  # which speak of the inside
        return
    given, (want, left) = found
    z = Tensor(Z)
    got = _values(getattr(Tensor, name)(z, *_tensors(given)))
    if not (callable(want) or "object at" in str(want)):
        np.testing.assert_equal(got, want)
    np.testing.assert_equal(z.numpy(), left)


def test_an_error_of_a_method_in_place_names_it() -> None:
    with pytest.raises(ValueError, match=r"^Tensor\.mul_: "):
        Tensor(Z).mul_(Tensor(np.stack([Z, W])))
