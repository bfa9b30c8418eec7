"""Numbers that a dtype has not, wherever a number meets a tensor: what comes out is right, or an error says why."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytg as tg
from tinytg import Tensor, nn

HELD = Tensor([True, False], device="NUMPY")
FIRST = Tensor([0], device="NUMPY")


def _in_place(call: Callable[..., Any]) -> Callable[..., Any]:
    def copied(x: Any, *values: Any) -> Any:
        out = x.clone()
        call(out, *values)
        return out

    return copied


def _reversed(call: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, v: call(v, x)


def _written(index: Any) -> Callable[[Any, Any], Any]:
    return _in_place(lambda x, v: operator.setitem(x, index, v))


OPERATORS = "add sub mul floordiv mod and_ or_ xor lt le gt ge eq ne".split()
OF_TWO = """add sub multiply maximum minimum fmax fmin remainder fmod floor_divide bitwise_and bitwise_or bitwise_xor
    gcd less less_equal greater greater_equal not_equal""".split()
PLACES: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in OPERATORS},
    **{f"{name}, before": _reversed(getattr(operator, name)) for name in OPERATORS},
    **{f"tinytg.{name}": getattr(tg, name) for name in OF_TWO},
    **{f"tinytg.{name}, before": _reversed(getattr(tg, name)) for name in OF_TWO},
    **{f"numpy.{name}": getattr(np, name) for name in ("add", "maximum", "less", "equal")},
    **{f"numpy.{name}, before": _reversed(getattr(np, name)) for name in ("add", "maximum", "less")},
    **{name: _in_place(getattr(operator, name)) for name in "iadd isub imul ifloordiv imod iand ior ixor".split()},
    **{name: getattr(Tensor, name) for name in "isin searchsorted full_like new_tensor div atan2".split()},
    **{name: _in_place(getattr(Tensor, name)) for name in "fill_ copy_ assign add_ eq_".split()},
    "clip": lambda x, v: x.clip(v, v),
    "where": lambda x, v: HELD.where(v, x),
    "where not": lambda x, v: HELD.where(x, v),
    "where, of one element": lambda x, v: HELD.where(v, x[0]),
    "tinytg.where": lambda x, v: tg.where(HELD, v, x),
    "tinytg.where not": lambda x, v: tg.where(HELD, x, v),
    "masked_fill": lambda x, v: x.masked_fill(HELD, v),
    "masked_fill_": _in_place(lambda x, v: x.masked_fill_(HELD, v)),
    "pad": lambda x, v: x.pad((1, 0), value=v),
    "functional.pad": lambda x, v: nn.functional.pad(x, (0, 1), value=v),
    "at a number": _written(0),
    "at a slice": _written(slice(1, None)),
    "at places": _written([0]),
    "at a mask": _written(HELD),
    "everywhere": _written(...),
    "a list at a slice": lambda x, v: _written(slice(1, None))(x, [v]),
    "a list at places": lambda x, v: _written([0])(x, [v]),
    "fill_diagonal_": lambda x, v: x.reshape(1, 2).clone().fill_diagonal_(v),
    "full": lambda x, v: Tensor.full((2,), v, dtype=x.dtype),
    "full, of a tensor": lambda x, v: Tensor.full((2,), Tensor(v), dtype=x.dtype),
    "full_like, of a tensor": lambda x, v: x.full_like(Tensor(v)),
    "fill, of a tensor": lambda x, v: x.fill(Tensor(v)),
    "new_full, of a tensor": lambda x, v: x.new_full((2,), Tensor(v)),
    "numpy.put": _in_place(lambda x, v: np.put(x, [0], v)),
    "numpy.put, by name": _in_place(lambda x, v: np.put(a=x, ind=[1], v=[v])),
    "numpy.place": _in_place(lambda x, v: np.place(x, [True, False], [v])),
    "numpy.putmask": _in_place(lambda x, v: np.putmask(x, [True, False], v)),
    "numpy.copyto": _in_place(lambda x, v: np.copyto(x, v)),
    "numpy.copyto, of a list": _in_place(lambda x, v: np.copyto(x, [v, 1])),
    "numpy.fill_diagonal": lambda x, v: _in_place(lambda a: np.fill_diagonal(a, v))(x.reshape(1, 2)),
    "numpy.put_along_axis": _in_place(lambda x, v: np.put_along_axis(x, np.array([0]), v, 0)),
    "numpy.add.at": _in_place(lambda x, v: np.add.at(x, [0], v)),
    "numpy.maximum.at": _in_place(lambda x, v: np.maximum.at(x, [0, 1], [1, v])),
    "Tensor": lambda x, v: Tensor(v, dtype=x.dtype),
    "Tensor of a list": lambda x, v: Tensor([v, 1], dtype=x.dtype),
    "asarray": lambda x, v: tg.asarray([[v]], dtype=x.dtype),
    "index_fill": lambda x, v: x.index_fill(0, FIRST, v),
    "index_put": lambda x, v: x.index_put((FIRST,), v),
    "scatter": lambda x, v: x.scatter(0, FIRST, v),
    "scatter_add": lambda x, v: x.scatter_add(0, FIRST, v),
    "index_add": lambda x, v: x.index_add(0, FIRST, x[:1], alpha=v),
    "put": lambda x, v: x.put(FIRST, v),
    "masked_scatter": lambda x, v: x.masked_scatter(HELD, [v]),
    "select_scatter": lambda x, v: x.select_scatter(v, 0, 0),
    "add, alpha": lambda x, v: x.add(x, alpha=v),
    "add of one element, alpha": lambda x, v: x.add(x[0], alpha=v),
    "addcmul": lambda x, v: x.addcmul(x, x, value=v),
    "addr": lambda x, v: x.addr(x, x, alpha=v),
    "heaviside": lambda x, v: (x * 0).heaviside(v),
    "lcm": lambda x, v: x.lcm(v),
    "divmod": lambda x, v: divmod(x, v)[1],
    "copysign": lambda x, v: x.copysign(v),
    "bucketize": lambda x, v: x.bucketize([v]),
    "digitize": lambda x, v: tg.digitize(x, [v]),
    "max, initial": lambda x, v: tg.max(x, initial=v),
    "diff, prepend": lambda x, v: tg.diff(x, prepend=v),
    "ediff1d": lambda x, v: tg.ediff1d(x, to_end=v, to_begin=[v]),
    "insert": lambda x, v: tg.insert(x, 0, v),
    "insert a list": lambda x, v: tg.insert(x, 0, [v]),
    "append": lambda x, v: tg.append(x, [v]),
    "select": lambda x, v: tg.select([HELD], [x], v),
    "choose": lambda x, v: tg.choose(Tensor([0, 1], device="NUMPY"), [x, v]),
    "piecewise": lambda x, v: tg.piecewise(x, [x == 1], [v, 0]),
    "threshold": lambda x, v: nn.functional.threshold(x, 1, v),
    "arange": lambda x, v: tg.arange(v, v + 1, dtype=x.dtype),
    "arange of floats": lambda x, v: tg.arange(float(v), v + 1, dtype=x.dtype),
    "linspace": lambda x, v: tg.linspace(1, v, 2, dtype=x.dtype),
    "inner": lambda x, v: x.inner(v),
    "outer": lambda x, v: tg.outer(x, [v]),
}  # fmt: skip
WAYS: dict[str, Callable[[int], Any]] = {"Python's": int, "numpy's": np.int64, "an array of no axes": np.array}
BEYOND = {"int8": (-129, 300), "uint8": (-1, 256), "int16": (2**15,), "uint16": (70000,), "int32": (2**32 + 1,),
          "uint32": (-1, 2**40), "uint64": (-1,)}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_a_number_that_does_not_fit_is_refused_or_right(name: str) -> None:
    for kind, numbers in BEYOND.items():
        for number in numbers:
            for way, made in WAYS.items():
                try:
                    found = PLACES[name](Tensor([1, 2], dtype=kind, device="NUMPY"), made(number))
                except OverflowError:
                    continue
                wanted = PLACES[name](Tensor([1, 2], dtype="int64", device="NUMPY"), number).numpy()
                np.testing.assert_array_equal(found.numpy(), wanted, err_msg=f"{way} {number} beside {kind}")


BY_CASTING = ("numpy.copyto", "numpy.copyto, of a list", "numpy.putmask")
"""Where numpy's rules of casting refuse what is no number of Python."""


@pytest.mark.parametrize("name", [name for name in PLACES if name not in BY_CASTING])
def test_a_number_that_fits_is_taken(name: str) -> None:
    wanted = PLACES[name](Tensor([1, 2], dtype="int64", device="NUMPY"), 1).numpy()
    for kind, made in (("int8", int), ("uint8", np.int64), ("int16", np.uint16), ("uint64", np.array)):
        found = PLACES[name](Tensor([1, 2], dtype=kind, device="NUMPY"), made(1)).numpy()
        np.testing.assert_array_equal(found, wanted.astype(found.dtype), err_msg=kind)


def _found(call: Callable[[Any, Any], Any], x: Tensor, number: Any) -> Any:
    try:
        out = call(x, number)
    except (TypeError, ValueError, OverflowError) as error:
        return type(error)
    return out.dtype, str(out.tolist())  # as a string, in which NaN are equal


COMPARED = "lt le gt ge eq ne".split()
INTEGERS = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()


def _limits(kind: str) -> tuple[int, int]:
    return (0, 1) if kind == "bool" else (int(np.iinfo(kind).min), int(np.iinfo(kind).max))


def _drawn(rng: np.random.Generator, kind: str) -> tuple[list[int], list[Any]]:
    """Elements of a dtype, and numbers to compare them with: near its limits, near zero, near an element, far away."""
    low, high = _limits(kind)
    near = [low, high, *(low + int(rng.integers(0, 9)), high - int(rng.integers(0, 9)), int(rng.integers(-9, 9)))]
    elements = [v for v in near if low <= v <= high]
    elements += [low + int(rng.integers(0, 2**63)) * 2 % (high - low + 1) for _ in range(int(rng.integers(1, 8)))]
    others: list[Any] = [v + int(rng.integers(-2, 3)) for v in (*near, elements[-1])]
    others += [-(2**63), 2**63, 2**64 - 1, 2**70, -(10**400), 10**400, int(rng.integers(-(2**62), 2**62))]
    others += [v + 0.5 for v in range(-2, 3)] + [-0.0, np.inf, -np.inf, float(others[0]), 1e300, -1e300, 2.0**63]
    return elements, others


def _ways(number: Any) -> list[Any]:
    """A number of Python as those and the tensors that have its value."""
    if isinstance(number, float):
        return [number, np.float64(number), np.array(number)]
    kinds = [kind for kind in INTEGERS[1:] if _limits(kind)[0] <= number <= _limits(kind)[1]]
    return [number, *(made for kind in kinds for made in (
        np.dtype(kind).type(number), np.array(number, kind), Tensor(number, dtype=kind, device="NUMPY"),
        Tensor([number], dtype=kind, device="NUMPY")))]  # fmt: skip


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("seed", range(2))
def test_integers_are_compared_exactly(kind: str, seed: int) -> None:
    elements, others = _drawn(np.random.default_rng([seed, INTEGERS.index(kind)]), kind)
    x = Tensor(elements, dtype=kind, device="NUMPY")
    for number in others:
        wanted = {name: [getattr(operator, name)(v, number) for v in elements] for name in COMPARED}
        for other in _ways(number):
            what = f"{elements} of {kind} beside {number} as {type(other).__name__}"
            for name, truths in wanted.items():
                call, turned = getattr(operator, name), COMPARED[(2, 3, 0, 1, 4, 5)[COMPARED.index(name)]]
                assert call(x, other).tolist() == truths, f"{name}: {what}"
                assert getattr(operator, turned)(other, x).tolist() == truths, f"{turned} turned: {what}"
                assert getattr(x, name)(other).tolist() == truths, f"Tensor.{name}: {what}"
                if not isinstance(other, Tensor):
                    assert getattr(tg, turned)(other, x).tolist() == truths, f"tinytg.{turned}: {what}"
                assert call(x[0], other).tolist() in (truths[0], truths[:1]), f"{name} of one: {what}"


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_are_compared_exactly_with_symbolic_ones(kind: str) -> None:
    rng = np.random.default_rng(INTEGERS.index(kind))
    elements, others = _drawn(rng, kind)
    x = Tensor(elements, dtype=kind, device="NUMPY")
    for number in (v for v in others if isinstance(v, int) and 0 <= v < 2**62):
        symbol = tg.Variable("n", max(0, number - int(rng.integers(0, 999))), number + int(rng.integers(0, 999)))
        for name in COMPARED:
            truths = [getattr(operator, name)(v, number) for v in elements]
            turned = getattr(operator, COMPARED[(2, 3, 0, 1, 4, 5)[COMPARED.index(name)]])
            for found in (getattr(operator, name)(x, symbol.bind(number)), turned(symbol.bind(number), x)):
                assert found.tolist() == truths, f"{name}: {elements} of {kind} beside {number}"


SYMBOLIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "turned sub": lambda x, v: v - x, "minimum": Tensor.minimum, "clip": lambda x, v: x.clip(0, v),
    "where": lambda x, v: HELD.where(x, v), "full": lambda x, v: Tensor.full((2,), v, dtype=x.dtype, device="NUMPY"),
    "Tensor": lambda x, v: Tensor(v, dtype=x.dtype, device="NUMPY"), "full_like": lambda x, v: x.full_like(v),
}  # fmt: skip


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_integers_that_may_not_fit_are_refused(name: str) -> None:
    rng = np.random.default_rng(0)
    for kind in INTEGERS[1:7]:
        x, high = Tensor([1, 0], dtype=kind, device="NUMPY"), _limits(kind)[1]
        value = int(rng.integers(1, high))
        for most in (high, high + 1, high * 3):
            symbol = tg.Variable("n", 0, most).bind(value)
            if most == high:
                found, wanted = SYMBOLIC[name](x, symbol), SYMBOLIC[name](x, value)
                assert (found.dtype, found.tolist()) == (wanted.dtype, wanted.tolist())
            else:
                with pytest.raises(OverflowError, match=f"from 0 to {most}, and {kind} from"):
                    SYMBOLIC[name](x, symbol)
    assert Tensor(tg.Variable("n", 0, 2**40).bind(2**35), device="NUMPY").tolist() == 2**35
    assert (HELD + tg.Variable("n", 0, 2**40).bind(2**35)).tolist() == [2**35 + 1, 2**35]


@pytest.mark.parametrize("kind", INTEGERS[1:])
@pytest.mark.parametrize("seed", range(2))
def test_bounds_of_integers_are_exact_or_refused(kind: str, seed: int) -> None:
    elements, others = _drawn(np.random.default_rng([seed, INTEGERS.index(kind)]), kind)
    x = Tensor(elements, dtype=kind, device="NUMPY")
    (low, high), bounds = _limits(kind), [v for v in others if isinstance(v, int)]
    for number in bounds:
        for other in [number, *([np.int64(number), np.array(number)] if -(2**63) <= number < 2**63 else [])]:
            for names, chosen in (("maximum fmax clamp_min", max), ("minimum fmin clamp_max", min)):
                wanted = [chosen(v, number) for v in elements]
                for name in names.split():
                    if low <= min(wanted) and max(wanted) <= high:
                        found = getattr(x, name)(other)
                        assert (found.dtype, found.tolist()) == (x.dtype, wanted), f"{name}: {elements} {number}"
                    else:
                        with pytest.raises(OverflowError, match=f"{number} is no {kind}"):
                            getattr(x, name)(other)
        least, most = sorted([number, bounds[len(elements) % len(bounds)]])
        if least <= high and low <= most:
            assert x.clip(least, most).tolist() == [min(max(v, least), most) for v in elements], (least, most)


METHODS = "div atan2 hypot xlogy copysign logaddexp logaddexp2 ldexp float_power maximum minimum pow".split()
BESIDE_FLOATS = {name: getattr(Tensor, name) for name in METHODS} | {"truediv": operator.truediv} | {
    name: call for name, call in PLACES.items() if name.partition(",")[0].removeprefix("tinytg.") in OPERATORS + OF_TWO
} | {f"tinytg.{name}": getattr(tg, name) for name in METHODS}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE_FLOATS)
def test_numpys_float64_is_a_float_of_python(name: str) -> None:
    call = BESIDE_FLOATS[name]
    for kind in ("bool", "uint8", "int64", "float16", "float32"):
        x = Tensor([1, 0], dtype=kind, device="NUMPY")
        assert _found(call, x, np.float64(2.5)) == _found(call, x, 2.5), kind


OF_COMPLEX = {name: PLACES[name] for name in ("a list at a slice", "a list at places", "numpy.put", "full_like")} | {
    "Tensor of a list": lambda x, v: Tensor([2, v], dtype=x.dtype), "copy_": lambda x, v: x.copy_([v, 1]),
    "full_like, of a tensor": lambda x, v: x.full_like(Tensor(v)),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_complex_numbers_are_not_written_to_others(name: str) -> None:
    for kind in ("uint8", "int64", "bfloat16", "float32", "fp8e4m3"):
        with pytest.raises(TypeError, match=r"complex|1\.?j") as error:
            OF_COMPLEX[name](Tensor([1, 2], dtype=kind, device="NUMPY"), 1j)
        assert "truncate" not in str(error.value) and "iterable" not in str(error.value)


@pytest.mark.parametrize("kind", ["uint8", "bfloat16", "float32", "fp8e4m3", "float64"])
def test_arrays_of_complex_numbers_lose_their_imaginary_parts_with_a_warning(kind: str) -> None:
    with pytest.warns(np.exceptions.ComplexWarning):
        found = Tensor(np.array([1j, 2.5]), dtype=kind)
    assert found.tolist() == Tensor([0, 2.5]).cast(kind).tolist()
    assert Tensor(np.array([1j, 0]), dtype="bool").tolist() == [True, False]


@pytest.mark.parametrize("kind", INTEGERS[1:])
def test_no_integers_are_filled_with_nan(kind: str) -> None:
    x: Any = Tensor([1, 2], dtype=kind, device="NUMPY")
    for nan in (math.nan, Tensor(math.nan), Tensor(0.0) / 0):
        for call in (x.full_like, x.fill, lambda v: x.new_full((3,), v), lambda v: tg.full((2,), v, dtype=x.dtype)):
            with pytest.raises(ValueError, match=f"NaN is no {kind}"):
                call(nan)
    assert x.full_like(Tensor(2.0)).tolist() == [2, 2] and x.full_like(Tensor(1)).dtype is x.dtype


@pytest.mark.parametrize("factor", [0.5, np.float32(0.5), np.array(0.5)])
def test_bools_times_parts_are_no_bools(factor: Any) -> None:
    x = Tensor([True, False], device="NUMPY")
    for factors, name in (({"beta": factor, "alpha": 2}, "beta"), ({"beta": 2, "alpha": factor}, "alpha")):
        with pytest.raises(ValueError, match=rf"^Tensor\.addr: {name} is the float 0\.5, .* bool and bool"):
            x.addr(x, x, **factors)  # as in PyTorch
    assert x.addr(x, x.float(), beta=factor, alpha=2).tolist() == [[2.5, 0.0], [0.5, 0.0]]


def test_numbers_of_python_beside_those_of_numpy_in_a_list() -> None:
    for data, wanted in (
        ([np.int8(1), 2.5], [1, 2.5]), ([np.int8(1), 300], [1, 300]), ([np.bool_(True), 3], [1, 3]),
        ([Tensor(True), 2**31], [1, 2**31]), ([Tensor(False), -(2**40), 1.5], [0, -(2**40), 1.5]),
        ([np.uint8(3), -1], [3, -1]), ([np.array([1, 2]), [1.5, 2]], [[1, 2], [1.5, 2]]),
        ([Tensor([1, 2]), [0.5, 1.5]], [[1, 2], [0.5, 1.5]]), ([np.int64(1), 1j], [1, 1j]),
    ):  # fmt: skip
        assert Tensor(data).tolist() == wanted
    assert Tensor([np.zeros(0, bool)]).dtype.name == "bool"


def test_zeros_around_keep_their_sign() -> None:
    assert np.signbit(Tensor([1.0, 2.0]).pad((1, 1), value=-0.0).numpy()).tolist() == [True, False, False, True]


@pytest.mark.parametrize("name", "div atan2 hypot xlogy copysign logaddexp logaddexp2 ldexp isclose".split())
def test_integers_that_meet_in_floats_are_floats_each_by_itself(name: str) -> None:
    x = Tensor([3, 200], dtype="uint8", device="NUMPY")
    for other in (-7, 300, 2**40):
        wanted = getattr(x.cast("float32"), name)(float(other)).numpy()
        for made in (int, np.int64, lambda v: Tensor(v, dtype="int64", device="NUMPY")):
            np.testing.assert_allclose(getattr(x, name)(made(other)).numpy(), wanted, rtol=1e-6)


def test_ldexp_by_infinity() -> None:
    x, places = (Tensor(v, device="NUMPY") for v in ([3.0, -2.0, 0.0, 1.5], [-np.inf, np.inf, np.inf, np.nan]))
    np.testing.assert_array_equal(x.ldexp(places).numpy(), [0.0, -np.inf, np.nan, np.nan])
