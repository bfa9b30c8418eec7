"""Sums, products, quotients, powers, comparisons of complex numbers."""

from __future__ import annotations

from ..array.operands import NUMBERS
from .algebra import minus, plus, product, quotient, zero
from .elementary import exp, log, sqrt
from .parts import (
    Parts,
    composed,
    is_complex,
    kept,
    made,
    meeting,
    operands,
    parts_of,
    tensor,
    whole,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LARGEST_UNROLLED_POWER = 32


def add(t: Any, x: Any, reverse: bool = False, *, alpha: Any = 1) -> Any:
    a, b = operands(t, x if alpha == 1 else mul(x, alpha) if hasattr(x, "dtype") else x * alpha, "add", reverse)
    return made(Parts(plus(a.re, b.re), plus(a.im, b.im)))


def sub(t: Any, x: Any, reverse: bool = False, *, alpha: Any = 1) -> Any:
    a, b = operands(t, x if alpha == 1 else mul(x, alpha) if hasattr(x, "dtype") else x * alpha, "sub", reverse)
    return made(Parts(minus(a.re, b.re), minus(a.im, b.im)))


def rsub(t: Any, x: Any, *, alpha: Any = 1) -> Any:
    return sub(x, t, alpha=alpha) if hasattr(x, "dtype") else sub(t if alpha == 1 else mul(t, alpha), x, True)


def mul(t: Any, x: Any, reverse: bool = False) -> Any:
    a, b = operands(t, x, "mul", reverse)
    return made(product(a, b))


def neg(z: Any) -> Any:
    return composed(-z._parts[0], -z._parts[1])


def positive(z: Any) -> Any:
    return z


def div(t: Any, x: Any, reverse: bool = False, rounding_mode: str | None = None) -> Any:
    if rounding_mode is not None:
        raise TypeError(f"div: rounding_mode {rounding_mode!r}: complex numbers have no order, and no floor")
    a, b = operands(t, x, "div", reverse)
    return made(quotient(a, b))


def reciprocal(z: Any) -> Any:
    return made(quotient(Parts(1.0, None), Parts(*z._parts)))


def square(z: Any) -> Any:
    return mul(z, z)


def pow(t: Any, x: Any, reverse: bool = False) -> Any:
    if not reverse and isinstance(x, NUMBERS) and x == 0.5:
        return sqrt(_lifted(t, x))
    number = x.real if isinstance(x, complex) and x.imag == 0 else x
    if not reverse and isinstance(number, (bool, int, float)) and abs(number) <= _LARGEST_UNROLLED_POWER:
        if number == int(number):
            return _whole_power(_lifted(t, x), int(number))
    base, exponent = (x, t) if reverse else (t, x)
    like = t if hasattr(t, "dtype") else x
    kind = meeting((t, x), like, "pow")
    if isinstance(base, NUMBERS):
        number = complex(base)  # type: ignore[arg-type]
        base = (like if is_complex(like) else like.cast(kind)).full_like(number, dtype=kind)
    a = whole(base, "pow", kind)
    b = parts_of(exponent, like, "pow")
    nothing = (a.re == 0).logical_and(a.im == 0)
    safe = composed(nothing.where(1.0, a.re), kept(a.im))
    out = exp(mul(log(safe), exponent))
    # 0 to a power with a positive real part is 0, to 0 it is 1; there is no other
    re, im = zero(b.re), zero(b.im)
    if isinstance(exponent, NUMBERS):
        at_zero: Any = 0.0 if re > 0 else 1.0 if re == im == 0 else float("nan")
        beside: Any = at_zero if at_zero != at_zero else 0.0
    else:
        unit = (re == 0).logical_and(im == 0)
        at_zero = (re > 0).where(0.0, unit.where(1.0, float("nan"))).cast(out.real.dtype)
        beside = at_zero * 0.0
    return composed(nothing.where(at_zero, out._parts[0]), nothing.where(beside, out._parts[1]))


def _lifted(t: Any, x: Any) -> Any:
    """A tensor as complex numbers, in the dtype in which it meets a number."""
    re, im = whole(t, "pow", meeting((t, x), t, "pow"))
    return composed(kept(re), kept(im))


def _whole_power(z: Any, n: int) -> Any:
    if n == 0:
        one, other = (part.pow(0) for part in z._parts)  # 1, and of slope 0
        return composed(one, other - 1)
    base = reciprocal(z) if n < 0 else z
    out = None
    for bit in bin(abs(n))[2:]:
        twice = None if out is None else square(out)
        out = base if twice is None else twice if bit == "0" else mul(twice, base)
    return out


def float_power(t: Any, x: Any) -> Any:
    wide = [v.cast("complex128") if hasattr(v, "dtype") else v for v in (t, x)]
    return pow(*wide)


def eq(t: Any, x: Any) -> Any:
    a, b = operands(t, x, "eq")
    same = a.re == b.re if hasattr(a.re, "dtype") else b.re == a.re
    return same if a.im is b.im is None else same.logical_and(_same(a.im, b.im, same))


def _same(x: Any, y: Any, like: Any) -> Any:
    x, y = zero(x), zero(y)
    if not hasattr(x, "dtype"):
        x, y = y, x
    return x == y if hasattr(x, "dtype") else like.full_like(x == y)


def ne(t: Any, x: Any) -> Any:
    return eq(t, x).logical_not()


def _together(t: Any, x: Any, y: Any, what: str) -> tuple[Any, Any, Any]:
    """Three operands in the dtype in which all of them meet; numbers stay what they are."""
    like = next(v for v in (t, x, y) if hasattr(v, "dtype"))
    kind = meeting((t, x, y), like, what)
    a, b, c = (v if isinstance(v, NUMBERS) else tensor(v, like, what).cast(kind) for v in (t, x, y))
    return a, b, c


def lerp(t: Any, end: Any, weight: Any) -> Any:
    t, end, weight = _together(t, end, weight, "lerp")
    return add(t, mul(sub(end, t), weight))


def addcmul(t: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    t, tensor1, tensor2 = _together(t, tensor1, tensor2, "addcmul")
    return add(t, mul(mul(tensor(tensor1, t, "addcmul"), tensor2), value))


def addcdiv(t: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    t, tensor1, tensor2 = _together(t, tensor1, tensor2, "addcdiv")
    return add(t, mul(div(tensor(tensor1, t, "addcdiv"), tensor2), value))
