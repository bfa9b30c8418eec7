"""Operands of operations on corresponding elements.

Dtypes meet as ``tg_dtype.result_dtype`` says: tensors with axes decide over tensors of no axes, and those over Python
numbers. What has less to say only raises the category: a float beside integers makes them ``dtypes.default_float``.
"""

from __future__ import annotations

from tg_dtype import ConstType, DType, dtypes, least_upper_dtype, result_dtype, weaker_dtype
from tg_lazy import LazyBuffer, Ops
from tg_shape import Expr

from ..host import coerce, transfer
from .base import B, Base
from .casts import cast, floating
from .movement import stretch
from .shapes import broadcast_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


NUMBERS = (bool, int, float, complex, Expr)
"""Classes of what has the least to say."""


def weak_dtype(dtype: DType, value: ConstType | complex | Expr) -> DType:
    """The dtype of a tensor of ``dtype`` beside a Python number.

    Example:
      >>> weak_dtype(dtypes.uint8, 1), weak_dtype(dtypes.uint8, 1.0), weak_dtype(dtypes.bool, 1)
      (dtypes.uint8, dtypes.float32, dtypes.int32)
    """
    kind = dtype.kind
    if kind == "complex" or (kind == "float" and not isinstance(value, complex)):
        return dtype
    if kind in ("int", "uint") and not isinstance(value, (float, complex)):
        return dtype
    return weaker_dtype(dtype, number_dtype(value))


def number_dtype(value: ConstType | complex | Expr) -> DType:
    """The dtype of a Python number by itself."""
    return coerce.dtype_of((value.vmin, value.vmax) if isinstance(value, Expr) else value)


def common_dtype(*operands: Any) -> DType:
    """The dtype in which tensors and Python numbers meet.

    Raises:
      TypeError: if one is neither.
    """
    tiers: tuple[list[DType], list[DType], list[DType]] = [], [], []
    for operand in operands:
        if isinstance(operand, Base):
            tiers[0 if operand.ndim else 1].append(operand.dtype)
        elif isinstance(operand, NUMBERS):
            tiers[2].append(number_dtype(operand))
        else:
            raise TypeError(f"result_type: a tensor or a number is wanted, got a {type(operand).__name__}")
    return result_dtype(*tiers)


def result_type(x: Any, other: Any) -> DType:
    """The dtype of what is computed from two operands, as PyTorch has it.

    A tensor with axes decides over one without, and that over a Python number. What has less to say raises the category
    at most, in the order bool, integer, float, complex.

    Args:
      x: a tensor or a number.
      other: a tensor, an array or a number.

    Raises:
      TypeError: if one is something else.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0], dtype="float16").result_type(Tensor(2.0)), Tensor([1]).result_type(2.5)
      (dtypes.float16, dtypes.float32)
    """
    if transfer.is_array(other) and isinstance(x, Base):
        other = as_tensor(x, other, "result_type")
    return common_dtype(x, other)


def together(x: B, *others: Any, what: str) -> tuple[Any, ...]:
    """This tensor and others, of which there are more than one, in one dtype; numbers and None stay what they are.

    What takes them two by two would not see that a tensor with axes is still to come.

    Raises:
      TypeError: if one is no number or tensor.
    """
    operands = [v if v is None or isinstance(v, NUMBERS) else as_tensor(x, v, what) for v in (x, *others)]
    dtype = common_dtype(*(v for v in operands if v is not None))
    return tuple(cast(v, dtype) if isinstance(v, Base) else v for v in operands)


def constant(x: B, value: ConstType | Expr, dtype: DType, what: str) -> B:
    """A number in the shape of this tensor.

    Raises:
      OverflowError: for an integer that ``dtype`` has not, or one within bounds that it has not.
    """
    lazy = x._lazy
    if isinstance(value, Expr):
        coerce.check_bounds(value, dtype, what)
        single = LazyBuffer.symbolic(value, dtype, lazy.device)
        return x._wrap(single.reshape((1,) * len(lazy.shape)).expand(lazy.shape))
    if dtype.kind != "float" and type(value) is int:
        check_range(value, dtype, what)
    return x._wrap(LazyBuffer.const(value, dtype, lazy.shape, lazy.device))


def check_range(value: int, dtype: DType, what: str) -> None:
    """Sees to it that a dtype has an integer.

    Raises:
      OverflowError: if it has not.
    """
    if not dtypes.min(dtype) <= value <= dtypes.max(dtype):
        raise OverflowError(
            f"{what}: {value} is no {dtype.name} ({dtypes.min(dtype)} to {dtypes.max(dtype)}); cast first"
        )


def is_beyond(x: B, value: Any, above: bool) -> bool:
    """Whether a value is an integer above, or below, all that the dtype of this tensor, one of integers, has."""
    value = transfer.number_of(value) if x.ndim else value
    if type(value) is not int or x._lazy.dtype.kind not in ("int", "uint"):
        return False
    return value > dtypes.max(x._lazy.dtype) if above else value < dtypes.min(x._lazy.dtype)


def as_tensor(x: B, other: Any, what: str) -> B:
    """An operand as a tensor: itself, or an array on the device of ``x``.

    Raises:
      TypeError: if it is neither.
      OverflowError: for numpy's integer that the dtype of ``x``, which decides where it has axes, has not.
    """
    if isinstance(other, Base):
        return other  # type: ignore[return-value]
    if transfer.is_array(other):
        if x.ndim and x.dtype.kind in ("int", "uint") and hasattr(other, "item") and other.shape == ():
            if type(value := other.item()) is int:
                check_range(value, x.dtype, what)
        return type(x)(other, device=x.device)
    raise TypeError(f"{what}: a tensor of {x.dtype.name} and a {type(other).__name__}")


def beside(kind: type[B], data: Any, others: Iterable[Any]) -> B:
    """A tensor of data, on the device of the first tensor among others that it meets.

    Numbers in a list, whose dtype is open, have the digits of the widest tensor among these.

    Args:
      kind: the class of tensors.
      data: a list, a number or an array.
      others: what it meets: tensors, and anything else, which is passed over.
    """
    tensors = [one for one in others if isinstance(one, Base)]
    device = tensors[0].device if tensors else None
    made = kind(data, device=device)
    if made.dtype.kind not in ("float", "complex") or coerce.is_arraylike(data):
        return made
    wide = any(one.dtype in (dtypes.float64, dtypes.complex128) for one in tensors)
    widest = dtypes.float64 if made.dtype.kind == "float" else dtypes.complex128
    return kind(data, device=device, dtype=widest) if wide and made.dtype is not widest else made


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
            dtype = _two_dtypes(a, b)
            left, right = cast(left, dtype), cast(right, dtype)
        if a.shape != b.shape:
            shape = broadcast_shape(what, *((b.shape, a.shape) if reverse else (a.shape, b.shape)))
            left, right = stretch(left, shape), stretch(right, shape)
    return (right, left) if reverse else (left, right)


def float_pair(x: B, other: Any, what: str, reverse: bool = False) -> tuple[B, B]:
    """:func:`pair` for what is computed in floats: of integers, each becomes a float by itself.

    So an integer may be one that the other's dtype has not.

    Raises:
      TypeError: if ``other`` is no number or tensor.
      ValueError: if the shapes do not broadcast, or the devices differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> float_pair(Tensor([1], dtype="uint8"), Tensor(-7), "div")
      (Tensor([1.]), Tensor([-7.]))
    """
    if x._lazy.dtype.kind != "float":  # else they meet in floats anyway
        if isinstance(other, NUMBERS):  # numpy's float64 is one
            return pair(floating(x), other, what, reverse)
        if transfer.is_array(other):
            other = type(x)(other, device=x.device)
        if isinstance(other, Base) and common_dtype(x, other).kind != "float":
            x, other = floating(x), floating(other)
    return pair(x, other, what, reverse)


def _two_dtypes(a: LazyBuffer, b: LazyBuffer) -> DType:
    """:func:`common_dtype` of two tensors."""
    if bool(a.shape) == bool(b.shape):
        return least_upper_dtype(a.dtype, b.dtype)
    return weaker_dtype(a.dtype, b.dtype) if a.shape else weaker_dtype(b.dtype, a.dtype)


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
