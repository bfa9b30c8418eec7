"""HCQAllocator: device memory, and copies to and from it that go through the device's own queues."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from tg_runtime import Allocator, BufferOptions, DeviceError, LRUAllocator
from tg_runtime.device.allocator import DEFAULT_OPTIONS
from tg_runtime.host.elf import Layout
from tg_runtime.memory.buffer import spoil_holders

from .allocations import Allocations
from .buffer import HCQBuffer, LostBuffer
from .profiling import ProfiledDevice, timed
from .queue import HWQueue
from .timeline import Timeline

HOST_OPTIONS = BufferOptions(host=True, nolru=True)
_TRACK = "copy queue"


class HCQAllocator(LRUAllocator[HCQBuffer]):
    """Memory of a device that is driven by queues. A subclass says how memory is mapped: ``_map`` and ``_unmap``.

    Freeing never waits: the collector may do it at any moment and on any thread, that of a software device included.
    What the device may still use is retired, and unmapped when more is allocated or the device is synchronised.

    Host memory is copied through staging slots that the device sees; each slot remembers the submission that used it
    last, so filling one overlaps with the device's copying of another.

    Attributes:
      peer_group: devices of one group can address one another's memory; of the class, or found out when the device is
        opened.
      staging_slots: number of slots.
      staging_nbytes: size of each.
      allocations: who asked for which memory.
    """

    supports_offset = True
    peer_group: str = ""
    staging_slots: ClassVar[int] = 32
    staging_nbytes: ClassVar[int] = 2 << 20

    def __init__(self, device: str = "", limit: int | None = None) -> None:
        super().__init__(device, limit)
        self.allocations = Allocations()
        self._mapped_for: WeakKeyDictionary[HCQBuffer, list[HCQAllocator]] = WeakKeyDictionary()
        self._timeline: Timeline | None = None
        self._profiled: ProfiledDevice | None = None
        self._compute_queue: Callable[[], HWQueue]
        self._copy_queue: Callable[[], HWQueue] | None = None
        self._slots: list[HCQBuffer] = []
        self._last_use: list[tuple[int, int]] = []
        self._next_slot = 0
        self._retired: deque[tuple[Callable[[], bool], HCQBuffer, BufferOptions, object]] = deque()
        # what other devices write to this one's memory; and those that a reset of this one found unfinished
        self._visits: list[tuple[Timeline, tuple[int, int]]] = []
        self._stragglers: list[tuple[Timeline, tuple[int, int]]] = []

    def attach(
        self,
        timeline: Timeline,
        compute_queue: Callable[[], HWQueue],
        copy_queue: Callable[[], HWQueue] | None,
        profiled: ProfiledDevice | None = None,
    ) -> None:
        """Says in which order copies happen, and on which queue; without one the host copies what it sees.

        Args:
          timeline: the order.
          compute_queue: makes a queue for work that is no copy.
          copy_queue: makes a queue for copies; None if there is none.
          profiled: the device whose copies profiles show.
        """
        self._timeline, self._compute_queue, self._copy_queue = timeline, compute_queue, copy_queue
        self._profiled = profiled

    @abstractmethod
    def _map(self, nbytes: int, options: BufferOptions) -> HCQBuffer:
        """Takes memory from the system and lets the device see it; raises MemoryError if there is none."""

    @abstractmethod
    def _unmap(self, opaque: HCQBuffer, options: BufferOptions) -> None:
        """Gives memory back, which the device uses no more."""

    def alloc(self, nbytes: int, options: BufferOptions = DEFAULT_OPTIONS) -> HCQBuffer:
        """A block from the cache or a new one.

        Raises:
          ValueError: if ``nbytes`` is negative.
          OutOfMemory: if there is not so much, even with the cache emptied.
        """
        opaque = super().alloc(nbytes, options)
        self.allocations.taken(opaque, nbytes, options)
        return opaque

    def free(self, opaque: HCQBuffer, nbytes: int, options: BufferOptions = DEFAULT_OPTIONS) -> None:
        """Keeps the block for later, or frees it once the device is done with it."""
        self._note_freed(opaque)
        super().free(opaque, nbytes, options)

    def _note_freed(self, opaque: HCQBuffer) -> None:
        address = opaque.remains().address if isinstance(opaque, LostBuffer) else opaque.address
        assert isinstance(address, int)
        self.allocations.given(address)

    def lose(self, opaques: Sequence[HCQBuffer], why: str) -> None:
        """Marks memory as worth nothing: whoever uses it from now on gets an error.

        Args:
          opaques: the memory; of a part, the whole is lost.
          why: what happened, for the message.
        """
        wholes = {id(whole): whole for whole in (opaque.base or opaque for opaque in opaques)}
        wanted = [whole for whole in wholes.values() if not isinstance(whole, LostBuffer)]
        if not wanted:
            return
        options = {id(a.opaque()): a.options for a in self.allocations.live()}
        unowned = [(opaque, options.get(id(opaque), DEFAULT_OPTIONS)) for opaque in spoil_holders(wanted, why)]
        for whole in wanted:
            whole.lose(why)
        for opaque, asked in unowned:
            self._note_freed(opaque)
            self._retired.append((lambda: True, opaque, asked, None))

    def lose_all(self, why: str) -> None:
        """Marks everything but host memory as worth nothing, for a device that forgot its memory."""
        self.free_cache()
        held = [(a.opaque(), a.options) for a in self.allocations.live()]
        self.lose([opaque for opaque, options in held if opaque is not None and not options.host], why)

    def visited(self, timeline: Timeline) -> None:
        """Notes that what another device is about to be told writes to memory of this one.

        Args:
          timeline: of the other device, at the value that it reaches then.
        """
        self._visits = [visit for visit in self._visits if not visit[0].reached(visit[1])]
        self._visits.append((timeline, (timeline.epoch, timeline.value)))

    def outlive_peers(self) -> None:
        """Called by a reset, which stops no other device: what their copies may still write is kept until they end."""
        self._stragglers += self._visits
        self._visits = []
        self.free_cache()  # of what is being written no block may serve again

    def _disturbed(self) -> bool:
        """Whether a copy that a reset found on its way may still write to memory that nobody here waits for."""
        if self._stragglers:
            self._stragglers = [visit for visit in self._stragglers if not visit[0].reached(visit[1])]
        return bool(self._stragglers)

    def map_for(self, opaque: HCQBuffer, other: HCQAllocator) -> None:
        """Lets another device address memory of this one, at the same address, until it is freed.

        Args:
          opaque: the memory; of a part, the whole is mapped.
          other: the allocator of the other device.

        Raises:
          DeviceError: if the devices are no peers, or the other one refuses.
        """
        whole = opaque.base or opaque
        if other is self or other.device in whole.mappings:
            return
        if other.peer_group != self.peer_group or not self.peer_group:
            raise DeviceError(f"{other.device} cannot address memory of {self.device}: they are no peers")
        other._map_peer(whole, self)
        whole.mappings.add(other.device)
        self._mapped_for.setdefault(whole, []).append(other)

    def _map_peer(self, opaque: HCQBuffer, owner: HCQAllocator) -> None:
        """Maps memory of a peer for this device; nothing to do where peers share an address space."""

    def _unmap_peer(self, opaque: HCQBuffer, owner: HCQAllocator) -> None:
        """Undoes ``_map_peer``; this device uses the memory no more."""

    def load_code(self, opaque: HCQBuffer, image: bytes, layout: Layout) -> None:
        """Writes code to memory that was allocated as executable, before everything that is submitted from now on.

        Args:
          opaque: the memory.
          image: its content.
          layout: which parts of it are instructions, and which are written to.

        Raises:
          DeviceFault: if the device is stopped.
        """
        self.copyin(opaque, memoryview(image))
        self._code_changed()

    def _code_changed(self) -> None:
        """Has the device forget the instructions it fetched; nothing to do where no cache keeps them."""

    def _give_back(self, opaque: HCQBuffer, options: BufferOptions) -> None:
        peers = self._mapped_for.pop(opaque, [])
        if isinstance(opaque, LostBuffer):
            opaque = opaque.remains()
        for other in peers:
            other._unmap_peer(opaque, self)
            opaque.mappings.discard(other.device)
        self._unmap(opaque, options)

    def _alloc(self, nbytes: int, options: BufferOptions) -> HCQBuffer:
        if self._timeline is not None:
            self._timeline.require()
        self.reap()
        try:
            return self._map(nbytes, options)
        except MemoryError:
            if not self._retired or self._timeline is None:
                raise
            self._timeline.synchronize()
            self.reap()
            return self._map(nbytes, options)

    def _free(self, opaque: HCQBuffer, options: BufferOptions) -> None:
        if self._timeline is None:
            self._give_back(opaque, options)
        else:
            self._retired.append((self._timeline.here(), opaque, options, None))

    def retire(
        self, opaque: HCQBuffer, options: BufferOptions, done: Callable[[], bool] | None = None, keep: object = None
    ) -> None:
        """Frees what :meth:`alloc` gave, once the device is done with it; it is not kept for other requests.

        Args:
          opaque: the memory.
          options: those it was allocated with.
          done: whether the device is done; if None, everything submitted by now must be.
          keep: kept alive until then.
        """
        self.account(-opaque.nbytes, -1)
        self._note_freed(opaque)
        self._retired.append((done or self.timeline.here(), opaque, options, keep))

    def reap(self) -> None:
        """Unmaps what was freed and is done with; in a forked child nothing, for it is the parent's."""
        if (self._timeline is not None and not self._timeline.ours) or self._disturbed():
            return
        for _ in range(len(self._retired)):
            try:
                item = self._retired.popleft()
            except IndexError:  # another thread was faster
                return
            done, opaque, options, _keep = item
            if done():
                self._give_back(opaque, options)
            else:
                self._retired.append(item)

    @property
    def timeline(self) -> Timeline:
        """The order in which copies happen.

        Raises:
          DeviceError: if the allocator belongs to no device yet.
        """
        if self._timeline is None:
            raise DeviceError(f"{self.device}: the allocator is not attached to a device")
        return self._timeline

    def copyin(self, dest: HCQBuffer, src: memoryview) -> None:
        """Copies host memory to the device; ``src`` may be changed when this returns.

        Raises:
          ValueError: if ``src`` is larger than ``dest``.
          DeviceFault: if the device is stopped.
        """
        data = _bytes_of(src, dest, "copyin")
        self.timeline.require()
        if self._copy_queue is None:
            self.timeline.synchronize()
            dest.host_view().bytes()[: len(data)] = data
            return
        with self.timeline.lock:
            for start in range(0, len(data), self.staging_nbytes):
                part = data[start : start + self.staging_nbytes]
                index, slot = self._slot()
                slot.host_view().bytes()[: len(part)] = part
                with (
                    self.timeline.submission(self._copy_queue()) as queue,
                    timed(self._profiled, queue, _TRACK, "copyin", {"bytes": len(part)}),
                ):
                    queue.copy(dest.address + start, slot.address, len(part))
                    queue.writes.append(dest)
                self._last_use[index] = self.timeline.point()

    def copyout(self, dest: memoryview, src: HCQBuffer) -> None:
        """Copies device memory to the host, after the work submitted before.

        Raises:
          ValueError: if ``dest`` is larger than ``src``.
          DeviceFault: if the device is stopped.
        """
        data = _bytes_of(dest, src, "copyout")
        if self._copy_queue is None:
            self.timeline.synchronize()
            data[:] = src.host_view().bytes()[: len(data)]
            return
        with self.timeline.lock:
            waiting: list[tuple[int, HCQBuffer, int]] = []
            for start in range(0, len(data), self.staging_nbytes):
                index, slot = self._slot()
                nbytes = min(self.staging_nbytes, len(data) - start)
                with (
                    self.timeline.submission(self._copy_queue()) as queue,
                    timed(self._profiled, queue, _TRACK, "copyout", {"bytes": nbytes}),
                ):
                    queue.copy(slot.address, src.address + start, nbytes)
                self._last_use[index] = self.timeline.point()
                waiting.append((index, slot, start))
                if len(waiting) == max(1, self.staging_slots // 2):
                    self._drain(data, waiting.pop(0))
            for item in waiting:
                self._drain(data, item)

    def as_buffer(self, opaque: HCQBuffer, nbytes: int) -> memoryview | None:
        """The memory itself, once the device is idle; None where the host does not see it."""
        if opaque.view is None:
            return None
        self.timeline.synchronize()
        return opaque.view.bytes()[:nbytes]

    def export(self, opaque: HCQBuffer, nbytes: int) -> memoryview | None:
        """As ``as_buffer``; the memory is not given to others while the view lives."""
        if opaque.view is None:
            return None
        self.timeline.synchronize()
        return opaque.lend(nbytes)

    def recycle(self, opaque: HCQBuffer) -> HCQBuffer | None:
        """The block, unless its content was lost or somebody on the host still looks at it."""
        return None if isinstance(opaque, LostBuffer) or opaque.is_lent else opaque

    def offset(self, opaque: HCQBuffer, nbytes: int, byte_offset: int) -> HCQBuffer:
        """The part of ``opaque`` that begins at ``byte_offset``."""
        return opaque.offset(byte_offset, nbytes)

    def transfer(self, dest: HCQBuffer, src: HCQBuffer, nbytes: int, source: Allocator[Any]) -> bool:
        """Copies from another device of the same group by that device's copy queue; False where it cannot."""
        if not isinstance(source, HCQAllocator) or source.peer_group != self.peer_group or source._copy_queue is None:
            return False
        self.map_for(dest, source)
        here, there = self.timeline, source.timeline
        with ExitStack() as locks:
            # one order for all threads: two transfers in opposite directions must not wait for each other
            for timeline in sorted((here, there), key=id):
                locks.enter_context(timeline.lock)
            with there.submission(source._copy_queue()) as queue:
                if here is not there:
                    queue.wait(here.signal, here.value - 1)
                with timed(source._profiled, queue, _TRACK, "transfer", {"bytes": nbytes, "to": self.device}):
                    queue.copy(dest.address, src.address, nbytes)
                    there.pending.add((there.epoch, there.value), [dest], self)
                    self.visited(there)
                    if here is not there:
                        here.pending.add((here.epoch, here.value), [dest])
            if here is not there:
                with here.submission(self._compute_queue()) as queue:
                    queue.wait(there.signal, there.value - 1)
        return True

    def _slot(self) -> tuple[int, HCQBuffer]:
        index = self._next_slot
        if index == len(self._slots):
            self._slots.append(self.alloc(self.staging_nbytes, HOST_OPTIONS))
            self._last_use.append((-1, 0))
        self._next_slot = (index + 1) % self.staging_slots
        self.timeline.wait(self._last_use[index])
        return index, self._slots[index]

    def _drain(self, data: memoryview, item: tuple[int, HCQBuffer, int]) -> None:
        index, slot, start = item
        self.timeline.wait(self._last_use[index])
        part = data[start : start + self.staging_nbytes]
        part[:] = slot.host_view().bytes()[: len(part)]


def _bytes_of(host: memoryview, device: HCQBuffer, what: str) -> memoryview:
    data = host.cast("B") if host.format != "B" or host.ndim != 1 else host
    if len(data) > device.nbytes:
        raise ValueError(f"{what}: {len(data)} bytes on the host, {device!r} on the device")
    return data
