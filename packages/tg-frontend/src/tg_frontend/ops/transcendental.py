"""Functions of one number: roots, exponentials, trigonometry, rounding, classification.

They take any dtype; integers and bools are computed as ``dtypes.default_float``. Floats narrower than 32 bits are
computed in float32 and rounded once.
"""

from __future__ import annotations

import math

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops

from ..array.operators import Operators
from ..autograd.functions import Atan2, Elementary, Sqrt, Step, splat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self


def _sign(x: LazyBuffer) -> LazyBuffer:
    zero, one = splat(x, 0), splat(x, 1)
    below = x.alu(Ops.CMPLT, zero).alu(Ops.WHERE, one.alu(Ops.NEG), zero)
    return zero.alu(Ops.CMPLT, x).alu(Ops.WHERE, one, below)


def _sign_bit(x: LazyBuffer) -> LazyBuffer:
    """-1 where a float is negative or -0.0, else 1."""
    zero, one = splat(x, 0), splat(x, 1)
    minus_zero = x.alu(Ops.CMPEQ, zero).alu(Ops.AND, x.alu(Ops.RECIP).alu(Ops.CMPLT, zero))
    return x.alu(Ops.CMPLT, zero).alu(Ops.OR, minus_zero).alu(Ops.WHERE, one.alu(Ops.NEG), one)


class Transcendental(Operators):
    """Functions of one number."""

    __slots__ = ()

    def _wide(self, compute: Callable[[Self], Self]) -> Self:
        x = self._floating()
        return compute(x) if x.dtype.itemsize >= 4 else compute(x.cast(dtypes.float32)).cast(x.dtype)

    def _elementary(self, op: Ops) -> Self:
        return self._floating()._apply(Elementary(op))

    # *** powers and logarithms ***

    def abs(self) -> Self:
        """The absolute value; the gradient at 0 is 0."""
        return self.__abs__()

    def sign(self) -> Self:
        """-1, 0 or 1; 0 for NaN. The gradient is 0."""
        if self.dtype.kind in ("uint", "bool"):
            return self.ne(0).cast(self.dtype)
        return self._apply(Step(_sign))

    def square(self) -> Self:
        """self * self."""
        return self.mul(self)

    def sqrt(self) -> Self:
        """The square root; NaN below 0."""
        return self._floating()._apply(Sqrt())

    def rsqrt(self) -> Self:
        """1 over the square root."""
        return self._wide(lambda x: x.sqrt().reciprocal())

    def exp(self) -> Self:
        """e ** self."""
        return self._elementary(Ops.EXP)

    def exp2(self) -> Self:
        """2 ** self."""
        return self._elementary(Ops.EXP2)

    def log(self) -> Self:
        """The logarithm, base e; -inf at 0, NaN below."""
        return self._elementary(Ops.LOG)

    def log2(self) -> Self:
        """The logarithm, base 2; -inf at 0, NaN below."""
        return self._elementary(Ops.LOG2)

    def log10(self) -> Self:
        """The logarithm, base 10; -inf at 0, NaN below."""
        return self._elementary(Ops.LOG10)

    def expm1(self) -> Self:
        """e ** self - 1, accurate near 0."""
        return self._elementary(Ops.EXPM1)

    def log1p(self) -> Self:
        """log(1 + self), accurate near 0; -inf at -1, NaN below."""
        return self._elementary(Ops.LOG1P)

    def logaddexp(self, x: Any) -> Self:
        """log(e ** self + e ** x), without overflow."""
        a, b = (t._floating() for t in self._pair(x, "logaddexp"))
        same = a.eq(b)  # two infinities of one sign differ by NaN
        apart = (same.where(0, a) - same.where(0, b)).abs()
        return a.maximum(b) + (-apart).exp().log1p()

    # *** trigonometry, in radians ***

    def sin(self) -> Self:
        """The sine."""
        return self._elementary(Ops.SIN)

    def cos(self) -> Self:
        """The cosine."""
        return self._elementary(Ops.COS)

    def tan(self) -> Self:
        """The tangent."""
        return self._elementary(Ops.TAN)

    def asin(self) -> Self:
        """The inverse of the sine, from -pi/2 to pi/2; NaN outside of -1 to 1."""
        return self._elementary(Ops.ASIN)

    def acos(self) -> Self:
        """The inverse of the cosine, from 0 to pi; NaN outside of -1 to 1."""
        return self._elementary(Ops.ACOS)

    def atan(self) -> Self:
        """The inverse of the tangent, from -pi/2 to pi/2."""
        return self._elementary(Ops.ATAN)

    def atan2(self, other: Any) -> Self:
        """The angle of the point (other, self), from -pi to pi, signs of zeros included.

        >>> from tg_frontend import Tensor
        >>> Tensor([1.0, -1.0]).atan2(Tensor([-1.0, 0.0])).tolist()
        [2.356194496154785, -1.5707963705062866]
        """
        y, x = self._pair(other, "atan2")
        return y._floating()._apply(Atan2(), x._floating())

    # *** hyperbolic ***

    def sinh(self) -> Self:
        """The hyperbolic sine."""
        return self._elementary(Ops.SINH)

    def cosh(self) -> Self:
        """The hyperbolic cosine."""
        return self._elementary(Ops.COSH)

    def tanh(self) -> Self:
        """The hyperbolic tangent."""
        return self._elementary(Ops.TANH)

    def asinh(self) -> Self:
        """The inverse of the hyperbolic sine."""
        return self._elementary(Ops.ASINH)

    def acosh(self) -> Self:
        """The inverse of the hyperbolic cosine; NaN below 1."""
        return self._elementary(Ops.ACOSH)

    def atanh(self) -> Self:
        """The inverse of the hyperbolic tangent; NaN outside of -1 to 1."""
        return self._elementary(Ops.ATANH)

    def erf(self) -> Self:
        """The error function."""
        return self._elementary(Ops.ERF)

    def erfc(self) -> Self:
        """1 less the error function, accurate where that is tiny."""
        return self._elementary(Ops.ERFC)

    # *** rounding: the gradient is 0 ***

    def ceil(self) -> Self:
        """The least whole number not below."""
        if self.dtype.kind != "float":
            return self._copied()
        down = self.trunc()
        return (down < self).where(down + 1, down)

    def round(self, decimals: int = 0) -> Self:
        """The nearest whole number; of two, the even one.

        Args:
          decimals: digits kept behind the point; of a negative number so many before it become 0.
        """
        if decimals:
            if self.dtype.kind != "float":
                return self if decimals > 0 else (self / 10**-decimals).round().mul(10**-decimals).cast(self.dtype)
            power = 10.0 ** abs(decimals)
            return (self * power).round() / power if decimals > 0 else (self / power).round() * power
        if self.dtype.kind != "float":
            return self._copied()
        down = self.floor()
        rest = self.detach() - down.detach()
        half = down * 0.5
        even = half.floor().eq(half)
        return ((rest > 0.5) | (rest.eq(0.5) & ~even)).where(down + 1, down)

    def __round__(self, ndigits: int | None = None) -> Self:
        """For ``round(t)`` and ``round(t, 2)``."""
        return self.round(ndigits or 0)

    # *** kinds of numbers ***

    def isnan(self) -> Self:
        """Where a float is not a number."""
        return self._alu(Ops.CMPNE, self)

    def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Self:
        """Where a float is infinite, of the signs asked for."""
        if self.dtype.kind != "float":
            return self._splat(False, dtypes.bool, "isinf")
        positive = self.eq(math.inf) if detect_positive else self._splat(False, dtypes.bool, "isinf")
        return positive | self.eq(-math.inf) if detect_negative else positive

    def isfinite(self) -> Self:
        """Where a number is neither infinite nor NaN."""
        return ~(self.isinf() | self.isnan())

    def isclose(self, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Self:
        """Where abs(self - other) <= atol + rtol * abs(other), or both are the same infinity."""
        a, b = self.detach()._pair(other, "isclose")
        a, b = a._floating(), b.detach()._floating()
        near: Self = (a - b).abs() <= b.abs() * rtol + atol
        same = (a.isfinite() & b.isfinite() & near) | a.eq(b)
        return same | (a.isnan() & b.isnan()) if equal_nan else same

    # *** limits and mixtures ***

    def clip(self, min_: Any = None, max_: Any = None) -> Self:
        """The elements, not below ``min_`` and not above ``max_``.

        Raises:
          ValueError: neither bound is given.
        """
        if min_ is None and max_ is None:
            raise ValueError("clip: at least one bound must be given")
        out = self if min_ is None else (self < min_).where(min_, self)
        return out if max_ is None else (out > max_).where(max_, out)

    def clamp(self, min_: Any = None, max_: Any = None) -> Self:
        """The same as :meth:`clip`."""
        return self.clip(min_, max_)

    def lerp(self, end: Any, weight: Any) -> Self:
        """self + (end - self) * weight."""
        return self + (self._tensor(end, "lerp") - self).mul(weight)

    def copysign(self, other: Any) -> Self:
        """The magnitude of self with the sign of other, also where other is a zero; a NaN counts as positive."""
        a, b = self._floating()._pair(other, "copysign")
        return a.abs() * b._apply(Step(_sign_bit))
