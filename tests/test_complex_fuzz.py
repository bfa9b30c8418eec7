"""Programs of complex numbers with fixed seeds, and that every method is drawn. ``hatch run fuzz`` draws new ones."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest

from tests.fuzz import complexes
from tests.fuzz.methods.complex_numbers import NOT_DRAWN, TABLE, ComplexPool
from tests.fuzz.programs import Step
from tg_frontend.complex import elementary, parts, table
from tg_lazy import Context
from tinytg import Tensor


def _complex_within(value: Any, pool: ComplexPool) -> bool:
    """Whether an argument is a complex number, dtype or operand."""
    if isinstance(value, (list, tuple)):
        return any(_complex_within(one, pool) for one in value)
    number = getattr(value, "number", None)
    array = value if number is None else pool.values[number].array
    return str(value).startswith("complex") or np.asarray(array).dtype.kind == "c"


def _drawn_with_complex_operands(name: str) -> bool:
    for seed in range(600):
        pool = ComplexPool(random.Random(seed))
        for _ in range(2):
            pool.floats(*(pool.pick.randint(1, 4) for _ in range(pool.pick.randint(0, 4))))
        size = pool.values[0].array.shape
        pool.make(np.array([pool.pick.random() < 0.5 for _ in range(int(np.prod(size)))], bool).reshape(size))
        call = TABLE[name].draw(pool, pool.pick.randrange(3))
        if call is not None and _complex_within((call.args, tuple(call.kwargs.values())), pool):
            return True
    return name in ("complex", "polar", "view_as_complex")  # which make complex numbers of floats


def test_every_method_with_a_rule_is_drawn_or_it_is_said_why_not() -> None:
    assert set(table.RULES) - set(TABLE) - set(NOT_DRAWN) == set()
    assert set(NOT_DRAWN) - set(table.RULES) == set() and set(NOT_DRAWN) & set(TABLE) == set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [name for name in TABLE if not _drawn_with_complex_operands(name)] == []


@pytest.mark.drawn(8)
@pytest.mark.parametrize("device", ["NUMPY", "CPU"])
@pytest.mark.parametrize("seed", range(12))
def test_programs(device: str, seed: int) -> None:
    with Context(DEV=device):
        finding = complexes.attempt(seed)
    assert finding is None, f"\n{finding}"


def _found(seeds: int = 400) -> str:
    with Context(DEV="NUMPY"):
        return next((f.problem for seed in range(seeds) if (f := complexes.attempt(seed)) is not None), "")


def test_a_conjugate_that_is_none_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(table.RULES, "vdot", table.RULES["dot"])
    kind = type(Tensor([1j]))
    monkeypatch.setattr(kind, "vdot", lambda z, other: z.dot(other))
    with Context(DEV="NUMPY"):
        assert any(
            (f := complexes.attempt(seed)) is not None and ".vdot(" in f.program
            for seed in range(4000)
            if "vdot" in [s.call.name for s in complexes.program_of(seed)[0].steps if isinstance(s, Step)]
        )


def test_gradients_that_are_conjugated_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if gradients of complex tensors were those of holomorphic functions."""
    kind = type(Tensor([1j]))
    monkeypatch.setattr(kind, "grad", property(lambda z: None if z._parts[0].grad is None else parts.composed(
        z._parts[0].grad, -z._parts[1].grad)))  # fmt: skip
    assert "gradient: " in _found()


def test_slopes_that_are_lost_in_second_derivatives_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = elementary.modulus
    monkeypatch.setattr(elementary, "modulus", lambda re, im: kept(re, im.detach()) + 0 * im)
    assert _found()
