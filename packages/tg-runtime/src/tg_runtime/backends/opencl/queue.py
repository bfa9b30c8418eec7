"""A context and its queues: one for everything in order, one for copies that need not wait for it."""

from __future__ import annotations

import ctypes
import os
import threading

from ...device.waiting import wait_until
from ...errors import DeviceError
from ...telemetry.profiler import DeviceClock
from . import api
from .discovery import PhysicalDevice

# What a driver says when the device is gone: not available, invalid queue; and to who waits for work that ended badly:
# out of resources, and NVIDIA's illegal access. A launch that is told the former may only have asked for too much.
_LOST, _ENDED_BADLY = frozenset({-2, -36}), frozenset({-5, -9999})
_KEPT_BYTES = 64 << 20


class Queue:
    """An in-order command queue with timestamps, in a context of its own.

    A number, :attr:`sequence`, counts what was queued; memory remembers at which number it was used last. What no
    queued work uses can be copied on the second queue, :attr:`copies`, while kernels run.

    Args:
      physical: the device.

    Attributes:
      context: ``cl_context``.
      alignment: bytes at multiples of which a sub-buffer may begin.
      clock: the device's clock, as far as profiles have told it.
      sequence: how many things were queued.
      done: how many of them are known to be done.
    """

    def __init__(self, physical: PhysicalDevice) -> None:
        cl, status = api.library(), ctypes.c_int32()
        self.physical = physical
        devices = (ctypes.c_void_p * 1)(physical.handle)
        self.context: int = cl.clCreateContext(None, 1, devices, None, None, ctypes.byref(status))
        api.check(status.value, f"a context for {physical.name}")
        self._handle = self._create(api.QUEUE_PROFILING_ENABLE)
        self._copies = 0
        self.alignment = max(physical.number(api.DEVICE_MEM_BASE_ADDR_ALIGN) // 8, 1)
        self.clock = DeviceClock()
        self.sequence = self.done = 0
        self.lost = ""
        self._process, self._getpid = os.getpid(), os.getpid  # kept, as modules are gone when the interpreter exits
        self._kept: list[object] = []
        self._kept_bytes = 0
        self._lock = threading.Lock()

    def _create(self, properties: int) -> int:
        status = ctypes.c_int32()
        handle: int = api.library().clCreateCommandQueue(
            self.context, self.physical.handle, properties, ctypes.byref(status)
        )
        api.check(status.value, f"a command queue for {self.physical.name}")
        return handle

    @property
    def handle(self) -> int:
        """``cl_command_queue`` of everything in order.

        Raises:
          DeviceError: if the device was lost, or the process was forked since it was opened.
        """
        self.require()
        return self._handle

    @property
    def copies(self) -> int:
        """``cl_command_queue`` of copies from and to memory that no queued work uses; made on first use."""
        self.require()
        if not self._copies:
            with self._lock:
                self._copies = self._copies or self._create(0)
        return self._copies

    def require(self) -> None:
        """Does nothing while the device is there.

        Raises:
          DeviceError: if it was lost, or the process was forked since it was opened.
        """
        if self.lost or self._process != self._getpid():
            raise DeviceError(self.why_lost())

    @property
    def alive(self) -> bool:
        """Whether the context still exists, so that memory can be released."""
        return not self.lost and self._process == self._getpid()

    def why_lost(self) -> str:
        """What happened to the device, and what to do."""
        if self.lost:
            return self.lost
        return (
            f"OpenCL: {self.physical.name} was opened before this process was forked, and is lost in the child; "
            "open it in the child first, or start processes by spawning"
        )

    def failed(self, code: int, what: str, waited: bool = False) -> DeviceError:
        """The exception for an error status of queued or awaited work, which may mean that the device is lost."""
        error = api.CLError(what, code)
        if code in _LOST or (waited and code in _ENDED_BADLY):
            self.lost = (
                f"OpenCL: the device {self.physical.name} was lost: {error}. What its buffers held is gone; "
                "what has been computed elsewhere stays. Restart the process to open it again"
            )
            return DeviceError(self.lost)
        return error

    def queued(self) -> int:
        """Counts a command that was just queued; returns its number, which its memory notes."""
        self.sequence += 1
        return self.sequence

    def keep(self, staged: ctypes.Array[ctypes.c_char]) -> None:
        """Keeps host memory alive until what is queued now is done."""
        with self._lock:
            self._kept.append(staged)
            self._kept_bytes += len(staged)
            too_much = self._kept_bytes > _KEPT_BYTES
        if too_much:
            self.finish()

    def finish(self) -> None:
        """Waits until all that was queued is done. Ctrl-C ends the wait, not what is queued.

        Raises:
          DeviceError: if something that was queued failed.
        """
        self.settle()
        self.drain()

    def settle(self) -> None:
        """As :meth:`finish`, before a call that would otherwise wait inside the driver.

        Raises:
          DeviceError: if the driver refuses.
        """
        cl, handle, event = api.library(), self.handle, ctypes.c_void_p()
        code = cl.clEnqueueMarkerWithWaitList(handle, 0, None, ctypes.byref(event))
        if code != api.SUCCESS:
            raise self.failed(code, "waiting for the queue", waited=True)
        try:
            cl.clFlush(handle)
            wait_until(lambda: ended(event))
        finally:
            cl.clReleaseEvent(event)

    def wait(self, event: ctypes.c_void_p) -> int:
        """Waits for what an event stands for, and gives the status. Ctrl-C ends the wait."""
        cl = api.library()
        cl.clFlush(self.handle)  # waiting in the driver would flush, polling does not
        wait_until(lambda: ended(event))
        code: int = cl.clWaitForEvents(1, ctypes.byref(event))
        return code

    def drain(self) -> None:
        """As :meth:`finish`, but nothing ends the wait: for whoever gives back what the queue uses.

        Raises:
          DeviceError: if something that was queued failed.
        """
        handle = self.handle
        with self._lock:
            kept, self._kept, self._kept_bytes = self._kept, [], 0
        reached = self.sequence
        code = api.library().clFinish(handle)
        if code != api.SUCCESS:
            raise self.failed(code, "waiting for the queue", waited=True)
        self.done = max(self.done, reached)
        del kept


def ended(event: ctypes.c_void_p) -> bool:
    """Whether what an event stands for is done, or has failed."""
    status = ctypes.c_int32()
    size = ctypes.sizeof(status)
    code = api.library().clGetEventInfo(event, api.EVENT_STATUS, size, ctypes.byref(status), None)
    return bool(code != api.SUCCESS or status.value <= api.COMPLETE)
