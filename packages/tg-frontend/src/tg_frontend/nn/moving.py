"""A tensor of a model moved to a device and cast, in its own place."""

from __future__ import annotations

from ..array.becoming import adopt
from ..autograd.functions import RowSparse
from ..memory.realization import delist
from ..tensor import Tensor
from .uninitialized import Uninitialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tg_dtype import DType


def move(tensor: Tensor, device: str | None, dtype: DType | None) -> None:
    """Moves a tensor of a model to a device, and casts it, and its gradient likewise; it stays the same object.

    Example:
      >>> from tg_dtype import dtypes
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn.moving import move
      >>> x = Tensor([1.0])
      >>> move(x, None, dtypes.float16)
      >>> x
      Tensor([1.], dtype=float16)
    """
    if isinstance(tensor, Uninitialized):
        tensor._noted(device, dtype)
        return
    new = tensor.detach()
    new = new if dtype is None else new.cast(dtype)
    new = new if device is None else new.to(device)
    if new.dtype is tensor.dtype and new.device == tensor.device:
        return
    if new.is_complex() and not tensor.is_complex():
        _turn(tensor, new)
        return
    for part, moved in zip(tensor._floats(), new._floats(), strict=True):
        adopt(part, moved)
        _follow(part)


def _follow(tensor: Tensor) -> None:
    """Moves a gradient to where its tensor has been moved; the rows of a row-sparse one stay rows."""
    gradient = tensor.grad
    rows = None if gradient is None else gradient._row_sparse()
    if rows is not None:
        cast = RowSparse(rows.index, rows.values.cast(tensor.dtype), rows.shape, rows.coalesced)
        tensor.grad = tensor._value(cast.copy_to(tensor.device))
    elif gradient is not None:
        move(gradient, tensor.device, tensor.dtype)


def _turn(tensor: Tensor, value: Tensor) -> None:
    """Makes this very object the complex tensor that ``value`` is, whose parts are learnt as it was."""
    wish, learnt, gradient = tensor._wish, tensor._parameter, tensor.grad
    delist(tensor)
    tensor.grad = tensor._ctx = tensor._home = tensor._place = tensor._cut = tensor._rows = None
    del tensor._lazy
    tensor.__class__ = type(value)
    tensor._parts = value._parts
    for part in tensor._parts:
        part.requires_grad = wish
        if learnt:
            part._parameter = True
    if gradient is not None:
        for part, its in zip(tensor._parts, (gradient.detach(), gradient.zeros_like()), strict=True):
            part.grad = its.cast(part.dtype).to(part.device)
