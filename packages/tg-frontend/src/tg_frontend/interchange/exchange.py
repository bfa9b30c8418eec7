"""Memory shared with other libraries: addresses and DLPack, in both directions.

Who owns what. A tensor that was made of somebody else's memory keeps its owner (the object, or the DLPack tensor) for
as long as anybody uses the memory through it: the tensor, others computed from it and not realised yet, views, work
that a device has not finished. What is handed out keeps this side's memory until the taker's deleter is called. The
elements are read when they are computed with, not when a tensor is made: change the memory in between, and the change
is seen. Assigning to a tensor writes the memory in place, unless it is read-only: then the tensor gets its own.
"""

from __future__ import annotations

from operator import index

from tg_dtype import DType, dtypes, interop, part_dtype
from tg_lazy import LazyBuffer
from tg_runtime import Device, DeviceError, buffer_of, capturing
from tg_shape import View, prod

from ..array.array import A
from ..array.base import DTypeLike
from ..array.lending import check_lendable
from ..array.pairs import view_as_complex
from ..host import transfer
from ..host.coerce import to_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


_MOST_DEVICES = 64
"""Of one kind, of which ``DEV`` may choose some."""


def from_blob(
    cls: type[A],
    ptr: int,
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    device: str | None = None,
    *,
    strides: Sequence[int] | None = None,
    owner: object = None,
    readonly: bool = False,
) -> A:
    """Memory of somebody else's as a tensor, without a copy.

    Args:
      ptr: where the elements are, as the device understands it. CPU, NUMPY, HOSTQ: an address of this process.
        CUDA: an address of the device, a plain integer such as PyTorch's ``data_ptr()``; what is queued on the
        legacy default stream is waited for, other streams are the caller's affair. CL: a ``cl_mem`` of the
        device's context. METAL: an address of this process in memory that was mapped. WEBGPU, DISK, SHM and NULL
        refuse: they cannot use memory that they did not make. Whoever looks at it by other ways than the tensor
        calls ``Device[device].synchronize()`` before.
      shape: sizes.
      dtype: of the elements; the default float type if not given. An image's (``dtypes.imagef((8, 8, 4))``, with
        that shape) for an image of CL, which is read and written as float32.
      device: the default device if not given.
      strides: elements from one to the next along each axis; row-major if not given. None may be negative.
      owner: kept alive for as long as the memory is used. Without it, that is the caller's duty.
      readonly: never write the memory: a tensor that is assigned to gets memory of its own.

    Raises:
      TypeError: if the device cannot use memory that it did not allocate; or the address, a size or a stride is no
        integer.
      ValueError: if the address is 0, negative, beyond 64 bits or not aligned to the element, a size or stride is
        negative, or lengths differ.

    Example:
      >>> import array
      >>> from tg_frontend import Tensor
      >>> mine = array.array("i", [1, 2, 3, 4])
      >>> t = Tensor.from_blob(mine.buffer_info()[0], (2, 2), "int32", "NUMPY", owner=mine)
      >>> mine[0] = 9
      >>> t.tolist()
      [[9, 2], [3, 4]]
    """
    kind = dtypes.default_float if dtype is None else to_dtype(dtype)
    name = Device.canonicalize(device)
    ptr = _whole(ptr, "an address")
    sizes = tuple(_whole(size, "a size") for size in shape)
    steps = _row_major(sizes) if strides is None else tuple(_whole(step, "a stride") for step in strides)
    if len(steps) != len(sizes) or any(n < 0 for n in (*sizes, *steps)):
        raise ValueError(f"from_blob: shape {sizes} and strides {steps}: lengths differ, or one is negative")
    part, pairs, apart = _as_pairs(kind, sizes, steps)
    out = cls(_borrowed(ptr, pairs, apart, part, name, owner, readonly, "from_blob"))
    return out if part is kind else view_as_complex(out)


def from_dlpack(cls: type[A], obj: Any, device: str | None = None, copy: bool | None = None) -> A:
    """The elements of another library's array, in place: numpy, PyTorch, CuPy, and whoever has ``__dlpack__``.

    Arrays of any strides become views. An array that says it is read-only is never written. Elements on a CUDA
    device are used there: their owner is told our stream, which waits for the owner's work. Of a capsule alone it
    is taken that its work is on the legacy default stream.

    Args:
      obj: the array, or a capsule.
      device: where the tensor is to be. If not given, that of elements on a CUDA device; for those on the host, the
        default device if that works on the host's memory, else CPU. Another device gets a copy when the tensor is
        first computed with.
      copy: True always copies now; False never does.

    Raises:
      BufferError: if the elements are on no device that is available here, or must be copied and ``copy`` is False.
      TypeError: if the elements are of a type that there is not here.

    Example:
      >>> import numpy as np
      >>> from tg_frontend import Tensor
      >>> a = np.arange(6).reshape(2, 3)
      >>> t = Tensor.from_dlpack(a[:, ::2], device="NUMPY")
      >>> a[0, 0] = 7
      >>> t.tolist()
      [[7, 2], [3, 5]]
    """
    from .dlpack import READ_ONLY, Taken

    capsule, ordered = _capsule(obj)
    taken = Taken(capsule)
    home = _home(taken.device)
    code, bits, lanes = taken.dtype
    if lanes != 1:
        raise TypeError(f"from_dlpack: vectors of {lanes} elements are no dtype of a tensor")
    kind, shape, strides = _as_pairs(interop.from_dlpack(code, bits), taken.shape, taken.strides)
    name = Device.canonicalize(device)
    if device is None and (home or not transfer.is_addressable(name)):
        name = home or "CPU"
    in_place = name == home if home else transfer.is_addressable(name)
    if copy is False and not in_place:
        raise BufferError(f"from_dlpack: elements of {home or 'the host'} are copied to {name}, and copy=False")
    place = name if in_place else home or "CPU"
    misaligned = taken.address % kind.itemsize != 0
    if misaligned and copy is False:
        raise BufferError(f"from_dlpack: {kind.name} at {taken.address:#x} is not aligned, and copy=False")
    readonly = bool(taken.flags & READ_ONLY)
    if misaligned:
        raw = _borrowed(
            taken.address, (*shape, kind.itemsize), (*(s * kind.itemsize for s in strides), 1),
            dtypes.uint8, place, taken, True, "from_dlpack", ordered,
        )  # fmt: skip
        lazy = raw.clone().bitcast(kind).reshape(shape)
    else:
        lazy = _borrowed(
            taken.address, shape, strides, kind, place, taken, readonly, "from_dlpack", ordered
        )
    out = cls(lazy)
    if copy:
        out = out.clone().realize()
    out = out if in_place else out.to(name)
    return out if len(shape) == len(taken.shape) else view_as_complex(out)


def _as_pairs(
    kind: DType, shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[DType, tuple[int, ...], tuple[int, ...]]:
    """Complex numbers as pairs of floats along a last axis; others as they are."""
    if kind.kind != "complex":
        return kind, shape, strides
    return part_dtype(kind), (*shape, 2), (*(2 * step for step in strides), 1)


def __dlpack_device__(x: A) -> tuple[int, int]:
    """DLPack's (type, number): (1, 0), the host, on CPU and NUMPY; (2, 1) on the driver's second CUDA device.

    Raises:
      BufferError: if the device's memory is none that DLPack can name here; copy with ``.to("CPU")``.
    """
    if transfer.is_addressable(x.device):
        return 1, 0
    sharing = Device[x.device].sharing
    if sharing is None:
        raise BufferError(f"__dlpack_device__: memory of {x.device} cannot be handed out; use .to('CPU')")
    return sharing.place


def __dlpack__(
    x: A,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
    pairs: DType | None = None,
) -> Any:  # a capsule, whose type Python names since 3.13
    """A capsule for ``numpy.from_dlpack``, ``torch.from_dlpack`` and others; computes the tensor first.

    The memory is shared: what the taker writes is seen here, and what is assigned here is seen there. Views of
    memory (transposed, sliced) are handed out as they are; padded ones are copied.

    Args:
      stream: of the taker, which is made to wait for what is queued here on the memory. On CUDA 1, or None, is the
        legacy default stream, 2 that of the thread, -1 wants no order, and others are numbers of streams. The host
        has none: None.
      max_version: the newest version that the taker understands. None gets a capsule of the old kind, for which
        read-only memory is copied, as that kind cannot say so.
      dl_device: where the taker wants the elements: where they are, or (1, 0), the host, from any device.
      copy: True always copies, False never does.
      pairs: the complex dtype that pairs along the last axis, row-major, are the parts of.

    Raises:
      BufferError: if the tensor requires a gradient, which would be lost: ``detach()`` it; the elements must be copied
        and ``copy`` is False; or they are wanted elsewhere; or there is no such stream.
      TypeError: if DLPack has no such dtype; or an argument is of another kind.
    """
    from . import dlpack

    for name, given in (("max_version", max_version), ("dl_device", dl_device)):
        if given is not None and not (isinstance(given, tuple) and len(given) == 2):
            raise TypeError(f"__dlpack__: {name} is a pair of integers, got {given!r}")
    if copy not in (None, True, False):
        raise TypeError(f"__dlpack__: copy is None, True or False, got {copy!r}")
    check_lendable(x, "__dlpack__", BufferError)
    sharing = None if transfer.is_addressable(x.device) else Device[x.device].sharing
    place = dlpack.ON_HOST if sharing is None else sharing.place
    wanted = place if dl_device is None else tuple(dl_device)
    if stream is not None and sharing is None:
        raise BufferError(f"__dlpack__: a stream ({stream!r}) is given, but memory of {x.device} has none")
    if wanted not in (place, dlpack.ON_HOST):
        raise BufferError(f"__dlpack__: elements on {x.device} are wanted on DLPack's device {dl_device}")
    if wanted != place or (sharing is None and not transfer.is_addressable(x.device)):
        if dl_device is None or copy is False:
            __dlpack_device__(x)
            raise BufferError(f"__dlpack__: elements on {x.device} are copied to the host, and copy=False")
        return __dlpack__(x.to("CPU"), max_version=max_version, copy=copy, pairs=pairs)
    kind = interop.to_dlpack(pairs or x.dtype)
    versioned = max_version is not None and max_version[0] >= 1
    _host_ready(x)
    lazy, copied = x.lazydata, False
    strides = _strides(lazy)
    readonly = strides is not None and lazy.storage is not None and transfer.is_borrowed(lazy.storage)
    if strides is None or copy or (readonly and not versioned):
        if copy is False:
            why = "is read-only, which the taker cannot be told" if readonly else "is no plain view of memory"
            raise BufferError(f"__dlpack__: this tensor of shape {x.shape} {why}, and copy=False")
        whole = x.clone().realize()
        lazy, copied, readonly = whole.lazydata, True, False
        strides = _strides(lazy)
    shape = x._ints()
    if pairs is not None and strides is not None:
        shape, strides = shape[:-1], tuple(step // 2 for step in strides[:-1])
    if 0 in shape:
        return dlpack.export(0, kind, shape, _row_major(shape), None, 0, versioned, place)
    if strides is None or lazy.storage is None:
        raise BufferError(f"__dlpack__: the shape {x.shape} is symbolic; make it a number with shrink")
    offset = lazy.st.views[0].offset
    assert isinstance(offset, int)
    memory = buffer_of(lazy.storage)
    flags = (dlpack.READ_ONLY if readonly else 0) | (dlpack.IS_COPIED if copied else 0)
    view = None
    if sharing is None:
        view = memory.as_buffer()
        begin = transfer.address_of(view)
    else:
        sharing.lend(memory.opaque, stream)
        begin = sharing.address(memory.opaque)
    address = begin + offset * x.dtype.itemsize
    return dlpack.export(address, kind, shape, strides, (memory, view), flags, versioned, place)


def _host_ready(x: A) -> None:
    if capturing():
        raise RuntimeError(f"__dlpack__: a tensor of shape {x.shape} was handed out while TinyJit records")
    x._ints()
    x._lend()
    if not x.lazydata.base.is_realized:
        x.realize()


def _capsule(obj: Any) -> tuple[object, bool]:
    """A capsule of an object, and whether our stream was made to wait for what its owner has queued."""
    from .dlpack import VERSION

    if type(obj).__name__ == "PyCapsule":
        return obj, False
    if not hasattr(obj, "__dlpack__"):
        raise TypeError(f"from_dlpack: a {type(obj).__name__} has no __dlpack__")
    where = getattr(obj, "__dlpack_device__", None)
    home = None if where is None else _home(where())
    arguments: dict[str, Any] = {}
    if home:
        sharing = Device[home].sharing
        assert sharing is not None
        arguments["stream"] = sharing.stream
    try:
        return obj.__dlpack__(max_version=VERSION, **arguments), bool(home)
    except TypeError:  # from before versions
        return obj.__dlpack__(**arguments), bool(home)


def _home(place: tuple[int, int]) -> str | None:
    """The device on which elements are; None for memory of the host."""
    from .dlpack import CPU, CPU_OF_CUDA, CUDA, CUDA_MANAGED

    try:
        kind, number = (index(part) for part in place)
    except (TypeError, ValueError):
        raise BufferError(f"from_dlpack: __dlpack_device__() gives {place!r}, which is no pair of integers") from None
    if kind in (CPU, CPU_OF_CUDA):
        return None
    # mostly the numbers are alike; where DEV chooses some of the devices, ours count those
    for ours in (number, *range(min(number, _MOST_DEVICES))) if kind in (CUDA, CUDA_MANAGED) and number >= 0 else ():
        name = Device.canonicalize(f"CUDA:{ours}")
        try:
            sharing = Device[name].sharing
        except DeviceError:
            continue
        if sharing is not None and sharing.place[1] == number:
            return name
    raise BufferError(
        f"from_dlpack: the elements are on DLPack's device {(int(kind), number)}, "
        "neither on the host's CPU nor on a device that is available here"
    )


def _whole(value: Any, what: str) -> int:
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"from_blob: {what} is an integer, got {value!r} of type {type(value).__name__}") from None


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))  # type: ignore[misc]


def _strides(lazy: LazyBuffer) -> tuple[int, ...] | None:
    """The strides of a node that is a plain view of memory; None of others."""
    if not lazy.base.is_realized or len(lazy.st.views) != 1:
        return None
    view = lazy.st.views[0]
    numbers = (*view.shape, *view.strides, view.offset)
    if view.mask is not None or not all(isinstance(number, int) for number in numbers):
        return None
    return tuple(int(stride) for stride in view.strides)


def _borrowed(
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: Any,
    device: str,
    owner: object,
    readonly: bool,
    what: str,
    ordered: bool = False,
) -> LazyBuffer:
    if 0 in shape:
        return LazyBuffer.const(0, dtype, shape, device)
    if address % dtype.itemsize or not 0 < address < 1 << 64:
        raise ValueError(f"{what}: {address:#x} is no address of {dtype.name} elements of shape {shape}")
    ends = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    low = sum(min(end, 0) for end in ends)
    span = sum(max(end, 0) for end in ends) - low + 1
    storage = transfer.borrowed(address + low * dtype.itemsize, span, dtype, device, owner, readonly)
    sharing = Device[device].sharing
    if sharing is not None:
        sharing.borrow(buffer_of(storage).opaque, ordered)
    if strides == _row_major(shape):
        return LazyBuffer.from_storage(storage, shape)
    return LazyBuffer.from_storage(storage).seen_through(View(shape, strides, -low))
