"""Where the tensors of a module are, and of which dtype they are."""

from __future__ import annotations

from tg_dtype import DType, dtypes

from ..array.becoming import adopt
from ..tensor import Tensor
from .initial import LEARNT
from .moving import move
from .state import get_parameters
from .uninitialized import Uninitialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self


class Placed:
    """A module's tensors moved to devices, and cast."""

    def to(
        self, *wanted: Any, device: str | None = None, dtype: Any = None, non_blocking: bool = False,
        memory_format: Any = None,
    ) -> Self:  # fmt: skip
        """Moves all tensors to a device, and casts those of floats to a dtype; gradients, too. Returns the model.

        A complex dtype makes complex parameters of those of floats.

        Args:
          wanted: a device and a dtype of floats or complex numbers, or one of both; or a tensor, for both of its.
          device: where they are moved.
          dtype: what they are cast to.
          non_blocking: of no effect.
          memory_format: of no effect: there is one.

        Raises:
          TypeError: if the dtype is one of integers, or one of floats for a model with complex tensors.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Linear(2, 3).to("complex64").weight.dtype
          dtypes.complex64
        """
        for one in wanted:
            if isinstance(one, Tensor):
                device, dtype = one.device, one.dtype
            elif isinstance(one, str) and not hasattr(dtypes, one):
                device = one
            elif not isinstance(one, bool):  # which is non_blocking
                dtype = one
        kind = None if dtype is None else Tensor.zeros(0).cast(dtype).dtype
        if kind is not None and kind.kind not in LEARNT:
            raise TypeError(f"to: a dtype of floats or complex numbers is wanted, got {kind.name}")
        tensors = get_parameters(self)
        if kind is not None and kind.kind == "float" and any(tensor.dtype.kind == "complex" for tensor in tensors):
            raise TypeError(f"to: complex tensors would lose their imaginary parts as {kind.name}")
        for tensor in tensors:
            move(tensor, device, kind if tensor.dtype.kind in LEARNT else None)
        return self

    def _cast(self, kind: DType) -> Self:
        for tensor in get_parameters(self):
            move(tensor, None, kind if tensor.dtype.kind == "float" else None)
        return self

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
                for part in tensor._floats():
                    adopt(part, Tensor.empty(*part.shape, dtype=part.dtype, device=device))
        return self
