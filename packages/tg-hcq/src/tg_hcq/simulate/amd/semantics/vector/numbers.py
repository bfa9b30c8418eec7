"""What the rooms of floats share: formats, bits, and conversions that round once."""

from __future__ import annotations

from dataclasses import dataclass

from ....engine import F16, F32, F64, I16, I32, I64, Emitter, Type, Value
from ...modifiers import Kind


@dataclass(frozen=True, slots=True)
class Format:
    """A format of floats.

    Attributes:
      kind: of an operand.
      bits: of a number.
      fraction: bits of its fraction.
    """

    kind: Kind
    bits: int
    fraction: int

    @property
    def suffix(self) -> str:
        """As mnemonics have it."""
        return f"f{self.bits}"

    @property
    def bias(self) -> int:
        """Of the exponent."""
        return (1 << self.bits - 2 - self.fraction) - 1

    @property
    def sign(self) -> int:
        """The sign's bit, as a number of this many bits."""
        return -(1 << self.bits - 1)

    @property
    def infinity(self) -> int:
        """The bits of infinity."""
        return (2 * self.bias + 1) << self.fraction

    @property
    def nan(self) -> int:
        """The bits of a quiet NaN."""
        return self.infinity | 1 << self.fraction - 1


HALF, SINGLE, DOUBLE = Format(Kind.F16, 16, 10), Format(Kind.F32, 32, 23), Format(Kind.F64, 64, 52)
FORMATS = (HALF, SINGLE, DOUBLE)


def raw(e: Emitter, x: Value) -> Value:
    """The bits of a float."""
    return e.bits(x, x.type.integer)


def pattern(e: Emitter, kind: Type, bits: int) -> Value:
    """A float by its bits."""
    signed = bits - (bits >> kind.bits - 1 << kind.bits)
    return e.bits(e.value(kind.integer, signed), kind)


def magnitude(e: Emitter, x: Value) -> Value:
    """Without the sign."""
    return e.intrinsic("fabs", x)


def without_subnormals(e: Emitter, x: Value) -> Value:
    """Of 32 bits; what is too small for a normal number is a zero of its sign."""
    bits = raw(e, x)
    return e.bits(e.select(e.compare("eq", bits & 0x7F800000, 0), bits & -(1 << 31), bits), F32)


def is_nan(e: Emitter, x: Value) -> Value:
    """Whether it is no number."""
    return e.compare("uno", x, x)


def widened(e: Emitter, x: Value, to: Type) -> Value:
    """A float as one of more bits, exactly."""
    return x if x.type.bits == to.bits else e.convert("fpext", x, to)


def narrowed(e: Emitter, x: Value, to: Type) -> Value:
    """A float as one of fewer bits, rounded once as the host does."""
    if x.type.bits == to.bits:
        return x
    if x.type.bits == 64 and to.bits == 16:
        return e.convert("fptrunc", odd(e, x), F16)
    return e.convert("fptrunc", x, to)


def odd(e: Emitter, x: Value) -> Value:
    """Of 64 bits as one of 32, whose last bit says whether anything was lost: it can be rounded again."""
    near = e.convert("fptrunc", x, F32)
    back = e.convert("fpext", near, F64)
    far = e.compare("ogt", magnitude(e, back), magnitude(e, x))
    inexact = e.compare("one", back, x)
    bits = raw(e, near)
    bits = bits - e.convert("zext", far, I32) | e.convert("zext", inexact, I32)
    return e.bits(bits, F32)


def towards_zero(e: Emitter, x: Value, to: Type) -> Value:
    """A float as one of fewer bits, towards zero, where the host rounds to nearest."""
    near = narrowed(e, x, to)
    far = e.compare("ogt", magnitude(e, widened(e, near, x.type)), magnitude(e, x))
    return e.bits(raw(e, near) - e.convert("zext", far, raw(e, near).type), to)


def power_of_two(e: Emitter, n: Value, to: Type) -> Value:
    """Two to an integer whose power is a normal number."""
    of = {16: HALF, 32: SINGLE, 64: DOUBLE}[to.bits]
    wide = {16: I16, 32: I32, 64: I64}[to.bits]
    number = n if n.type.bits == to.bits else e.convert("sext" if n.type.bits < to.bits else "trunc", n, wide)
    return e.bits(number + of.bias << of.fraction, to)


def bounded(e: Emitter, n: Value, low: int, high: int) -> Value:
    """An integer between two."""
    return e.intrinsic("smin", e.intrinsic("smax", n, low), high)


def scaled(e: Emitter, x: Value, n: Value) -> Value:
    """``x`` times two to the ``n``, rounded once.

    Args:
      e: the function.
      x: a float.
      n: integers of 16 or 32 bits.
    """
    if x.type.bits == 16:
        n = bounded(e, n, -100, 100)
        return narrowed(e, widened(e, x, F32) * power_of_two(e, n, F32), F16)
    if x.type.bits == 32:
        return narrowed(e, widened(e, x, F64) * power_of_two(e, bounded(e, n, -400, 400), F64), F32)
    # the last product alone may be subnormal: what goes before it leaves at least 53 bits above
    n = bounded(e, n, -3000, 3000)
    for _ in range(2):
        up, down = e.compare("sgt", n, 1023), e.compare("slt", n, -1022)
        factor = e.select(up, e.constant(x.type, 2.0**1023), e.constant(x.type, 1.0))
        factor = e.select(down, e.constant(x.type, 2.0**-969), factor)
        x = x * factor
        n = e.select(up, n - 1023, e.select(down, n + 969, n))
    return x * power_of_two(e, bounded(e, n, -1022, 1023), F64)


def fused(e: Emitter, x: Value, y: Value, z: Value) -> Value:
    """``x * y + z``, rounded once."""
    if x.type.bits != 16:
        return e.intrinsic("fma", x, y, z)
    x, y, z = (widened(e, v, F64) for v in (x, y, z))
    return narrowed(e, e.intrinsic("fma", x, y, z), F16)
