"""Powers."""

from __future__ import annotations

from tg_dtype import ConstType
from tg_lazy import Ops

from ..autograd.functions import Mul, Pow, Sqrt, Step, Where, splat
from .arithmetic import reciprocal
from .base import B
from .casts import cast
from .computing import copied
from .operands import alu, check_kind, constant, pair, weak_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_LARGEST_UNROLLED_POWER = 32  # of integers
_ACCURATE_POWERS = range(-2, 7)  # of floats: those that a few multiplications give within 2.5 units in the last place


def pow(t: B, x: Any, reverse: bool = False) -> B:
    """t ** x. A negative base has a power only where the exponent is a whole number, else NaN.

    Integers stay integers and wrap. To a negative power in a tensor they truncate, as in PyTorch: 0, or 1 and -1
    for the bases 1 and -1.

    Raises:
      ValueError: if integers are raised to a negative number.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([4.0, 0.25]).pow(-0.5), Tensor([3, -2]) ** 3
      (Tensor([0.5, 2. ]), Tensor([27, -8]))
    """
    if not reverse and isinstance(x, (bool, int, float)):
        found = _fixed_power(t, x)
        if found is not None:
            return found
    a, b = pair(t, x, "pow", reverse)
    if a.dtype.kind == "float":
        return a._apply(Pow(), b)
    check_kind(a, "pow", "int", "uint", "float")
    return _int_power(a, b)


def _fixed_power(t: B, x: ConstType) -> B | None:
    dtype = weak_dtype(t.dtype, x)
    if x == 0.5 and dtype.kind == "float":
        return cast(t, dtype)._apply(Sqrt())
    if isinstance(x, float) and not x.is_integer():
        return None
    n = int(x)
    if dtype.kind in ("int", "uint") and n < 0:
        raise ValueError(
            f"pow: integers ({dtype.name}) to the negative power {n} are no integers; cast to a float first, "
            f"or write {float(n)}"
        )
    fits = n in _ACCURATE_POWERS if dtype.kind == "float" else abs(n) <= _LARGEST_UNROLLED_POWER
    if not fits or dtype.kind == "bool":
        return None
    base = cast(t, dtype)
    if n == 0:
        return base._apply(Step(lambda lazy: splat(lazy, 1)))
    if n < 0:
        base = reciprocal(base)
    out: B | None = None
    for bit in bin(abs(n))[2:]:
        square = None if out is None else out._apply(Mul(), out)
        out = base if square is None else square if bit == "0" else square._apply(Mul(), base)
    return copied(t) if out is t else out


def _int_power(x: B, exponent: B) -> B:
    one, zero = constant(x, 1, x.dtype, "pow"), constant(x, 0, x.dtype, "pow")
    out, base, left = one, x, exponent
    for _ in range(x.dtype.bits - (x.dtype.kind == "int")):
        odd = alu(alu(left, Ops.AND, one), Ops.CMPNE, zero)
        out = odd._apply(Where(), alu(out, Ops.MUL, base), out)
        base, left = alu(base, Ops.MUL, base), alu(left, Ops.SHR, one)
    if x.dtype.kind == "uint":
        return out
    unit = alu(alu(x, Ops.CMPEQ, one), Ops.OR, alu(x, Ops.CMPEQ, constant(x, -1, x.dtype, "pow")))
    inverse = unit._apply(Where(), out, zero)
    return alu(exponent, Ops.CMPLT, zero)._apply(Where(), inverse, out)
