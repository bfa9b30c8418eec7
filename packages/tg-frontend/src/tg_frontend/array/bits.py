"""Operations on bits."""

from __future__ import annotations

from tg_lazy import Ops

from .base import B
from .comparison import eq, ne
from .operands import alu, check_kind, pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _bits(t: B, op: Ops, x: Any, what: str, reverse: bool = False) -> B:
    a, b = pair(t, x, what, reverse)
    check_kind(a, what, "bool", "int", "uint")
    return alu(a, op, b)


def bitwise_and(t: B, x: Any, reverse: bool = False) -> B:
    """t & x, of integers or bools.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([12, 10]).bitwise_and(6)
      Tensor([4, 2])
    """
    return _bits(t, Ops.AND, x, "bitwise_and", reverse)


def bitwise_or(t: B, x: Any, reverse: bool = False) -> B:
    """t | x, of integers or bools.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([12, 10]).bitwise_or(6)
      Tensor([14, 14])
    """
    return _bits(t, Ops.OR, x, "bitwise_or", reverse)


def bitwise_xor(t: B, x: Any, reverse: bool = False) -> B:
    """t ^ x, of integers or bools.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([12, 10]).bitwise_xor(6)
      Tensor([10, 12])
    """
    return _bits(t, Ops.XOR, x, "bitwise_xor", reverse)


def bitwise_not(x: B) -> B:
    """Every bit inverted; of bools, not.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([12, -1]).bitwise_not()
      Tensor([-13,   0])
    """
    check_kind(x, "bitwise_not", "bool", "int", "uint")
    return alu(x, Ops.NOT)


def logical_not(x: B) -> B:
    """Where x is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0, 2]).logical_not()
      Tensor([ True, False])
    """
    return alu(x, Ops.NOT) if x.dtype.kind == "bool" else eq(x, 0)


def _truths(t: B, x: Any, what: str) -> tuple[B, B]:
    a, b = pair(t, x, what)
    return ne(a, 0), ne(b, 0)


def logical_and(t: B, x: Any) -> B:
    """Where neither t nor x is 0; a NaN is not 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0, 1, 2]).logical_and(Tensor([1, 0, 3]))
      Tensor([False, False,  True])
    """
    a, b = _truths(t, x, "logical_and")
    return alu(a, Ops.AND, b)


def logical_or(t: B, x: Any) -> B:
    """Where t or x is not 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0, 1, 0]).logical_or(Tensor([1, 0, 0]))
      Tensor([ True,  True, False])
    """
    a, b = _truths(t, x, "logical_or")
    return alu(a, Ops.OR, b)


def logical_xor(t: B, x: Any) -> B:
    """Where one of t and x is 0 and the other is not.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0, 1, 2]).logical_xor(Tensor([1, 0, 3]))
      Tensor([ True,  True, False])
    """
    a, b = _truths(t, x, "logical_xor")
    return alu(a, Ops.XOR, b)


def _shift(t: B, op: Ops, x: Any, what: str, reverse: bool) -> B:
    a, b = pair(t, x, what, reverse)
    check_kind(a, what, "int", "uint")
    if isinstance(x, int) and not reverse and not 0 <= x < a.dtype.bits:
        raise ValueError(f"{what}: {x} places in a tensor of {a.dtype.name}; 0 to {a.dtype.bits - 1} are possible")
    return alu(a, op, b)


def lshift(t: B, x: Any, reverse: bool = False) -> B:
    """t << x. Amounts in a tensor outside 0 to bits - 1 give anything.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 3]).lshift(2)
      Tensor([ 4, 12])
    """
    return _shift(t, Ops.SHL, x, "lshift", reverse)


def rshift(t: B, x: Any, reverse: bool = False) -> B:
    """t >> x, keeping the sign. Amounts in a tensor outside 0 to bits - 1 give anything.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([8, -8]).rshift(2)
      Tensor([ 2, -2])
    """
    return _shift(t, Ops.SHR, x, "rshift", reverse)
