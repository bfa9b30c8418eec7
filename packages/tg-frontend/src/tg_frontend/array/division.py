"""Quotients and remainders."""

from __future__ import annotations

from tg_lazy import Ops

from ..autograd.functions import Add, Div, FloorDiv, Fmod, Mul, Remainder, Sub, Trunc, Where
from .arithmetic import sub
from .base import B
from .comparison import compare
from .operands import alu, check_kind, constant, float_pair, pair
from .selection import where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def div(t: B, x: Any, reverse: bool = False, rounding_mode: str | None = None) -> B:
    """t / x, as floats. With ``rounding_mode`` ``"floor"`` or ``"trunc"`` integers stay integers.

    Integers divided by 0 give 0. The floor of a quotient of floats is that of the exact one: 1.0 // 0.1 is 9.0, as
    in Python, though 1.0 / 0.1 rounds to 10.0; divided by 0 it is infinite, or NaN.

    Raises:
      ValueError: if there is no such rounding mode.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([7, -7]).div(2)
      Tensor([ 3.5, -3.5])
      >>> Tensor([7, -7]).div(2, rounding_mode="floor")
      Tensor([ 3, -4])
    """
    if rounding_mode not in (None, "floor", "trunc"):
        raise ValueError(f"div: rounding_mode {rounding_mode!r}; there are None, 'floor' and 'trunc'")
    a, b = (float_pair if rounding_mode is None else pair)(t, x, "div", reverse)
    if rounding_mode is None:
        return a._apply(Div(), b)
    if a.dtype.kind == "float":
        return a._apply(FloorDiv(), b) if rounding_mode == "floor" else trunc(a._apply(Div(), b))
    check_kind(a, "div", "int", "uint")
    quotient = _int_quotient(a, b)
    if rounding_mode == "trunc" or a.dtype.kind == "uint":
        return quotient
    remainder = a._apply(Sub(), quotient._apply(Mul(), b))
    return _crosses(remainder, b)._apply(Where(), sub(quotient, 1), quotient)


def _int_quotient(x: B, b: B) -> B:
    divisor = b.lazydata.base
    if divisor.op is Ops.CONST and divisor.arg not in (0, -1):
        return alu(x, Ops.IDIV, b)
    # A division by 0, and the least integer by -1, trap on some machines.
    zero = constant(b, 0, b.dtype, "div")
    by_zero = alu(b, Ops.CMPEQ, zero)
    safe = by_zero._apply(Where(), constant(b, 1, b.dtype, "div"), b)
    if x.dtype.kind == "uint":
        return by_zero._apply(Where(), zero, alu(x, Ops.IDIV, safe))
    minus = alu(b, Ops.CMPEQ, constant(b, -1, b.dtype, "div"))
    safe = minus._apply(Where(), constant(b, 1, b.dtype, "div"), safe)
    quotient = alu(x, Ops.IDIV, safe)
    return by_zero._apply(Where(), zero, minus._apply(Where(), alu(x, Ops.NEG), quotient))


def _crosses(x: B, divisor: B) -> B:
    """Where a remainder is not 0 and has not the sign of the divisor, which is not 0 either."""
    zero = constant(x, 0, x.dtype, "mod")
    opposite = alu(alu(x, Ops.CMPLT, zero), Ops.CMPNE, alu(divisor, Ops.CMPLT, zero))
    opposite = alu(opposite, Ops.AND, alu(x, Ops.CMPNE, zero))
    known = divisor.lazydata.base
    if known.op is Ops.CONST and known.arg != 0:
        return opposite
    return alu(opposite, Ops.AND, alu(divisor, Ops.CMPNE, zero))


def idiv(t: B, x: Any, reverse: bool = False) -> B:
    """t / x truncated toward zero.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([7, -7]).idiv(2)
      Tensor([ 3, -3])
    """
    return div(t, x, reverse, rounding_mode="trunc")


def mod(t: B, x: Any, reverse: bool = False) -> B:
    """The remainder of the floored quotient, with the sign of the divisor, as in Python.

    Of floats it is exact, however large the quotient; by 0 it is NaN. Of integers by 0 it is t, so that
    ``t == t // x * x + t % x`` holds also there.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1e10, 5.0, -5.0]).mod(Tensor([3.0, float("inf"), 3.0]))
      Tensor([1., 5., 1.])
    """
    a, b = pair(t, x, "mod", reverse)
    if a.dtype.kind == "float":
        return a._apply(Remainder(), b)
    remainder = _remainder(a, b, "mod")
    if a.dtype.kind == "uint":
        return remainder
    return _crosses(remainder, b)._apply(Where(), remainder._apply(Add(), b), remainder)


def fmod(t: B, x: Any, reverse: bool = False) -> B:
    """The remainder of the truncated quotient: it has the sign of the dividend, as in C.

    Of floats it is exact, however large the quotient; by 0 it is NaN. Of integers by 0 it is t.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([7, -7]).fmod(3)
      Tensor([ 1, -1])
    """
    a, b = pair(t, x, "fmod", reverse)
    if a.dtype.kind == "float":
        return a._apply(Fmod(), b)
    return _remainder(a, b, "fmod")


def _remainder(x: B, b: B, what: str) -> B:
    check_kind(x, what, "int", "uint", "float")
    return x._apply(Sub(), _int_quotient(x, b)._apply(Mul(), b))


def remainder(t: B, x: Any) -> B:
    """The same as :meth:`mod`.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([7, -7]).remainder(3)
      Tensor([1, 2])
    """
    return mod(t, x)


def floor_divide(t: B, x: Any) -> B:
    """The floor of t / x; the gradient is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([7, -7]).floor_divide(2)
      Tensor([ 3, -4])
    """
    return div(t, x, rounding_mode="floor")


def divmod(t: B, x: Any, reverse: bool = False) -> tuple[B, B]:
    """The floored quotient and the remainder, as Python's ``divmod``.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([7, -7]).divmod(2)
      (Tensor([ 3, -4]), Tensor([1, 1]))
    """
    return div(t, x, reverse, rounding_mode="floor"), mod(t, x, reverse)


def trunc(x: B) -> B:
    """Rounded toward zero. The gradient is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.7, -1.7]).trunc()
      Tensor([ 1., -1.])
    """
    return x._apply(Trunc()) if x.dtype.kind == "float" else x


def floor(x: B) -> B:
    """The greatest whole number not above.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.7, -1.7]).floor()
      Tensor([ 1., -2.])
    """
    down = trunc(x)
    return where(compare(x, Ops.CMPLT, down, "floor"), sub(down, 1), down) if x.dtype.kind == "float" else x
