"""Folding of constants and no-ops: constructors of AST nodes that apply the rewrites of :data:`RULES` on the way.

The lazy graph keeps what was asked for. Folding happens here, when a kernel's AST is built, and so also sees constants
that come through views, masks and casts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tg_dtype import ConstType, DType, bitcast_scalar, can_safe_cast, cast_scalar, dtypes
from tg_shape import ShapeTracker, View

from ..ops import CONVERSIONS, DIVISIONS, INTEGER_DIVISIONS, SHIFTS, SPEC, Ops
from ..trackers import hidden, masked
from . import nodes as ast
from .nodes import LazyOp

Apply = Callable[[LazyOp], LazyOp | None]


class Rule(NamedTuple):
    """One rewrite of an elementwise node.

    Attributes:
      name: what it is called in tests.
      ops: the ops at which it looks.
      law: the equation.
      domain: the dtypes for which it holds, and how exactly.
      apply: the right side for a node of one of ``ops``, or None where the left side does not match.
    """

    name: str
    ops: tuple[Ops, ...]
    law: str
    domain: str
    apply: Apply


def _is(x: LazyOp, value: float) -> bool:
    return x.op is Ops.CONST and bool(x.arg == value)


def _either(x: LazyOp, value: float) -> LazyOp | None:
    """The other operand where one is ``value``."""
    a, b = x.src
    return a if _is(b, value) else b if _is(a, value) else None


def _integral(x: LazyOp) -> bool:
    return not dtypes.is_float(x.dtype)


def _evaluate(x: LazyOp) -> LazyOp | None:
    python = SPEC[x.op].python
    if python is None or any(s.op is not Ops.CONST for s in x.src):
        return None
    if x.op in SHIFTS and not 0 <= x.src[1].arg < x.dtype.bits:
        return None
    return ast.const(python(*[s.arg for s in x.src]), x.dtype, x.shape)


def _times_zero(x: LazyOp) -> LazyOp | None:
    return ast.const(0, x.dtype, x.shape) if _integral(x) and any(_is(s, 0) for s in x.src) else None


def _right(value: float) -> Apply:
    return lambda x: x.src[0] if _is(x.src[1], value) else None


def _minus_zero(x: LazyOp) -> LazyOp | None:
    zero = x.src[1]
    return x.src[0] if _is(zero, 0) and math.copysign(1, zero.arg) > 0 else None


def _inverse(x: LazyOp) -> LazyOp | None:
    inner = x.src[0]
    return inner.src[0] if inner.op is x.op else None


def _same(x: LazyOp) -> LazyOp | None:
    return x.src[0] if x.src[0] is x.src[1] else None


def _where(x: LazyOp) -> LazyOp | None:
    cond, a, b = x.src
    if a is b:
        return a
    if cond.op is Ops.CONST:
        return a if cond.arg else b
    return alu(Ops.WHERE, cond.src[0], b, a) if cond.op is Ops.NOT else None


def _lowest(x: LazyOp) -> LazyOp | None:
    return _either(x, dtypes.min(x.dtype))


def _all_ones(x: LazyOp) -> LazyOp | None:
    return _either(x, True) if dtypes.is_bool(x.dtype) else _either(x, dtypes.as_const(-1, x.dtype))


def _compare_bool(x: LazyOp) -> LazyOp | None:
    a, b = x.src
    if not dtypes.is_bool(a.dtype) or Ops.CONST not in (a.op, b.op):
        return None
    value, const = (a, b) if b.op is Ops.CONST else (b, a)
    return value if bool(const.arg) is (x.op is Ops.CMPEQ) else alu(Ops.NOT, value)


def _cast_cast(x: LazyOp) -> LazyOp | None:
    inner = x.src[0]
    if inner.op is not Ops.CAST or not can_safe_cast(inner.src[0].dtype, inner.dtype):
        return None
    first = inner.src[0].dtype
    through_float = dtypes.is_float(inner.dtype) and dtypes.is_int(first) and dtypes.is_int(x.dtype)
    if through_float and not can_safe_cast(first, x.dtype):
        return None  # a float saturates where an integer wraps
    return cast(inner.src[0], x.dtype)


def _cast_const(x: LazyOp) -> LazyOp | None:
    inner = x.src[0]
    return ast.const(cast_scalar(inner.arg, inner.dtype, x.dtype), x.dtype, x.shape) if inner.op is Ops.CONST else None


def _bitcast_const(x: LazyOp) -> LazyOp | None:
    inner = x.src[0]
    if inner.op is not Ops.CONST:
        return None
    value = bitcast_scalar(inner.arg, inner.dtype, x.dtype)
    # Not of a NaN: renderers write one NaN, and its payload would be lost.
    return None if isinstance(value, float) and math.isnan(value) else ast.const(value, x.dtype, x.shape)


_EVALUATED = tuple(op for op, row in SPEC.items() if row.python is not None)
_ANY, _INT, _EXACT = "every dtype", "integers and bool", "every dtype, exactly, NaN and -0.0 included"

RULES: tuple[Rule, ...] = (
    Rule("evaluate", _EVALUATED, "f(c, ...) = the value", "every dtype, rounded once from double", _evaluate),
    Rule("add zero", (Ops.ADD,), "x + 0 = x", "every dtype; a float -0.0 stays -0.0", lambda x: _either(x, 0)),
    Rule("subtract zero", (Ops.SUB,), "x - 0 = x", _EXACT, _minus_zero),
    Rule("times one", (Ops.MUL,), "x * 1 = x", _EXACT, lambda x: _either(x, 1)),
    Rule("times zero", (Ops.MUL,), "x * 0 = 0", _INT, _times_zero),
    Rule("divide by one", (Ops.FDIV, Ops.IDIV), "x / 1 = x", _EXACT, _right(1)),
    Rule("shift by none", (Ops.SHL, Ops.SHR), "x << 0 = x", _INT, _right(0)),
    Rule("modulo one", (Ops.MOD,), "x % 1 = 0", _INT,
         lambda x: ast.const(0, x.dtype, x.shape) if _integral(x) and _is(x.src[1], 1) else None),
    Rule("or zero", (Ops.OR, Ops.XOR), "x | 0 = x", _INT, lambda x: _either(x, 0)),
    Rule("and ones", (Ops.AND,), "x & ~0 = x", _INT, _all_ones),
    Rule("and zero", (Ops.AND,), "x & 0 = 0", _INT, _times_zero),
    Rule("same twice", (Ops.MAX, Ops.AND, Ops.OR), "x op x = x", _ANY, _same),
    Rule("above the least", (Ops.MAX,), "max(x, least) = x", _EXACT, _lowest),
    Rule("undo", (Ops.NEG, Ops.NOT), "op(op(x)) = x", _EXACT, _inverse),
    Rule("select", (Ops.WHERE,), "where(c, a, a) = a; where(const, a, b); where(not c, a, b) = where(c, b, a)", _EXACT,
         _where),
    Rule("compare with a truth", (Ops.CMPEQ, Ops.CMPNE), "(x == true) = x; (x != true) = not x", "bool", _compare_bool),
    Rule("cast a constant", (Ops.CAST,), "cast(c) = the value", _ANY, _cast_const),
    Rule("cast twice", (Ops.CAST,), "cast(cast(x)) = cast(x) if the inner one loses nothing", _ANY, _cast_cast),
    Rule("bitcast a constant", (Ops.BITCAST,), "bitcast(c) = the value", "every dtype, NaN excepted", _bitcast_const),
)  # fmt: skip

_BY_OP: dict[Ops, tuple[Apply, ...]] = {op: tuple(r.apply for r in RULES if op in r.ops) for op in SPEC}

_KEEPS_ZERO = frozenset(
    op for op, row in SPEC.items()
    if row.python is not None and op not in DIVISIONS and not row.python(*[0] * row.arity)
) - {Ops.NOT} | CONVERSIONS  # fmt: skip


def keeps_zero(op: Ops, dtype: DType) -> bool:
    """Whether an elementwise op of zeros is 0 (and not -0.0), so that padding may move from its result to its operands.

    >>> keeps_zero(Ops.MUL, dtypes.float32), keeps_zero(Ops.EXP2, dtypes.float32)
    (True, False)
    """
    return op in _KEEPS_ZERO and not (op is Ops.NEG and dtypes.is_float(dtype))


def zero_of(op: Ops, constants: Sequence[ConstType | None]) -> bool:
    """Whether an elementwise op of these constants, and of zeros where there is None, is 0 (and not -0.0).

    >>> zero_of(Ops.MUL, [None, 2.0]), zero_of(Ops.MUL, [None, -2.0]), zero_of(Ops.IDIV, [None, 3])
    (True, False, True)
    """
    python = SPEC[op].python
    if python is None or op in SHIFTS or None not in constants or all(c is None for c in constants):
        return False
    if op in INTEGER_DIVISIONS and not constants[1]:  # padding must not divide by its 0
        return False
    zero = next(type(c) for c in constants if c is not None)(0)
    value = python(*[zero if c is None else c for c in constants])
    return value == 0 and math.copysign(1, value) > 0


def folded(x: LazyOp) -> LazyOp:
    """``x``, an elementwise node, by the first rule that matches; itself if none does."""
    for apply in _BY_OP[x.op]:
        found = apply(x)
        if found is not None:
            return found
    return x


def alu(op: Ops, *src: LazyOp) -> LazyOp:
    """An elementwise op."""
    return folded(ast.alu(op, *src))


def cast(x: LazyOp, dtype: DType) -> LazyOp:
    """``x`` converted to ``dtype``."""
    out = ast.cast(x, dtype)
    return out if out is x else folded(out)


def bitcast(x: LazyOp, dtype: DType) -> LazyOp:
    """The bits of ``x`` taken as ``dtype``."""
    out = ast.bitcast(x, dtype)
    return out if out is x else folded(out)


def splat(x: LazyOp, st: ShapeTracker) -> LazyOp:
    """A CONST or SYM, one value everywhere, through ``st``: itself over another shape, but for padding."""
    if not masked(st):
        return LazyOp(x.op, x.dtype, st.shape, (), x.arg)
    if hidden(st) or (x.op is Ops.CONST and x.arg == 0 and math.copysign(1, x.arg) > 0):
        return ast.const(0, x.dtype, st.shape)
    scalar = LazyOp(x.op, x.dtype, (), (), x.arg)
    low = st.views[0]
    flat = View(low.shape, (0,) * len(low.shape), 0, low.mask)
    return ast.view(scalar, ShapeTracker((flat, *st.views[1:])))


def load(slot: int, dtype: DType, st: ShapeTracker) -> LazyOp:
    """Reads buffer ``slot`` through ``st``; 0 if that shows padding alone."""
    if hidden(st):
        return ast.const(0, dtype, st.shape)
    return ast.load(slot, dtype, st)


def view(x: LazyOp, st: ShapeTracker | None) -> LazyOp:
    """``x`` through ``st``: one view at most, and none over a splat that no padding hides."""
    if st is None:
        return x
    if hidden(st):
        return ast.const(0, x.dtype, st.shape)
    if x.op in (Ops.CONST, Ops.SYM):
        return splat(x, st)
    if x.op is Ops.VIEW:
        return view(x.src[0], x.arg + st)
    return ast.view(x, st)


def reduce(x: LazyOp, op: Ops, axes: tuple[int, ...]) -> LazyOp:
    """A reduction: ``sum(c) = c * n``, ``max(c) = c`` and ``prod(c) = c ** n`` for a constant of a known shape."""
    out = ast.reduce(x, op, axes)
    if x.op is not Ops.CONST or out is x:
        return out
    if op is Ops.MAX:
        return ast.const(x.arg, x.dtype, out.shape)
    count = 1
    for axis in axes:
        dim = x.shape[axis]
        if not isinstance(dim, int):
            return out
        count *= dim
    if dtypes.is_bool(x.dtype):
        return ast.const(x.arg, x.dtype, out.shape)
    if op is Ops.ADD:
        return ast.const(x.arg * count, x.dtype, out.shape)
    if x.arg in (0, 1):
        return ast.const(x.arg, x.dtype, out.shape)
    return out
