"""Buffer: a number of elements on a device, owned or a part of another buffer."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tg_dtype import DType, ImageDType, interop
from tg_lazy import Storage

from ..device.allocator import DEFAULT_OPTIONS, Allocator, BufferOptions
from ..device.registry import Device
from ..errors import DeviceError
from ..telemetry.profiler import PROFILE, span

if TYPE_CHECKING:
    from numpy.typing import NDArray


spoiled: list[Callable[[], object]] = []
"""Called whenever memory was left half written: whoever remembers where memory lies forgets it."""


def spoil_holders(opaques: Sequence[object], why: str) -> list[Any]:
    """Spoils the buffers that lie in some pieces of memory (see :meth:`Buffer.spoil`), whoever holds them.

    Args:
      opaques: the pieces, as their allocator knows them.
      why: what happened, for the message.

    Returns:
      The pieces that a buffer lay in, which no buffer will give back.
    """
    wanted = {id(opaque) for opaque in opaques}
    found = []
    for holder in gc.get_referrers(*opaques):
        if isinstance(holder, Buffer) and holder._base is None and id(holder._opaque) in wanted:
            found.append(holder._opaque)
            holder.spoil(why)
    return found


class Buffer:
    """Memory for ``size`` elements of ``dtype`` on a device, allocated on first use.

    A buffer counts its holders: one for the object itself, one for each view of it, and one for each
    :meth:`retain`. Memory goes back to the allocator when the last of them is gone.

    Attributes:
      device: canonical device name.
      size: number of elements.
      dtype: element dtype.
      base: the buffer that owns the memory (itself, unless this is a view).
      offset: where a view begins in ``base``, in bytes.
      nbytes: size in bytes.
      options: how memory is wanted.

    Example:
      >>> from tg_dtype import dtypes
      >>> b = Buffer("NUMPY", 4, dtypes.int32).allocate()
      >>> b.copyin(memoryview(bytes(range(16)))).view(1, dtypes.uint8, 5).tobytes()
      b'\\x05'
    """

    __slots__ = ("__weakref__", "_allocator", "_base", "_opaque", "_refs", "device", "dtype", "nbytes", "offset",
                 "options", "size")  # fmt: skip

    def __init__(
        self,
        device: str,
        size: int,
        dtype: DType,
        opaque: Any = None,
        options: BufferOptions = DEFAULT_OPTIONS,
        base: Buffer | None = None,
        offset: int = 0,
    ) -> None:
        """Describes a buffer; takes over ``opaque`` if it is given.

        Raises:
          ValueError: if ``size`` is negative or not that of the image, or a view lies outside its base.
        """
        if size < 0:
            raise ValueError(f"a buffer cannot have {size} elements (of {dtype.name} on {device})")
        if isinstance(dtype, ImageDType):
            if size != dtype.size or base is not None:
                raise ValueError(f"{dtype.name} on {device} has {dtype.size} elements and is no view, asked for {size}")
            options = options._replace(image=dtype)
        self.device, self.size, self.dtype, self.options, self.offset = device, size, dtype, options, offset
        self.nbytes = size * dtype.base.itemsize
        self._allocator: Allocator[Any] | None = None
        self._opaque: Any = None
        self._refs = 1
        self._base: Buffer | None = None
        if base is not None:
            self._attach(base.base, offset + base.offset)
        elif opaque is not None:
            self._allocator, self._opaque = Device[device].allocator, opaque
            self._allocator.take_over(self.nbytes, options)

    @property
    def base(self) -> Buffer:
        """The buffer that owns the memory."""
        return self if self._base is None else self._base

    @property
    def refs(self) -> int:
        """How many hold this buffer: itself, its views, and those who retained it."""
        return self._refs

    @property
    def readonly(self) -> bool:
        """Whether the memory may be read only."""
        return self.base.options.readonly

    @property
    def allocator(self) -> Allocator[Any]:
        """The allocator of the memory: the one that gave it, else the device's."""
        owner = self.base
        return owner._allocator if owner._allocator is not None else Device[self.device].allocator

    @property
    def is_allocated(self) -> bool:
        """Whether there is memory behind the buffer."""
        return self._opaque is not None or (self._base is not None and self._base._opaque is not None)

    @property
    def opaque(self) -> Any:
        """What the device's allocator knows the memory by; allocates it if need be."""
        found = self._opaque
        return found if found is not None else self.allocate()._opaque

    def _attach(self, base: Buffer, offset: int) -> None:
        if offset < 0 or offset + self.nbytes > base.nbytes:
            raise ValueError(f"a view of {self.nbytes} bytes at {offset} lies outside the {base.nbytes} of {base!r}")
        base._refs += 1
        self._base, self.offset = base, offset

    def allocate(self, opaque: Any = None) -> Buffer:
        """Gets memory (or takes over ``opaque``); a view gets its base's. Returns the buffer.

        Raises:
          RuntimeError: if there is memory already, and ``opaque`` is given too.
          DeviceError: if the memory was left half written.
          OutOfMemory: if there is not so much; the message says how much was asked and is held.
        """
        if self._opaque is not None:
            if opaque is not None:
                raise RuntimeError(f"{self!r} has memory already")
            return self
        if self.options.spoiled:
            raise DeviceError(f"{self!r} is half written: {self.options.spoiled}; assign it anew, as a whole")
        if self._base is not None:
            whole = self._base.opaque
            assert self._base._allocator is not None
            self._opaque = self._base._allocator.offset(whole, self.nbytes, self.offset)
            return self
        allocator = Device[self.device].allocator
        if opaque is None:
            opaque = allocator.alloc(self.nbytes, self.options)
        else:
            allocator.take_over(self.nbytes, self.options)
        self._allocator, self._opaque = allocator, opaque
        if self.size >= 1 << 18:
            allocator.note_holder(self, self.nbytes)
        return self

    @classmethod
    def allocated(cls, allocator: Allocator[Any], device: str, size: int, dtype: DType) -> Buffer:
        """A new buffer with memory from the device's own allocator."""
        if type(dtype) is ImageDType:
            return cls(device, size, dtype).allocate()
        nbytes = size * dtype.itemsize
        opaque = allocator.alloc(nbytes)
        self = object.__new__(cls)
        self.device, self.size, self.dtype, self.nbytes = device, size, dtype, nbytes
        self.options, self.offset, self._base = DEFAULT_OPTIONS, 0, None
        self._allocator, self._opaque, self._refs = allocator, opaque, 1
        if size >= 1 << 18:
            allocator.note_holder(self, nbytes)
        return self

    def ensure_allocated(self) -> Buffer:
        """Gets memory unless there is some. Returns the buffer."""
        return self if self._opaque is not None else self.allocate()

    def deallocate(self) -> None:
        """Gives the memory back, whoever holds the buffer: what is asked of it later has undefined content."""
        opaque, self._opaque = self._opaque, None
        if self._base is None and opaque is not None and self._allocator is not None:
            self._allocator.free(opaque, self.nbytes, self.options)

    def spoil(self, why: str) -> None:
        """Marks the whole memory, and so all views of it, as half written: whoever asks for it gets an error.

        Args:
          why: what happened, for the message.
        """
        base = self.base
        opaque, allocator = base._opaque, base._allocator
        if opaque is None or base.options.spoiled:
            return
        # the memory lives as long as the buffer, as work on it may be under way, and is given to nobody else
        base.options = DEFAULT_OPTIONS._replace(owner=(opaque, base.options.owner), spoiled=why)
        base._opaque = None
        if allocator is not None:
            allocator.account(-base.nbytes, -1)
        for view in gc.get_referrers(base):
            if isinstance(view, Buffer) and view._base is base:
                view._opaque = None
        for told in spoiled:
            told()

    def retain(self) -> Buffer:
        """Counts one more holder. Returns the buffer."""
        self._refs += 1
        return self

    def release(self) -> None:
        """Counts one holder less; the last one frees the memory.

        Raises:
          RuntimeError: if there is no holder left to count.
        """
        if self._refs <= 0:
            raise RuntimeError(f"{self!r} was released more often than it was retained")
        self._refs -= 1
        if self._refs == 0:
            self._free()

    def _free(self) -> None:
        base, self._base = self._base, None
        opaque, self._opaque = self._opaque, None
        if base is not None:
            if base._refs > 0:  # the collector may have finalized the base first
                base.release()
        elif opaque is not None and self._allocator is not None:
            self._allocator.free(opaque, self.nbytes, self.options)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # views hold their base, so none is left (or all are garbage together)
        if finalizing():  # memory goes with the process, and the names of modules are gone
            return
        try:
            if self._refs <= 0:
                return
        except AttributeError:  # it was not made to the end
            return
        self._refs = 0
        opaque = self._opaque
        if self._base is None and opaque is not None and self._allocator is not None:
            self._opaque = None
            self._allocator.free(opaque, self.nbytes, self.options)
        else:
            self._free()

    def view(self, size: int, dtype: DType, offset: int) -> Buffer:
        """``size`` elements of ``dtype`` beginning ``offset`` bytes into this buffer, sharing its memory.

        Raises:
          ValueError: if the view lies outside this buffer, or is not aligned to its element.
        """
        if offset < 0 or size < 0 or offset + size * dtype.itemsize > self.nbytes:
            raise ValueError(f"view: {size} x {dtype.name} at byte {offset} lies outside the {self.nbytes} of {self!r}")
        if (self.offset + offset) % dtype.itemsize:
            raise ValueError(f"view: byte {self.offset + offset} is not aligned to {dtype.name} in {self.base!r}")
        return Buffer(self.device, size, dtype, base=self, offset=offset)

    def rebase(self, base: Buffer, offset: int) -> None:
        """Makes this buffer a view of ``base`` beginning at byte ``offset``, whatever it was before.

        Raises:
          ValueError: if it would lie outside ``base``.
        """
        whole, start = base.base, base.offset + offset
        if self._base is whole and self.offset == start:
            return
        old, opaque = self._base, self._opaque
        self._attach(whole, start)
        self._opaque = None
        if old is not None:
            old.release()
        elif opaque is not None and self._allocator is not None:
            self._allocator.free(opaque, self.nbytes, self.options)

    def copyin(self, mv: memoryview) -> Buffer:
        """Fills the buffer from host bytes. Returns the buffer.

        Raises:
          ValueError: if ``mv`` is not contiguous or has another number of bytes.
          DeviceError: if the memory is read-only.
        """
        mv = _bytes_of(mv, self, "copyin")
        if self.readonly:
            raise DeviceError(f"copyin to {self!r}: the memory is read-only")
        if self.nbytes and not PROFILE.value:
            self.allocator.copyin(self.opaque, mv)
        elif self.nbytes:
            with span("copyin", "copy", bytes=self.nbytes, device=self.device):
                self.allocator.copyin(self.opaque, mv)
        return self

    def copyout(self, mv: memoryview) -> memoryview:
        """Copies the buffer into writable host bytes, which are returned.

        Raises:
          ValueError: if ``mv`` is not contiguous, is read-only, or has another number of bytes.
        """
        flat = _bytes_of(mv, self, "copyout")
        if flat.readonly:
            raise ValueError(f"copyout of {self!r}: the memoryview is read-only")
        if self.nbytes and not PROFILE.value:
            self.allocator.copyout(flat, self.opaque)
        elif self.nbytes:
            with span("copyout", "copy", bytes=self.nbytes, device=self.device):
                self.allocator.copyout(flat, self.opaque)
        return mv

    def as_buffer(self, allow_zero_copy: bool = True) -> memoryview:
        """The content as bytes: the memory itself where the host can reach it, else a copy."""
        if allow_zero_copy and self.nbytes:
            opaque = self.opaque
            Device[self.device].synchronize()
            shared = self.allocator.export(opaque, self.nbytes)
            if shared is not None:
                return shared.toreadonly() if self.readonly else shared
        return self.copyout(memoryview(bytearray(self.nbytes)))

    def host_view(self, write: bool = False) -> memoryview | None:
        """The memory itself, valid only while the buffer is; None where the host cannot reach it.

        Args:
          write: all of it will be written; it may be read only otherwise.
        """
        if not self.nbytes:
            return memoryview(bytearray())
        opaque = self.opaque
        Device[self.device].synchronize()
        return (self.allocator.as_writable if write else self.allocator.as_buffer)(opaque, self.nbytes)

    def tobytes(self) -> bytes:
        """A copy of the content."""
        return bytes(self.as_buffer(allow_zero_copy=False))

    @staticmethod
    def fromCPU(device: str, x: NDArray[Any]) -> Buffer:
        """A new buffer on ``device`` with the content of a numpy array.

        Raises:
          TypeError: if the array's dtype is none of ours.
        """
        import numpy as np

        dtype = interop.from_numpy_name(x.dtype.name)
        if dtype.kind == "complex":
            raise TypeError(f"fromCPU: an array of {dtype.name}: a buffer holds one part, real or imaginary")
        return Buffer(device, x.size, dtype).copyin(np.ascontiguousarray(x).reshape(-1).view(np.uint8).data)

    def toCPU(self) -> NDArray[Any]:
        """The content as a flat numpy array, sharing the memory where the host can reach it.

        Raises:
          TypeError: if numpy has no such dtype (bfloat16, fp8).
        """
        import numpy as np

        name = interop.to_numpy_name(self.dtype.base)
        if name is None:
            raise TypeError(f"numpy has no {self.dtype.name}; view the buffer as uint{8 * self.dtype.itemsize}")
        return np.frombuffer(self.as_buffer(), np.dtype(name))

    def __repr__(self) -> str:
        kind = "" if self._base is None else f", view at byte {self.offset}"
        state = "" if self.is_allocated else ", not allocated"
        return f"<Buffer {self.device} {self.size} x {self.dtype.name}{kind}{state}>"


def _bytes_of(mv: memoryview, buffer: Buffer, what: str) -> memoryview:
    if not mv.c_contiguous:
        raise ValueError(f"{what} of {buffer!r}: the memoryview is not contiguous")
    if mv.nbytes != buffer.nbytes:
        raise ValueError(f"{what} of {buffer!r}: {mv.nbytes} bytes given, {buffer.nbytes} wanted")
    if mv.nbytes == 0:
        return memoryview(bytearray())
    return mv if mv.format == "B" and mv.ndim == 1 else mv.cast("B")


def buffer_of(storage: Storage) -> Buffer:
    """The buffer behind a Storage, made on first use and kept in its ``payload``."""
    found = storage.payload
    if found is None:
        found = Buffer(storage.device, storage.size, storage.dtype)
        storage.place(found)
    assert isinstance(found, Buffer), f"{storage!r} holds a {type(found).__name__}"
    return found
