"""Memory of a CUDA device, and copies that pass through pinned memory of the host."""

from __future__ import annotations

import ctypes

from ...device.allocator import Allocator, BufferOptions, LRUAllocator
from ...headers.cuda import api
from ...host.locks import fork_safe_lock
from .context import Context

_CHUNK_BYTES = 4 << 20

_from_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_from_memory.restype = ctypes.py_object
_from_memory.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
_READ_WRITE = 0x200


class CUDAMemory:
    """A range of memory that the device can reach.

    Attributes:
      address: where it begins, for the device.
      nbytes: its size.
      owner: the block that it is a part of, None for a whole one.
      pinned: whether it is the host's memory, at the same address.
      used: of a whole block, the number of the last kernel that used it.
      arrived: of a whole block, the event behind the last copy to it; 0 if there was none.
      arriving: of a whole block, whether kernels do not wait for that event yet.
      shared: of a whole block, whether others use the memory, too: another library, or another block of ours.
    """

    __slots__ = ("__weakref__", "address", "arrived", "arriving", "nbytes", "owner", "pinned", "shared", "used")

    def __init__(self, address: int, nbytes: int, owner: CUDAMemory | None = None, pinned: bool = False) -> None:
        self.address, self.nbytes, self.owner, self.pinned = address, nbytes, owner, pinned
        self.used = self.arrived = 0
        self.arriving = self.shared = False

    @property
    def block(self) -> CUDAMemory:
        """The whole block."""
        return self if self.owner is None else self.owner


class Staging:
    """Two chunks of pinned memory in turns: one is copied by the device while the host fills or empties the other."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._lock = fork_safe_lock()
        self._chunks: list[tuple[int, int]] = []  # address, event of its last use
        self._turn = 0

    def _next(self) -> tuple[int, int]:
        """A chunk that the device is done with."""
        if not self._chunks:
            for _ in range(2):
                address = self.context.driver.object("cuMemHostAlloc", _CHUNK_BYTES, api.HOSTALLOC_PORTABLE)
                self._chunks.append((address, self.context.event()))
        chunk = self._chunks[self._turn]
        self._turn ^= 1
        self.context.wait(chunk[1])
        return chunk

    def upload(self, dest: CUDAMemory, src: memoryview) -> None:
        """Copies to the device. The host's memory may change as soon as this is back; the device may not be done."""
        context, driver = self.context, self.context.driver
        order = context.order
        with self._lock:
            context.enter()
            order.before_copy(dest.block)
            for begin in range(0, src.nbytes, _CHUNK_BYTES):
                part = src[begin : begin + _CHUNK_BYTES]
                address, event = self._next()
                _view(address, part.nbytes)[:] = part
                code = driver.cuMemcpyHtoDAsync_v2(dest.address + begin, address, part.nbytes, order.copies)
                driver.check(code, f"copying {src.nbytes} bytes to the device")
                context.record(event, order.copies)
            order.after_copy_in(dest.block)
            if dest.block.shared:
                order.before_kernel((dest.block,))  # kernels may know the memory by another block

    def download(self, dest: memoryview, src: CUDAMemory) -> None:
        """Copies from the device, after all kernels and copies that used the memory."""
        context, driver = self.context, self.context.driver
        with self._lock:
            context.enter()
            order = context.order
            order.before_copy(src.block)
            waiting: list[tuple[int, int, int]] = []
            for begin in range(0, dest.nbytes, _CHUNK_BYTES):
                if len(waiting) == 2:
                    self._empty(dest, *waiting.pop(0))
                address, event = self._next()
                nbytes = min(_CHUNK_BYTES, dest.nbytes - begin)
                code = driver.cuMemcpyDtoHAsync_v2(address, src.address + begin, nbytes, order.copies)
                driver.check(code, f"copying {dest.nbytes} bytes from the device")
                context.record(event, order.copies)
                waiting.append((address, event, begin))
            for chunk in waiting:
                self._empty(dest, *chunk)

    def _empty(self, dest: memoryview, address: int, event: int, begin: int) -> None:
        self.context.wait(event)
        nbytes = min(_CHUNK_BYTES, dest.nbytes - begin)
        dest[begin : begin + nbytes] = _view(address, nbytes)


def _view(address: int, nbytes: int) -> memoryview:
    view: memoryview = _from_memory(address, nbytes, _READ_WRITE)
    return view


class CUDAAllocator(LRUAllocator[CUDAMemory]):
    """Memory of one CUDA device.

    ``external_ptr`` is an address of the device, such as that of another library's tensor. ``host`` asks for pinned
    memory of the host, which both use in place.

    Args:
      device: the device's name, for messages.
      context: of the device.
    """

    supports_offset = True

    def __init__(self, device: str, context: Context) -> None:
        super().__init__(device, context.memory_bytes)
        self.context = context
        self.staging = Staging(context)

    def _alloc(self, nbytes: int, options: BufferOptions) -> CUDAMemory:
        if options.external_ptr is not None:
            theirs = CUDAMemory(options.external_ptr, nbytes)
            theirs.shared = True
            return theirs
        context = self.context
        context.enter()
        if options.host:
            found = ctypes.c_void_p()
            code = context.driver.cuMemHostAlloc(ctypes.byref(found), max(nbytes, 1), api.HOSTALLOC_PORTABLE)
            address = found.value or 0
        else:
            place = ctypes.c_uint64()
            code = context.driver.cuMemAlloc_v2(ctypes.byref(place), max(nbytes, 1))
            address = place.value
        if code == api.NO_MEMORY:
            raise MemoryError("the driver has no more memory")
        context.driver.check(code, f"{nbytes} bytes of memory")
        return CUDAMemory(address, nbytes, pinned=options.host)

    def _free(self, opaque: CUDAMemory, options: BufferOptions) -> None:
        address, opaque.address = opaque.address, 0
        context = self.context
        if not address or not context.try_enter():
            return  # the process is a child, or the driver has shut down: the memory is gone already
        context.order.forget(opaque)
        if options.external_ptr is not None:
            self._let_go(opaque)
            return
        # cuMemFree waits for the device; freeing pinned memory does not.
        driver, code = context.driver, api.SUCCESS
        if opaque.pinned:
            for stream in (context.order.copies, context.stream):
                code = code or driver.cuStreamSynchronize(stream)
            code = code or driver.cuMemFreeHost(address)
        else:
            code = driver.cuMemFree_v2(address)
        if code not in api.LOST:  # a lost device has lost its memory, too: dropping a buffer is no error then
            driver.check(code, f"giving back {opaque.nbytes} bytes")

    def _let_go(self, opaque: CUDAMemory) -> None:
        """Waits for our work on borrowed memory, which its owner may now reuse."""
        context = self.context
        for stream in (context.order.copies, context.stream):
            code = context.driver.cuStreamSynchronize(stream)
            if code not in api.LOST:
                context.driver.check(code, f"giving {opaque.nbytes} bytes back to their owner")

    def recycle(self, opaque: CUDAMemory) -> CUDAMemory | None:
        """None if others used the block: their work may still run, so it is waited for when the memory is freed."""
        return None if opaque.shared else opaque

    def copyin(self, dest: CUDAMemory, src: memoryview) -> None:
        """Copies host memory to the device; returns before the device is done."""
        self.staging.upload(dest, src.cast("B"))

    def copyout(self, dest: memoryview, src: CUDAMemory) -> None:
        """Copies device memory to the host, after all that is queued with it."""
        self.staging.download(dest.cast("B"), src)

    def as_buffer(self, opaque: CUDAMemory, nbytes: int) -> memoryview | None:
        """Pinned memory itself, after all that is queued; None for the device's own."""
        if not opaque.block.pinned:
            return None
        self.context.synchronize()
        return _view(opaque.address, nbytes)

    def export(self, opaque: CUDAMemory, nbytes: int) -> memoryview | None:
        """None: a block may serve again while an exported view lives."""
        return None

    def offset(self, opaque: CUDAMemory, nbytes: int, byte_offset: int) -> CUDAMemory:
        """A part of a block."""
        return CUDAMemory(opaque.address + byte_offset, nbytes, opaque.block)

    def transfer(self, dest: CUDAMemory, src: CUDAMemory, nbytes: int, source: Allocator[object]) -> bool:
        """Copies from the memory of another CUDA device of the same driver; False for any other."""
        if not isinstance(source, CUDAAllocator) or source.context.driver is not self.context.driver:
            return False
        here, there = self.context, source.context
        here.reaches(there)  # without peer access the driver goes through the host by itself
        there.enter()
        there.order.before_kernel((src.block,))
        here.follow(there)
        here.order.before_kernel((dest.block,))
        code = here.driver.cuMemcpyPeerAsync(
            dest.address, here.handle, src.address, there.handle, nbytes, here.stream
        )
        here.driver.check(code, f"copying {nbytes} bytes between devices")
        here.order.after_kernel((dest.block,))
        there.follow(here)
        there.order.after_kernel((src.block,))
        return True
