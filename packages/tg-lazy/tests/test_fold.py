"""Every rule against the values of both sides."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from tg_dtype import ConstType, DType, bitcast_scalar, cast_scalar, dtypes, truncate
from tg_lazy import SPEC, LazyOp, Ops, ast, trackers
from tg_lazy.ast import fold
from tg_shape import ShapeTracker, Variable

FLOATS = (0.0, -0.0, 1.0, -1.0, 2.5, 1e30, math.inf, -math.inf, math.nan)
INTS = (0, 1, -1, 2, 7, 127, -128)
VALUES: dict[DType, tuple[ConstType, ...]] = {
    dtypes.float32: FLOATS, dtypes.float16: FLOATS, dtypes.int8: INTS, dtypes.uint8: (0, 1, 2, 127, 255),
    dtypes.int32: (*INTS, 2**31 - 1, -(2**31)), dtypes.bool: (False, True),
}  # fmt: skip


def unknown(slot: int, dtype: DType) -> LazyOp:
    return ast.load(slot, dtype, ShapeTracker.from_shape((1,)))


def evaluate(node: LazyOp, env: dict[int, ConstType]) -> ConstType:
    """The value of a one-element AST where slot k holds env[k]."""
    values: dict[LazyOp, ConstType] = {}
    for n in node.toposort():
        src = [values[s] for s in n.src]
        if n.op is Ops.CONST:
            values[n] = n.arg
        elif n.op is Ops.LOAD:
            values[n] = env[n.arg[0]]
        elif n.op is Ops.CAST:
            values[n] = cast_scalar(src[0], n.src[0].dtype, n.dtype)
        elif n.op is Ops.BITCAST:
            values[n] = bitcast_scalar(src[0], n.src[0].dtype, n.dtype)
        else:
            python = SPEC[n.op].python
            assert python is not None
            values[n] = truncate(python(*src), n.dtype)
    return values[node]


def equal(a: ConstType, b: ConstType, exactly: bool) -> bool:
    if a != a or b != b:
        return a != a and b != b
    return a == b and (not exactly or math.copysign(1, a) == math.copysign(1, b))


def operands(dtype: DType) -> list[LazyOp]:
    x, y = unknown(0, dtype), unknown(1, dtype)
    out = [x, y, *(ast.const(v, dtype, (1,)) for v in VALUES[dtype])]
    if not dtypes.is_bool(dtype):
        out.append(ast.alu(Ops.NEG, x))
    if not dtypes.is_float(dtype):
        out.append(ast.alu(Ops.NOT, x))
    return out


def nodes(op: Ops) -> list[LazyOp]:
    """Elementwise nodes of ``op`` over unknowns and constants, for every dtype that fits."""
    out = []
    for dtype in VALUES:
        some = operands(dtype)
        if op in (Ops.CAST, Ops.BITCAST):
            others = [d for d in VALUES if op is Ops.CAST or d.itemsize == dtype.itemsize]
            inner = [*some, *(LazyOp(Ops.CAST, dtype, (1,), (unknown(0, d),)) for d in VALUES if d is not dtype)]
            out += [LazyOp(op, d, (1,), (x,)) for d in others for x in inner]
            continue
        if op is Ops.WHERE:
            conds = operands(dtypes.bool)
            conds = [unknown(2, dtypes.bool), ast.alu(Ops.NOT, unknown(2, dtypes.bool)), *conds[2:4]]
            choices: Any = itertools.product(conds, some[:4], some[:4])
        else:
            choices = itertools.product(some, repeat=SPEC[op].arity)
        for src in choices:
            try:
                out.append(ast.alu(op, *src))
            except TypeError:
                break
    return out


def shifts_too_far(node: LazyOp, env: dict[int, ConstType]) -> bool:
    return any(
        n.op in (Ops.SHL, Ops.SHR) and not 0 <= evaluate(n.src[1], env) < n.dtype.bits for n in node.toposort()
    )


@pytest.mark.parametrize("rule", fold.RULES, ids=lambda rule: rule.name)
def test_a_rule_holds(rule: fold.Rule) -> None:
    matched = 0
    exactly = "-0.0 included" in rule.domain
    for op in rule.ops:
        for node in nodes(op):
            right = rule.apply(node)
            if right is None:
                continue
            matched += 1
            assert right is not node and right.dtype is node.dtype and right.shape == node.shape
            assert len(right.toposort()) <= len(node.toposort())
            slots = sorted({n.arg[0]: n.dtype for n in node.toposort() if n.op is Ops.LOAD}.items())
            for values in itertools.product(*(VALUES[d] for _, d in slots)):
                env = {slot: truncate(v, d) for (slot, d), v in zip(slots, values, strict=True)}
                if shifts_too_far(node, env):
                    continue
                a, b = evaluate(node, env), evaluate(right, env)
                assert equal(a, b, exactly), f"{node.render()}\n{right.render()}\n{env}: {a} and {b}"
    assert matched, "no example matches the rule"


def test_one_zero_is_enough() -> None:
    x, zero = unknown(0, dtypes.int32), ast.const(0, dtypes.int32, (1,))
    for op in (Ops.MUL, Ops.AND):
        for both in ((x, zero), (zero, x)):
            found = fold.alu(op, *both)
            assert found.op is Ops.CONST and found.arg == 0
    y = unknown(0, dtypes.float32)
    assert fold.alu(Ops.MUL, y, ast.const(0.0, dtypes.float32, (1,))).op is Ops.MUL, "it may be a NaN"


def test_every_op_keeps_the_zero_that_it_is_said_to_keep() -> None:
    for op, row in SPEC.items():
        if row.python is None or not row.arity:
            continue
        for dtype in VALUES:
            zeros = [ast.const(0, dtype, (1,))] * row.arity
            if op is Ops.WHERE:
                zeros[0] = ast.const(False, dtypes.bool, (1,))
            try:
                node = ast.alu(op, *zeros)
            except TypeError:
                continue
            if fold.keeps_zero(op, dtype):
                assert equal(evaluate(node, {}), 0, exactly=True), (op, dtype)
    assert not fold.keeps_zero(Ops.EXP2, dtypes.float32) and not fold.keeps_zero(Ops.IDIV, dtypes.int32)


def test_padding_of_a_splat() -> None:
    st = ShapeTracker.from_shape((2,)).pad(((1, 0),))
    masked = fold.splat(ast.const(3, dtypes.int32), st)
    assert masked.op is Ops.VIEW and masked.src[0].shape == ()
    hidden = ShapeTracker.from_shape((2,)).pad(((3, 0),)).shrink(((0, 3),))
    assert trackers.hidden(hidden)
    zero = ast.const(0, dtypes.int32, (3,))
    assert fold.splat(ast.const(3, dtypes.int32), hidden) is zero
    assert fold.view(unknown(0, dtypes.int32), hidden) is zero and fold.load(0, dtypes.int32, hidden) is zero
    assert fold.splat(ast.const(3, dtypes.int32), st.expand((3,))).shape == (3,)


def test_views_fold_into_one() -> None:
    x = ast.reduce(ast.load(0, dtypes.float32, ShapeTracker.from_shape((4, 3))), Ops.ADD, (1,))
    st = ShapeTracker.from_shape((4, 1)).expand((4, 5))
    both = fold.view(fold.view(x, st), ShapeTracker.from_shape((4, 5)).permute((1, 0)))
    assert both.op is Ops.VIEW and both.src == (x,) and both.shape == (5, 4)


def test_reductions_of_constants() -> None:
    c = ast.const(3, dtypes.int32, (4, 5))
    assert fold.reduce(c, Ops.ADD, (1,)) is ast.const(15, dtypes.int32, (4, 1))
    assert fold.reduce(c, Ops.MAX, (0, 1)) is ast.const(3, dtypes.int32, (1, 1))
    assert fold.reduce(ast.const(1, dtypes.int32, (4,)), Ops.MUL, (0,)) is ast.const(1, dtypes.int32, (1,))
    assert fold.reduce(ast.const(100, dtypes.int8, (4,)), Ops.ADD, (0,)).arg == truncate(400, dtypes.int8)
    assert fold.reduce(ast.const(True, dtypes.bool, (4,)), Ops.ADD, (0,)).arg is True
    n = Variable("n", 1, 9)
    assert fold.reduce(ast.const(2, dtypes.int32, (n,)), Ops.ADD, (0,)).op is Ops.REDUCE
