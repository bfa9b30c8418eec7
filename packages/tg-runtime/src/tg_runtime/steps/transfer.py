"""Copies between devices, by the shortest way that their allocators have."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tg_dtype import dtypes

from ..errors import DeviceError
from ..memory.buffer import Buffer
from .runner import Runner, Vars

_PART_NBYTES = 8 << 20
"""How much of a file is read before it goes on to a device."""


class BufferCopy(Runner):
    """Copies a buffer to a buffer of another device, through the host. Buffers: destination, source."""

    queue = "copies"

    def __init__(self, nbytes: int, dest_device: str, src_device: str) -> None:
        super().__init__(f"copy {nbytes} B, {dest_device} <- {src_device}", dest_device, 0, nbytes)
        self.dest_device, self.src_device = dest_device, src_device

    def copy(self, dest: Buffer, src: Buffer) -> None:
        """Copies ``src`` to ``dest``, by the shortest way that the two allocators have."""
        if src.allocator.reads_into:
            view = dest.host_view(write=True)
            if view is not None:
                src.copyout(view)
                return
            if dest.allocator.supports_offset and dest.options.image is None:
                _copy_in_parts(dest, src)
                return
        view = src.host_view()
        if view is not None:
            dest.copyin(view)
            return
        view = dest.host_view(write=True)
        if view is not None:
            src.copyout(view)
            return
        dest.copyin(src.copyout(memoryview(bytearray(src.nbytes))))

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Copies."""
        dest, src = bufs
        if dest.nbytes != src.nbytes:
            raise ValueError(f"copy of {src!r} to {dest!r}: sizes differ")
        if dest.readonly:
            raise DeviceError(f"copy of {src!r} to {dest!r}, whose memory is read-only")
        start = time.perf_counter()
        if dest.nbytes:
            self.copy(dest, src)
        return time.perf_counter() - start if wait else None


def _copy_in_parts(dest: Buffer, src: Buffer) -> None:
    """Copies through a little of the host's memory."""
    room = memoryview(bytearray(min(_PART_NBYTES, src.nbytes)))
    for start in range(0, src.nbytes, _PART_NBYTES):
        part = room[: min(_PART_NBYTES, src.nbytes - start)]
        src.view(part.nbytes, dtypes.uint8, start).copyout(part)
        dest.view(part.nbytes, dtypes.uint8, start).copyin(part)


class BufferXfer(BufferCopy):
    """Copies between two devices whose allocators can do it without the host; falls back to BufferCopy's way."""

    def copy(self, dest: Buffer, src: Buffer) -> None:
        """Copies ``src`` to ``dest``."""
        if not dest.allocator.transfer(dest.opaque, src.opaque, src.nbytes, src.allocator):
            super().copy(dest, src)
