"""Symbolic integers as UOps: what a kernel computes of them is what Python does."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest

from tg_codegen.emit.index import IndexBuilder
from tg_codegen.ir.uop import UOp, UOps, const
from tg_codegen.linear.interpret import interpret
from tg_dtype import dtypes
from tg_shape import Variable, sint, sym_eval

N, M = Variable("n", 1, 7), Variable("m", 0, 5)


def computed(expr: sint, values: dict[Variable, int]) -> int:
    value = IndexBuilder({var: const(number, dtypes.int32) for var, number in values.items()}).value(expr, dtypes.int32)
    out = bytearray(4)
    data = UOp(UOps.PARAM, dtypes.int32.ptr(1), (), 0)
    store = UOp(UOps.STORE, dtypes.void, (data, const(0, dtypes.int32), value))
    interpret(UOp(UOps.SINK, dtypes.void, (store,)), [out])
    return int(struct.unpack("<i", out)[0])


def drawn(draw: random.Random, depth: int) -> sint:
    """An integer of n and m, negative as often as not; divided by what is positive."""
    if depth == 0:
        leaves: list[sint] = [N, M, draw.randint(-6, 6)]
        return draw.choice(leaves)
    a, b = drawn(draw, depth - 1), drawn(draw, depth - 1)
    divisors: list[sint] = [N, N + 1, draw.randint(1, 5)]
    divisor = draw.choice(divisors)
    kinds: list[Callable[[], sint]] = [
        lambda: a + b, lambda: a - b, lambda: a * draw.randint(-3, 3), lambda: a // divisor, lambda: a % divisor,
        lambda: (a - b) % divisor, lambda: (a - b) // divisor,
    ]  # fmt: skip
    return draw.choice(kinds)()


@pytest.mark.parametrize("seed", range(4))
def test_what_is_computed_is_what_python_computes(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(60):
        expr = drawn(draw, 3)
        values = {N: draw.randint(1, 7), M: draw.randint(0, 5)}
        want = expr if isinstance(expr, int) else sym_eval(expr, dict(values))
        assert computed(expr, values) == want, f"{expr} at {values}"


@pytest.mark.parametrize("divisor", [1, 2, 3, 7])
def test_negative_numbers_are_divided_toward_the_smaller(divisor: int) -> None:
    for low in range(-15, 4):
        expr = M + low - 2
        for m in range(6):
            values = {M: m, N: divisor}
            got = computed(expr // N, values), computed(expr % N, values)
            assert got == divmod(m + low - 2, divisor)
