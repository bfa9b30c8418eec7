"""A context and its one in-order queue."""

from __future__ import annotations

import ctypes
import threading

from ..profiler import DeviceClock
from . import api
from .discovery import PhysicalDevice


class Queue:
    """An in-order command queue with timestamps, in a context of its own.

    Args:
      physical: the device.

    Attributes:
      context: ``cl_context``.
      handle: ``cl_command_queue``.
      alignment: bytes at multiples of which a sub-buffer may begin.
      clock: the device's clock, as far as profiles have told it.
    """

    def __init__(self, physical: PhysicalDevice) -> None:
        cl, status = api.library(), ctypes.c_int32()
        self.physical = physical
        devices = (ctypes.c_void_p * 1)(physical.handle)
        self.context: int = cl.clCreateContext(None, 1, devices, None, None, ctypes.byref(status))
        api.check(status.value, f"a context for {physical.name}")
        self.handle: int = cl.clCreateCommandQueue(
            self.context, physical.handle, api.QUEUE_PROFILING_ENABLE, ctypes.byref(status)
        )
        api.check(status.value, f"a command queue for {physical.name}")
        self.alignment = max(physical.number(api.DEVICE_MEM_BASE_ADDR_ALIGN) // 8, 1)
        self.clock = DeviceClock()
        self._kept: list[object] = []
        self._kept_bytes = 0
        self._lock = threading.Lock()

    def keep(self, staged: ctypes.Array[ctypes.c_char]) -> None:
        """Keeps host memory alive until what is queued now is done."""
        with self._lock:
            self._kept.append(staged)
            self._kept_bytes += len(staged)
            too_much = self._kept_bytes > 64 << 20
        if too_much:
            self.finish()

    def finish(self) -> None:
        """Waits until all that was queued is done."""
        with self._lock:
            kept, self._kept, self._kept_bytes = self._kept, [], 0
        api.check(api.library().clFinish(self.handle), "waiting for the queue")
        del kept
