"""Types of results: every pair of dtypes and every kind of Python number, by PyTorch's documented rules.

The rules: the result has the higher of the categories bool, integer, float, complex. Within a category the wider dtype
wins; signed and unsigned integers meet in the next wider signed one, float16 and bfloat16 in float32; a complex result
is as wide as its widest float. Tensors with axes decide; one of no axes decides where its category is higher than
theirs, and a Python number where its category is higher than those of all tensors: then it has the default dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor

INTS = ["uint8", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
NAMES = ["bool", *INTS, *FLOATS, *COMPLEX]
WIDE = ["uint16", "uint32", "uint64"]  # of which PyTorch says less
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b, "pow": lambda a, b: a**b,
    "where": lambda a, b: _where(a, b),
}  # fmt: skip


def _where(a: Any, b: Any) -> Any:
    return (a == a).where(a, b) if isinstance(a, Tensor) else (b == b).where(a, b)


def category(name: str) -> int:
    return 0 if name == "bool" else 1 if "int" in name else 2 if "float" in name else 3


def promoted(a: str, b: str) -> str:
    """What two dtypes promote to."""
    if a == b:
        return a
    low, high = sorted((a, b), key=lambda name: (category(name), NAMES.index(name)))
    if category(low) < category(high) and category(high) < 3:
        return high
    if category(high) == 3:
        return "complex128" if "float64" in (a, b) or "complex128" in (a, b) else "complex64"
    if "uint8" in (a, b):
        return "int16" if high == "int8" else high
    return "float32" if {a, b} == {"float16", "bfloat16"} else high


def of(name: str, operation: str) -> str:
    """The dtype of a quotient is a float."""
    return "float32" if operation == "div" and category(name) < 2 else name


def beside(strong: str, weak: str) -> str:
    """What a dtype becomes beside one that decides only where its category is higher."""
    if category(weak) <= category(strong):
        return strong
    if category(weak) == 3 and category(strong) == 2:  # as wide as the float
        return "complex128" if strong == "float64" else "complex64"
    return weak


def meet(a: str, axes_a: int, b: str, axes_b: int) -> str:
    """What tensors of these dtypes and numbers of axes promote to."""
    if bool(axes_a) == bool(axes_b):
        return promoted(a, b)
    return beside(a, b) if axes_a else beside(b, a)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("shapes", [((2,), (2,)), ((2,), ()), ((), (2,)), ((), ()), ((3, 1), (2,)), ((1,), ())])
def test_every_pair_of_dtypes(operation: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    first, second = shapes
    for a, b in product(NAMES, NAMES):
        if operation == "pow" and "bool" in (a, b):
            continue
        x, y = Tensor.ones(first, dtype=a), Tensor.ones(second, dtype=b)
        want = meet(a, len(first), b, len(second))
        assert OPERATIONS[operation](x, y).dtype.name == of(want, operation), (a, b)
        assert Tensor.result_type(x, y).name == want


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("number", [True, 2, 2.5, 1j])
def test_numbers_of_python_adapt(operation: str, number: Any) -> None:
    kind = {bool: 0, int: 1, float: 2, complex: 3}[type(number)]
    for name in NAMES:
        if operation == "pow" and (name == "bool" or number is True):
            continue
        want = name
        if kind > category(name):
            defaults = {1: "int32", 2: "float32", 3: "complex128" if name == "float64" else "complex64"}
            want = defaults[kind]
        x = Tensor.ones(2, dtype=name)
        for got in (OPERATIONS[operation](x, number), OPERATIONS[operation](number, x)):
            assert got.dtype.name == of(want, operation), (name, number)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_as_pytorch_has_it() -> None:
    torch: Any = pytest.importorskip("torch")
    shapes = ((2,), ())
    for (name, function), a, b in product(OPERATIONS.items(), [*NAMES, *WIDE], [*NAMES, *WIDE]):
        if name in ("pow", "where"):
            continue
        for first, second in product(shapes, shapes):
            try:
                x, y = torch.ones(first, dtype=getattr(torch, a)), torch.ones(second, dtype=getattr(torch, b))
                want = function(x, y).dtype
            except RuntimeError:
                continue
            if want == torch.complex32:
                continue
            got = function(Tensor.ones(first, dtype=a), Tensor.ones(second, dtype=b)).dtype.name
            assert got == str(want).removeprefix("torch."), (name, a, b, first, second)


TERNARY: dict[str, Callable[..., Any]] = {
    "addcmul": lambda a, b, c: a.addcmul(b, c), "addcdiv": lambda a, b, c: a.addcdiv(b, c),
    "lerp": lambda a, b, c: a.lerp(b, c), "clip": lambda a, b, c: a.clip(b, c),
}  # fmt: skip


@pytest.mark.drawn(1)
@pytest.mark.parametrize("operation", TERNARY)
def test_three_operands_meet_at_once(operation: str) -> None:
    """A tensor of no axes that comes before one with axes is not taken for one with axes."""
    names = ["bool", "uint8", "int64", "float16", "float32", "float64", "complex64", "complex128"]
    for kinds in product(names, repeat=3):
        complex_too = any(category(kind) == 3 for kind in kinds)
        if "bool" in kinds or (operation == "clip" and complex_too):
            continue
        for axes in product((0, 1), repeat=3):
            given = [Tensor.ones(*(2,) * n, dtype=kind) for kind, n in zip(kinds, axes, strict=True)]
            tiers = [[kind for kind, n in zip(kinds, axes, strict=True) if n == tier] for tier in (1, 0)]
            met = [reduce(promoted, sorted(tier, key=NAMES.index)) for tier in tiers if tier]
            want = reduce(beside, met)
            if operation == "addcdiv" and category(want) < 2:
                want = "float32"
            if operation == "lerp" and want.startswith("uint"):
                want = "float32"
            assert TERNARY[operation](*given).dtype.name == want, (kinds, axes)


def test_values_are_those_of_the_dtype_in_which_operands_meet() -> None:
    third = Tensor(1 / 3, dtype="float64")
    assert (Tensor([1.0]) * third).tolist() == [float(np.float32(1 / 3))]
    assert (Tensor([1.0], dtype="float64") * third).tolist() == [1 / 3]
    assert (Tensor([7], dtype="uint8") * Tensor(2, dtype="int64")).tolist() == [14]
    assert (Tensor([float(np.float32(1 / 3))]) == third).tolist() == [True]
    total = Tensor([0.5, 0.25], dtype="float16").sum(dtype="float32")
    assert (total * Tensor([1.0], dtype="float16")).dtype.name == "float16"
    assert (Tensor([True]) * 2**40).tolist() == [2**40]


@pytest.mark.parametrize(("a", "b"), list(product(NAMES, NAMES)))
def test_in_place_the_category_does_not_rise(a: str, b: str) -> None:
    for shape in ((2,), ()):
        x, y = Tensor.ones(2, dtype=a), Tensor.ones(*shape, dtype=b)
        if category(b) <= category(a):
            x += y
            assert x.dtype.name == a
        else:
            with pytest.raises(RuntimeError, match=f"result type .* can't be cast to {a}"):
                x += y


def test_a_complex_exponent_keeps_its_imaginary_part() -> None:
    x, power = np.array([2, 3]), np.array([1j, 1 + 1j])
    for got in (Tensor(x).float_power(Tensor(power)), Tensor.float_power(Tensor(x), power)):
        assert got.dtype.name == "complex128"
        np.testing.assert_allclose(got.numpy(), x**power, rtol=1e-12)


@pytest.mark.parametrize("name", ["inner", "block_diag"])
def test_what_takes_numbers_for_tensors(name: str) -> None:
    for a, b in product(INTS + FLOATS, INTS + FLOATS):
        for first, second in product(((2,), ()), repeat=2):
            x, y = Tensor.ones(first, dtype=a), Tensor.ones(second, dtype=b)
            want = meet(a, len(first), b, len(second))
            assert getattr(x, name)(y).dtype.name == want, (a, b, first, second)
