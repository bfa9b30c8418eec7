"""Data of the host: nested lists, bytes and arrays, as memory with a dtype and a shape, and back."""

from __future__ import annotations

import struct

from tg_dtype import ConstType, DType, float_format, interop, part_dtype, to_bits, truncate
from tg_lazy import LazyBuffer, Storage
from tg_lazy.ops import MEMORY
from tg_lazy.trackers import writes_once
from tg_runtime import Buffer, BufferOptions, Device, Interpreted, buffer_of, realize
from tg_shape import prod

from . import coerce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from numpy.typing import NDArray

    T = TypeVar("T", bound=Any)

_DEEPEST = 64
_ADDRESSABLE = ("CPU", "NUMPY")
_CODES = {2: "H", 1: "B"}
_NUMBERS = frozenset({bool, int, float, complex})


def runs_nothing(device: str) -> bool:
    """Whether the device only holds memory, as DISK and SHM do."""
    found = Device[device]
    return found.renderer is None and not isinstance(found, Interpreted)


def is_array(data: object) -> bool:
    """Whether ``data`` is a numpy array or numpy scalar; numpy is not imported to find out."""
    return type(data).__module__ == "numpy" and hasattr(data, "__array_interface__")


def number_of(data: Any) -> Any:
    """Python's number for numpy's, and for an array of no axes; all else as it is, long doubles too.

    Example:
      >>> import numpy as np
      >>> number_of(np.int64(2)), number_of(np.array(0.5, np.float32)), number_of([1])
      (2, 0.5, [1])
    """
    if not is_array(data) or data.shape != () or data.dtype.kind not in "biufc" or data.dtype.char in "gG":
        return data
    return data.item()


def is_addressable(device: str) -> bool:
    """Whether the device computes on the host's own memory."""
    return device.partition(":")[0] in _ADDRESSABLE


def flatten(data: Any) -> tuple[list[ConstType], tuple[int, ...], list[DType]]:
    """The numbers of nested lists in order, the shape, and the dtypes of arrays and tensors that stand in them.

    Raises:
      ValueError: if the lists are ragged, or nested too deeply; the message says where.
      TypeError: if something is not a number.
    """
    if _NUMBERS.issuperset(map(type, data)):  # nearly always; what follows looks at each number
        return list(data), (len(data),), []
    level: list[Any] = [data]
    shape: list[int] = []
    above: set[int] = set()
    while level and isinstance(level[0], (list, tuple, range)):
        length = len(level[0])
        for position, item in enumerate(level):
            if not isinstance(item, (list, tuple, range)):
                if not isinstance(item, (bool, int, float, complex)):
                    return _flatten_mixed(data, item)
                raise ValueError(f"Tensor: ragged data: a number stands beside a list at depth {len(shape)}")
            if len(item) != length:
                raise ValueError(
                    f"Tensor: ragged data: at depth {len(shape)} list 0 has {length} elements, "
                    f"list {position} has {len(item)}"
                )
        shape.append(length)
        if len(shape) > _DEEPEST:
            raise ValueError(f"Tensor: data is nested more than {_DEEPEST} lists deep, or holds itself")
        if length:  # one that holds itself a thousand times grows a thousandfold with each level
            found = {id(item) for item in level}
            if not above.isdisjoint(found):
                raise ValueError("Tensor: data holds itself")
            above |= found
        level = [value for item in level for value in item]
    for value in () if _NUMBERS.issuperset(map(type, level)) else level:
        if isinstance(value, (list, tuple, range)):
            raise ValueError(f"Tensor: ragged data: a list stands beside a number at depth {len(shape)}")
        if not isinstance(value, (bool, int, float, complex)):
            return _flatten_mixed(data, value)
    return level, tuple(shape), []


def _flatten_mixed(data: Any, odd: object) -> tuple[list[ConstType], tuple[int, ...], list[DType]]:
    """Of lists that hold something that is neither a number nor a list, ``odd`` among others."""
    if not (hasattr(type(odd), "lazydata") or coerce.is_arraylike(odd)):
        raise TypeError(
            f"Tensor: data holds a {type(odd).__name__}; it must be bool, int, float or complex, or arrays and tensors "
            "of them"
        )
    lists, kinds = coerce.plain(data)
    values, shape, _ = flatten(lists)
    return values, shape, kinds


def pack(values: list[ConstType], dtype: DType) -> bytearray:
    """The numbers as memory of ``dtype``, each converted as ``tg_dtype.truncate`` does."""
    out = bytearray(len(values) * dtype.itemsize)
    if dtype.fmt is None:
        struct.pack_into(f"<{len(values)}{_CODES[dtype.itemsize]}", out, 0, *(to_bits(v, dtype) for v in values))
        return out
    try:
        # A number of the wrong kind, or out of range, is refused here: only then is each one converted with care.
        if dtype.kind != "float" and any(type(v) is float for v in values):
            raise struct.error
        struct.pack_into(f"<{len(values)}{dtype.fmt}", out, 0, *values)
    except (struct.error, OverflowError):
        struct.pack_into(f"<{len(values)}{dtype.fmt}", out, 0, *(truncate(v, dtype) for v in values))
    return out


def unpack(data: memoryview, dtype: DType) -> list[ConstType]:
    """The Python numbers in memory of ``dtype``."""
    count = data.nbytes // dtype.itemsize
    if dtype.fmt is not None:
        return list(struct.unpack(f"<{count}{dtype.fmt}", data))
    decode = float_format(dtype).decode
    return [decode(bits) for bits in struct.unpack(f"<{count}{_CODES[dtype.itemsize]}", data)]


def nest(values: list[Any], shape: tuple[int, ...]) -> Any:
    """A flat list as nested lists of ``shape``; the number itself where the shape is ()."""
    if not shape:
        return values[0]
    if 0 in shape:
        empty: list[Any] = []
        for dim in reversed(shape[: shape.index(0)]):
            empty = [list(empty) for _ in range(dim)]
        return empty
    for dim in reversed(shape[1:]):
        values = [values[i : i + dim] for i in range(0, len(values), dim)]
    return values


def from_array(array: NDArray[Any], dtype: DType | None) -> tuple[memoryview, DType, tuple[int, ...]]:
    """An array's memory (the array's own where it lies row-major and keeps its dtype), dtype and shape.

    Raises:
      TypeError: if the array holds something that is no dtype of ours.
    """
    import numpy as np

    array = np.asarray(array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    source = interop.from_numpy_name(array.dtype.name)
    shape = array.shape
    array = np.ascontiguousarray(array)
    if source.kind == "complex" and dtype is not None and dtype.kind not in ("bool", "complex"):
        source = part_dtype(source)
        array = array.astype(source.name)  # numpy warns that the imaginary parts are lost
    if dtype is not None and dtype is not source:
        name = interop.to_numpy_name(dtype)
        if name is not None and not (source.kind == "float" and dtype.kind != "float"):
            array, source = array.astype(name), dtype
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat), source, shape


def upload(data: memoryview, dtype: DType, shape: tuple[int, ...], device: str, *, borrow: bool = False) -> LazyBuffer:
    """Host bytes as a tensor's memory on a device.

    Args:
      data: row-major bytes.
      borrow: use the memory in place where the device can address it; whoever owns it must leave it unchanged. It is
        never written to.

    Raises:
      DeviceError: if the device does not exist or cannot be opened here.
    """
    size = prod(shape)
    assert isinstance(size, int)
    storage = Storage(device, size, dtype)
    Device[device]  # an unknown device must be named before memory is asked for
    if borrow and size and is_addressable(device):
        address = _address(data)
        if address is not None and address % dtype.itemsize == 0:
            return LazyBuffer.from_storage(borrowed(address, size, dtype, device, data, readonly=True), shape)
    buffer_of(storage).allocate().copyin(data)
    return LazyBuffer.from_storage(storage, shape)


def borrowed(address: int, size: int, dtype: DType, device: str, owner: object, readonly: bool) -> Storage:
    """Somebody else's memory, used in place; ``owner`` is kept alive for as long as anybody uses it.

    Raises:
      TypeError: if the device cannot use memory that it did not allocate.
    """
    options = BufferOptions(external_ptr=address, owner=owner, readonly=readonly)
    return Storage(device, size, dtype, Buffer(device, size, dtype, options=options).allocate())


def address_of(data: memoryview) -> int:
    """Where bytes lie.

    Raises:
      BufferError: if nobody can tell.
    """
    found = _address(data)
    if found is None:
        raise BufferError("the address of read-only memory cannot be found without numpy")
    return found


def _address(data: memoryview) -> int | None:
    import ctypes

    try:
        if not data.readonly:
            return ctypes.addressof(ctypes.c_char.from_buffer(data))
        from numpy import frombuffer, uint8

        return int(frombuffer(data, uint8).__array_interface__["data"][0])
    except (ImportError, TypeError, ValueError):
        return None


def is_borrowed(storage: Storage) -> bool:
    """Whether memory is not to be written: it belongs to somebody else, or was left half written."""
    buffer = storage.payload
    return isinstance(buffer, Buffer) and (buffer.readonly or buffer.base.options.spoiled != "")


def is_own(lazy: LazyBuffer) -> bool:
    """Whether a node shows memory that may be written: not borrowed, and no equal value of somebody else's in it."""
    base = lazy.base
    written = base.op in MEMORY and not base.shared and writes_once(lazy.st)
    return written and base.storage is not None and not is_borrowed(base.storage)


def download(lazy: LazyBuffer, shape: tuple[int, ...], begin: int = 0) -> memoryview:
    """The bytes of realised elements that are a run of memory, of ``shape``: memory itself where the host reaches it.

    Args:
      lazy: the elements.
      shape: how many there are.
      begin: how many others are before the first.
    """
    storage, size = lazy.base.storage, prod(shape)
    assert storage is not None and isinstance(size, int)
    if size == 0:
        return memoryview(b"")
    if storage.dtype is not lazy.dtype:  # an image, whose bytes are not those of the elements
        plain = lazy.in_memory()
        realize([plain])
        assert plain.base.storage is not None
        storage = plain.base.storage
    item = lazy.dtype.itemsize
    return buffer_of(storage).as_buffer()[begin * item : (begin + size) * item]


def shaped(flat: memoryview, code: str, shape: tuple[int, ...]) -> memoryview:
    """Bytes as elements of a :mod:`struct` format, in a shape; flat where there are none: Python has no such shape."""
    cast: Any = flat.cast
    out: memoryview = cast(code) if 0 in shape else cast(code, shape)
    return out


def as_array(data: memoryview, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    """Bytes as a numpy array that shares them; of a dtype that numpy has."""
    import numpy as np

    name = interop.to_numpy_name(dtype)
    assert name is not None
    return np.frombuffer(data, dtype=name).reshape(shape) if data.nbytes else np.empty(shape, np.dtype(name))


def restored(
    kind: type[T], elements: bytes, dtype: DType, shape: tuple[int, ...], device: str, requires_grad: bool | None
) -> T:
    """A tensor from what was pickled of it."""
    memory = upload(memoryview(elements), dtype, shape, device)
    found: T = kind(memory, device=device, requires_grad=requires_grad)
    return found
