"""What the constructor of Tensor makes of numbers, lists, bytes and arrays: memory of its own, or a constant."""

from __future__ import annotations

from tg_dtype import DType, dtypes
from tg_lazy import LazyBuffer
from tg_runtime import Device, capturing
from tg_shape import Expr, sint, sym_eval, unbind

from ..host import coerce, transfer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def placed(device: str | None) -> str:
    """The canonical name of a device; None is the default one.

    Raises:
      UnknownDevice: if no package offers it: told now, not when something is computed.
    """
    name = Device.canonicalize(device)
    if device is not None:
        Device.load(name)
    return name


def ingest(data: Any, device: str, dtype: DType | None, device_is_default: bool) -> LazyBuffer:
    """The graph of new data; arrays and bytes are copied.

    Raises:
      TypeError: if it holds something that is no number.
      ValueError: if lists are ragged, bytes are no whole number of elements, or a graph is on another device.
    """
    if isinstance(data, LazyBuffer):
        if not device_is_default and data.device != device:
            raise ValueError(f"Tensor: the LazyBuffer is on {data.device}, not on {device}; use .to()")
        return data if dtype is None else data.cast(dtype)
    if transfer.is_array(data):
        view, found, shape = transfer.from_array(data, dtype)
        lazy = transfer.upload(view, found, shape, device)
        return lazy if dtype is None or found is dtype else lazy.cast(dtype)
    if isinstance(data, (bool, int, float)):
        number = dtype or coerce.dtype_of(data)
        coerce.check_fits(data, number, "Tensor")
        return LazyBuffer.const(data, number, (), device)
    if isinstance(data, Expr):
        return LazyBuffer.symbolic(data, dtype or dtypes.default_int, device)
    if isinstance(data, (list, tuple, range)):
        values, shape, kinds = transfer.flatten(data)
        found = dtype or coerce.mixed_dtype(values, kinds)
        if not kinds:
            coerce.check_fits(values, found, "Tensor")
        return transfer.upload(memoryview(transfer.pack(values, found)), found, shape, device)
    if isinstance(data, (bytes, bytearray, memoryview)) or type(data).__name__ == "array":
        return _from_bytes(memoryview(data), device, dtype)
    if data is None:
        return LazyBuffer.const(0, dtype or dtypes.default_float, (0,), device)
    if not hasattr(type(data), "lazydata") and coerce.is_arraylike(data):
        return ingest(coerce.as_array(data), device, dtype, device_is_default)
    if hasattr(type(data), "lazydata"):
        raise TypeError("Tensor: data is a tensor already; use .to(), .cast() or .detach()")
    raise TypeError(f"Tensor: data is a {type(data).__name__}; give numbers, nested lists, bytes or a numpy array"
                    + (" (of this, use Tensor.from_dlpack)" if hasattr(data, "__dlpack__") else ""))


def _from_bytes(data: memoryview, device: str, dtype: DType | None) -> LazyBuffer:
    if not data.c_contiguous:
        raise ValueError("Tensor: a memoryview must be contiguous")
    own = None if dtype is not None and data.itemsize == 1 else coerce.buffer_dtype(data)
    if own is not None:
        lazy = transfer.upload(data.cast("B") if data.nbytes else memoryview(b""), own, data.shape or (), device)
        return lazy if dtype is None else lazy.cast(dtype)
    found = dtype or dtypes.uint8
    if data.nbytes % found.itemsize:
        raise ValueError(f"Tensor: {data.nbytes} bytes are not a whole number of {found.name} ({found.itemsize} bytes)")
    flat = data.cast("B") if data.nbytes else memoryview(b"")
    return transfer.upload(flat, found, (data.nbytes // found.itemsize,), device)


def value_of(dim: sint, shape: tuple[sint, ...]) -> int:
    """A size of a shape, where it is a number, or bound to one.

    Raises:
      ValueError: if it is bound to no value.
      RuntimeError: if TinyJit records: every replay would have the value of now.
    """
    if isinstance(dim, int):
        return dim
    free, values = unbind(dim)
    if not isinstance(free, int) and not free.variables() <= values.keys():
        raise ValueError(f"the size {dim} of a tensor of shape {shape} is bound to no value")
    if capturing():
        raise RuntimeError(
            f"the size {dim} of a tensor of shape {shape} was wanted as a number inside of a function while "
            f"TinyJit records it; it is {sym_eval(free, values)} now, and would be that in every replay: compute with "
            "the symbolic size (tensor.shape), or do this outside of the function"
        )
    return sym_eval(free, values)


def sure_of(dim: sint, least: int, shape: tuple[sint, ...]) -> sint:
    """A size of a shape: symbolic where it is ``least`` or more with every value of its variables, else a number.

    Raises:
      ValueError: if it may be less, and is bound to no value.
      RuntimeError: if it may be less, and TinyJit records.
    """
    return dim if isinstance(dim, int) or dim.vmin >= least else value_of(dim, shape)
