"""Binary floating-point formats on the host: bits to value and back, one correct rounding, no third party."""

from __future__ import annotations

import math
import struct

_D, _Q = struct.Struct("<d"), struct.Struct("<Q")


class FloatFormat:
    """A binary float of ``1 + exponent + mantissa`` bits with gradual underflow.

    Attributes:
      exponent: exponent bits.
      mantissa: stored mantissa bits.
      has_inf: True for IEEE formats, where the top exponent holds infinities and NaNs. False for "fn" formats
          (OCP 8-bit floating point, rev. 1.0, table 1: E4M3), where only the all-ones pattern is NaN.
      signed_zero: False for "fnuz" formats (Noune et al., "8-bit numerical formats for deep neural networks", 2022),
          which have no infinities and one zero: the pattern of -0.0 is the only NaN, what overflows becomes it, and the
          bias is one more.

    Example:
      >>> from tg_dtype.floats import FloatFormat
      >>> half = FloatFormat(5, 10)
      >>> hex(half.encode(1.0)), half.decode(0x7BFF)
      ('0x3c00', 65504.0)
    """

    __slots__ = ("_inf", "_low", "_nan", "_sign", "_top", "bias", "exponent", "has_inf", "mantissa", "signed_zero")

    def __init__(self, exponent: int, mantissa: int, has_inf: bool = True, signed_zero: bool = True) -> None:
        self.exponent, self.mantissa, self.has_inf, self.signed_zero = exponent, mantissa, has_inf, signed_zero
        self.bias = (1 << (exponent - 1)) - signed_zero
        self._low = 1 - self.bias - mantissa  # exponent of the unit of the smallest subnormal
        self._sign = 1 << (exponent + mantissa)
        full = ((1 << exponent) - 1) << mantissa
        self._inf = full
        self._nan = full | (1 << (mantissa - 1)) if has_inf else full | ((1 << mantissa) - 1)
        self._top = full - 1 if has_inf else self._nan - 1
        if not signed_zero:
            self._top, self._nan = self._nan, self._sign

    @property
    def largest(self) -> float:
        """The largest finite value."""
        return self.decode(self._top)

    @property
    def smallest_normal(self) -> float:
        """The smallest positive value with a full mantissa."""
        return math.ldexp(1.0, 1 - self.bias)

    def decode(self, bits: int) -> float:
        """The value of a bit pattern; NaN payloads are kept in the upper mantissa bits of the result."""
        if bits == self._nan and not self.signed_zero:
            return _nan(False, 1 << 51)
        sign = bits & self._sign
        mant = bits & ((1 << self.mantissa) - 1)
        exp = (bits & ~self._sign) >> self.mantissa
        if self.signed_zero and exp == (1 << self.exponent) - 1:
            if self.has_inf:
                if mant == 0:
                    return -math.inf if sign else math.inf
                return _nan(bool(sign), mant << (52 - self.mantissa))
            if mant == (1 << self.mantissa) - 1:
                return _nan(bool(sign), 1 << 51)
        value = math.ldexp(mant | (1 << self.mantissa), exp - 1 + self._low) if exp else math.ldexp(mant, self._low)
        return -value if sign else value

    def encode(self, value: float | int, saturate: bool = False) -> int:
        """The bit pattern nearest to ``value``, ties to the even mantissa. An int is rounded once, however long.

        Overflow gives infinity. Where the format has none, or with ``saturate``, it gives the largest finite value of
        that sign, and so do infinities, as 8-bit conversion instructions of GPUs do. Without a signed zero, and without
        ``saturate``, it gives NaN.
        """
        if isinstance(value, int):
            sign, mant, exp = value < 0, abs(value), 0
        elif value != value:
            raw = _Q.unpack(_D.pack(value))[0]
            payload = (raw >> (52 - self.mantissa)) & ((1 << self.mantissa) - 1)
            if not self.signed_zero:
                return self._nan
            bits = self._inf | payload if self.has_inf and payload else self._nan
            return bits | self._sign if raw >> 63 else bits
        elif math.isinf(value):
            return self._overflow(value < 0, saturate)
        else:
            sign = math.copysign(1.0, value) < 0
            frac, exp = math.frexp(abs(value))
            mant, exp = int(math.ldexp(frac, 53)), exp - 53
        if mant == 0:
            return self._sign if sign and self.signed_zero else 0
        # Shift so that the unit of `mant` is one unit in the last place of the result.
        unit = max(mant.bit_length() + exp - 1 - self.mantissa, self._low)
        shift = unit - exp
        if shift <= 0:
            mant <<= -shift
        else:
            half, rest = 1 << (shift - 1), mant & ((1 << shift) - 1)
            mant >>= shift
            mant += rest > half or (rest == half and mant & 1)
        # `mant` carries its hidden bit, so adding it to the exponent field also does the carry out of rounding.
        bits = ((unit - self._low) << self.mantissa) + mant
        if bits > self._top:
            return self._overflow(sign, saturate)
        return bits | self._sign if sign and (bits or self.signed_zero) else bits

    def round(self, value: float | int) -> float:
        """``value`` after being stored in this format."""
        return self.decode(self.encode(value))

    def _overflow(self, sign: bool, saturate: bool) -> int:
        if not self.signed_zero and not saturate:
            return self._nan
        bits = self._inf if self.has_inf and not saturate else self._top
        return bits | self._sign if sign else bits


def _nan(sign: bool, payload: int) -> float:
    value: float = _D.unpack(_Q.pack((sign << 63) | (0x7FF << 52) | payload))[0]
    return value
