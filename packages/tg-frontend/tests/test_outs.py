"""``out=``: results in memory that is given for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, linalg, nn, special
from tg_frontend.domains import BOTH
from tg_lazy import Context

RNG = np.random.default_rng()
ANY: Any = Tensor  # called with what its signatures do not say
SVD: Any = linalg.svd  # likewise
ERF: Any = special.erf
RELU: Any = nn.functional.relu
CALLS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y, **to: x.add(y, **to),
    "called by the class": lambda x, y, **to: ANY.mul(x, y, **to),
    "with a number": lambda x, y, **to: x.pow(2, **to),
    "of one operand": lambda x, y, **to: x.exp(**to),
    "relu": lambda x, y, **to: RELU(x, **to),
    "clamp": lambda x, y, **to: x.clamp(-0.5, 0.5, **to),
    "where": lambda x, y, **to: (x > 0).where(x, y, **to),
    "compared": lambda x, y, **to: x.lt(y, **to),
    "sum": lambda x, y, **to: x.sum(dim=1, keepdim=True, **to),
    "mean of all": lambda x, y, **to: x.mean(**to),
    "cumsum": lambda x, y, **to: x.cumsum(0, **to),
    "softmax": lambda x, y, **to: x.softmax(-1, **to),
    "cat": lambda x, y, **to: x.cat(y, dim=1, **to),
    "stack": lambda x, y, **to: ANY.stack([x, y], **to),
    "matmul": lambda x, y, **to: x.matmul(y.T, **to),
    "index_select": lambda x, y, **to: x.index_select(0, ANY([0, 0]), **to),
    "view": lambda x, y, **to: x.transpose(0, 1, **to),
    "nonzero": lambda x, y, **to: (x > 0).nonzero(**to),
    "sort": lambda x, y, **to: x.sort(dim=1, **to),
    "svd": lambda x, y, **to: SVD(x, full_matrices=False, **to),
    "module": lambda x, y, **to: ERF(x, **to),
}


def drawn() -> tuple[Any, Any]:
    rows, columns = (int(n) for n in RNG.integers(2, 7, 2))
    return tuple(ANY(RNG.standard_normal((rows, columns)).astype(np.float32)) for _ in range(2))


def several(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (tuple, list)) else [found]


def as_given(found: Any, outs: list[Any]) -> Any:
    return tuple(outs) if isinstance(found, (tuple, list)) else outs[0]


@pytest.mark.parametrize("name", CALLS)
def test_results_are_written_into_memory_views_and_tensors_without_elements(name: str) -> None:
    x, y = drawn()
    wanted = CALLS[name](x, y)
    made = several(wanted)
    whole = [ANY.full((*one.shape, 3), 1, dtype=one.dtype).realize() for one in made]
    empty = [ANY.empty(0, dtype=one.dtype) for one in made]
    views = [one[..., 1] for one in whole]
    plain = [ANY.zeros(*one.shape, dtype=one.dtype).contiguous().realize() for one in made]
    for outs in (plain, views, empty):
        found = CALLS[name](x, y, out=as_given(wanted, outs))
        assert type(found) is type(wanted)
        for one, out, right in zip(several(found), outs, made, strict=True):
            assert one is out
            np.testing.assert_array_equal(out.numpy(), right.numpy())
    for one, right in zip(whole, made, strict=True):  # a view writes its own part of memory alone
        np.testing.assert_array_equal(one.numpy()[..., 1], right.numpy())
        assert (one.numpy()[..., ::2] == 1).all()


def test_what_is_read_may_be_written() -> None:
    x, y = drawn()
    wanted = x.numpy() * 2 + y.numpy()
    x.mul(2, out=x)
    x.add(y, out=y)
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-6)
    square = ANY(RNG.standard_normal((5, 5)))
    turned = square.numpy().T.copy()
    square.T.add(0, out=square)
    np.testing.assert_array_equal(square.numpy(), turned)


def test_results_that_are_views_of_what_is_written_are_those_of_before() -> None:
    whole = RNG.standard_normal((2, int(RNG.integers(1, 9))))
    x = ANY(whole).contiguous().realize()
    x.unbind(out=(x[1], x[0]))
    np.testing.assert_array_equal(x.numpy(), whole[::-1])
    y, empty = ANY(whole).contiguous().realize(), ANY.empty(0, dtype="float64")
    y.unbind(out=(y[1], empty))
    np.testing.assert_array_equal(y.numpy(), np.stack([whole[0], whole[0]]))
    np.testing.assert_array_equal(empty.numpy(), whole[1])


RANDOM = ("rand", "randn", "rand_like", "randn_like", "empty", "empty_like", "new_empty", "new")
NO_RESULTS = tuple(
    "assign realize numpy tolist item backward replace schedule schedule_with_vars gradient retain_grad".split()
)


def methods() -> dict[str, Callable[..., Any]]:
    """What takes complex numbers, called of a tensor and of the class with the first arguments that fit."""
    rows = int(RNG.integers(3, 5))
    z, w = (ANY(RNG.standard_normal((rows, 3)) @ np.array([[1, 1j, 2], [1j, 2, 1], [0, 1, 1j]])) for _ in range(2))
    picked: list[Any] = [ANY([[0, 1, 2]] * rows), "i j -> j i", [w, w], w.T, (1, 0)]
    given: list[tuple[Any, ...]] = [(), (w,), (0,), (0, 1), (1, 0), (rows, 3), (w, w), (0, ANY([0, 1])), (0, 0, 1)]
    given += [(one,) for one in picked]
    found: dict[str, Callable[..., Any]] = {}
    for name in BOTH:
        if name.endswith("_") or name in (*RANDOM, *NO_RESULTS) or not hasattr(Tensor, name):
            continue
        calls: dict[str, Callable[..., Any]] = {name: getattr(z, name),
                                                f"Tensor.{name}": partial(getattr(Tensor, name), z)}  # fmt: skip
        for label, call in calls.items():
            for args in given:
                try:
                    results = several(call(*args))
                except (TypeError, ValueError, IndexError, RuntimeError, AttributeError, ZeroDivisionError):
                    continue
                if results and all(isinstance(one, Tensor) for one in results):
                    found[label] = partial(call, *args)
                    break
    return found


@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_every_method_of_complex_tensors_writes_its_results() -> None:
    with Context(DEV="NUMPY"):
        known = methods()
        assert len([name for name in known if "." not in name]) > 150
        for name, call in known.items():
            wanted = call()
            outs = [ANY.zeros(*one.shape, dtype=one.dtype).contiguous().realize() for one in several(wanted)]
            found = call(out=as_given(wanted, outs))
            for one, out, right in zip(several(found), outs, several(wanted), strict=True):
                assert one is out, name
                np.testing.assert_array_equal(out.numpy(), right.numpy(), err_msg=name)


def test_a_result_without_operands_is_made_of_the_dtype_of_what_is_written() -> None:
    count = int(RNG.integers(2, 9))
    for dtype in ("int64", "float64", "bool", "complex64"):
        for call in (ANY.ones, ANY.zeros):
            out = ANY.empty(count, dtype=dtype)
            assert call(count, out=out) is out and out.dtype.name == dtype
            np.testing.assert_array_equal(out.numpy(), getattr(np, call.__name__)(count, dtype))
    fine = ANY.empty(count, dtype="float64")
    ANY.rand(count, out=fine)
    assert (fine.numpy() != fine.numpy().astype(np.float32)).any()  # drawn as float64, not cast
    assert ANY.arange(count, out=ANY.empty(0, dtype="float32")).tolist() == list(range(count))


def test_results_are_cast_as_operators_in_place_cast() -> None:
    x = ANY([1, 2, 3])
    assert x.add(1, out=ANY.empty(3, dtype="float64")).tolist() == [2.0, 3.0, 4.0]
    assert x.lt(2, out=ANY.empty(3)).tolist() == [1.0, 0.0, 0.0]
    assert x.mul(2j, out=ANY.empty(3, dtype="complex128")).tolist() == [2j, 4j, 6j]
    for result, out in ((x.div, ANY.empty(3, dtype="int32")), (x.add, ANY.empty(3, dtype="bool")),
                        (ANY([1j, 2j, 3j]).add, ANY.empty(3))):  # fmt: skip
        with pytest.raises((ValueError, RuntimeError), match=r"can't be cast to"):
            result(2, out=out)


def test_what_cannot_be_written_is_named_and_left_alone() -> None:
    x, out = ANY([1.0, 2.0, 3.0]), ANY([7.0, 8.0])
    with pytest.raises(ValueError, match=r"^Tensor\.add: out is of shape \(2,\), the result of \(3,\)"):
        x.add(1, out=out)
    with pytest.raises(TypeError, match=r"^Tensor\.sort: out is a tuple of 2 tensors"):
        x.sort(out=out)
    with pytest.raises(TypeError, match=r"^Tensor\.add: out is 2 tensors for one result"):
        x.add(1, out=(out, out))
    with pytest.raises(TypeError, match=r"^Tensor\.sum: out is a tensor, got a ndarray"):
        x.sum(out=np.zeros(()))
    with pytest.raises(TypeError, match=r"^Tensor\.equal: .* a bool, no tensor"):
        x.equal(x, out=out)
    linear: Any = nn.Linear(3, 2)
    calls: list[Any] = [lambda: x.add_(1, out=out), lambda: x.assign(1, out=out), lambda: linear(x, out=out)]
    for call in calls:
        with pytest.raises(TypeError, match=r"takes no 'out': "):
            call()
    assert out.tolist() == [7.0, 8.0] and x.tolist() == [1.0, 2.0, 3.0]
    values = ANY.zeros(3).contiguous().realize()
    for places in (ANY.zeros(2, dtype="int64"), ANY.zeros(1, dtype="int64").expand(3), ANY.zeros(3, dtype="bool")):
        with pytest.raises((ValueError, RuntimeError), match=r"^Tensor\.sort: "):
            x.sort(out=(values, places))  # of which the first would fit
        assert values.tolist() == [0.0, 0.0, 0.0]


def test_a_gradient_is_not_lost_in_silence() -> None:
    x = ANY([1.0, 2.0], requires_grad=True)
    weight: Any = nn.Linear(3, 2).weight  # which leaves open whether it wants one
    calls: list[Any] = [lambda: x.mul(2, out=ANY.empty(2)), lambda: ANY([1.0, 2.0]).mul(2, out=x)]
    calls += [lambda: weight.mul(2, out=ANY.empty(2, 3)), lambda: weight.sum(0, out=ANY.empty(0))]
    for call in calls:
        with pytest.raises(RuntimeError, match="no gradient flows through memory"):
            call()
    with ANY.no_grad():
        assert x.mul(2, out=ANY.empty(2)).tolist() == [2.0, 4.0]
        assert weight.mul(2, out=ANY.empty(0)).shape == (2, 3)
    computed = (x * 2)[:0]
    with ANY.no_grad(), pytest.raises(RuntimeError, match="takes no other shape"):
        x.mul(2, out=computed)
