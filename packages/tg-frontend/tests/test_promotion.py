"""Types of results: every pair of dtypes and every kind of Python number, by PyTorch's documented rules.

The rules: the result has the higher of the categories bool, integer, float, complex. Within a category the wider dtype
wins; signed and unsigned integers meet in the next wider signed one, float16 and bfloat16 in float32; a complex result
is as wide as its widest float. A Python number has only a category, with the default dtype where the tensor's category
is lower.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

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


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_pair_of_dtypes(operation: str) -> None:
    for shape, a, b in product(((2,), ()), NAMES, NAMES):
        if operation == "pow" and "bool" in (a, b):
            continue
        x, y = Tensor.ones(*shape, dtype=a), Tensor.ones(*shape, dtype=b)
        assert OPERATIONS[operation](x, y).dtype.name == of(promoted(a, b), operation), (a, b)


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


def test_as_pytorch_has_it() -> None:
    torch: Any = pytest.importorskip("torch")
    for (name, function), a, b in product(OPERATIONS.items(), [*NAMES, *WIDE], [*NAMES, *WIDE]):
        if name in ("pow", "where"):
            continue
        try:
            want = function(torch.ones(2, dtype=getattr(torch, a)), torch.ones(2, dtype=getattr(torch, b))).dtype
        except RuntimeError:
            continue
        got = function(Tensor.ones(2, dtype=a), Tensor.ones(2, dtype=b)).dtype.name
        assert got == str(want).removeprefix("torch."), (name, a, b)
