"""Where the tensors of a module are, and of which dtype they are."""

from __future__ import annotations

from tg_dtype import DType, dtypes

from ..array.writing import adopt
from ..tensor import Tensor
from .moving import move
from .state import get_parameters
from .uninitialized import Uninitialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self


class Placed:
    """A module's tensors moved to devices, and cast."""

    def to(self, *wanted: Any, device: str | None = None, dtype: Any = None) -> Self:
        """Moves all tensors to a device, and casts the floating ones to a dtype. Returns the model.

        Args:
          wanted: a device and a floating dtype, or one of both.

        Raises:
          TypeError: if the dtype is no floating one.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().to("float16")
        """
        for one in wanted:
            if isinstance(one, str) and not hasattr(dtypes, one):
                device = one
            else:
                dtype = one
        kind = None if dtype is None else Tensor.zeros(0).cast(dtype).dtype
        if kind is not None and kind.kind != "float":
            raise TypeError(f"to: a floating dtype is wanted, got {kind.name}")
        for tensor in get_parameters(self):
            move(tensor, device, kind if tensor.dtype.kind == "float" else None)
        return self

    def _cast(self, kind: DType) -> Self:
        return self.to(dtype=kind)

    def half(self) -> Self:
        """As ``to("float16")``.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().half()
        """
        return self._cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """As ``to("bfloat16")``.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().bfloat16()
        """
        return self._cast(dtypes.bfloat16)

    def float(self) -> Self:
        """As ``to("float32")``.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().float()
        """
        return self._cast(dtypes.float32)

    def double(self) -> Self:
        """As ``to("float64")``.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().double()
        """
        return self._cast(dtypes.float64)

    def cpu(self) -> Self:
        """Moves all tensors to the CPU. Returns the model.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Linear(2, 3).cpu().weight.device
          'CPU'
        """
        return self.to(device="CPU")

    def cuda(self, device: int | str | None = None) -> Self:
        """Moves all tensors to a device of NVIDIA's. Returns the model.

        Args:
          device: its number, or its name; the first if not given.

        Raises:
          RuntimeError: if there is none, and why.

        Example:
          >>> from tg_frontend import nn
          >>> callable(nn.Linear(2, 3).cuda)
          True
        """
        name = "CUDA" if device is None else f"CUDA:{device}" if isinstance(device, int) else device.upper()
        return self.to(device=name)

    def type(self, dst_type: Any) -> Self:
        """Casts all tensors, integers too, to a dtype. Returns the model.

        Example:
          >>> from tg_frontend import nn
          >>> nn.BatchNorm1d(2).type("float16").num_batches_tracked.dtype
          dtypes.float16
        """
        kind = Tensor.zeros(0).cast(dst_type).dtype
        for tensor in get_parameters(self):
            move(tensor, None, kind)
        return self

    def to_empty(self, *, device: str, recurse: bool = True) -> Self:
        """Moves all tensors to a device without their elements, which are to be written then. Returns the model.

        Args:
          device: where they are made.
          recurse: whether those of the layers in the model are meant, too.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Linear(2, 3).to_empty(device="NUMPY").weight.device
          'NUMPY'
        """
        own = [value for value in vars(self).values() if isinstance(value, Tensor)]
        for tensor in get_parameters(self) if recurse else own:
            if isinstance(tensor, Uninitialized):
                tensor._noted(device, None)
            else:
                adopt(tensor, Tensor.empty(*tensor.shape, dtype=tensor.dtype, device=device))
        return self
