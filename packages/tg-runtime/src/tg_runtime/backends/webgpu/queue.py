"""Commands: dispatches and copies are recorded, and submitted together; transfers to and from the host."""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable, Sequence
from ctypes import byref
from typing import Any

from .driver import Driver

_RECORDED = 32  # commands that are submitted together at most
_STAGING = 16 << 20  # bytes of a read, in parts of this size
_ARGUMENTS = 64 << 10  # bytes of a ring of small uniform ranges
_SLOT = 256  # bytes at multiples of which a uniform range may begin on every device
_GROUPS = 4096  # bind groups that are kept
_TIMES = 16  # bytes of two timestamps

Binding = tuple[int, int, int]  # buffer, first byte, bytes


class Queue:
    """The one queue of a device, in order.

    Attributes:
      driver: the device.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._library: Any = driver.library
        self._api = driver.api
        self._lock = driver.lock
        self._encoder = self._pass = 0
        self._recorded = 0
        self._groups: dict[tuple[int, tuple[Binding, ...]], int] = {}
        self._groups_of: dict[int, set[tuple[int, tuple[Binding, ...]]]] = {}
        self._arguments = self._staging = 0
        self._staging_bytes = 0
        self._slots = bytearray()
        self._first_slot = 0
        self._queries = self._resolved = 0
        self._freed: list[int] = []

    @property
    def storage_usage(self) -> int:
        """The usage of buffers that kernels see."""
        api = self._api
        usage: int = api.BufferUsage_Storage | api.BufferUsage_CopyDst | api.BufferUsage_CopySrc
        return usage

    @property
    def arguments(self) -> int:
        """The uniform buffer in which the values of variables lie."""
        if not self._arguments:
            usage = self._api.BufferUsage_Uniform | self._api.BufferUsage_CopyDst
            self._arguments = self.driver.create_buffer(_ARGUMENTS, usage)
        return self._arguments

    # recording

    def _open(self) -> int:
        if not self._encoder:
            self._release_freed()
            self._encoder = self._library.wgpuDeviceCreateCommandEncoder(self.driver.device, None)
        return self._encoder

    def _close_pass(self) -> None:
        if self._pass:
            self._library.wgpuComputePassEncoderEnd(self._pass)
            self._library.wgpuComputePassEncoderRelease(self._pass)
            self._pass = 0

    def submit(self) -> None:
        """Submits what is recorded."""
        with self._lock:
            if not self._encoder:
                return
            self._close_pass()
            if self._slots:
                # Writes and submissions are done in order: no dispatch that was submitted sees the new values.
                raw = (ctypes.c_char * len(self._slots)).from_buffer(self._slots)
                self._library.wgpuQueueWriteBuffer(
                    self.driver.queue, self._arguments, self._first_slot, ctypes.addressof(raw), len(self._slots)
                )
                self._first_slot += len(self._slots)
                self._slots = bytearray()
            encoder, self._encoder, self._recorded = self._encoder, 0, 0
            commands = self._library.wgpuCommandEncoderFinish(encoder, None)
            self._library.wgpuQueueSubmit(self.driver.queue, 1, byref(ctypes.c_void_p(commands)))
            self._library.wgpuCommandBufferRelease(commands)
            self._library.wgpuCommandEncoderRelease(encoder)

    def _slot(self, values: Sequence[int]) -> int:
        """Writes the values of the next dispatch to the uniform buffer; returns their offset in bytes."""
        nbytes = -(-4 * len(values) // _SLOT) * _SLOT
        if self._first_slot + len(self._slots) + nbytes > _ARGUMENTS:
            self.submit()
            self._first_slot = 0
        at = self._first_slot + len(self._slots)
        raw = struct.pack(f"<{len(values)}i", *values)
        self._slots += raw.ljust(nbytes, b"\0")
        return at

    def bind_group(self, layout: int, bindings: tuple[Binding, ...]) -> int:
        """A bind group of these ranges, in order, made once.

        Raises:
          WebGPUError: if they do not fit the layout.
        """
        key = layout, bindings
        found = self._groups.get(key)
        if found is None:
            if len(self._groups) >= _GROUPS:
                self._forget(list(self._groups))
            entries = (self._api.BindGroupEntry * len(bindings))()
            for number, (entry, (buffer, offset, size)) in enumerate(zip(entries, bindings, strict=True)):
                entry.binding, entry.buffer, entry.offset, entry.size = number, buffer, offset, size
            descriptor = self._api.BindGroupDescriptor(layout=layout, entryCount=len(bindings), entries=entries)
            library, device = self._library, self.driver.device
            found = self._groups[key] = self.driver.attempt(
                "bind group", lambda: library.wgpuDeviceCreateBindGroup(device, byref(descriptor))
            )
            for buffer, _, _ in bindings:
                self._groups_of.setdefault(buffer, set()).add(key)
        return found

    def _forget(self, keys: Sequence[tuple[int, tuple[Binding, ...]]]) -> None:
        for key in keys:
            self._library.wgpuBindGroupRelease(self._groups.pop(key))
            for buffer, _, _ in key[1]:
                self._groups_of.get(buffer, set()).discard(key)

    def release_layout(self, layout: int) -> None:
        """Drops the bind groups of a layout, and the layout."""
        with self._lock:
            self._forget([key for key in self._groups if key[0] == layout])
            self._library.wgpuBindGroupLayoutRelease(layout)

    def free(self, buffer: int) -> None:
        """Gives a buffer back. May be called from a finaliser: the buffer is released with the next commands."""
        self._freed.append(buffer)

    def _release_freed(self) -> None:
        while self._freed:
            buffer = self._freed.pop()
            self._forget(list(self._groups_of.pop(buffer, ())))
            self._library.wgpuBufferRelease(buffer)

    def collect(self) -> None:
        """Releases what was freed."""
        with self._lock:
            self.submit()
            self._release_freed()

    def dispatch(
        self, pipeline: int, group: int, groups: tuple[int, int, int], values: Sequence[int] = (), timed: bool = False
    ) -> float | None:
        """Records a dispatch; with ``timed``, submits, waits, and returns the seconds it took."""
        with self._lock:
            self.driver.check()
            if timed:
                self.submit()
                return self._timed(pipeline, group, groups, values)
            self._record(pipeline, group, groups, values, lambda: None)
            if self._recorded >= _RECORDED:
                self.submit()
            return None

    def _record(
        self, pipeline: int, group: int, groups: tuple[int, int, int], values: Sequence[int],
        describe: Callable[[], Any],
    ) -> None:  # fmt: skip
        at = self._slot(values) if values else None
        library = self._library
        if not self._pass:
            self._pass = library.wgpuCommandEncoderBeginComputePass(self._open(), describe())
        library.wgpuComputePassEncoderSetPipeline(self._pass, pipeline)
        offsets = None if at is None else byref(ctypes.c_uint32(at))
        library.wgpuComputePassEncoderSetBindGroup(self._pass, 0, group, 0 if at is None else 1, offsets)
        library.wgpuComputePassEncoderDispatchWorkgroups(self._pass, *groups)
        self._recorded += 1

    def _timed(
        self, pipeline: int, group: int, groups: tuple[int, int, int], values: Sequence[int]
    ) -> float:
        if not self.driver.adapter.timestamps:
            self.finish()
            start = time.perf_counter()
            self._record(pipeline, group, groups, values, lambda: None)
            self.finish()
            return time.perf_counter() - start
        if not self._queries:
            self._make_queries()
        writes = self.driver.timestamp_writes(self._queries)
        descriptor = self._api.ComputePassDescriptor(timestampWrites=ctypes.pointer(writes))
        self._record(pipeline, group, groups, values, lambda: byref(descriptor))
        self._close_pass()
        self._library.wgpuCommandEncoderResolveQuerySet(self._open(), self._queries, 0, 2, self._resolved, 0)
        raw = (ctypes.c_uint64 * 2)()
        self.read(self._resolved, 0, _TIMES, ctypes.addressof(raw))
        begin, end = raw
        return max(int(end) - int(begin), 1) * self.driver.tick_s

    def _make_queries(self) -> None:
        descriptor = self._api.QuerySetDescriptor(type=self._api.QueryType_Timestamp, count=2)
        library, device = self._library, self.driver.device
        self._queries = self.driver.attempt(
            "timestamps", lambda: library.wgpuDeviceCreateQuerySet(device, byref(descriptor))
        )
        self._resolved = self.driver.create_buffer(
            _SLOT, self._api.BufferUsage_QueryResolve | self._api.BufferUsage_CopySrc
        )

    # transfers; sizes and places are multiples of 4 bytes

    def copy(self, dest: int, dest_at: int, src: int, src_at: int, nbytes: int) -> None:
        """Records a copy between buffers."""
        with self._lock:
            self.driver.check()
            self._close_pass()
            self._library.wgpuCommandEncoderCopyBufferToBuffer(self._open(), src, src_at, dest, dest_at, nbytes)
            self._recorded += 1

    def write(self, buffer: int, at: int, source: int, nbytes: int) -> None:
        """Copies from the host address ``source``, after all that is recorded. The memory is free at once."""
        with self._lock:
            self.driver.check()
            self.submit()
            self._library.wgpuQueueWriteBuffer(self.driver.queue, buffer, at, source, nbytes)

    def read(self, buffer: int, at: int, nbytes: int, dest: int) -> None:
        """Copies to the host address ``dest``, after all that is recorded."""
        with self._lock:
            for begin in range(0, nbytes, _STAGING):
                part = min(nbytes - begin, _STAGING)
                staging = self._stage(part)
                self.copy(staging, 0, buffer, at + begin, part)
                self.submit()
                self.driver.map_read(staging, part, dest + begin)

    def upload(self, buffer: int, at: int, source: memoryview, keep: bool) -> None:
        """Copies host memory to any byte of a buffer; ``keep`` what the words at its ends hold beside it."""
        low, high = at & ~3, (at + source.nbytes + 3) & ~3
        if high - low == source.nbytes:
            for begin in range(0, source.nbytes, _STAGING):
                part = source[begin : begin + _STAGING]
                block = (ctypes.c_char * part.nbytes).from_buffer(bytearray(part) if part.readonly else part)
                self.write(buffer, low + begin, ctypes.addressof(block), part.nbytes)
            return
        staged = bytearray(high - low)
        with self._lock:
            for place in {low, high - 4} if keep else ():
                self.download(memoryview(staged)[place - low : place - low + 4], buffer, place)
            staged[at - low : at - low + source.nbytes] = source
            block = (ctypes.c_char * len(staged)).from_buffer(staged)
            self.write(buffer, low, ctypes.addressof(block), len(staged))

    def download(self, dest: memoryview, buffer: int, at: int) -> None:
        """Copies any bytes of a buffer to the host, after all that is recorded."""
        low, high = at & ~3, (at + dest.nbytes + 3) & ~3
        whole = high - low == dest.nbytes
        staged = dest if whole else memoryview(bytearray(high - low))
        block = (ctypes.c_char * staged.nbytes).from_buffer(staged)
        self.read(buffer, low, staged.nbytes, ctypes.addressof(block))
        if not whole:
            dest[:] = staged[at - low : at - low + dest.nbytes]

    def _stage(self, nbytes: int) -> int:
        if nbytes > self._staging_bytes:
            size = max(nbytes, 1 << 16)
            staging = self.driver.create_buffer(size, self._api.BufferUsage_MapRead | self._api.BufferUsage_CopyDst)
            if self._staging:
                self.driver.release_buffer(self._staging)
            self._staging, self._staging_bytes = staging, size
        return self._staging

    def finish(self) -> None:
        """Waits until all that was recorded is done."""
        self.submit()
        self.driver.finish()
