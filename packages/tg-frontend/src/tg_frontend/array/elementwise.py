"""Arithmetic, comparisons, bits: operations on corresponding elements of broadcast operands.

Dtypes meet as ``tg_dtype.least_upper_dtype`` says. A Python number is weak: it takes the dtype of the tensor unless
it is of a higher kind (a float beside integers makes them ``dtypes.default_float``).
"""

from __future__ import annotations

from tg_dtype import ConstType, DType, dtypes, least_upper_dtype, least_upper_float
from tg_lazy import LazyBuffer, Ops
from tg_shape import Expr

from ..autograd.functions import (
    Add,
    Div,
    FloorDiv,
    Fmod,
    Maximum,
    Mul,
    Neg,
    Pow,
    Reciprocal,
    Remainder,
    Sqrt,
    Step,
    Sub,
    Trunc,
    Where,
    splat,
)
from ..host import coerce, transfer
from .core import Core
from .movement import Movement
from .shapes import broadcast_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

_LARGEST_UNROLLED_POWER = 32  # of integers
_ACCURATE_POWERS = range(-2, 7)  # of floats: those that a few multiplications give within 2.5 units in the last place


def weak_dtype(dtype: DType, value: ConstType | Expr) -> DType:
    """The dtype of a tensor of ``dtype`` beside a Python number.

    >>> weak_dtype(dtypes.uint8, 1), weak_dtype(dtypes.uint8, 1.0), weak_dtype(dtypes.bool, 1)
    (dtypes.uint8, dtypes.float32, dtypes.int32)
    """
    if isinstance(value, float) and dtype.kind != "float":
        return dtypes.default_float
    if not isinstance(value, (bool, float)) and dtype.kind == "bool":
        return dtypes.default_int
    return dtype


class Elementwise(Movement):
    """Operations on corresponding elements."""

    __slots__ = ()

    # *** operands ***

    def _splat(self, value: ConstType | Expr, dtype: DType, what: str) -> Self:
        """A number in the shape of this tensor.

        Raises:
          OverflowError: an integer that ``dtype`` has not.
        """
        lazy = self._lazy
        if isinstance(value, Expr):
            single = LazyBuffer.symbolic(value, dtype, lazy.device)
            return self._wrap(single.reshape((1,) * len(lazy.shape)).expand(lazy.shape))
        if dtype.kind != "float" and type(value) is int and not dtypes.min(dtype) <= value <= dtypes.max(dtype):
            raise OverflowError(
                f"{what}: {value} is no {dtype.name} ({dtypes.min(dtype)} to {dtypes.max(dtype)}); cast first"
            )
        return self._wrap(LazyBuffer.const(value, dtype, lazy.shape, lazy.device))

    def _pair(self, other: Any, what: str, reverse: bool = False) -> tuple[Self, Self]:
        """This tensor and ``other`` with one dtype and one shape, in order (exchanged if ``reverse``).

        Raises:
          TypeError: ``other`` is no number or tensor.
          ValueError: the shapes do not broadcast, or the devices differ.
        """
        x: Self = self
        y: Self
        if type(other) is type(self):
            a, b = self._lazy, other._lazy  # whose dtype, shape and device are those of every version of their memory
            if a.dtype is b.dtype and a.shape == b.shape and a.device == b.device:
                return (other, self) if reverse else (self, other)
        if isinstance(other, (bool, int, float, Expr)):
            dtype = weak_dtype(self._lazy.dtype, other)
            x = self if dtype is self._lazy.dtype else self.cast(dtype)
            y = self._splat(other, dtype, what)
        else:
            y = self._tensor(other, what)
            a, b = self._lazy, y._lazy
            if a.device != b.device:
                raise ValueError(f"{what}: operands on {a.device} and {b.device}; use .to()")
            if a.dtype is not b.dtype:
                dtype = least_upper_dtype(a.dtype, b.dtype)
                x, y = x.cast(dtype), y.cast(dtype)
            if a.shape != b.shape:
                shape = broadcast_shape(what, *((b.shape, a.shape) if reverse else (a.shape, b.shape)))
                x, y = x._stretch(shape), y._stretch(shape)
        return (y, x) if reverse else (x, y)

    def _tensor(self, other: Any, what: str) -> Self:
        if isinstance(other, Core):
            return other  # type: ignore[return-value]
        if transfer.is_array(other):
            return type(self)(other, device=self.device)
        raise TypeError(f"{what}: a tensor of {self.dtype.name} and a {type(other).__name__}")

    def _alu(self, op: Ops, *others: Self) -> Self:
        """An operation without gradient on operands that fit."""
        return self._wrap(self.lazydata.alu(op, *(other.lazydata for other in others)))

    def _floating(self) -> Self:
        return self.cast(least_upper_float(self.dtype))

    def _kinds(self, what: str, *kinds: str) -> None:
        if self.dtype.kind not in kinds:
            names = {"bool": "bool", "int": "signed integers", "uint": "unsigned integers", "float": "floats"}
            wanted = " or ".join(names[kind] for kind in kinds)
            raise TypeError(f"{what} takes {wanted}, got a tensor of {self.dtype.name}")

    # *** arithmetic ***

    def add(self, x: Any, reverse: bool = False) -> Self:
        """self + x; of bools, or."""
        a, b = self._pair(x, "add", reverse)
        return a._apply(Add(), b)

    def sub(self, x: Any, reverse: bool = False) -> Self:
        """self - x."""
        a, b = self._pair(x, "sub", reverse)
        a._kinds("sub", "int", "uint", "float")
        return a._apply(Sub(), b)

    def mul(self, x: Any, reverse: bool = False) -> Self:
        """self * x; of bools, and."""
        a, b = self._pair(x, "mul", reverse)
        return a._apply(Mul(), b)

    def div(self, x: Any, reverse: bool = False, rounding_mode: str | None = None) -> Self:
        """self / x, as floats. With ``rounding_mode`` ``"floor"`` or ``"trunc"`` integers stay integers.

        Integers divided by 0 give 0. The floor of a quotient of floats is that of the exact one: 1.0 // 0.1 is 9.0, as
        in Python, though 1.0 / 0.1 rounds to 10.0; divided by 0 it is infinite, or NaN.

        Raises:
          ValueError: there is no such rounding mode.
        """
        if rounding_mode not in (None, "floor", "trunc"):
            raise ValueError(f"div: rounding_mode {rounding_mode!r}; there are None, 'floor' and 'trunc'")
        a, b = self._pair(x, "div", reverse)
        if rounding_mode == "floor" and a.dtype.kind == "float":
            return a._apply(FloorDiv(), b)
        if rounding_mode is None or a.dtype.kind == "float":
            quotient = a._floating()._apply(Div(), b._floating())
            return quotient if rounding_mode is None else quotient.trunc()
        a._kinds("div", "int", "uint")
        quotient = a._int_quotient(b)
        if rounding_mode == "trunc" or a.dtype.kind == "uint":
            return quotient
        remainder = a._apply(Sub(), quotient._apply(Mul(), b))
        return remainder._crosses(b)._apply(Where(), quotient.sub(1), quotient)

    def _int_quotient(self, b: Self) -> Self:
        divisor = b.lazydata.base
        if divisor.op is Ops.CONST and divisor.arg not in (0, -1):
            return self._alu(Ops.IDIV, b)
        # A division by 0, and the least integer by -1, trap on some machines.
        zero = b._splat(0, b.dtype, "div")
        by_zero = b._alu(Ops.CMPEQ, zero)
        safe = by_zero._apply(Where(), b._splat(1, b.dtype, "div"), b)
        if self.dtype.kind == "uint":
            return by_zero._apply(Where(), zero, self._alu(Ops.IDIV, safe))
        minus = b._alu(Ops.CMPEQ, b._splat(-1, b.dtype, "div"))
        safe = minus._apply(Where(), b._splat(1, b.dtype, "div"), safe)
        quotient = self._alu(Ops.IDIV, safe)
        return by_zero._apply(Where(), zero, minus._apply(Where(), self._alu(Ops.NEG), quotient))

    def _crosses(self, divisor: Self) -> Self:
        """Where a remainder is not 0 and has not the sign of the divisor, which is not 0 either."""
        zero = self._splat(0, self.dtype, "mod")
        opposite = self._alu(Ops.CMPLT, zero)._alu(Ops.CMPNE, divisor._alu(Ops.CMPLT, zero))
        opposite = opposite._alu(Ops.AND, self._alu(Ops.CMPNE, zero))
        known = divisor.lazydata.base
        if known.op is Ops.CONST and known.arg != 0:
            return opposite
        return opposite._alu(Ops.AND, divisor._alu(Ops.CMPNE, zero))

    def idiv(self, x: Any, reverse: bool = False) -> Self:
        """self / x truncated toward zero."""
        return self.div(x, reverse, rounding_mode="trunc")

    def mod(self, x: Any, reverse: bool = False) -> Self:
        """The remainder of the floored quotient, with the sign of the divisor, as in Python.

        Of floats it is exact, however large the quotient; by 0 it is NaN. Of integers by 0 it is self, so that
        ``self == self // x * x + self % x`` holds also there.

        >>> from tg_frontend import Tensor
        >>> (Tensor([1e10, 5.0, -5.0]) % Tensor([3.0, float("inf"), 3.0])).tolist()
        [1.0, 5.0, 1.0]
        """
        a, b = self._pair(x, "mod", reverse)
        if a.dtype.kind == "float":
            return a._apply(Remainder(), b)
        remainder = a._remainder(b, "mod")
        if a.dtype.kind == "uint":
            return remainder
        return remainder._crosses(b)._apply(Where(), remainder._apply(Add(), b), remainder)

    def fmod(self, x: Any, reverse: bool = False) -> Self:
        """The remainder of the truncated quotient: it has the sign of the dividend, as in C.

        Of floats it is exact, however large the quotient; by 0 it is NaN. Of integers by 0 it is self.
        """
        a, b = self._pair(x, "fmod", reverse)
        if a.dtype.kind == "float":
            return a._apply(Fmod(), b)
        return a._remainder(b, "fmod")

    def _remainder(self, b: Self, what: str) -> Self:
        self._kinds(what, "int", "uint", "float")
        return self._apply(Sub(), self._int_quotient(b)._apply(Mul(), b))

    def remainder(self, x: Any) -> Self:
        """The same as :meth:`mod`."""
        return self.mod(x)

    def floor_divide(self, x: Any) -> Self:
        """The floor of self / x; the gradient is 0."""
        return self.div(x, rounding_mode="floor")

    def divmod(self, x: Any, reverse: bool = False) -> tuple[Self, Self]:
        """The floored quotient and the remainder, as Python's ``divmod``."""
        return self.div(x, reverse, rounding_mode="floor"), self.mod(x, reverse)

    def pow(self, x: Any, reverse: bool = False) -> Self:
        """self ** x. A negative base has a power only where the exponent is a whole number, else NaN.

        Integers stay integers and wrap. To a negative power in a tensor they truncate, as in PyTorch: 0, or 1 and -1
        for the bases 1 and -1.

        >>> from tg_frontend import Tensor
        >>> (Tensor([4.0, 2.0]) ** -0.5).tolist(), (Tensor([3, -2]) ** 3).tolist()
        ([0.5, 0.7071067690849304], [27, -8])

        Raises:
          ValueError: integers are raised to a negative number.
        """
        if not reverse and isinstance(x, (bool, int, float)):
            found = self._fixed_power(x)
            if found is not None:
                return found
        a, b = self._pair(x, "pow", reverse)
        if a.dtype.kind == "float":
            return a._apply(Pow(), b)
        a._kinds("pow", "int", "uint", "float")
        return a._int_power(b)

    def _fixed_power(self, x: ConstType) -> Self | None:
        dtype = weak_dtype(self.dtype, x)
        if x == 0.5 and dtype.kind == "float":
            return self.cast(dtype)._apply(Sqrt())
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
        base = self.cast(dtype)
        if n == 0:
            return base._apply(Step(lambda lazy: splat(lazy, 1)))
        if n < 0:
            base = base.reciprocal()
        out: Self | None = None
        for bit in bin(abs(n))[2:]:
            square = None if out is None else out._apply(Mul(), out)
            out = base if square is None else square if bit == "0" else square._apply(Mul(), base)
        return self._copied() if out is self else out

    def _int_power(self, exponent: Self) -> Self:
        one, zero = self._splat(1, self.dtype, "pow"), self._splat(0, self.dtype, "pow")
        out, base, left = one, self, exponent
        for _ in range(self.dtype.bits - (self.dtype.kind == "int")):
            odd = left._alu(Ops.AND, one)._alu(Ops.CMPNE, zero)
            out = odd._apply(Where(), out._alu(Ops.MUL, base), out)
            base, left = base._alu(Ops.MUL, base), left._alu(Ops.SHR, one)
        if self.dtype.kind == "uint":
            return out
        unit = self._alu(Ops.CMPEQ, one)._alu(Ops.OR, self._alu(Ops.CMPEQ, self._splat(-1, self.dtype, "pow")))
        inverse = unit._apply(Where(), out, zero)
        return exponent._alu(Ops.CMPLT, zero)._apply(Where(), inverse, out)

    def neg(self) -> Self:
        """-self. Unsigned integers wrap; of bools use ``~``."""
        self._kinds("neg", "int", "uint", "float")
        return self._apply(Neg())

    def reciprocal(self) -> Self:
        """1 / self, as floats."""
        return self._floating()._apply(Reciprocal())

    def trunc(self) -> Self:
        """Rounded toward zero. The gradient is 0."""
        return self._apply(Trunc()) if self.dtype.kind == "float" else self

    def floor(self) -> Self:
        """The greatest whole number not above."""
        down = self.trunc()
        return self._compare(Ops.CMPLT, down, "floor").where(down.sub(1), down) if self.dtype.kind == "float" else self

    # *** choosing ***

    def maximum(self, x: Any) -> Self:
        """The greater of self and x; NaN if either is. Ties split the gradient."""
        a, b = self._pair(x, "maximum")
        return a._apply(Maximum(), b)

    def minimum(self, x: Any) -> Self:
        """The smaller of self and x; NaN if either is. Ties split the gradient."""
        a, b = self._pair(x, "minimum")
        if a.dtype.kind == "float":
            return a._apply(Neg())._apply(Maximum(), b._apply(Neg()))._apply(Neg())
        # ~x reverses the order of integers and of bools, and none is lost
        return a._alu(Ops.NOT)._alu(Ops.MAX, b._alu(Ops.NOT))._alu(Ops.NOT)

    def where(self, x: Any, y: Any) -> Self:
        """x where this tensor, of bools, is true, else y.

        Raises:
          TypeError: this is no tensor of bools.
          ValueError: the shapes do not broadcast, or the devices differ.
        """
        if self.dtype.kind != "bool":
            raise TypeError(
                f"where: the condition is a tensor of bools, got {self.dtype.name}: condition.where(x, y); "
                "compare first, as t != 0"
            )
        if isinstance(x, (bool, int, float, Expr)) and isinstance(y, (bool, int, float, Expr)):
            kinds = [dtypes.default_int if isinstance(v, Expr) else coerce.dtype_of(v) for v in (x, y)]
            dtype = least_upper_dtype(*kinds)
            a, b = self._splat(x, dtype, "where"), self._splat(y, dtype, "where")
        elif isinstance(x, (bool, int, float, Expr)):
            b, a = self._tensor(y, "where")._pair(x, "where")
        else:
            a, b = self._tensor(x, "where")._pair(y, "where")
        if a.device != self.device:
            raise ValueError(f"where: operands on {self.device} and {a.device}; use .to()")
        shape = broadcast_shape("where", self.shape, a.shape)
        condition = self if self._wants_grad is False else self.detach()
        return condition._stretch(shape)._apply(Where(), a._stretch(shape), b._stretch(shape))

    def masked_fill(self, mask: Any, value: Any) -> Self:
        """``value`` where the mask is true."""
        return self._tensor(mask, "masked_fill").where(value, self)

    # *** comparisons ***

    def _compare(self, op: Ops, x: Any, what: str, reverse: bool = False) -> Self:
        a, b = self._pair(x, what, reverse)
        return a._alu(op, b)

    def eq(self, x: Any) -> Self:
        """Where self == x."""
        return self._compare(Ops.CMPEQ, x, "eq")

    def ne(self, x: Any) -> Self:
        """Where self != x."""
        return self._compare(Ops.CMPNE, x, "ne")

    def _at_least(self, x: Any, what: str, reverse: bool) -> Self:
        a, b = self._pair(x, what, reverse)
        if a.dtype.kind == "float":  # a NaN is not at least anything
            return b._alu(Ops.CMPLT, a)._alu(Ops.OR, a._alu(Ops.CMPEQ, b))
        return a._alu(Ops.CMPLT, b)._alu(Ops.NOT)

    # *** bits ***

    def _bits(self, op: Ops, x: Any, what: str, reverse: bool = False) -> Self:
        a, b = self._pair(x, what, reverse)
        a._kinds(what, "bool", "int", "uint")
        return a._alu(op, b)

    def bitwise_and(self, x: Any, reverse: bool = False) -> Self:
        """self & x, of integers or bools."""
        return self._bits(Ops.AND, x, "bitwise_and", reverse)

    def bitwise_or(self, x: Any, reverse: bool = False) -> Self:
        """self | x, of integers or bools."""
        return self._bits(Ops.OR, x, "bitwise_or", reverse)

    def bitwise_xor(self, x: Any, reverse: bool = False) -> Self:
        """self ^ x, of integers or bools."""
        return self._bits(Ops.XOR, x, "bitwise_xor", reverse)

    def bitwise_not(self) -> Self:
        """Every bit inverted; of bools, not."""
        self._kinds("bitwise_not", "bool", "int", "uint")
        return self._alu(Ops.NOT)

    def logical_not(self) -> Self:
        """Where self is 0."""
        return self._alu(Ops.NOT) if self.dtype.kind == "bool" else self.eq(0)

    def _shift(self, op: Ops, x: Any, what: str, reverse: bool) -> Self:
        a, b = self._pair(x, what, reverse)
        a._kinds(what, "int", "uint")
        if isinstance(x, int) and not reverse and not 0 <= x < a.dtype.bits:
            raise ValueError(f"{what}: {x} places in a tensor of {a.dtype.name}; 0 to {a.dtype.bits - 1} are possible")
        return a._alu(op, b)

    def lshift(self, x: Any, reverse: bool = False) -> Self:
        """self << x. Amounts in a tensor outside 0 to bits - 1 give anything."""
        return self._shift(Ops.SHL, x, "lshift", reverse)

    def rshift(self, x: Any, reverse: bool = False) -> Self:
        """self >> x, keeping the sign. Amounts in a tensor outside 0 to bits - 1 give anything."""
        return self._shift(Ops.SHR, x, "rshift", reverse)
