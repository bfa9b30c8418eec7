from __future__ import annotations

import math

import pytest

from tg_dtype import dtypes
from tg_lazy import (
    ALU,
    COMMUTATIVE,
    REDUCIBLE,
    SPEC,
    TRANSCENDENTAL,
    DTypeRule,
    Ops,
    Trait,
    group,
    identity,
    result_dtype,
)


def test_every_op_has_its_row_and_its_meaning() -> None:
    assert set(SPEC) == set(Ops) and all(row.meaning for row in SPEC.values())


def test_groups_are_computed() -> None:
    assert {Ops.ADD, Ops.MUL, Ops.MAX} == REDUCIBLE and {Ops.EXP2, Ops.LOG2, Ops.SIN} < TRANSCENDENTAL
    assert Ops.SQRT not in TRANSCENDENTAL and Ops.POW in TRANSCENDENTAL
    assert Ops.WHERE in ALU and Ops.REDUCE not in ALU and Ops.SUB not in COMMUTATIVE
    assert group(Trait.LEAF) == {Ops.CONST, Ops.IOTA, Ops.SYM, Ops.BUFFER, Ops.EMPTY}


def test_scalar_functions_follow_the_dtype_rules() -> None:
    for op, row in SPEC.items():
        if row.python is None:
            continue
        floats = row.rule is not DTypeRule.SAME_INT and row.rule is not DTypeRule.SHIFT
        value = row.python(*([2.0] if floats else [2]) * row.arity)
        assert isinstance(value, (bool, int, float)), op


@pytest.mark.parametrize(
    ("op", "args", "value"),
    [
        (Ops.IDIV, (-7, 2), -3), (Ops.MOD, (-7, 2), -1), (Ops.IDIV, (1, 0), 0), (Ops.MOD, (1, 0), 0),
        (Ops.RECIP, (-0.0,), -math.inf), (Ops.SQRT, (-0.0,), -0.0), (Ops.EXP2, (5000.0,), math.inf),
        (Ops.LOG2, (0.0,), -math.inf), (Ops.TRUNC, (-2.5,), -2.0), (Ops.FDIV, (-1.0, 0.0), -math.inf),
        (Ops.MAX, (1, 2), 2), (Ops.ADD, (True, True), True), (Ops.MUL, (True, False), False), (Ops.NOT, (True,), False),
        (Ops.NOT, (0,), -1), (Ops.WHERE, (True, 1, 2), 1), (Ops.MOD, (-6.0, 3.0), -0.0),
        (Ops.MOD, (5.0, math.inf), 5.0),
        (Ops.MOD, (1e10, 3.0), 1.0), (Ops.POW, (1.0, math.nan), 1.0), (Ops.POW, (math.nan, 0.0), 1.0),
        (Ops.POW, (-0.0, -3.0), -math.inf), (Ops.POW, (-0.0, 3.0), -0.0), (Ops.POW, (-0.0, -2.0), math.inf),
        (Ops.POW, (-10.0, 309.0), -math.inf), (Ops.POW, (-10.0, 310.0), math.inf),
        (Ops.POW, (-math.inf, 0.5), math.inf),
        (Ops.SINH, (-1000.0,), -math.inf), (Ops.COSH, (-1000.0,), math.inf), (Ops.ATANH, (-1.0,), -math.inf),
        (Ops.LOG1P, (-1.0,), -math.inf), (Ops.EXP, (1000.0,), math.inf), (Ops.EXPM1, (1000.0,), math.inf),
    ],
)  # fmt: skip
def test_scalar_semantics(op: Ops, args: tuple[float, ...], value: float) -> None:
    python = SPEC[op].python
    assert python is not None
    result = python(*args)
    assert result == value and math.copysign(1, result) == math.copysign(1, value)


@pytest.mark.parametrize(
    ("op", "args"), [(Ops.SQRT, (-1.0,)), (Ops.LOG2, (-1.0,)), (Ops.SIN, (math.inf,)), (Ops.FDIV, (0.0, 0.0)),
                     (Ops.TAN, (math.inf,)), (Ops.ACOSH, (0.5,)), (Ops.ASIN, (1.5,)), (Ops.ATANH, (2.0,)),
                     (Ops.LOG1P, (-2.0,)), (Ops.POW, (-8.0, 1 / 3)), (Ops.MOD, (5.0, 0.0)), (Ops.MOD, (math.inf, 1.0)),
                     (Ops.MAX, (math.nan, 1.0)), (Ops.MAX, (1.0, math.nan))]
)  # fmt: skip
def test_nan(op: Ops, args: tuple[float, ...]) -> None:
    python = SPEC[op].python
    assert python is not None and math.isnan(python(*args))


def test_identities() -> None:
    assert identity(Ops.ADD, dtypes.int8) == 0 and identity(Ops.MUL, dtypes.float32) == 1.0
    assert identity(Ops.MAX, dtypes.float32) == -math.inf and identity(Ops.MAX, dtypes.uint8) == 0
    with pytest.raises(ValueError, match="SUB cannot reduce"):
        identity(Ops.SUB, dtypes.int32)


def test_dtypes_of_results() -> None:
    f, i, b = dtypes.float32, dtypes.int32, dtypes.bool
    assert result_dtype(Ops.ADD, f, f) is f and result_dtype(Ops.CMPLT, i, i) is b
    assert result_dtype(Ops.WHERE, b, i, i) is i and result_dtype(Ops.CMPEQ, f.vec(4), f.vec(4)) is b.vec(4)
    wrong = [(Ops.ADD, (f, i)), (Ops.SQRT, (i,)), (Ops.AND, (f, f)), (Ops.SHL, (b, b)), (Ops.WHERE, (i, i, i))]
    for op, operands in wrong:
        with pytest.raises(TypeError, match=op.name):
            result_dtype(op, *operands)
    for op, operands in [(Ops.ADD, (f,)), (Ops.CAST, (f,))]:
        with pytest.raises(ValueError, match=op.name):
            result_dtype(op, *operands)
