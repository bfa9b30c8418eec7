"""Bounds hold every value that the interpreter computes, and are exact where it is easy."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_codegen.ir.bounds import Bounds
from tg_codegen.ir.scalar import evaluate
from tg_codegen.ir.uop import UOp, UOps, const, vectorize
from tg_dtype import DType, dtypes
from tg_lazy import Ops
from tg_shape import Variable

I32 = dtypes.int32


def counter(name: str, low: int, high: int, dtype: DType = I32) -> UOp:
    return UOp(UOps.RANGE, dtype, (const(low, dtype), const(high + 1, dtype)), name)


OPS = [Ops.ADD, Ops.SUB, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR]
SIZES = st.tuples(st.integers(-9, 9), st.integers(0, 6)).map(lambda t: (t[0], t[0] + t[1]))


@given(a=SIZES, b=SIZES, op=st.sampled_from(OPS), again=st.sampled_from(OPS), dtype=st.sampled_from([I32, dtypes.int8]))
@settings(deadline=None, max_examples=300)
def test_every_value_lies_within(a: tuple[int, int], b: tuple[int, int], op: Ops, again: Ops, dtype: DType) -> None:
    x, y = counter("x", *a, dtype), counter("y", *b, dtype)
    inner = x.alu(op, y)
    outer = inner.alu(again, y)
    bounds = Bounds()
    for u, v in product(range(a[0], a[1] + 1), range(b[0], b[1] + 1)):
        first = evaluate(inner, u, v)
        second = evaluate(outer, first, v)
        for node, value in ((inner, first), (outer, second)):
            low, high = bounds(node)
            assert low <= value <= high, (node.op, u, v)


def test_exact_cases() -> None:
    b = Bounds()
    i = counter("i", 0, 9)
    assert b(i) == (0, 9)
    assert b(i.alu(Ops.MUL, const(-3, I32))) == (-27, 0)
    assert b(i.alu(Ops.MOD, const(4, I32))) == (0, 3)
    assert b(i.alu(Ops.MOD, const(40, I32))) == (0, 9)
    assert b(i.alu(Ops.IDIV, const(4, I32))) == (0, 2)
    assert b(i.alu(Ops.AND, const(3, I32))) == (0, 3)
    assert b(i.alu(Ops.NEG)) == (-9, 0)
    assert b(UOp(UOps.VAR, I32, (), Variable("n", 2, 5))) == (2, 5)
    assert b(UOp(UOps.SPECIAL, I32, (), ("gidx0", Variable("n", 2, 5) * 2))) == (0, 9)
    assert b(UOp(UOps.RANGE, I32, (const(0, I32), UOp(UOps.VAR, I32, (), Variable("n", 2, 5))), "j")) == (0, 4)
    assert b(vectorize(i, const(20, I32))) == (0, 20)
    assert b(i.alu(Ops.CMPLT, i).alu(Ops.WHERE, i, const(12, I32))) == (0, 12)


def test_what_does_not_fit_the_dtype_is_anything() -> None:
    i = counter("i", 0, 100, dtypes.int8)
    assert Bounds()(i.alu(Ops.ADD, i)) == (-128, 127)
    assert Bounds()(counter("i", 0, 100).cast(dtypes.uint8)) == (0, 100)
    assert Bounds()(counter("i", -1, 100).cast(dtypes.uint8)) == (0, 255)
    negative = counter("i", 0, 9).alu(Ops.SUB, const(1, I32))
    assert Bounds()(negative.cast(dtypes.uint64)) == (0, 2**64 - 1)


def test_floats_have_none() -> None:
    with pytest.raises(TypeError, match="is not an integer"):
        Bounds()(const(1.0, dtypes.float32))


def test_a_long_chain() -> None:
    node = counter("i", 0, 1)
    for _ in range(50_000):
        node = node.alu(Ops.AND, const(1, I32))
    assert Bounds()(node) == (0, 1)
