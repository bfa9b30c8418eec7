"""Sums, differences, products."""

from __future__ import annotations

from ..autograd.functions import Abs, Add, Mul, Neg, Reciprocal, Sub
from ..host.transfer import number_of
from .base import B
from .casts import floating
from .computing import copied
from .operands import as_tensor, check_kind, pair
from .selection import maximum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _times(t: B, x: Any, alpha: float, what: str) -> Any:
    check_factor(alpha, "alpha", what, *pair(t, x, what))
    return x * alpha if isinstance(x, (bool, int, float)) else mul(as_tensor(t, x, what), number_of(alpha))


def check_factor(factor: Any, name: str, what: str, *operands: Any) -> None:
    """Refuses a float that integers and bools were to be multiplied by, whose result would be of their type.

    Raises:
      ValueError: if the factor is a float, and no operand is.
    """
    if isinstance(number_of(factor), float) and all(one.dtype.kind not in ("float", "complex") for one in operands):
        kinds = " and ".join(one.dtype.name for one in operands)
        raise ValueError(f"{what}: {name} is the float {factor}, the operands are {kinds}; cast one to a float")


def add(t: B, x: Any, reverse: bool = False, *, alpha: float = 1) -> B:
    """t + alpha * x; of bools, or.

    Raises:
      ValueError: if ``alpha`` is a float, and the operands are integers or bools. So it is for :meth:`sub`, too.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).add(Tensor([[10], [20]]))
      Tensor([[11, 12],
              [21, 22]])
    """
    a, b = pair(t, x if alpha == 1 else _times(t, x, alpha, "add"), "add", reverse)
    return a._apply(Add(), b)


def sub(t: B, x: Any, reverse: bool = False, *, alpha: float = 1) -> B:
    """t - alpha * x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).sub(5)
      Tensor([-4, -3])
    """
    a, b = pair(t, x if alpha == 1 else _times(t, x, alpha, "sub"), "sub", reverse)
    check_kind(a, "sub", "int", "uint", "float")
    return a._apply(Sub(), b)


def mul(t: B, x: Any, reverse: bool = False) -> B:
    """t * x; of bools, and.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).mul(1.5)
      Tensor([1.5, 3. ])
    """
    a, b = pair(t, x, "mul", reverse)
    return a._apply(Mul(), b)


def neg(x: B) -> B:
    """-x. Unsigned integers wrap; of bools use ``~``.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, -2]).neg()
      Tensor([-1,  2])
    """
    check_kind(x, "neg", "int", "uint", "float")
    return x._apply(Neg())


def reciprocal(x: B) -> B:
    """1 / x, as floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([4, 0.5]).reciprocal()
      Tensor([0.25, 2.  ])
    """
    return floating(x)._apply(Reciprocal())


def abs(x: B) -> B:
    """The absolute value; the gradient at 0 is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, -2]).abs()
      Tensor([1, 2])
    """
    if x.dtype.kind == "float":
        return x._apply(Abs())
    return copied(x) if x.dtype.kind in ("uint", "bool") else maximum(x, neg(x))
