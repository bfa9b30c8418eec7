"""What the constructor of Tensor makes of numbers, lists, bytes and arrays: memory of its own, or a constant."""

from __future__ import annotations

import os

from tg_dtype import DType, dtypes, interop, part_dtype
from tg_lazy import LazyBuffer, Storage
from tg_runtime import Buffer, Device, capturing
from tg_runtime.memory.files import FileMemory, OpenFile
from tg_shape import Expr, sint, sym_eval, unbind

from ..host import coerce, transfer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Parts = tuple[LazyBuffer, LazyBuffer]


def placed(device: str | None) -> str:
    """The canonical name of a device; None is the default one.

    Raises:
      UnknownDevice: if no package offers it: told now, not when something is computed.
    """
    name = Device.canonicalize(device)
    if device is not None:
        Device.load(name)
    return name


def ingest(data: Any, device: str, dtype: DType | None, device_is_default: bool) -> LazyBuffer | Parts:
    """The graph of new data, or the graphs of the parts of complex numbers; arrays and bytes are copied.

    Raises:
      TypeError: if it holds something that is no number.
      ValueError: if lists are ragged, bytes are no whole number of elements, or a graph is on another device.
    """
    if isinstance(data, LazyBuffer):
        if not device_is_default and data.device != device:
            raise ValueError(f"Tensor: the LazyBuffer is on {data.device}, not on {device}; use .to()")
        return data if dtype is None else data.cast(dtype)
    if dtype is not None and dtype.kind == "complex":
        if isinstance(data, os.PathLike):
            raise TypeError(f"Tensor: a file as {dtype.name}; read floats and make them complex by view_as_complex()")
        return _complex(data, device, dtype)
    if dtype is not None:
        data = transfer.number_of(data)
    if transfer.is_array(data):
        if data.dtype.kind == "c" and dtype is None:
            return _complex(data, device, interop.from_numpy_name(data.dtype.name))
        view, found, shape = transfer.from_array(data, dtype)
        lazy = transfer.upload(view, found, shape, device)
        return lazy if dtype is None or found is dtype else lazy.cast(dtype)
    if isinstance(data, (bool, int, float)):
        number = dtype or coerce.dtype_of(data)
        coerce.check_fits(data, number, "Tensor")
        return LazyBuffer.const(data, number, (), device)
    if isinstance(data, complex):
        if dtype is not None and dtype.kind == "bool":
            return LazyBuffer.const(bool(data), dtype, (), device)
        if dtype is not None:
            raise TypeError(f"Tensor: {data} is no {dtype.name}")
        return _complex(data, device, dtypes.from_py(data))
    if isinstance(data, Expr):
        kind = dtype or coerce.dtype_of((data.vmin, data.vmax))
        coerce.check_bounds(data, kind, "Tensor")
        return LazyBuffer.symbolic(data, kind, device)
    if isinstance(data, (list, tuple, range)):
        values, shape, kinds = transfer.flatten(data)
        found = dtype or coerce.mixed_dtype(values, kinds)
        if found.kind == "complex":
            return _parts(values, shape, found, device)
        coerce.check_fits(values, found, "Tensor")
        try:
            packed = transfer.pack(values, found)
        except TypeError as error:
            odd = next((value for value in values if isinstance(value, complex)), None)
            raise TypeError(f"Tensor: {error if odd is None else f'{odd} is no {found.name}'}") from error
        return transfer.upload(memoryview(packed), found, shape, device)
    if isinstance(data, (bytes, bytearray, memoryview)) or type(data).__name__ == "array":
        return _from_bytes(memoryview(data), device, dtype)
    if isinstance(data, os.PathLike):
        lazy = _of_file(data, dtype or dtypes.uint8)
        return lazy if device_is_default else lazy.copy_to(device)
    if data is None:
        return LazyBuffer.const(0, dtype or dtypes.default_float, (0,), device)
    if not hasattr(type(data), "lazydata") and coerce.is_arraylike(data):
        return ingest(coerce.as_array(data), device, dtype, device_is_default)
    if hasattr(type(data), "lazydata"):
        raise TypeError("Tensor: data is a tensor already; use .to(), .cast() or .detach()")
    raise TypeError(f"Tensor: data is a {type(data).__name__}; give numbers, lists, bytes, a path or a numpy array"
                    + (" (of this, use Tensor.from_dlpack)" if hasattr(data, "__dlpack__") else ""))


def _of_file(path: os.PathLike[Any], dtype: DType) -> LazyBuffer:
    """The content of a file, where it is.

    Raises:
      OSError: if it cannot be read, or is no regular file.
      ValueError: if it is no whole number of elements.
    """
    file = OpenFile(os.path.abspath(os.fsdecode(path)), "Tensor")
    size, rest = divmod(file.nbytes, dtype.itemsize)
    if rest:
        raise ValueError(f"Tensor: the {file.nbytes} bytes of {file.path} are not a whole number of {dtype.name}")
    device = Device.canonicalize(f"DISK:{file.path}")
    if not size:
        return LazyBuffer.const(0, dtype, (0,), device)
    buffer = Buffer(device, size, dtype, opaque=FileMemory(file, 0, file.nbytes))
    return LazyBuffer.from_storage(Storage(device, size, dtype, buffer), (size,))


def prod_of(lazy: LazyBuffer) -> int:
    """How many elements there are, of a node whose shape is of numbers."""
    size = lazy.size
    assert isinstance(size, int)
    return size


def _parts(values: Sequence[Any], shape: tuple[int, ...], dtype: DType, device: str) -> Parts:
    """Python numbers as the parts of complex ones."""
    kind = part_dtype(dtype)
    numbers = [complex(value) for value in values]
    lists = [number.real for number in numbers], [number.imag for number in numbers]
    real, imag = (transfer.upload(memoryview(transfer.pack(part, kind)), kind, shape, device) for part in lists)
    return real, imag


def _complex(data: Any, device: str, dtype: DType) -> Parts:
    """Any data as complex numbers of ``dtype``.

    Raises:
      TypeError: if it holds something that is no number.
    """
    kind = part_dtype(dtype)
    if isinstance(data, (bool, int, float, complex)):
        number = complex(data)  # Python's: the parts of numpy's are numpy's
        return LazyBuffer.const(number.real, kind, (), device), LazyBuffer.const(number.imag, kind, (), device)
    if isinstance(data, (list, tuple, range)):
        values, shape, _ = transfer.flatten(data)
        return _parts(values, shape, dtype, device)
    if isinstance(data, (bytes, bytearray, memoryview)) and memoryview(data).format in ("B", "b", "c"):
        pairs = ingest(data, device, kind, False)
        assert isinstance(pairs, LazyBuffer)
        count, rest = divmod(prod_of(pairs), 2)
        if rest:
            raise ValueError(f"Tensor: {memoryview(data).nbytes} bytes are not a whole number of {dtype.name}")
        real, imag = (pairs.reshape((count, 2)).shrink(((0, count), (n, n + 1))) for n in (0, 1))
        return real.reshape((count,)).clone(), imag.reshape((count,)).clone()
    if not hasattr(type(data), "lazydata") and (transfer.is_array(data) or coerce.is_arraylike(data)):
        array = coerce.as_array(data)
        interop.from_numpy_name(array.dtype.name)  # what is no number is refused
        real, imag = (
            transfer.upload(*transfer.from_array(part, kind), device) for part in (array.real, array.imag)
        )
        return (real, imag) if real.dtype is kind else (real.cast(kind), imag.cast(kind))
    plain = ingest(data, device, None, False)
    assert isinstance(plain, LazyBuffer)
    return plain.cast(kind), LazyBuffer.const(0, kind, plain.shape, device)


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
