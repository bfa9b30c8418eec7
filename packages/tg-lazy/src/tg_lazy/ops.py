"""The op table: every operation of the graph, and everything derived from it.

One :class:`Ops` member and one frozen :class:`OpSpec` row each. Groups of ops (:data:`ALU`, :data:`COMMUTATIVE`, …)
are computed from the rows' traits and never typed by hand.

Integer semantics are C's: ``IDIV`` truncates toward zero and ``MOD`` takes the sign of the dividend (index
arithmetic, which floors, lives in :mod:`tg_shape`); divided by 0 both are 0. ``MOD`` of floats is C's ``fmod``, which
is exact. Functions have C's special values (ISO/IEC 9899, annex F), so ``POW`` of 1, or to the power 0, is 1 even
beside NaN. Integer results wrap at the width of their dtype; shifts by an amount outside ``0 <= n < bits`` are
undefined. ``MAX`` of floats is NaN if either operand is, unlike C's ``fmax``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum, Flag, auto
from typing import NamedTuple

from tg_dtype import ConstType, DType, dtypes, fast_members


@fast_members
class Ops(Enum):
    """Operations of the lazy graph and of kernel ASTs."""

    # elementwise, one operand
    NEG = auto()
    NOT = auto()
    RECIP = auto()
    SQRT = auto()
    EXP = auto()
    EXP2 = auto()
    EXPM1 = auto()
    LOG = auto()
    LOG2 = auto()
    LOG10 = auto()
    LOG1P = auto()
    SIN = auto()
    COS = auto()
    TAN = auto()
    ASIN = auto()
    ACOS = auto()
    ATAN = auto()
    SINH = auto()
    COSH = auto()
    TANH = auto()
    ASINH = auto()
    ACOSH = auto()
    ATANH = auto()
    ERF = auto()
    ERFC = auto()
    TRUNC = auto()
    CAST = auto()
    BITCAST = auto()
    # elementwise, two operands
    ADD = auto()
    SUB = auto()
    MUL = auto()
    FDIV = auto()
    IDIV = auto()
    MOD = auto()
    POW = auto()
    MAX = auto()
    CMPLT = auto()
    CMPEQ = auto()
    CMPNE = auto()
    AND = auto()
    OR = auto()
    XOR = auto()
    SHL = auto()
    SHR = auto()
    # elementwise, three operands
    WHERE = auto()
    MULACC = auto()
    # reduction
    REDUCE = auto()
    # values without a memory operand
    CONST = auto()
    IOTA = auto()
    SYM = auto()
    # movement inside a kernel
    VIEW = auto()
    # memory inside a kernel
    LOAD = auto()
    GATHER = auto()
    STORE = auto()
    UPDATE = auto()
    SINK = auto()
    # whole buffers
    BUFFER = auto()
    EMPTY = auto()
    CONTIGUOUS = auto()
    COPY = auto()
    ASSIGN = auto()
    BUFFER_VIEW = auto()
    CUSTOM = auto()


class Trait(Flag):
    """Facts about an op from which groups are computed."""

    NONE = 0
    ALU = auto()
    COMMUTATIVE = auto()
    ASSOCIATIVE = auto()  # exactly for integers and bool, up to rounding for floats
    IDEMPOTENT = auto()
    COMPARISON = auto()
    CONVERSION = auto()  # the same value, or the same bits, in another dtype
    DIVISION = auto()  # the second operand must not be 0
    DIVIDER = auto()  # of floats, by a divider: much slower than a product, on some machines not rounded to the nearest
    LINEAR = auto()  # a sum, a difference or a multiple: linear in one operand while the others stay; may overflow
    SHRINKING = auto()  # of integers that are not negative, at most the first operand
    TRANSCENDENTAL = auto()
    REDUCIBLE = auto()
    LEAF = auto()
    KERNEL = auto()  # may stand in a kernel AST
    BUFFER = auto()  # acts on whole buffers


@fast_members
class DTypeRule(Enum):
    """How the dtype of a result follows from the operands."""

    SAME = auto()  # all operands and the result agree
    SAME_FLOAT = auto()  # as SAME, floats only
    SAME_INT = auto()  # as SAME, integers or bool
    BOOL = auto()  # operands agree, result is bool
    SELECT = auto()  # (bool, T, T) -> T
    SHIFT = auto()  # integers of one dtype
    GIVEN = auto()  # stated with the node


class OpSpec(NamedTuple):
    """One row of the op table.

    Attributes:
      arity: number of operands; ``-1`` if it varies.
      rule: how the result's dtype follows.
      traits: flags from which groups are computed.
      meaning: one line of semantics.
      python: the value on Python scalars (before truncation to the dtype), where it is a pure scalar function.
    """

    arity: int
    rule: DTypeRule
    traits: Trait
    meaning: str
    python: Callable[..., ConstType] | None = None


def _recip(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1.0 / x


def _sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0 else (x if x == 0 else math.nan)


def _function(f: Callable[..., float], *limits: tuple[float, float]) -> Callable[..., float]:
    """A function of ``math`` that raises nothing: overflow gives infinity, an argument outside the domain NaN.

    Args:
      f: a function that overflows to plus infinity only, or ``math.sinh``.
      limits: arguments for which ``math`` raises, and the results there.
    """
    known = dict(limits)

    def apply(x: float) -> float:
        try:
            return f(x)
        except OverflowError:
            return math.copysign(math.inf, x) if f is math.sinh else math.inf
        except ValueError:
            return known.get(x, math.nan)

    return apply


def _exp2(x: float) -> float:
    try:
        return math.pow(2.0, x)
    except OverflowError:
        return math.inf


def _pow(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and math.fmod(b, 2) != 0 else math.inf
    except ValueError:  # a negative base, or 0 to a negative power
        if a != 0:
            return math.nan
        return math.copysign(math.inf, a) if math.fabs(math.fmod(b, 2)) == 1 else math.inf


_exp, _expm1 = _function(math.exp), _function(math.expm1)
_log, _log2, _log10 = (_function(f, (0.0, -math.inf)) for f in (math.log, math.log2, math.log10))
_log1p = _function(math.log1p, (-1.0, -math.inf))
_sin, _cos, _tan = (_function(f) for f in (math.sin, math.cos, math.tan))
_asin, _acos, _acosh = (_function(f) for f in (math.asin, math.acos, math.acosh))
_sinh, _cosh = _function(math.sinh), _function(math.cosh)
_atanh = _function(math.atanh, (1.0, math.inf), (-1.0, -math.inf))


def _trunc(x: float) -> float:
    return math.copysign(float(math.trunc(x)), x) if math.isfinite(x) else x


def _fdiv(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _idiv(a: int, b: int) -> int:
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _mod(a: ConstType, b: ConstType) -> ConstType:
    if isinstance(a, float) or isinstance(b, float):
        return math.nan if b == 0 or math.isinf(a) else math.fmod(a, b)
    return a - b * _idiv(a, b) if b else 0


def _max(a: ConstType, b: ConstType) -> ConstType:
    if a != a or b != b:
        return math.nan
    return a if a > b else b


def _mul(a: ConstType, b: ConstType) -> ConstType:
    return (a and b) if isinstance(a, bool) and isinstance(b, bool) else a * b


def _add(a: ConstType, b: ConstType) -> ConstType:
    return (a or b) if isinstance(a, bool) and isinstance(b, bool) else a + b


_U = Trait.ALU | Trait.KERNEL
_T = _U | Trait.TRANSCENDENTAL
_CA = _U | Trait.COMMUTATIVE | Trait.ASSOCIATIVE
_CMP = _U | Trait.COMPARISON
_R = DTypeRule

SPEC: dict[Ops, OpSpec] = {
    Ops.NEG: OpSpec(1, _R.SAME, _U | Trait.LINEAR, "-x", lambda x: -x),
    Ops.NOT: OpSpec(1, _R.SAME_INT, _U, "logical not of bool, bitwise not of integers",
                    lambda x: (not x) if isinstance(x, bool) else ~x),
    Ops.RECIP: OpSpec(1, _R.SAME_FLOAT, _U | Trait.DIVIDER, "1 / x", _recip),
    Ops.SQRT: OpSpec(1, _R.SAME_FLOAT, _U | Trait.DIVIDER, "square root, NaN below 0", _sqrt),
    Ops.EXP: OpSpec(1, _R.SAME_FLOAT, _T, "e ** x", _exp),
    Ops.EXP2: OpSpec(1, _R.SAME_FLOAT, _T, "2 ** x", _exp2),
    Ops.EXPM1: OpSpec(1, _R.SAME_FLOAT, _T, "e ** x - 1, accurate near 0", _expm1),
    Ops.LOG: OpSpec(1, _R.SAME_FLOAT, _T, "log base e, NaN below 0, -inf at 0", _log),
    Ops.LOG2: OpSpec(1, _R.SAME_FLOAT, _T, "log base 2, NaN below 0, -inf at 0", _log2),
    Ops.LOG10: OpSpec(1, _R.SAME_FLOAT, _T, "log base 10, NaN below 0, -inf at 0", _log10),
    Ops.LOG1P: OpSpec(1, _R.SAME_FLOAT, _T, "log of 1 + x, accurate near 0", _log1p),
    Ops.SIN: OpSpec(1, _R.SAME_FLOAT, _T, "sine of radians", _sin),
    Ops.COS: OpSpec(1, _R.SAME_FLOAT, _T, "cosine of radians", _cos),
    Ops.TAN: OpSpec(1, _R.SAME_FLOAT, _T, "tangent of radians", _tan),
    Ops.ASIN: OpSpec(1, _R.SAME_FLOAT, _T, "angle in -pi/2..pi/2 whose sine is x", _asin),
    Ops.ACOS: OpSpec(1, _R.SAME_FLOAT, _T, "angle in 0..pi whose cosine is x", _acos),
    Ops.ATAN: OpSpec(1, _R.SAME_FLOAT, _T, "angle in -pi/2..pi/2 whose tangent is x", math.atan),
    Ops.SINH: OpSpec(1, _R.SAME_FLOAT, _T, "hyperbolic sine", _sinh),
    Ops.COSH: OpSpec(1, _R.SAME_FLOAT, _T, "hyperbolic cosine", _cosh),
    Ops.TANH: OpSpec(1, _R.SAME_FLOAT, _T, "hyperbolic tangent", math.tanh),
    Ops.ASINH: OpSpec(1, _R.SAME_FLOAT, _T, "inverse of SINH", math.asinh),
    Ops.ACOSH: OpSpec(1, _R.SAME_FLOAT, _T, "inverse of COSH, NaN below 1", _acosh),
    Ops.ATANH: OpSpec(1, _R.SAME_FLOAT, _T, "inverse of TANH, NaN outside of -1..1", _atanh),
    Ops.ERF: OpSpec(1, _R.SAME_FLOAT, _T, "error function", math.erf),
    Ops.ERFC: OpSpec(1, _R.SAME_FLOAT, _T, "1 - ERF, accurate where that is tiny", math.erfc),
    Ops.TRUNC: OpSpec(1, _R.SAME_FLOAT, _U, "round toward zero", _trunc),
    Ops.CAST: OpSpec(1, _R.GIVEN, _U | Trait.CONVERSION, "convert the value"),
    Ops.BITCAST: OpSpec(1, _R.GIVEN, _U | Trait.CONVERSION, "reinterpret the bits; item sizes agree"),
    Ops.ADD: OpSpec(2, _R.SAME, _CA | Trait.REDUCIBLE | Trait.LINEAR, "a + b; or of bools", _add),
    Ops.SUB: OpSpec(2, _R.SAME, _U | Trait.LINEAR, "a - b", lambda a, b: a - b),
    Ops.MUL: OpSpec(2, _R.SAME, _CA | Trait.REDUCIBLE | Trait.LINEAR, "a * b; and of bools", _mul),
    Ops.FDIV: OpSpec(2, _R.SAME_FLOAT, _U | Trait.DIVISION | Trait.DIVIDER, "a / b", _fdiv),
    Ops.IDIV: OpSpec(2, _R.SAME_INT, _U | Trait.DIVISION | Trait.SHRINKING, "a / b truncated toward zero", _idiv),
    Ops.MOD: OpSpec(2, _R.SAME, _U | Trait.DIVISION | Trait.SHRINKING,
                    "a - b * (a / b truncated toward zero), exactly; sign of a", _mod),
    Ops.POW: OpSpec(2, _R.SAME_FLOAT, _T, "a ** b, NaN where a < 0 and b is no whole number", _pow),
    Ops.MAX: OpSpec(2, _R.SAME, _CA | Trait.IDEMPOTENT | Trait.REDUCIBLE, "the greater; NaN if either is", _max),
    Ops.CMPLT: OpSpec(2, _R.BOOL, _CMP, "a < b", lambda a, b: a < b),
    Ops.CMPEQ: OpSpec(2, _R.BOOL, _CMP | Trait.COMMUTATIVE, "a == b", lambda a, b: a == b),
    Ops.CMPNE: OpSpec(2, _R.BOOL, _CMP | Trait.COMMUTATIVE, "a != b", lambda a, b: a != b),
    Ops.AND: OpSpec(2, _R.SAME_INT, _CA | Trait.IDEMPOTENT | Trait.SHRINKING, "bitwise and", lambda a, b: a & b),
    Ops.OR: OpSpec(2, _R.SAME_INT, _CA | Trait.IDEMPOTENT, "bitwise or", lambda a, b: a | b),
    Ops.XOR: OpSpec(2, _R.SAME_INT, _CA, "bitwise exclusive or", lambda a, b: a ^ b),
    Ops.SHL: OpSpec(2, _R.SHIFT, _U | Trait.LINEAR, "a << b", lambda a, b: a << b),
    Ops.SHR: OpSpec(2, _R.SHIFT, _U | Trait.SHRINKING, "a >> b, arithmetic for signed", lambda a, b: a >> b),
    Ops.WHERE: OpSpec(3, _R.SELECT, _U, "b if a else c", lambda a, b, c: b if a else c),
    Ops.MULACC: OpSpec(3, _R.SAME, _U | Trait.LINEAR, "a * b + c, fused where the target fuses",
                       lambda a, b, c: a * b + c),
    Ops.REDUCE: OpSpec(1, _R.SAME, Trait.KERNEL, "combine along axes, which stay with size 1"),
    Ops.CONST: OpSpec(0, _R.GIVEN, Trait.LEAF | Trait.KERNEL, "one value everywhere"),
    Ops.IOTA: OpSpec(0, _R.GIVEN, Trait.LEAF | Trait.KERNEL, "the flat index itself"),
    Ops.SYM: OpSpec(0, _R.GIVEN, Trait.LEAF | Trait.KERNEL, "the value of a symbolic integer"),
    Ops.VIEW: OpSpec(1, _R.SAME, Trait.KERNEL, "the operand seen through a ShapeTracker, 0 where masked"),
    Ops.LOAD: OpSpec(0, _R.GIVEN, Trait.KERNEL, "read a buffer through a ShapeTracker, 0 where masked"),
    Ops.GATHER: OpSpec(1, _R.GIVEN, Trait.KERNEL, "read a buffer at computed indices, 0 where out of range"),
    Ops.STORE: OpSpec(1, _R.GIVEN, Trait.KERNEL, "write a buffer through a ShapeTracker"),
    Ops.UPDATE: OpSpec(2, _R.GIVEN, Trait.KERNEL, "combine values with elements at computed indices, in order"),
    Ops.SINK: OpSpec(-1, _R.GIVEN, Trait.KERNEL, "all stores of a kernel"),
    Ops.BUFFER: OpSpec(0, _R.GIVEN, Trait.LEAF | Trait.BUFFER, "memory that exists"),
    Ops.EMPTY: OpSpec(0, _R.GIVEN, Trait.LEAF | Trait.BUFFER, "memory with undefined content"),
    Ops.CONTIGUOUS: OpSpec(1, _R.SAME, Trait.BUFFER, "the operand, in memory, row-major; or for its readers alone"),
    Ops.COPY: OpSpec(1, _R.SAME, Trait.BUFFER, "the operand on another device"),
    Ops.ASSIGN: OpSpec(2, _R.SAME, Trait.BUFFER, "the target's memory with new content"),
    Ops.BUFFER_VIEW: OpSpec(1, _R.GIVEN, Trait.BUFFER, "a contiguous range of a buffer's memory"),
    Ops.CUSTOM: OpSpec(-1, _R.GIVEN, Trait.BUFFER, "a caller's function on whole buffers"),
}


def group(trait: Trait) -> frozenset[Ops]:
    """The ops whose row has every flag of ``trait``.

    >>> Ops.ADD in group(Trait.COMMUTATIVE), Ops.SUB in group(Trait.COMMUTATIVE)
    (True, False)
    """
    return frozenset(op for op, row in SPEC.items() if row.traits & trait == trait)


ALU = group(Trait.ALU)
COMMUTATIVE = group(Trait.COMMUTATIVE)
REDUCIBLE = group(Trait.REDUCIBLE)
COMPARISONS = group(Trait.COMPARISON)
CONVERSIONS = group(Trait.CONVERSION)
DIVISIONS = group(Trait.DIVISION)
BY_DIVIDER = group(Trait.DIVIDER)
LINEAR = group(Trait.LINEAR)
SHRINKING = group(Trait.SHRINKING)
SHIFTS = frozenset(op for op, row in SPEC.items() if row.rule is DTypeRule.SHIFT)
ON_INTEGERS = frozenset(op for op in ALU if SPEC[op].rule is not DTypeRule.SAME_FLOAT) - {Ops.BITCAST}
"""What computes an integer or a bool from the values of integers and bools: what addresses are made of."""
INTEGER_DIVISIONS = DIVISIONS & ON_INTEGERS
TRANSCENDENTAL = group(Trait.TRANSCENDENTAL)
KERNEL = group(Trait.KERNEL)
MEMORY = group(Trait.BUFFER)
"""Bases that own memory, now or once they are realised."""
LEAVES = group(Trait.LEAF | Trait.KERNEL)
"""Bases that need neither memory nor operands."""


def identity(op: Ops, dtype: DType) -> ConstType:
    """The identity element of a reducible op in ``dtype``.

    >>> identity(Ops.MAX, dtypes.int8), identity(Ops.MUL, dtypes.float32)
    (-128, 1.0)

    Raises:
      ValueError: if ``op`` cannot reduce.
    """
    if op is Ops.ADD:
        return dtypes.as_const(0, dtype)
    if op is Ops.MUL:
        return dtypes.as_const(1, dtype)
    if op is Ops.MAX:
        return dtypes.min(dtype)
    raise ValueError(f"{op.name} cannot reduce; one of {sorted(o.name for o in REDUCIBLE)} can")


def result_dtype(op: Ops, *operands: DType) -> DType:
    """The dtype of an elementwise op applied to operands of these dtypes.

    Raises:
      TypeError: if the operands' dtypes do not fit the op; the message names the op and the dtypes.
      ValueError: if the number of operands is wrong, or the op states its dtype itself.
    """
    row = SPEC[op]
    if row.arity != len(operands):
        raise ValueError(f"{op.name} takes {row.arity} operands, got {len(operands)}")
    names = ", ".join(d.name for d in operands)
    rule = row.rule
    if rule is DTypeRule.SELECT:
        if operands[0].scalar() is not dtypes.bool or operands[1] is not operands[2]:
            raise TypeError(f"{op.name} takes (bool, T, T), got ({names})")
        return operands[1]
    if rule is DTypeRule.GIVEN:
        raise ValueError(f"{op.name} states its dtype itself")
    first = operands[0]
    if any(d is not first for d in operands):
        raise TypeError(f"{op.name} takes operands of one dtype, got ({names})")
    if rule is DTypeRule.SAME_FLOAT and not dtypes.is_float(first):
        raise TypeError(f"{op.name} takes floats, got ({names})")
    if rule is DTypeRule.SAME_INT and not (dtypes.is_int(first) or dtypes.is_bool(first)):
        raise TypeError(f"{op.name} takes integers or bool, got ({names})")
    if rule is DTypeRule.SHIFT and not dtypes.is_int(first):
        raise TypeError(f"{op.name} takes integers, got ({names})")
    if rule is DTypeRule.BOOL:
        return dtypes.bool if first.count == 1 else dtypes.bool.vec(first.count)
    return first
