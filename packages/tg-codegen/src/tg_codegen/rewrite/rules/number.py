"""What :mod:`tg_codegen.rewrite.rules.transcendental` writes its functions with: numbers with operators, and formats.

None of it relies on a product and a sum being rounded apart, or together: a compiler may contract them. What must be
exact has factors with so few bits that their product is exact either way, or is a MULACC where the format ``widens``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor, frexp, ldexp

from tg_dtype import DType, dtypes
from tg_lazy import Ops

from ...ir.uop import UOp, UOps, const
from ...machine.renderer import Renderer


class Number:
    """A value of a kernel, with Python's operators. A Python number beside it becomes a constant of its dtype."""

    __slots__ = ("uop",)

    def __init__(self, uop: UOp) -> None:
        self.uop = uop

    def like(self, value: float) -> Number:
        """A constant of the same dtype."""
        return Number(const(value, self.uop.dtype))

    def apply(self, op: Ops, *others: Number | float) -> Number:
        """An elementwise op with this as its first operand."""
        return Number(self.uop.alu(op, *(o.uop if isinstance(o, Number) else self.like(o).uop for o in others)))

    def __add__(self, x: Number | float) -> Number:
        return self.apply(Ops.ADD, x)

    def __sub__(self, x: Number | float) -> Number:
        return self.apply(Ops.SUB, x)

    def __rsub__(self, x: float) -> Number:
        return self.like(x) - self

    def __mul__(self, x: Number | float) -> Number:
        return self.apply(Ops.MUL, x)

    def __truediv__(self, x: Number | float) -> Number:
        return self.apply(Ops.FDIV, x)

    def __rtruediv__(self, x: float) -> Number:
        return self.like(x) / self

    def __neg__(self) -> Number:
        return self.apply(Ops.NEG)

    def __and__(self, x: Number | int) -> Number:
        return self.apply(Ops.AND, x)

    def __or__(self, x: Number | int) -> Number:
        return self.apply(Ops.OR, x)

    def __xor__(self, x: Number | int) -> Number:
        return self.apply(Ops.XOR, x)

    def __lshift__(self, x: Number | int) -> Number:
        return self.apply(Ops.SHL, x)

    def __rshift__(self, x: Number | int) -> Number:
        return self.apply(Ops.SHR, x)

    def __lt__(self, x: Number | float) -> Number:
        return self.apply(Ops.CMPLT, x)

    def __gt__(self, x: Number | float) -> Number:
        return (x if isinstance(x, Number) else self.like(x)) < self

    def equals(self, x: Number | float) -> Number:
        """Where both are equal."""
        return self.apply(Ops.CMPEQ, x)

    def differs(self, x: Number | float) -> Number:
        """Where they are not."""
        return self.apply(Ops.CMPNE, x)

    def where(self, yes: Number | float, no: Number | float) -> Number:
        """One of two values, at least one of them a Number, by this condition."""
        like = yes if isinstance(yes, Number) else no
        assert isinstance(like, Number)
        a, b = (v if isinstance(v, Number) else like.like(v) for v in (yes, no))
        return self.apply(Ops.WHERE, a, b)

    def fma(self, factor: Number | float, addend: Number | float) -> Number:
        """self * factor + addend, rounded once where the target can."""
        return self.apply(Ops.MULACC, factor, addend)

    def series(self, coefficients: Sequence[float]) -> Number:
        """A polynomial in this number, by Horner's rule; the highest coefficient comes first."""
        total = self.like(coefficients[0])
        for c in coefficients[1:]:
            total = total.fma(self, c)
        return total

    def cast(self, dtype: DType) -> Number:
        """The value converted."""
        return Number(self.uop.cast(dtype))

    def bitcast(self, dtype: DType) -> Number:
        """The bits taken as another dtype."""
        return Number(self.uop.bitcast(dtype))

    def at_most(self, bound: float) -> Number:
        """The lesser of this and a bound; NaN stays."""
        return (self > bound).where(bound, self)

    def at_least(self, bound: float) -> Number:
        """The greater of this and a bound; NaN stays."""
        return (self < bound).where(bound, self)


def parts(value: float, rest: float, bits: int) -> tuple[float, float]:
    """A constant as the sum of one of so many bits and what is left.

    Args:
      value: its leading part, a double.
      rest: what is to be added to ``value``.
      bits: so many bits the first summand may have.
    """
    fraction, exponent = frexp(value)
    high = ldexp(floor(ldexp(fraction, bits)), exponent - bits)
    return high, (value - high) + rest


@dataclass(frozen=True, slots=True)
class Format:
    """A float that the functions are written for, and its machine.

    Attributes:
      dtype: the float.
      signed: the signed integer of its size.
      unsigned: the unsigned one.
      mantissa: bits of the fraction that are stored.
      bias: of the exponent.
      scales: whether SCALE is there.
      shifts: whether adding a large constant and taking it away again rounds to a whole number. A compiler that may
        reorder sums takes both away.
      doubles: whether there is float64.
      converts_words: whether integers of 64 bits become float64 in vectors.
      widens: whether a function of float32 may branch to what uses float64 for more than a step or two: vectors have
        it, and MULACC of floats is rounded once.
    """

    dtype: DType
    signed: DType
    unsigned: DType
    mantissa: int
    bias: int
    scales: bool = False
    shifts: bool = True
    doubles: bool = True
    converts_words: bool = True
    widens: bool = False

    @property
    def single(self) -> bool:
        """Whether this is float32."""
        return self.dtype is dtypes.float32

    @property
    def half(self) -> int:
        """So many bits a factor may have for the product of two of them to be exact."""
        return (self.mantissa + 1) // 2

    def kept(self, x: Number, bound: float) -> Number:
        """``x``, which is at most ``bound``, as a step that no compiler mixes with the next one.

        One that may reorder sums and products would turn (x - n * a) - n * b into x - n * (a + b). It does not look
        through a comparison.
        """
        return x if self.shifts else x.at_most(bound)

    def leading(self, x: Number, dropped: int = 0) -> Number:
        """``x`` toward zero to ``half`` bits, or without so many of its last bits: ``x`` less this is exact.

        What is taken from sums that such a step rounds is what was lost, on every machine: a compiler that may reorder
        sums sees no sum in it.
        """
        dropped = dropped or self.mantissa + 1 - self.half
        ones = (1 << self.unsigned.bits) - (1 << dropped)
        return (x.bitcast(self.unsigned) & ones).bitcast(self.dtype)

    def sign(self, x: Number) -> Number:
        """The bit of the sign, in its place in an unsigned integer."""
        return x.bitcast(self.unsigned) & (1 << (self.unsigned.bits - 1))

    def size(self, x: Number) -> Number:
        """The absolute value."""
        return (x.bitcast(self.unsigned) & ((1 << (self.unsigned.bits - 1)) - 1)).bitcast(self.dtype)

    def signed_as(self, size: Number, sign: Number) -> Number:
        """``size`` with its sign changed where the bit ``sign`` is set."""
        return (size.bitcast(self.unsigned) ^ sign).bitcast(self.dtype)


FP32 = Format(dtypes.float32, dtypes.int32, dtypes.uint32, 23, 127)
FP64 = Format(dtypes.float64, dtypes.int64, dtypes.uint64, 52, 1023)


def format_for(dtype: DType, renderer: Renderer) -> Format:
    """The format of float32 or float64 on a renderer's machine."""
    target, doubles = renderer.target, renderer.supports_dtype(dtypes.float64)
    return replace(
        FP32 if dtype is dtypes.float32 else FP64,
        scales=renderer.scales and target.scales,
        shifts=renderer.shifts,
        doubles=doubles,
        converts_words=target.converts_words,
        widens=doubles and renderer.shifts and target.fused_multiply_add and target.skips,
    )


def double(x: Number, f: Format) -> Number:
    """An int64 as float64, rounded once: in two halves where only integers of 32 bits are converted in vectors.

    Either half is exact, and so is the product.
    """
    if f.converts_words:
        return x.cast(dtypes.float64)
    high = (x >> 32).cast(dtypes.int32).cast(dtypes.float64)
    low = (x.cast(dtypes.uint32) ^ (1 << 31)).bitcast(dtypes.int32).cast(dtypes.float64)  # less 2**31: it has a sign
    return high.fma(2.0**32, low + 2.0**31)


def any_lane(condition: Number) -> Number:
    """Whether a condition holds in some lane.

    All lanes are joined with those half a vector, a quarter, … further on, until each has been joined with all others:
    a form by which LLVM knows a reduction, for which machines have an instruction or two.
    """
    joined, count = condition.uop, condition.uop.dtype.count
    for bit in reversed(range((count - 1).bit_length())):
        joined = joined.alu(Ops.OR, joined.gep(*((lane + (1 << bit)) % count for lane in range(count))))
    return Number(joined if count == 1 else joined.gep(0))


_FIRST_REGISTER = 1 << 20
"""The numbers of registers from which on :func:`rarely` takes them: more than emitters and pipelining need."""


def rarely(condition: Number, rare: Sequence[Number], usual: Sequence[Number]) -> list[Number]:
    """``rare`` in lanes in which the condition holds, ``usual`` in others; nothing of ``rare`` is computed where it
    holds in none: for what is costly and seldom needed.

    All are functions of the same operands, which ``usual`` tells apart: two calls with equal values in it have equal
    conditions and ``rare`` values, too, and the same registers.
    """
    assert not any(x.uop.is_const for x in usual), "a constant tells no operands apart"
    registers = [UOp(UOps.ACC, x.uop.dtype, (x.uop,), _FIRST_REGISTER + k) for k, x in enumerate(usual)]
    chosen = [condition.where(x, y) for x, y in zip(rare, usual, strict=True)]
    assigned = [UOp(UOps.ASSIGN, dtypes.void, (r, x.uop)) for r, x in zip(registers, chosen, strict=True)]
    branch = UOp(UOps.IF, dtypes.void, (any_lane(condition).uop, *assigned))
    return [Number(UOp(UOps.READ, r.dtype, (r, branch))) for r in registers]


def scale(x: Number, power: Number) -> Number:
    """x * 2**power, rounded once, as one instruction."""
    return Number(UOp(UOps.SCALE, x.uop.dtype, (x.uop, power.uop)))
