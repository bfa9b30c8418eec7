"""IEEE 754 in Python's integers and fractions: every operation is exact, then rounded once.

Source: IEEE 754-2019, sections 3.4 (encodings), 4.3.1 (rounding), 6 (infinities, NaN, signed zeros).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Format:
    """A binary interchange format. Numbers are bit patterns; all NaN results are :attr:`nan`.

    Attributes:
      exponent: bits of the exponent.
      fraction: bits of the fraction.
      rounding: to nearest ``even``, or towards ``zero``, ``up`` or ``down``.

    Example:
      >>> hex(SINGLE.add(0x3F800000, 0x33800000)), hex(SINGLE.add(0x3F800001, 0x33800000))
      ('0x3f800000', '0x3f800002')
    """

    exponent: int
    fraction: int
    rounding: str = "even"

    @property
    def bits(self) -> int:
        """Bits of the whole number."""
        return 1 + self.exponent + self.fraction

    @property
    def infinity(self) -> int:
        """The positive one."""
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def nan(self) -> int:
        """A quiet NaN."""
        return self.infinity | 1 << (self.fraction - 1)

    @property
    def sign(self) -> int:
        """The sign's bit."""
        return 1 << (self.bits - 1)

    def is_nan(self, x: int) -> bool:
        """Whether a pattern is no number."""
        return x & ~self.sign > self.infinity

    def is_infinite(self, x: int) -> bool:
        """Whether a pattern is an infinity."""
        return x & ~self.sign == self.infinity

    def value(self, x: int) -> Fraction:
        """The number of a finite pattern."""
        biased, fraction = x >> self.fraction & ((1 << self.exponent) - 1), x & ((1 << self.fraction) - 1)
        scale = max(biased, 1) - (1 << (self.exponent - 1)) + 1 - self.fraction
        magnitude = Fraction(fraction | (1 << self.fraction if biased else 0)) * Fraction(2) ** scale
        return -magnitude if x & self.sign else magnitude

    def round(self, number: Fraction, zero: int = 0) -> int:
        """The nearest pattern; a result of exactly zero is the pattern ``zero``."""
        if number == 0:
            return zero
        sign, magnitude = self.sign if number < 0 else 0, abs(number)
        least = 2 - (1 << (self.exponent - 1)) - self.fraction
        power = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if magnitude < Fraction(2) ** power:
            power -= 1
        scale = max(power - self.fraction, least)
        exact = magnitude / Fraction(2) ** scale
        away = self.rounding == ("down" if sign else "up")
        steps = _nearest_even(exact) if self.rounding == "even" else math.ceil(exact) if away else math.floor(exact)
        # where the fraction overflows into the exponent, the pattern is right as it is
        pattern = steps + (scale - least << self.fraction)
        most = self.infinity if self.rounding == "even" or away else self.infinity - 1
        return sign | min(pattern, most)

    def _zero(self, x: int, y: int) -> int:
        """The zero that a sum of two numbers with these signs is."""
        return (x | y if self.rounding == "down" else x & y) & self.sign

    def add(self, x: int, y: int) -> int:
        """``x + y``."""
        if self.is_nan(x) or self.is_nan(y):
            return self.nan
        if self.is_infinite(x) or self.is_infinite(y):
            both = self.is_infinite(x) and self.is_infinite(y)
            return self.nan if both and x != y else x if self.is_infinite(x) else y
        return self.round(self.value(x) + self.value(y), self._zero(x, y))

    def sub(self, x: int, y: int) -> int:
        """``x - y``."""
        return self.add(x, y ^ self.sign)

    def mul(self, x: int, y: int) -> int:
        """``x * y``."""
        sign = (x ^ y) & self.sign
        if self.is_nan(x) or self.is_nan(y):
            return self.nan
        if self.is_infinite(x) or self.is_infinite(y):
            zero = not x & ~self.sign or not y & ~self.sign
            return self.nan if zero else sign | self.infinity
        return self.round(self.value(x) * self.value(y), sign)

    def fma(self, x: int, y: int, z: int) -> int:
        """``x * y + z``, rounded once."""
        if any(self.is_nan(n) or self.is_infinite(n) for n in (x, y, z)):
            return self.add(self.mul(x, y) if self.is_nan(x) or self.is_nan(y) or self.is_infinite(x) or
                            self.is_infinite(y) else 0, z)  # fmt: skip
        sign = (x ^ y) & self.sign
        return self.round(self.value(x) * self.value(y) + self.value(z), self._zero(sign, z))

    def div(self, x: int, y: int) -> int:
        """``x / y``."""
        sign, no_x, no_y = (x ^ y) & self.sign, not x & ~self.sign, not y & ~self.sign
        if self.is_nan(x) or self.is_nan(y) or (no_x and no_y) or (self.is_infinite(x) and self.is_infinite(y)):
            return self.nan
        if self.is_infinite(x) or no_y:
            return sign | self.infinity
        return sign if self.is_infinite(y) else self.round(self.value(x) / self.value(y), sign)

    def sqrt(self, x: int) -> int:
        """The square root of ``x``."""
        if self.is_nan(x) or not x & ~self.sign or (self.is_infinite(x) and not x & self.sign):
            return self.nan if self.is_nan(x) else x
        if x & self.sign:
            return self.nan
        number = self.value(x)
        # so many bits that what is lost after them cannot be a tie: a sticky bit stands for it
        shift = 4 * (self.fraction + (1 << self.exponent))
        scaled = number.numerator * (1 << 2 * shift) // number.denominator
        root = math.isqrt(scaled)
        exact = root * root == scaled and scaled * number.denominator == number.numerator << 2 * shift
        return self.round(Fraction(2 * root + (not exact), 2 << shift))

    def convert(self, x: int, to: Format) -> int:
        """The same number in another format."""
        sign = to.sign if x & self.sign else 0
        if self.is_nan(x):
            return to.nan
        return sign | to.infinity if self.is_infinite(x) else to.round(self.value(x), sign)

    def to_int(self, x: int, low: int, high: int) -> int:
        """Rounded towards zero, and to the bounds what lies beyond them; NaN is 0."""
        if self.is_nan(x):
            return 0
        if self.is_infinite(x):
            return low if x & self.sign else high
        return min(max(math.trunc(self.value(x)), low), high)


def _nearest_even(number: Fraction) -> int:
    whole, rest = divmod(number.numerator, number.denominator)
    twice = 2 * rest
    return whole + (twice > number.denominator or (twice == number.denominator and whole & 1))


HALF, SINGLE, DOUBLE = Format(5, 10), Format(8, 23), Format(11, 52)
