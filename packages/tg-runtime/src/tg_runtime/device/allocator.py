"""Allocators: device memory by the byte, the cache of freed blocks, and the account of who holds what."""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from tg_dtype import ImageDType
from tg_lazy import ContextVar

from ..errors import OutOfMemory
from ..host.locks import fork_safe_lock
from ..telemetry.counters import GlobalCounters, human
from .holders import table

LRU: ContextVar[int] = ContextVar("LRU", 1)

T = TypeVar("T")

_MAX_BYTES = 2**62
# reentrant: the collector may free a buffer while this thread is allocating one
_accounting = fork_safe_lock()


class BufferOptions(NamedTuple):
    """What kind of memory is asked for. Equal whoever the owner is.

    Attributes:
      external_ptr: memory that somebody else owns; nothing is allocated. What it is depends on the device: an address
        of this process (CPU, NUMPY, HOSTQ; METAL, if it was mapped), of the device (CUDA), or a ``cl_mem`` of its
        context (CL).
      host: the host must be able to read and write it in place, where the device can do that.
      nolru: give it back to the system when freed.
      owner: kept alive for as long as the memory is used: by the buffer, its views, the host's views of it, or work
        that the device has not finished.
      readonly: it may be read but not written.
      image: the image that it is to be, where the device has images; its texels lie there row by row.
      spoiled: why the content is worth nothing: a step that was writing it was abandoned. Empty for all other memory.
      uncached: no cache of the device keeps it: what one side writes, the other reads at once.
      coherent: no cache of the device hides what others write there; what the device writes they see once its caches
        are flushed.
      contiguous: its physical addresses follow one another.
      executable: the device may run instructions there.
      device_visible: device memory that the host, too, reads and writes in place, through its window on the card.
    """

    external_ptr: int | None = None
    host: bool = False
    nolru: bool = False
    owner: object = None
    readonly: bool = False
    image: ImageDType | None = None
    spoiled: str = ""
    uncached: bool = False
    contiguous: bool = False
    executable: bool = False
    device_visible: bool = False
    coherent: bool = False

    def __eq__(self, other: object) -> bool:
        return type(other) is BufferOptions and self._compared() == other._compared()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._compared())

    def __repr__(self) -> str:
        told = (f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True) if name != "owner")
        return f"BufferOptions({', '.join(told)})"

    def _compared(self) -> tuple[object, ...]:
        return self[:3] + self[4:]  # all but the owner


DEFAULT_OPTIONS = BufferOptions()


class Allocator(ABC, Generic[T]):
    """Memory of one device. A subclass says how: ``_alloc``, ``_free``, ``copyin``, ``copyout``.

    Attributes:
      device: the device's name, for messages.
      used: bytes that buffers hold now.
      blocks: number of allocations that buffers hold now.
      limit: most bytes that may be held, cache included; None if only the device knows.
      supports_offset: of the class: whether a part of a block is memory like any other.
      arenas: of the class: whether kernels that follow one another are as well off with parts of one block as with
        blocks of their own.
    """

    supports_offset: bool = False
    arenas: bool = False
    reads_into: bool = False  # whether copyout to memory is to be preferred to copying out of as_buffer
    counted: bool = True  # whether GlobalCounters.mem_used includes it

    def __init__(self, device: str = "", limit: int | None = None) -> None:
        self.device = device
        self.limit = limit
        self.used = 0
        self.blocks = 0
        self._large: WeakValueDictionary[int, object] = WeakValueDictionary()

    @property
    def shares_blocks(self) -> bool:
        """Whether buffers between recorded steps become parts of one block now."""
        return self.arenas

    @abstractmethod
    def _alloc(self, nbytes: int, options: BufferOptions) -> T:
        """Takes memory from the device; raises MemoryError if there is none."""

    def _free(self, opaque: T, options: BufferOptions) -> None:
        """Gives memory back to the device. Does nothing where dropping the object does it."""

    @abstractmethod
    def copyin(self, dest: T, src: memoryview) -> None:
        """Copies host memory to the device."""

    @abstractmethod
    def copyout(self, dest: memoryview, src: T) -> None:
        """Copies device memory to the host, after the work that writes it is done."""

    def as_buffer(self, opaque: T, nbytes: int) -> memoryview | None:
        """The memory itself as host bytes, valid until it is freed; None where the host cannot reach it."""
        return None

    def as_writable(self, opaque: T, nbytes: int) -> memoryview | None:
        """As :meth:`as_buffer`, for a caller who will overwrite all of it."""
        return self.as_buffer(opaque, nbytes)

    def export(self, opaque: T, nbytes: int) -> memoryview | None:
        """As :meth:`as_buffer`, for keeping: the memory is not given to others while the view lives."""
        return self.as_buffer(opaque, nbytes)

    def offset(self, opaque: T, nbytes: int, byte_offset: int) -> T:
        """The part of ``opaque`` that begins at ``byte_offset``; it does not own its memory.

        Raises:
          TypeError: if the device has no sub-buffers.
        """
        raise TypeError(f"{self.device} has no sub-buffers (asked for {nbytes} bytes at {byte_offset})")

    def make_room(self) -> None:
        """Releases unused host memory that is kept: a compiler is about to need some."""

    def transfer(self, dest: T, src: T, nbytes: int, source: Allocator[object]) -> bool:
        """Copies from another allocator's memory without passing through the host; False where it cannot."""
        return False

    @property
    def cached(self) -> int:
        """Bytes held that no buffer uses."""
        return 0

    def alloc(self, nbytes: int, options: BufferOptions = DEFAULT_OPTIONS) -> T:
        """Allocates ``nbytes`` bytes.

        Raises:
          ValueError: if ``nbytes`` is negative.
          OutOfMemory: if there is not so much; the message says how much was asked, how much is held, and by whom.
        """
        if nbytes < 0:
            raise ValueError(f"{self.device}: cannot allocate {nbytes} bytes")
        if options.external_ptr is None:
            over = self.limit is not None and self.used + self.cached + nbytes > self.limit
            if over or nbytes > _MAX_BYTES:
                raise self._out_of_memory(nbytes, "")
        try:
            opaque = self._alloc(nbytes, options)
        except MemoryError as error:
            raise self._out_of_memory(nbytes, str(error)) from None
        self.account(nbytes, 1)
        return opaque

    def free(self, opaque: T, nbytes: int, options: BufferOptions = DEFAULT_OPTIONS) -> None:
        """Frees what :meth:`alloc` gave for the same ``nbytes`` and ``options``."""
        self.account(-nbytes, -1)
        self._free(opaque, options)

    def take_over(self, nbytes: int, options: BufferOptions = DEFAULT_OPTIONS) -> None:
        """Counts a block that :meth:`alloc` did not give, and that :meth:`free` will get for the same arguments."""
        self.account(nbytes, 1)

    def note_holder(self, holder: object, nbytes: int) -> None:
        """Remembers who holds a large block, for the message of :class:`OutOfMemory`."""
        if nbytes >= 1 << 20:
            self._large[id(holder)] = holder

    def holders(self) -> Iterable[object]:
        """Those who hold large blocks."""
        return list(self._large.values())

    def account(self, nbytes: int, blocks: int) -> None:
        """Counts bytes and allocations that buffers took (or, negative, gave back)."""
        with _accounting:
            self._account(nbytes, blocks)

    def _account(self, nbytes: int, blocks: int) -> None:
        self.used += nbytes
        self.blocks += blocks
        if self.counted:
            used = GlobalCounters.mem_used = GlobalCounters.mem_used + nbytes
            if used > GlobalCounters.mem_peak:
                GlobalCounters.mem_peak = used

    def _out_of_memory(self, nbytes: int, detail: str) -> OutOfMemory:
        who = table(self.holders(), self.used)
        limit = "" if self.limit is None else f"; the limit is {human(self.limit, 'B', 1024)}"
        first = (
            f"{self.device}: out of memory: {human(nbytes, 'B', 1024)} asked ({nbytes} bytes), "
            f"{human(self.used, 'B', 1024)} held by {self.blocks} buffers, "
            f"{human(self.cached, 'B', 1024)} in the cache{limit}; at most "
            f"{human(GlobalCounters.mem_peak, 'B', 1024)} were held on all devices{'; ' if detail else ''}{detail}"
        )
        return OutOfMemory("\n".join([f"{first}; these hold it:", *who] if who else [first]))


class LRUAllocator(Allocator[T]):
    """An allocator that keeps freed blocks for requests of the same size, and releases them when memory runs out.

    The setting ``LRU=0`` turns the cache off.

    Attributes:
      cache_limit: most bytes to keep; beyond that the cache is emptied.
    """

    granularity = 64

    def __init__(self, device: str = "", limit: int | None = None, cache_limit: int = 1 << 62) -> None:
        super().__init__(device, limit)
        self.cache_limit = cache_limit
        self._cache: dict[int | tuple[int, BufferOptions], list[T]] = {}
        self._cached = 0

    @property
    def cached(self) -> int:
        """Bytes held that no buffer uses."""
        return self._cached

    def _round(self, nbytes: int) -> int:
        return (nbytes + self.granularity - 1) // self.granularity * self.granularity

    def recycle(self, opaque: T) -> T | None:
        """What the cache keeps of a freed block; None if it may not be reused.

        An opaque that frees itself (``__del__``) must hand its memory to a new object here: when the collector breaks a
        cycle it finalizes a buffer and its opaque in any order, and an opaque that is revived is not finalized again.
        """
        return opaque

    def revive(self, opaque: T) -> T:
        """The block that is handed out for one that the cache kept."""
        return opaque

    def alloc(self, nbytes: int, options: BufferOptions = DEFAULT_OPTIONS) -> T:
        """A block from the cache or a new one; on MemoryError collects garbage, empties the cache and tries again.

        Raises:
          ValueError: if ``nbytes`` is negative.
          OutOfMemory: if there is not so much, even with the cache emptied.
        """
        if nbytes < 0 or (options is not DEFAULT_OPTIONS and options.external_ptr is not None):
            return super().alloc(nbytes, options)
        nbytes += -nbytes % self.granularity
        # hashing the usual options would cost as much as the rest of an allocation
        kept = self._cache.get(nbytes if options is DEFAULT_OPTIONS else (nbytes, options))
        if kept:
            with _accounting:
                if kept:  # still
                    opaque = self.revive(kept.pop())
                    self._cached -= nbytes
                    self.used += nbytes  # as _account does, without a call: every replay comes here
                    self.blocks += 1
                    if self.counted:
                        used = GlobalCounters.mem_used = GlobalCounters.mem_used + nbytes
                        if used > GlobalCounters.mem_peak:
                            GlobalCounters.mem_peak = used
                    return opaque
        try:
            return super().alloc(nbytes, options)
        except MemoryError:
            if nbytes > _MAX_BYTES:
                raise
        gc.collect()  # buffers in cycles of objects that nobody uses
        self.free_cache()
        return super().alloc(nbytes, options)

    def free(self, opaque: T, nbytes: int, options: BufferOptions = DEFAULT_OPTIONS) -> None:
        """Keeps the block for later, or frees it where it cannot serve again."""
        if options is not DEFAULT_OPTIONS and options.external_ptr is not None:
            super().free(opaque, nbytes, options)
            return
        nbytes += -nbytes % self.granularity
        kept = None if not LRU.value or options.nolru else self.recycle(opaque)
        if kept is None:
            super().free(opaque, nbytes, options)
            return
        key = nbytes if options is DEFAULT_OPTIONS else (nbytes, options)
        with _accounting:
            self._cached += nbytes
            self.used -= nbytes  # as _account does
            self.blocks -= 1
            if self.counted:
                GlobalCounters.mem_used -= nbytes
            blocks = self._cache.get(key)
            if blocks is None:
                blocks = self._cache[key] = []
            blocks.append(kept)
        if self._cached > self.cache_limit:
            self.free_cache()

    def take_over(self, nbytes: int, options: BufferOptions = DEFAULT_OPTIONS) -> None:
        """As :meth:`Allocator.take_over`; a block that may serve again counts as the cache will count it."""
        super().take_over(nbytes if options.external_ptr is not None else self._round(nbytes), options)

    def free_cache(self) -> None:
        """Gives every cached block back to the device."""
        with _accounting:
            cache, self._cache, self._cached = self._cache, {}, 0
        for key, blocks in cache.items():
            for opaque in blocks:
                self._free(opaque, DEFAULT_OPTIONS if isinstance(key, int) else key[1])
