"""Index arithmetic: symbolic integers of :mod:`tg_shape` as UOps."""

from __future__ import annotations

from collections.abc import Mapping

from tg_dtype import DType, dtypes
from tg_lazy import Ops
from tg_shape import Expr, Variable, bounds_of, coefficient, sint

from ..ir.uop import UOp, UOps, const, vectorize

BOOLEAN = frozenset({"lt", "eq", "ne", "and", "or"})
_COMPARE = {"lt": Ops.CMPLT, "eq": Ops.CMPEQ, "ne": Ops.CMPNE}
_JOIN = {"and": Ops.AND, "or": Ops.OR}
_BINARY = {"add": Ops.ADD, "mul": Ops.MUL, "floordiv": Ops.IDIV, "mod": Ops.MOD, "max": Ops.MAX}


def ramp(count: int, dtype: DType) -> UOp:
    """The vector 0, 1, … count-1."""
    return vectorize(*(const(lane, dtype) for lane in range(count)))


def elementwise(op: Ops, a: UOp, b: UOp) -> UOp:
    """A binary op; a scalar operand is repeated over the lanes of the other."""
    count = max(a.dtype.count, b.dtype.count)
    return a.broadcast(count).alu(op, b.broadcast(count))


class IndexBuilder:
    """Builds UOps for index expressions.

    Attributes:
      leaves: the UOp of each variable: a RANGE, a SPECIAL, a kernel VAR, a vector of lane numbers.
    """

    def __init__(self, leaves: Mapping[Expr, UOp]) -> None:
        self.leaves = leaves
        self._memo: dict[tuple[Expr, DType], UOp] = {}

    def value(self, expr: sint, dtype: DType) -> UOp:
        """``expr`` as an integer of ``dtype``, with lanes if a leaf has them."""
        if isinstance(expr, int):
            return const(expr, dtype)
        key = (expr, dtype)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._build(expr, dtype)
        return found

    def truth(self, expr: sint) -> UOp:
        """``expr``, valued 0 or 1, as a bool."""
        if isinstance(expr, int):
            return const(bool(expr), dtypes.bool)
        if expr.op in _COMPARE:
            dtype = index_dtype(expr.args[0], expr.args[1])
            return elementwise(_COMPARE[expr.op], self.value(expr.args[0], dtype), self.value(expr.args[1], dtype))
        if expr.op in _JOIN:
            parts = [self.truth(arg) for arg in expr.args]
            result = parts[0]
            for part in parts[1:]:
                result = elementwise(_JOIN[expr.op], result, part)
            return result
        number = self.value(expr, dtypes.int32)
        return elementwise(Ops.CMPNE, number, const(0, dtypes.int32))

    def _build(self, expr: Expr, dtype: DType) -> UOp:
        leaf = self.leaves.get(expr)
        if leaf is not None:
            return leaf.cast(dtype)
        if expr.op in BOOLEAN:
            return self.truth(expr).cast(dtype)
        if expr.op == "bind":
            return self.value(expr.args[0], dtype)
        if expr.op == "var":
            raise ValueError(f"the variable {expr.render()} is not open here")
        if expr.op in ("floordiv", "mod") and any(bounds_of(arg)[0] < 0 for arg in expr.args):
            return _floored(expr.op, self.value(expr.args[0], dtype), self.value(expr.args[1], dtype))
        # scalars are combined before vectors, so that the lanes come in last and only once
        parts = [self.value(arg, dtype) for arg in expr.args]
        if expr.op in ("add", "mul", "max", "min"):
            parts.sort(key=lambda u: u.dtype.count + 2 * (u.op is UOps.CONST))
        result = parts[0]
        for part in parts[1:]:
            if expr.op == "min":
                count = max(result.dtype.count, part.dtype.count)
                result, part = result.broadcast(count), part.broadcast(count)
                result = result.alu(Ops.CMPLT, part).alu(Ops.WHERE, result, part)
            else:
                result = elementwise(_BINARY[expr.op], result, part)
        return result


def below(a: sint, b: sint) -> sint:
    """``a < b`` as a symbolic truth value."""
    difference = a - b
    return int(difference < 0) if isinstance(difference, int) else difference.lt(0)


def within(index: UOp, size: UOp) -> UOp:
    """Whether 0 <= index < size, lane by lane."""
    lanes = index.dtype.count
    low = const(-1, index.dtype.scalar()).broadcast(lanes).alu(Ops.CMPLT, index)
    return low.alu(Ops.AND, index.alu(Ops.CMPLT, size.broadcast(lanes)))


def lane_step(index: sint, lane: Variable, lanes: int) -> int | None:
    """By how much ``index`` grows from each of ``lanes`` lanes to the next; None if unevenly.

    >>> lane = Variable("lane", 0, 3)
    >>> lane_step(lane * 2 + 5, lane, 4), lane_step((lane + 8) // 4, lane, 4), lane_step(lane // 2, lane, 4)
    (2, 0, None)
    """
    if isinstance(index, int):
        return 0
    step = coefficient(index, lane)
    if step is not None:
        return step
    first = index.substitute({lane: 0})
    difference = index.substitute({lane: 1}) - first
    if not isinstance(difference, int):
        return None
    even = all(index.substitute({lane: n}) - first == difference * n for n in range(2, lanes))
    return difference if even else None


def _floored(name: str, a: UOp, b: UOp) -> UOp:
    """a // b or a % b as Python has it, where an operand may be negative: IDIV and MOD round toward zero."""
    count = max(a.dtype.count, b.dtype.count)
    a, b = a.broadcast(count), b.broadcast(count)
    zero = const(0, b.dtype)
    rest = a.alu(Ops.MOD, b)
    unlike = rest.alu(Ops.CMPLT, zero).alu(Ops.CMPNE, b.alu(Ops.CMPLT, zero))
    off = rest.alu(Ops.CMPNE, zero).alu(Ops.AND, unlike)
    if name == "mod":
        return off.alu(Ops.WHERE, rest.alu(Ops.ADD, b), rest)
    quotient = a.alu(Ops.IDIV, b)
    return off.alu(Ops.WHERE, quotient.alu(Ops.SUB, const(1, b.dtype)), quotient)


def index_dtype(*exprs: sint) -> DType:
    """int32, or int64 where a bound does not fit."""
    for expr in exprs:
        low, high = bounds_of(expr)
        if low < -(2**31) or high >= 2**31:
            return dtypes.int64
    return dtypes.int32
