"""Functions of one number: roots, exponentials, trigonometry.

They take any dtype; integers and bools are computed as ``dtypes.default_float``. Floats narrower than 32 bits are
computed in float32 and rounded once.
"""

from __future__ import annotations

from tg_lazy import LazyBuffer, Ops

from ..array.array import A
from ..array.casts import floating, wide
from ..array.operands import float_pair
from ..autograd.functions import Atan2, Elementary, Sqrt, Step, splat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def elementary(x: A, op: Ops) -> A:
    """A function that is an op, of a tensor as floats."""
    return floating(x)._apply(Elementary(op))


def _sign(x: LazyBuffer) -> LazyBuffer:
    zero, one = splat(x, 0), splat(x, 1)
    below = x.alu(Ops.CMPLT, zero).alu(Ops.WHERE, one.alu(Ops.NEG), zero)
    return zero.alu(Ops.CMPLT, x).alu(Ops.WHERE, one, below)


def sign(x: A) -> A:
    """-1, 0 or 1; 0 for NaN. The gradient is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-2.0, 0.0, 3.0]).sign()
      Tensor([-1.,  0.,  1.])
    """
    if x.dtype.kind in ("uint", "bool"):
        return x.ne(0).cast(x.dtype)
    return x._apply(Step(_sign))


def square(x: A) -> A:
    """x * x; of bools integers, as those of :meth:`pow`.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.5, -2.0]).square()
      Tensor([2.25, 4.  ])
    """
    return x.pow(2) if x.dtype.kind == "bool" else x.mul(x)


def sqrt(x: A) -> A:
    """The square root; NaN below 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([4.0, 2.25]).sqrt()
      Tensor([2. , 1.5])
    """
    return floating(x)._apply(Sqrt())


def rsqrt(x: A) -> A:
    """1 over the square root.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([4.0, 0.25]).rsqrt()
      Tensor([0.5, 2. ])
    """
    return wide(x, lambda x: sqrt(x).reciprocal())


def exp(x: A) -> A:
    """e ** x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).exp().round(4)
      Tensor([1.    , 2.7183])
    """
    return elementary(x, Ops.EXP)


def exp2(x: A) -> A:
    """2 ** x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 3.0]).exp2()
      Tensor([1., 8.])
    """
    return elementary(x, Ops.EXP2)


def log(x: A) -> A:
    """The logarithm, base e; -inf at 0, NaN below.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 10.0]).log().round(4)
      Tensor([0.    , 2.3026])
    """
    return elementary(x, Ops.LOG)


def log2(x: A) -> A:
    """The logarithm, base 2; -inf at 0, NaN below.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 8.0]).log2().round(4)
      Tensor([0., 3.])
    """
    return elementary(x, Ops.LOG2)


def log10(x: A) -> A:
    """The logarithm, base 10; -inf at 0, NaN below.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 1000.0]).log10().round(4)
      Tensor([0., 3.])
    """
    return elementary(x, Ops.LOG10)


def expm1(x: A) -> A:
    """e ** x - 1, accurate near 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).expm1().round(4)
      Tensor([0.    , 1.7183])
    """
    return elementary(x, Ops.EXPM1)


def log1p(x: A) -> A:
    """log(1 + x), accurate near 0; -inf at -1, NaN below.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).log1p().round(4)
      Tensor([0.    , 0.6931])
    """
    return elementary(x, Ops.LOG1P)


def sin(x: A) -> A:
    """The sine.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).sin().round(4)
      Tensor([0.    , 0.8415])
    """
    return elementary(x, Ops.SIN)


def cos(x: A) -> A:
    """The cosine.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).cos().round(4)
      Tensor([1.    , 0.5403])
    """
    return elementary(x, Ops.COS)


def tan(x: A) -> A:
    """The tangent.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).tan().round(4)
      Tensor([0.    , 1.5574])
    """
    return elementary(x, Ops.TAN)


def asin(x: A) -> A:
    """The inverse of the sine, from -pi/2 to pi/2; NaN outside of -1 to 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).asin().round(4)
      Tensor([0.    , 1.5708])
    """
    return elementary(x, Ops.ASIN)


def acos(x: A) -> A:
    """The inverse of the cosine, from 0 to pi; NaN outside of -1 to 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).acos().round(4)
      Tensor([1.5708, 0.    ])
    """
    return elementary(x, Ops.ACOS)


def atan(x: A) -> A:
    """The inverse of the tangent, from -pi/2 to pi/2.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).atan().round(4)
      Tensor([0.    , 0.7854])
    """
    return elementary(x, Ops.ATAN)


def atan2(x: A, other: Any) -> A:
    """The angle of the point (other, x), from -pi to pi, signs of zeros included.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, -1.0]).atan2(Tensor([-1.0, 0.0])).round(4)
      Tensor([ 2.3562, -1.5708])
    """
    y, x = float_pair(x, other, "atan2")
    return y._apply(Atan2(), x)


def sinh(x: A) -> A:
    """The hyperbolic sine.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).sinh().round(4)
      Tensor([0.    , 1.1752])
    """
    return elementary(x, Ops.SINH)


def cosh(x: A) -> A:
    """The hyperbolic cosine.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).cosh().round(4)
      Tensor([1.    , 1.5431])
    """
    return elementary(x, Ops.COSH)


def tanh(x: A) -> A:
    """The hyperbolic tangent.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).tanh().round(4)
      Tensor([0.    , 0.7616])
    """
    return elementary(x, Ops.TANH)


def asinh(x: A) -> A:
    """The inverse of the hyperbolic sine.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).asinh().round(4)
      Tensor([0.    , 0.8814])
    """
    return elementary(x, Ops.ASINH)


def acosh(x: A) -> A:
    """The inverse of the hyperbolic cosine; NaN below 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).acosh().round(4)
      Tensor([0.   , 1.317])
    """
    return elementary(x, Ops.ACOSH)


def atanh(x: A) -> A:
    """The inverse of the hyperbolic tangent; NaN outside of -1 to 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 0.5]).atanh().round(4)
      Tensor([0.    , 0.5493])
    """
    return elementary(x, Ops.ATANH)
