"""Tensors of any shape in the dtype and on the device of another one."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_shape import Expr

from ..array.array import A, Array
from ..array.base import DTypeLike
from ..array.writing import fitting
from ..host.coerce import is_arraylike
from ..host.transfer import is_array
from .creation import empty, full, ones, placed_like, zeros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tg_dtype import ConstType


def new(x: A, *data: Any, device: str | None = None) -> A:
    """A tensor in this one's dtype, of a shape or of data: :meth:`new_empty` or :meth:`new_tensor`, which say which.

    Args:
      data: sizes, or a tuple of them, for undefined content, none for no elements; or a list, an array or a tensor,
        whose values the new one has. Shapes are plain tuples here: one of integers is never data.
      device: this tensor's if None.

    Raises:
      TypeError: if data holds no numbers, or sizes are none.
      ValueError: if a size is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0]).new(2, 3).shape, Tensor([1.0]).new([2, 3])
      ((2, 3), Tensor([2., 3.]))
    """
    return new_empty(x, *(data or (0,)), device=device) if are_sizes(data) else new_tensor(x, data[0], device)


def are_sizes(data: tuple[Any, ...]) -> bool:
    """Whether what :func:`new` is given is a shape, and no data."""
    if len(data) != 1:
        return True
    sizes = data[0] if isinstance(data[0], tuple) else data
    return all(isinstance(size, (int, Expr)) and not isinstance(size, bool) for size in sizes)


def new_empty(
    x: A, *shape: Any, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
) -> A:
    """Memory with undefined content, in this tensor's dtype and device, unless others are given.

    Raises:
      ValueError: if a size is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).new_empty(2, 3).dtype
      dtypes.int32
    """
    name, kind = placed_like(x, device, dtype)
    return empty(type(x), *shape, device=name, dtype=kind, requires_grad=requires_grad)


def new_tensor(
    x: A, data: Any, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
) -> A:
    """A tensor of other data in this tensor's dtype and device, unless others are given.

    Args:
      data: whatever ``Tensor`` takes.

    Raises:
      TypeError: if the data holds no numbers, or complex ones, in lists, are to be of another kind.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0]).new_tensor([2, 3])
      Tensor([2., 3.])
    """
    name, kind = placed_like(x, device, dtype)
    if isinstance(data, Array):
        made: Any = data.detach().clone().to(name)
    elif kind.kind in ("int", "uint"):
        made = fitting(full(type(x), (), 0, name, kind), data, "new_tensor")
    else:
        made = type(x)(data, name, kind if _is_wide(data) else None)
        if made.dtype.kind == "complex" != kind.kind and not is_array(data):
            raise TypeError(f"new_tensor: complex numbers into a tensor of {kind.name}; cast a tensor of them")
        if made.dtype is not kind and kind.kind == "float" and not is_arraylike(data):
            made = type(x)(data, name, kind)  # whose digits the default dtype may not have
    made = made.cast(kind)
    return made if requires_grad is None else made.requires_grad_(requires_grad)  # type: ignore[no-any-return]


def _is_wide(data: Any) -> bool:
    """Whether Python numbers are among the data that only an unsigned dtype has."""
    if isinstance(data, (list, tuple)):
        return any(map(_is_wide, data))
    return isinstance(data, int) and data > dtypes.max(dtypes.int64)


def new_zeros(
    x: A, *shape: Any, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
) -> A:
    """Zeros in this tensor's dtype and device, unless others are given.

    Raises:
      ValueError: if a size is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).new_zeros(3)
      Tensor([0, 0, 0])
    """
    name, kind = placed_like(x, device, dtype)
    return zeros(type(x), *shape, device=name, dtype=kind, requires_grad=requires_grad)


def new_ones(
    x: A, *shape: Any, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
) -> A:
    """Ones in this tensor's dtype and device, unless others are given.

    Raises:
      ValueError: if a size is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).new_ones(3)
      Tensor([1, 1, 1])
    """
    name, kind = placed_like(x, device, dtype)
    return ones(type(x), *shape, device=name, dtype=kind, requires_grad=requires_grad)


def new_full(
    x: A, shape: Any, fill_value: ConstType, device: str | None = None, dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:  # fmt: skip
    """One value everywhere, in this tensor's dtype and device, unless others are given.

    Raises:
      ValueError: if a size is negative.
      OverflowError: if the dtype has no such value.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).new_full((3,), 7)
      Tensor([7, 7, 7])
    """
    name, kind = placed_like(x, device, dtype)
    return full(type(x), shape, fill_value, device=name, dtype=kind, requires_grad=requires_grad)
