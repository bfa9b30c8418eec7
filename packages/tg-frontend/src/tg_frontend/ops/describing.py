"""What a tensor is: questions that PyTorch's tensors answer, by their names."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_runtime import Device
from tg_shape import prod, sint

from ..array import casts
from ..array.array import A
from ..array.base import DTypeLike

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def dim(x: A) -> int:
    """The number of axes.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).dim()
      2
    """
    return x.ndim


def nelement(x: A) -> sint:
    """The number of elements: the same as :meth:`numel`.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).nelement()
      2
    """
    return x.numel()


def _steps(x: A) -> tuple[tuple[sint, ...], sint, bool]:
    """The strides in memory, the first element's place, and whether that is row-major.

    What is not in memory yet, or is no plain view of it, will be row-major once it is.
    """
    view = (x._place or x.lazydata).st.views[-1]
    whole = tuple(prod(x.shape[axis + 1 :]) for axis in range(x.ndim))
    number = x._place is None and x.lazydata.base.op is Ops.CONST
    if number or len((x._place or x.lazydata).st.views) > 1 or view.mask is not None:
        return whole, 0, True
    steps = tuple(one if size == 1 else step for size, step, one in zip(x.shape, view.strides, whole, strict=True))
    return steps, view.offset, steps == whole


def stride(x: A, dim: int | None = None) -> Any:
    """How far neighbours along each axis are apart in memory, in elements; or along one axis.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.arange(6).reshape(2, 3).T.stride()
      (1, 3)
    """
    steps = _steps(x)[0]
    return steps if dim is None else steps[x._axis(dim, "stride")]


def storage_offset(x: A) -> sint:
    """Where in its memory the first element is, in elements.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3])[1:].storage_offset()
      1
    """
    return _steps(x)[1]


def is_contiguous(x: A) -> bool:
    """Whether the elements are row-major in memory, or will be.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor.arange(6).reshape(2, 3)
      >>> x.is_contiguous(), x.T.is_contiguous()
      (True, False)
    """
    return 0 in x.shape or _steps(x)[2]


def is_same_size(x: A, other: A) -> bool:
    """Whether another tensor has the same shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).is_same_size(Tensor([3.0, 4.0]))
      True
    """
    return x.shape == other.shape


def is_floating_point(x: A) -> bool:
    """Whether the elements are floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0]).is_floating_point(), Tensor([1]).is_floating_point()
      (True, False)
    """
    return dtypes.is_float(x.dtype)


def is_signed(x: A) -> bool:
    """Whether the elements can be negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).is_signed(), Tensor([1, 2], dtype="uint8").is_signed()
      (True, False)
    """
    return x.dtype.kind not in ("uint", "bool")


def is_nonzero(x: A) -> bool:
    """Whether the only element is not 0: it is computed now.

    Raises:
      ValueError: if there is not exactly one element.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.5]).is_nonzero()
      True
    """
    return bool(x.item())


def get_device(x: A) -> int:
    """The number of the tensor's device among those of its kind; -1 for the host.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2], device="CPU").get_device()
      -1
    """
    name, _, number = x.device.partition(":")
    return -1 if name in ("CPU", "NUMPY") else int(number or 0)


def type(x: A, dtype: DTypeLike | None = None) -> Any:
    """The name of the tensor's dtype; or, where one is given, the tensor in that dtype.

    Raises:
      TypeError: if it is nothing that stands for a dtype.
      ValueError: if no dtype has the name.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0]).type(), Tensor([1.5]).type("int32")
      ('float32', Tensor([1]))
    """
    return x.dtype.name if dtype is None else casts.cast(x, dtype)


def cpu(x: A) -> A:
    """The tensor on the device CPU; itself if it is there.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1], device="NUMPY").cpu().device
      'CPU'
    """
    return x.to("CPU")


def cuda(x: A, device: int = 0) -> A:
    """The tensor on a device of CUDA; itself if it is there.

    Args:
      device: which one.

    Raises:
      DeviceUnavailable: if this machine has none.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1]).cuda("none")
      Traceback (most recent call last):
      TypeError: Tensor.cuda: device is an integer, got 'none' of type str
    """
    if not isinstance(device, int):
        raise TypeError(f"cuda: the number of a device is wanted, got {device!r}")
    return x.to(Device.canonicalize(f"CUDA:{device}"))


def to_device(x: A, device: str, /, *, stream: object = None) -> A:
    """The tensor on another device: the name that the array API standard has for :meth:`to`.

    Args:
      device: its name.
      stream: None: there are no streams to choose from.

    Raises:
      ValueError: if a stream is given.
      UnknownDevice: if no package offers such a device.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1]).to_device("NUMPY").device
      'NUMPY'
    """
    if stream is not None:
        raise ValueError(f"to_device: a stream ({stream!r}) is given; there are none to choose from")
    if not isinstance(device, str):
        raise TypeError(f"to_device: the name of a device is wanted, got {device!r}")
    return x.to(device)
