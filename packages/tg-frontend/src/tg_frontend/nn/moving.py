"""A tensor of a model moved to a device and cast, in its own place."""

from __future__ import annotations

from ..array.becoming import adopt
from ..memory.realization import delist
from ..tensor import Tensor
from .uninitialized import Uninitialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tg_dtype import DType


def move(tensor: Tensor, device: str | None, dtype: DType | None) -> None:
    """Moves a tensor of a model to a device, and casts it; it stays the same object.

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


def _turn(tensor: Tensor, value: Tensor) -> None:
    """Makes this very object the complex tensor that ``value`` is, whose parts are learnt as it was."""
    wish, learnt = tensor._wish, tensor._parameter
    delist(tensor)
    tensor.grad = tensor._ctx = tensor._home = tensor._place = tensor._cut = tensor._rows = None
    del tensor._lazy
    tensor.__class__ = type(value)
    tensor._parts = value._parts
    for part in tensor._parts:
        part.requires_grad = wish
        if learnt:
            part._parameter = True
