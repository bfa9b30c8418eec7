"""Parts of numbers and special values: fractions, signs, exponents, NaN, common divisors."""

from __future__ import annotations

import math

from tg_dtype import DType, dtypes, float_format

from ..array.array import A, Array
from ..array.computing import copied
from ..array.operands import check_kind, float_pair, is_beyond, pair
from .elementary import exp2
from .predicates import isinf, isnan

_LAYOUTS = {dtypes.float32: (dtypes.int32, 23, 127), dtypes.float64: (dtypes.int64, 52, 1023)}
"""Of floats: an integer of their size, the bits of the fraction, and the bias of the exponent (IEEE 754, 3.4)."""

_MAGNITUDES = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
_EUCLID = {1: 13, 2: 24, 4: 47, 8: 93}
"""Steps of Euclid's algorithm, by bytes of the numbers: the greatest Fibonacci number below 2**64 is the 93rd."""
_TOGETHER = 8
"""Steps of one kernel."""
_FARTHEST = 2200.0
"""More binary places than there are between any two floats (float64: from 2**-1074 to 2**1024)."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def positive(x: A) -> A:
    """+x: the elements as they are.

    Raises:
      TypeError: if the elements are bools.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1, 2]).positive()
      Tensor([-1,  2])
    """
    check_kind(x, "positive", "int", "uint", "float")
    return copied(x)


def __pos__(x: A) -> A:
    """The elements as they are, in memory of their own."""
    return x.clone()


def frac(x: A) -> A:
    """What is behind the point, with the sign of x.

    Raises:
      TypeError: if the elements are no floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.25, -2.5]).frac()
      Tensor([ 0.25, -0.5 ])
    """
    check_kind(x, "frac", "float")
    return x - x.trunc()


def signbit(x: A) -> A:
    """Where the sign is set: below 0, and -0.0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, -0.0, 0.0, 1.0]).signbit()
      Tensor([ True,  True, False, False])
    """
    if x.dtype.kind != "float":
        return x < 0
    whole = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[x.dtype.itemsize]
    return x.detach().bitcast(whole) < 0


def nan_to_num(x: A, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> A:
    """The elements with numbers for what is none.

    Args:
      nan: stands for NaN.
      posinf: stands for infinity; None: the greatest number of the dtype.
      neginf: stands for minus infinity; None: the least number of the dtype.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([float("nan"), float("inf"), 1.0]).nan_to_num(posinf=9)
      Tensor([0., 9., 1.])
    """
    if x.dtype.kind != "float":
        return copied(x)
    most = float_format(x.dtype).largest
    out = isnan(x).where(nan, x)
    out = x.eq(math.inf).where(most if posinf is None else posinf, out)
    return x.eq(-math.inf).where(-most if neginf is None else neginf, out)


def heaviside(x: A, values: Any) -> A:
    """0 below 0, 1 above, and ``values`` at 0; NaN stays.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).heaviside(0.5)
      Tensor([0. , 0.5, 1. ])
    """
    a, b = pair(x, values, "heaviside")
    out = a.eq(0).where(b, (a > 0).cast(a.dtype))
    return isnan(a).where(a, out) if a.dtype.kind == "float" else out


def fmax(x: A, other: Any) -> A:
    """The greater of two; of a number and a NaN the number.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, float("nan")]).fmax(Tensor([2.0, 3.0]))
      Tensor([2., 3.])
    """
    if is_beyond(x, other, above=False):
        return copied(x)
    a, b = pair(x, other, "fmax")
    return isnan(a).where(b, isnan(b).where(a, a.maximum(b)))


def fmin(x: A, other: Any) -> A:
    """The smaller of two; of a number and a NaN the number.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, float("nan")]).fmin(Tensor([2.0, 3.0]))
      Tensor([1., 3.])
    """
    if is_beyond(x, other, above=True):
        return copied(x)
    a, b = pair(x, other, "fmin")
    return isnan(a).where(b, isnan(b).where(a, a.minimum(b)))


def float_power(x: A, exponent: Any) -> A:
    """x ** exponent, computed in float64.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([2, 3]).float_power(2).tolist()
      [4.0, 9.0]
    """
    if isinstance(exponent, Array):
        check_kind(exponent, "float_power", "bool", "int", "uint", "float")
        exponent = exponent.cast(dtypes.float64)
    return x.cast(dtypes.float64).pow(exponent)


def ldexp(x: A, other: Any) -> A:
    """x * 2 ** other.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 3.0]).ldexp(Tensor([2, -1]))
      Tensor([4. , 1.5])
    """
    a, b = float_pair(x, other, "ldexp")
    b = b.maximum(-_FARTHEST).minimum(_FARTHEST)
    half = (b * 0.5).trunc()  # in two steps: 2 ** b may be out of range where the result is not
    return a * exp2(half) * exp2(b - half)


def frexp(x: A) -> tuple[A, A]:
    """The mantissa, of magnitude 0.5 to below 1, and the exponent (int32): x = mantissa * 2 ** exponent.

    Of 0, infinity and NaN the mantissa is the element itself and the exponent 0.

    Raises:
      TypeError: if the elements are no floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 6.0]).frexp()
      (Tensor([0.5 , 0.75]), Tensor([1, 3]))
    """
    check_kind(x, "frexp", "float")
    wide = x if x.dtype.itemsize >= 4 else x.cast(dtypes.float32)
    whole, fraction, bias = _LAYOUTS[wide.dtype]
    size = wide.detach().abs()
    tiny = size < 2.0 ** (2 - bias)  # below the normal numbers the field of the exponent is 0
    field = tiny.where(size * 2.0**fraction, size).bitcast(whole) >> fraction
    exponent = field - (bias - 1) - tiny.where(fraction, 0)
    plain = size.eq(0) | isinf(size) | isnan(size)
    exponent = plain.where(0, exponent).cast(dtypes.int32)
    return plain.where(wide, ldexp(plain.where(0, wide), -exponent)).cast(x.dtype), exponent


_WORDS = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


def nextafter(x: A, other: Any) -> A:
    """The nearest number of the dtype from x toward other; NaN where one is. It has no gradient.

    Raises:
      TypeError: if the elements are no floats of 16 bits or more.

    Example:
      >>> from tg_frontend import Tensor
      >>> (Tensor([1.0]).nextafter(2.0) - 1).item() == 2.0**-23
      True
    """
    a, b = pair(x.detach(), other, "nextafter")
    if a.dtype.kind != "float" or a.dtype.itemsize not in _WORDS:
        raise TypeError(f"nextafter: floats of 16 bits or more are wanted, got a tensor of {a.dtype.name}")
    word = _WORDS[a.dtype.itemsize]
    bits = a._wrap(a.lazydata.bitcast(word))
    outward = (a < b).eq(a > 0)  # away from 0
    moved = a._wrap((bits + outward.where(1, -1).cast(word)).lazydata.bitcast(a.dtype))
    tiny = a._wrap((bits * 0 + 1).lazydata.bitcast(a.dtype))
    first = a.eq(0).where((b < 0).where(-tiny, tiny), moved)
    unordered = a.ne(a) | b.ne(b)
    return unordered.where(math.nan, a.eq(b).where(b, first)).detach()


def _common(x: A, other: Any, what: str) -> tuple[A, A, A, DType]:
    """The magnitudes of two integers, without signs; their greatest common divisor; and the dtype of both."""
    a, b = pair(x.detach(), other, what)
    check_kind(a, what, "int", "uint")
    word = _MAGNITUDES[a.dtype.itemsize]
    first, second = (part._wrap(part.abs().lazydata.bitcast(word)) for part in (a, b))
    large, small = first, second
    for step in range(_EUCLID[a.dtype.itemsize]):
        if step % _TOGETHER == _TOGETHER - 1:
            large, small = large.contiguous(), small.contiguous()
        left = small.ne(0).where(large % small.maximum(1), 0)
        large, small = small.ne(0).where(small, large), left
    return first, second, large, a.dtype


def gcd(x: A, other: Any) -> A:
    """The greatest common divisor: of 0 and a number its magnitude, of two zeros 0. It has no gradient.

    Euclid's algorithm, as many steps as neighbouring Fibonacci numbers take, which take most: 13 for a byte, 93 for
    64 bits. The steps run in several kernels, all of them the same.

    Raises:
      TypeError: if the elements are no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([12, -18, 0, 7]).gcd(Tensor([18, 12, 5, 0]))
      Tensor([6, 6, 5, 7])
    """
    _, _, found, dtype = _common(x, other, "gcd")
    return found._wrap(found.lazydata.bitcast(dtype))


def lcm(x: A, other: Any) -> A:
    """The least common multiple of the magnitudes; 0 if one is 0. One that is too large wraps. It has no gradient.

    Raises:
      TypeError: if the elements are no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([4, -6, 0]).lcm(Tensor([6, 4, 5]))
      Tensor([12, 12,  0])
    """
    a, b, divisor, dtype = _common(x, other, "lcm")
    found = a.idiv(divisor.maximum(1)) * b
    return found._wrap(found.lazydata.bitcast(dtype))
