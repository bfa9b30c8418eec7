"""Conversion: other dtypes, other devices."""

from __future__ import annotations

from tg_dtype import dtypes, least_upper_float
from tg_runtime import Device

from ..autograd.differentiation import MODE
from ..autograd.functions import Cast, Contiguous, Copy
from ..host import coerce
from ..host.coerce import to_dtype
from ..memory.home import Bits
from .base import B, Base, DTypeLike

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def cast(x: B, dtype: DTypeLike) -> B:
    """The elements converted to ``dtype``: from float to integer truncated toward zero and saturated.

    Raises:
      TypeError: if ``dtype`` is no type of elements.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.9, -1.9, 300.0]).cast("uint8")
      Tensor([  1,   0, 255], dtype=uint8)
    """
    wanted = to_dtype(dtype)
    if wanted is x.dtype:
        return x
    if wanted.kind == "void" or wanted.count != 1:
        raise TypeError(f"cast: {x.dtype.name} to {wanted.name}: elements are scalars")
    return x._apply(Cast(wanted))


def bitcast(x: B, dtype: DTypeLike) -> B:
    """The bits of the elements taken as ``dtype``. Where the sizes differ, the last axis grows or shrinks.

    Raises:
      TypeError: if ``dtype`` is no type of elements; or a gradient would be wanted, and there is none.
      ValueError: if the last axis does not hold a whole number of the new elements.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0]).bitcast("int32")
      Tensor([1065353216])
    """
    wanted, lazy = to_dtype(dtype), x.lazydata
    if wanted is x.dtype:
        return x
    if wanted.kind == "void" or wanted.count != 1:
        raise TypeError(f"bitcast: {x.dtype.name} to {wanted.name}: elements are scalars")
    if x._wish and MODE.recording:
        raise TypeError(f"bitcast: {x.dtype.name} to {wanted.name} has no gradient; detach() first")
    old, new = x.dtype.itemsize, wanted.itemsize
    if old != new and (not lazy.shape or lazy.shape[-1] * old % new != 0):
        raise ValueError(
            f"bitcast: {x.dtype.name} ({old} bytes) of shape {x.shape} to {wanted.name} ({new} bytes): "
            "the last axis is no whole number of them"
        )
    home = x._memory()
    seen = (x._place or x.lazydata).st
    if not home.direct:  # bits are taken of memory
        home.settle()
    bits = Bits(home, seen, wanted)
    out = x._wrap(bits.root)
    out._home = bits
    return out


def to(x: B, device: Any = None, dtype: Any = None, non_blocking: Any = False, copy: Any = False) -> B:
    """The tensor on another device, in another dtype, or both; itself if nothing changes.

    Args:
      device: a device's name; or a dtype, alone, as ``t.to("float16")`` or ``t.to(np.float16)``; or a tensor, whose
        device and dtype are meant. None is the tensor's own device if a dtype is given, else the default one.
      dtype: a dtype, or what stands for one.
      non_blocking: says nothing: what is computed here is never waited for.
      copy: give another tensor even if nothing changes. As PyTorch has it, this and the one before may follow a dtype.

    Raises:
      UnknownDevice: if no package offers such a device; the message lists what there is.
      DeviceUnavailable: if this machine lacks what the device needs.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.5, 2.5]).to("int32")
      Tensor([1, 2])
    """
    if not (non_blocking in (True, False) and copy in (True, False)):
        raise TypeError(f"to: non_blocking and copy are True or False, got {non_blocking!r} and {copy!r}")
    if dtype is True or dtype is False:  # PyTorch's (dtype, non_blocking, copy)
        dtype, copy = None, copy or non_blocking is True
    if copy:
        out = to(x, device, dtype)
        return out._apply(Contiguous(fresh=True)) if out is x else out
    if isinstance(device, Base):
        return to(x, device.device, device.dtype)
    if coerce.names_dtype(device):
        if dtype is not None:
            raise TypeError(f"to: two dtypes, {device!r} and {dtype!r}; a device comes first")
        device, dtype = None, device
    out = x if dtype is None else cast(x, dtype)
    if device is None and dtype is not None:
        return out
    if not (device is None or isinstance(device, str)):
        raise TypeError(f"to: a device is a name, got {device!r}; a dtype is one of Tensor's, numpy's or PyTorch's")
    name = Device.canonicalize(device)
    if name == x.device:
        return out
    Device[name]  # one that is not there is told now, not when something is computed
    return out._apply(Copy(name))


def floating(x: B) -> B:
    """The tensor itself, if it is of floats; of integers and bools, as the default float type."""
    return cast(x, least_upper_float(x.dtype))


def negatable(x: B) -> B:
    """The tensor itself, if differences of its elements can be told; else wider, so that they do not wrap.

    Signed integers are of 64 bits then; unsigned ones are floats, of 64 bits where float32 would round the integers.
    """
    if x.dtype.kind == "int":
        return cast(x, dtypes.int64)
    if x.dtype.kind != "uint":
        return x
    return cast(x, dtypes.float64) if x.dtype.itemsize >= 4 else floating(x)


def wide(x: B, compute: Callable[..., B], *others: Any) -> B:
    """What ``compute`` makes of these floats, and of others of their dtype, in 32 bits at least and rounded once.

    Whatever else is among the others is handed on as it is.
    """
    x = floating(x)
    if x.dtype.itemsize >= 4:
        return compute(x, *others)
    rest = [cast(v, dtypes.float32) if isinstance(v, Base) and v.dtype is x.dtype else v for v in others]
    return cast(compute(cast(x, dtypes.float32), *rest), x.dtype)


# Named like Python's types, so that nothing below may be annotated with those.


def float(x: B) -> B:
    """Cast to float32.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).float()
      Tensor([1., 2.])
    """
    return cast(x, dtypes.float32)


def half(x: B) -> B:
    """Cast to float16.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).half().dtype
      dtypes.float16
    """
    return cast(x, dtypes.float16)


def bfloat16(x: B) -> B:
    """Cast to bfloat16.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).bfloat16().dtype
      dtypes.bfloat16
    """
    return cast(x, dtypes.bfloat16)


def double(x: B) -> B:
    """Cast to float64.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).double().dtype
      dtypes.float64
    """
    return cast(x, dtypes.float64)


def byte(x: B) -> B:
    """Cast to uint8.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).byte().dtype
      dtypes.uint8
    """
    return cast(x, dtypes.uint8)


def char(x: B) -> B:
    """Cast to int8.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).char().dtype
      dtypes.int8
    """
    return cast(x, dtypes.int8)


def int(x: B) -> B:
    """Cast to int32.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.7, -1.7]).int()
      Tensor([ 1, -1])
    """
    return cast(x, dtypes.int32)


def long(x: B) -> B:
    """Cast to int64.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.7, -1.7]).long().dtype
      dtypes.int64
    """
    return cast(x, dtypes.int64)


def short(x: B) -> B:
    """Cast to int16.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.7, -1.7]).short().dtype
      dtypes.int16
    """
    return cast(x, dtypes.int16)


def bool(x: B) -> B:
    """Cast to bool: whether an element is not 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 0.5]).bool()
      Tensor([False,  True])
    """
    return cast(x, dtypes.bool)
