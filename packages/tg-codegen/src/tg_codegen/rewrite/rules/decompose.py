"""Elementwise ops that a language lacks, in terms of others.

Each rule asks the renderer (its context) whether the op is there for the dtype, and applies only if it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

from tg_dtype import DType, dtypes
from tg_lazy import TRANSCENDENTAL, Ops

from ...ir.uop import UOp, const
from ...machine.renderer import Renderer
from ..engine import PatternMatcher, Rule
from ..pattern import BOOL, FLOAT, INT, VALUE, Domain, op
from .transcendental import transcendental

_BITS = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


def _like(u: UOp, value: float) -> UOp:
    return const(value, u.dtype)


def _where(condition: UOp, yes: UOp, no: UOp) -> UOp:
    return condition.alu(Ops.WHERE, yes, no)


def _bits_dtype(dtype: DType) -> DType:
    return _BITS[dtype.scalar().itemsize]


def _maximum(root: UOp) -> UOp:
    a, b = root.src
    larger = _where(a.alu(Ops.CMPLT, b), b, a)
    return _where(b.alu(Ops.CMPNE, b), b, larger) if dtypes.is_float(a.dtype) else larger


def _truncate(root: UOp) -> UOp:
    """Toward zero through an integer; what has no fraction stays, and so does the sign."""
    (x,) = root.src
    scalar = x.dtype.scalar()
    wide = dtypes.float32 if scalar.itemsize < 4 else scalar
    if wide is not scalar:
        return x.cast(wide).alu(Ops.TRUNC).cast(scalar)
    _, mantissa = dtypes.finfo(scalar)
    unsigned = _bits_dtype(scalar)
    signed = dtypes.int32 if scalar.itemsize == 4 else dtypes.int64
    bits = x.bitcast(unsigned)
    sign = bits.alu(Ops.AND, _like(bits, 1 << (unsigned.bits - 1)))
    size = bits.alu(Ops.XOR, sign).bitcast(scalar)
    whole = x.cast(signed).cast(scalar).bitcast(unsigned).alu(Ops.OR, sign).bitcast(scalar)
    return _where(size.alu(Ops.CMPLT, _like(x, 2.0**mantissa)), whole, x)


def _square_root(root: UOp) -> UOp:
    """Newton's method from an estimate made of the exponent."""
    (x,) = root.src
    scalar = x.dtype.scalar()
    wide = dtypes.float32 if scalar.itemsize < 4 else scalar
    if wide is not scalar:
        return x.cast(wide).alu(Ops.SQRT).cast(scalar)
    exponent, mantissa = dtypes.finfo(scalar)
    signed = dtypes.int32 if scalar.itemsize == 4 else dtypes.int64
    small = x.alu(Ops.CMPLT, _like(x, 2.0 ** (2 - (1 << (exponent - 1)))))
    even = mantissa + 1 + (mantissa + 1) % 2
    lifted = _where(small, x.alu(Ops.MUL, _like(x, 2.0**even)), x)
    bits = lifted.bitcast(signed)
    half_bias = ((1 << (exponent - 1)) - 1) << (mantissa - 1)
    s = bits.alu(Ops.SHR, _like(bits, 1)).alu(Ops.ADD, _like(bits, half_bias)).bitcast(scalar)
    for _ in range(4 if scalar.itemsize == 4 else 5):
        s = s.alu(Ops.ADD, lifted.alu(Ops.FDIV, s)).alu(Ops.MUL, _like(x, 0.5))
    s = s.alu(Ops.MUL, _where(small, _like(x, 2.0 ** -(even // 2)), _like(x, 1.0)))
    s = _where(x.alu(Ops.CMPLT, _like(x, inf)), s, x)
    return _where(_like(x, 0.0).alu(Ops.CMPLT, x), s, _where(x.alu(Ops.CMPEQ, _like(x, 0.0)), x, _like(x, nan)))


def _remainder(root: UOp) -> UOp:
    a, b = root.src
    rest = a.alu(Ops.SUB, a.alu(Ops.IDIV, b).alu(Ops.MUL, b))
    return rest if b.is_const and b.arg else _where(b.alu(Ops.CMPNE, _like(b, 0)), rest, _like(b, 0))


def _divide(root: UOp) -> UOp:
    """Long division, one bit of the quotient at a time."""
    a, b = root.src
    signed = not dtypes.is_unsigned(a.dtype)
    unsigned = _bits_dtype(a.dtype)

    def magnitude(x: UOp) -> UOp:
        return _where(x.alu(Ops.CMPLT, _like(x, 0)), x.alu(Ops.NEG), x).bitcast(unsigned) if signed else x

    n, d = magnitude(a), magnitude(b)
    quotient, rest = _like(n, 0), _like(n, 0)
    for bit in reversed(range(unsigned.bits)):
        # A carry out of `rest` is lost only if it exceeds the divisor for sure.
        carry = rest.alu(Ops.SHR, _like(n, unsigned.bits - 1)).alu(Ops.CMPNE, _like(n, 0))
        next_bit = n.alu(Ops.SHR, _like(n, bit)).alu(Ops.AND, _like(n, 1))
        rest = rest.alu(Ops.SHL, _like(n, 1)).alu(Ops.OR, next_bit)
        fits = carry.alu(Ops.OR, rest.alu(Ops.CMPLT, d).alu(Ops.NOT))
        rest = _where(fits, rest.alu(Ops.SUB, d), rest)
        quotient = _where(fits, quotient.alu(Ops.OR, _like(n, 1 << bit)), quotient)
    if signed:
        quotient = quotient.bitcast(a.dtype.scalar())
        negative = a.alu(Ops.XOR, b).alu(Ops.CMPLT, _like(a, 0))
        quotient = _where(negative, quotient.alu(Ops.NEG), quotient)
    return _where(b.alu(Ops.CMPNE, _like(b, 0)), quotient, _like(a, 0))


def _choose(root: UOp) -> UOp:
    """A select made of masks."""
    condition, yes, no = root.src
    bits = _bits_dtype(yes.dtype)
    lanes = bits.vec(yes.dtype.count)

    def whole(x: UOp) -> UOp:
        return x.cast(bits) if dtypes.is_bool(x.dtype) else x.bitcast(bits)

    mask = condition.cast(bits).alu(Ops.NEG)
    mixed = whole(yes).alu(Ops.AND, mask).alu(Ops.OR, whole(no).alu(Ops.AND, mask.alu(Ops.XOR, const(-1, lanes))))
    return mixed.cast(dtypes.bool) if dtypes.is_bool(yes.dtype) else mixed.bitcast(yes.dtype.scalar())


def _shift_left(root: UOp) -> UOp | None:
    x, n = root.src
    return x.alu(Ops.MUL, _like(x, 1 << n.arg)) if n.is_const and 0 <= n.arg < x.dtype.scalar().bits else None


def _negate(root: UOp) -> UOp:
    (x,) = root.src
    if dtypes.is_float(x.dtype):
        return x.alu(Ops.MUL, _like(x, -1.0))
    return _like(x, 0).alu(Ops.SUB, x)


def _if_missing(name: str, kind: Ops, make: Callable[[UOp], UOp | None], domain: Domain, law: str) -> Rule:
    def right(root: UOp, ctx: Renderer) -> UOp | None:
        return None if ctx.supports_op(kind, root.src[-1].dtype.scalar()) else make(root)

    return Rule(name, op(kind), right, domain, law=law)


def _transcendental(root: UOp, ctx: Renderer) -> UOp | None:
    assert isinstance(root.op, Ops)
    return None if ctx.supports_op(root.op, root.dtype.scalar()) else transcendental(root, ctx)


def _multiply_then_add(root: UOp) -> UOp:
    a, b, c = root.src
    return a.alu(Ops.MUL, b).alu(Ops.ADD, c)


def _reciprocal(root: UOp) -> UOp:
    return _like(root, 1.0).alu(Ops.FDIV, root.src[0])


def _subtract(root: UOp) -> UOp:
    return root.src[0].alu(Ops.ADD, root.src[1].alu(Ops.NEG))


def _invert(root: UOp) -> UOp:
    return root.src[0].alu(Ops.XOR, _like(root, -1))


def _equal(root: UOp) -> UOp:
    return root.src[0].alu(Ops.CMPNE, root.src[1]).alu(Ops.NOT)


_NUMBER = INT | FLOAT
decompose = PatternMatcher([
    *(Rule(kind.name.lower(), op(kind), _transcendental, FLOAT, law=f"{kind.name.lower()}(x) -> arithmetic")
      for kind in sorted(TRANSCENDENTAL, key=lambda kind: kind.name)),
    _if_missing("mulacc", Ops.MULACC, _multiply_then_add, _NUMBER, "mulacc(a, b, c) -> a * b + c"),
    _if_missing("recip", Ops.RECIP, _reciprocal, FLOAT, "recip(x) -> 1 / x"),
    _if_missing("max", Ops.MAX, _maximum, VALUE, "max(a, b) -> where(b != b, b, where(a < b, b, a))"),
    _if_missing("trunc", Ops.TRUNC, _truncate, FLOAT, "trunc(x) -> float(int(x)), where x can have a fraction"),
    _if_missing("sqrt", Ops.SQRT, _square_root, FLOAT, "sqrt(x) -> Newton's method"),
    _if_missing("mod", Ops.MOD, _remainder, INT, "a % b -> a - a // b * b"),
    Rule("fmod", op(Ops.MOD), _transcendental, FLOAT, law="a % b of floats -> long division"),
    _if_missing("idiv", Ops.IDIV, _divide, INT, "a // b -> long division"),
    _if_missing("where", Ops.WHERE, _choose, VALUE, "where(c, a, b) -> a & -c | b & ~-c"),
    _if_missing("sub", Ops.SUB, _subtract, _NUMBER, "a - b -> a + -b"),
    _if_missing("neg", Ops.NEG, _negate, _NUMBER, "-x -> 0 - x; x * -1 of floats"),
    _if_missing("not", Ops.NOT, _invert, INT | BOOL, "~x -> x ^ -1"),
    _if_missing("cmpeq", Ops.CMPEQ, _equal, VALUE, "a == b -> ~(a != b)"),
    _if_missing("shl", Ops.SHL, _shift_left, INT, "x << c -> x * 2**c"),
])  # fmt: skip
