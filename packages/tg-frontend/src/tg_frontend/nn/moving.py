"""A tensor of a model moved to a device and cast, in its own place."""

from __future__ import annotations

from ..array.writing import adopt
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
    if new.dtype is not tensor.dtype or new.device != tensor.device:
        adopt(tensor, new)
