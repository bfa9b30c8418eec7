"""Functions of corresponding elements: the methods of Tensor, by the names and with the operands of the standard."""

from __future__ import annotations

from ..tensor import Tensor
from .operands import both, tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _unary(name: str, method: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A function of one tensor, which a method computes."""

    def function(x: Tensor, /) -> Tensor:
        return method(tensor(x, name))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Of each element: see :meth:`Tensor.{method.__name__.lstrip('_')}`."
    return function


def _binary(name: str, method: Callable[[Tensor, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    """A function of two operands, which a method computes; one of them may be a Python number."""

    def function(x1: Any, x2: Any, /) -> Tensor:
        return method(*both(x1, x2, name))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Of each pair of elements: see :meth:`Tensor.{method.__name__}`."
    return function


def _sign(x: Tensor) -> Tensor:
    """Of each number its direction, 0 of 0; what is not a number has none, where :meth:`Tensor.sign` gives 0."""
    return x.isnan().where(x, x.sgn()) if x.dtype.kind in ("float", "complex") else x.sign()


abs = _unary("abs", Tensor.abs)
acos = _unary("acos", Tensor.acos)
acosh = _unary("acosh", Tensor.acosh)
asin = _unary("asin", Tensor.asin)
asinh = _unary("asinh", Tensor.asinh)
atan = _unary("atan", Tensor.atan)
atanh = _unary("atanh", Tensor.atanh)
bitwise_invert = _unary("bitwise_invert", Tensor.bitwise_not)
ceil = _unary("ceil", Tensor.ceil)
cos = _unary("cos", Tensor.cos)
cosh = _unary("cosh", Tensor.cosh)
exp = _unary("exp", Tensor.exp)
expm1 = _unary("expm1", Tensor.expm1)
floor = _unary("floor", Tensor.floor)
isfinite = _unary("isfinite", Tensor.isfinite)
isinf = _unary("isinf", Tensor.isinf)
isnan = _unary("isnan", Tensor.isnan)
log = _unary("log", Tensor.log)
log10 = _unary("log10", Tensor.log10)
log1p = _unary("log1p", Tensor.log1p)
log2 = _unary("log2", Tensor.log2)
logical_not = _unary("logical_not", Tensor.logical_not)
negative = _unary("negative", Tensor.neg)
positive = _unary("positive", Tensor.positive)
reciprocal = _unary("reciprocal", Tensor.reciprocal)
round = _unary("round", Tensor.round)
sign = _unary("sign", _sign)
signbit = _unary("signbit", Tensor.signbit)
sin = _unary("sin", Tensor.sin)
sinh = _unary("sinh", Tensor.sinh)
sqrt = _unary("sqrt", Tensor.sqrt)
square = _unary("square", Tensor.square)
tan = _unary("tan", Tensor.tan)
tanh = _unary("tanh", Tensor.tanh)
trunc = _unary("trunc", Tensor.trunc)

add = _binary("add", Tensor.add)
atan2 = _binary("atan2", Tensor.atan2)
bitwise_and = _binary("bitwise_and", Tensor.bitwise_and)
bitwise_left_shift = _binary("bitwise_left_shift", Tensor.lshift)
bitwise_or = _binary("bitwise_or", Tensor.bitwise_or)
bitwise_right_shift = _binary("bitwise_right_shift", Tensor.rshift)
bitwise_xor = _binary("bitwise_xor", Tensor.bitwise_xor)
copysign = _binary("copysign", Tensor.copysign)
divide = _binary("divide", Tensor.div)
equal = _binary("equal", Tensor.eq)
floor_divide = _binary("floor_divide", Tensor.floor_divide)
greater = _binary("greater", Tensor.gt)
greater_equal = _binary("greater_equal", Tensor.ge)
hypot = _binary("hypot", Tensor.hypot)
less = _binary("less", Tensor.lt)
less_equal = _binary("less_equal", Tensor.le)
logaddexp = _binary("logaddexp", Tensor.logaddexp)
logical_and = _binary("logical_and", Tensor.logical_and)
logical_or = _binary("logical_or", Tensor.logical_or)
logical_xor = _binary("logical_xor", Tensor.logical_xor)
maximum = _binary("maximum", Tensor.maximum)
minimum = _binary("minimum", Tensor.minimum)
multiply = _binary("multiply", Tensor.mul)
nextafter = _binary("nextafter", Tensor.nextafter)
not_equal = _binary("not_equal", Tensor.ne)
pow = _binary("pow", Tensor.pow)
remainder = _binary("remainder", Tensor.remainder)
subtract = _binary("subtract", Tensor.sub)


def conj(x: Tensor, /) -> Tensor:
    """The conjugate; of real numbers the elements themselves."""
    return tensor(x, "conj").conj()


def real(x: Tensor, /) -> Tensor:
    """The real part, as a copy of its own."""
    return tensor(x, "real").real.clone()


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part, as a copy of its own.

    Raises:
      TypeError: if the elements are not complex.
    """
    return tensor(x, "imag").imag.clone()


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Each element, no less than ``min`` and no more than ``max``; in the dtype of ``x``."""
    bounds = [bound.cast(x.dtype) if isinstance(bound, Tensor) else bound for bound in (min, max)]
    return tensor(x, "clip").clip(*bounds) if any(bound is not None for bound in bounds) else x.clone()
