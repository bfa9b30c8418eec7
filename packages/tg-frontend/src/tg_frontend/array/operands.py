"""Operands of operations on corresponding elements.

Dtypes meet as ``tg_dtype.least_upper_dtype`` says. A Python number is weak: it takes the dtype of the tensor unless
it is of a higher kind (a float beside integers makes them ``dtypes.default_float``).
"""

from __future__ import annotations

from tg_dtype import ConstType, DType, dtypes, least_upper_dtype
from tg_lazy import LazyBuffer, Ops
from tg_shape import Expr

from ..host import transfer
from .base import B, Base
from .casts import cast
from .movement import stretch
from .shapes import broadcast_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def weak_dtype(dtype: DType, value: ConstType | Expr) -> DType:
    """The dtype of a tensor of ``dtype`` beside a Python number.

    Example:
      >>> weak_dtype(dtypes.uint8, 1), weak_dtype(dtypes.uint8, 1.0), weak_dtype(dtypes.bool, 1)
      (dtypes.uint8, dtypes.float32, dtypes.int32)
    """
    if isinstance(value, float) and dtype.kind != "float":
        return dtypes.default_float
    if not isinstance(value, (bool, float)) and dtype.kind == "bool":
        return dtypes.default_int
    return dtype


def constant(x: B, value: ConstType | Expr, dtype: DType, what: str) -> B:
    """A number in the shape of this tensor.

    Raises:
      OverflowError: for an integer that ``dtype`` has not.
    """
    lazy = x._lazy
    if isinstance(value, Expr):
        single = LazyBuffer.symbolic(value, dtype, lazy.device)
        return x._wrap(single.reshape((1,) * len(lazy.shape)).expand(lazy.shape))
    if dtype.kind != "float" and type(value) is int and not dtypes.min(dtype) <= value <= dtypes.max(dtype):
        raise OverflowError(
            f"{what}: {value} is no {dtype.name} ({dtypes.min(dtype)} to {dtypes.max(dtype)}); cast first"
        )
    return x._wrap(LazyBuffer.const(value, dtype, lazy.shape, lazy.device))


def as_tensor(x: B, other: Any, what: str) -> B:
    """An operand as a tensor: itself, or an array on the device of ``x``.

    Raises:
      TypeError: if it is neither.
    """
    if isinstance(other, Base):
        return other  # type: ignore[return-value]
    if transfer.is_array(other):
        return type(x)(other, device=x.device)
    raise TypeError(f"{what}: a tensor of {x.dtype.name} and a {type(other).__name__}")


def pair(x: B, other: Any, what: str, reverse: bool = False) -> tuple[B, B]:
    """This tensor and ``other`` with one dtype and one shape, in order (exchanged if ``reverse``).

    Raises:
      TypeError: if ``other`` is no number or tensor.
      ValueError: if the shapes do not broadcast, or the devices differ.
    """
    left: B = x
    right: B
    if type(other) is type(x):
        a, b = x._lazy, other._lazy  # whose dtype, shape and device are those of every version of their memory
        if a.dtype is b.dtype and a.shape == b.shape and a.device == b.device:
            return (other, x) if reverse else (x, other)
    if isinstance(other, (bool, int, float, Expr)):
        dtype = weak_dtype(x._lazy.dtype, other)
        left = x if dtype is x._lazy.dtype else cast(x, dtype)
        right = constant(x, other, dtype, what)
    else:
        right = as_tensor(x, other, what)
        a, b = x._lazy, right._lazy
        if a.device != b.device:
            raise ValueError(f"{what}: operands on {a.device} and {b.device}; use .to()")
        if a.dtype is not b.dtype:
            dtype = least_upper_dtype(a.dtype, b.dtype)
            left, right = cast(left, dtype), cast(right, dtype)
        if a.shape != b.shape:
            shape = broadcast_shape(what, *((b.shape, a.shape) if reverse else (a.shape, b.shape)))
            left, right = stretch(left, shape), stretch(right, shape)
    return (right, left) if reverse else (left, right)


def alu(x: B, op: Ops, *others: B) -> B:
    """An operation without gradient on operands that fit."""
    return x._wrap(x.lazydata.alu(op, *(other.lazydata for other in others)))


def check_kind(x: B, what: str, *kinds: str) -> None:
    """Sees to it that the elements are of one of these kinds.

    Raises:
      TypeError: if they are not; the message names the operation.
    """
    if x.dtype.kind not in kinds:
        names = {"bool": "bool", "int": "signed integers", "uint": "unsigned integers", "float": "floats"}
        wanted = " or ".join(names[kind] for kind in kinds)
        raise TypeError(f"{what} takes {wanted}, got a tensor of {x.dtype.name}")
