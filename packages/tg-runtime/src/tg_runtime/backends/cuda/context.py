"""A physical device: its context, its stream, its limits."""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Callable
from typing import ClassVar

from tg_codegen.machine.target import Target

from ...device.waiting import wait_until
from ...errors import DeviceError
from ...headers.cuda import api
from ...headers.cuda.api import Driver
from .order import Order


class Context:
    """The primary context of a device, shared with every other user of CUDA in the process, and a stream of our own.

    Args:
      driver: the driver's functions.
      index: which device.

    Attributes:
      device: ``CUdevice``.
      handle: ``CUcontext``.
      stream: ``CUstream`` on which kernels run, in order.
      order: the stream of copies to and from the host, and what waits for what.
      name: what the driver calls the device.
      arch: its compute capability, ``sm_90``.
    """

    ended: ClassVar[bool] = False  # the process is exiting, and the driver releases everything itself

    def __init__(self, driver: Driver, index: int) -> None:
        self.driver, self.index = driver, index
        self._process = os.getpid()
        self.device = driver.number("cuDeviceGet", index)
        self.handle = driver.object("cuDevicePrimaryCtxRetain", self.device)
        text = ctypes.create_string_buffer(256)
        driver.check(driver.cuDeviceGetName(text, len(text), self.device), "the device's name")
        self.name = text.value.decode()
        self.enter()
        self.stream = driver.object("cuStreamCreate", api.STREAM_NON_BLOCKING)
        self.order = Order(self, driver.object("cuStreamCreate", api.STREAM_NON_BLOCKING))
        major, minor = self.attribute(api.CAPABILITY_MAJOR), self.attribute(api.CAPABILITY_MINOR)
        self.arch = f"sm_{major}{minor}"
        self._peers: dict[int, bool] = {}

    def enter(self) -> None:
        """Makes the context that of this thread. Others may have set theirs since.

        Raises:
          DeviceError: if the process was forked since: a child has to open a device that its parent has not.
        """
        if os.getpid() != self._process:
            raise DeviceError(
                f"CUDA: {self.name} was opened before this process was forked, and is lost in the child; "
                "open it in the child first, or start processes by spawning"
            )
        code = self.driver.cuCtxSetCurrent(self.handle)
        if code:
            self.driver.check(code, f"the context of {self.name}")

    def try_enter(self) -> bool:
        """As :meth:`enter`, before resources are released: False if the context is gone, and they with it."""
        if self.ended or os.getpid() != self._process:
            return False
        return self.driver.cuCtxSetCurrent(self.handle) == api.SUCCESS

    def attribute(self, number: int) -> int:
        """An attribute of the device."""
        return self.driver.number("cuDeviceGetAttribute", number, self.device)

    @property
    def memory_bytes(self) -> int:
        """All memory of the device."""
        found = ctypes.c_size_t()
        self.driver.check(self.driver.cuDeviceTotalMem_v2(ctypes.byref(found), self.device), "the memory's size")
        return found.value

    def target(self) -> Target:
        """The device as the code generator sees it."""
        x, y, z = (self.attribute(api.MAX_GRID_DIM_X + axis) for axis in range(3))
        return Target(
            kind="gpu",
            vector_bytes=16,
            registers=255,
            l2_bytes=self.attribute(api.L2_BYTES),
            shared_bytes=self.attribute(api.MOST_SHARED_PER_BLOCK),
            local_max=self.attribute(api.MAX_THREADS_PER_BLOCK),
            global_max=(x, y, z),
            max_params=4096 // 8 - 8,  # 4 KiB of parameters, some of them numbers
        )

    def synchronize(self) -> None:
        """Waits until everything on both streams is done.

        Raises:
          CUDAError: if something that ran since failed.
        """
        self.enter()
        for stream in (self.order.copies, self.stream):
            self._wait(self.driver.cuStreamQuery, stream, f"waiting for {self.name}")

    def event(self, timed: bool = False) -> int:
        """A new event."""
        return self.driver.object("cuEventCreate", 0 if timed else api.EVENT_DISABLE_TIMING)

    def record(self, event: int, stream: int = 0) -> None:
        """Marks with an event what is on a stream now, that of kernels by default."""
        self.driver.check(self.driver.cuEventRecord(event, stream or self.stream), "recording an event")

    def wait(self, event: int, what: str = "") -> None:
        """The host waits for an event; ``what`` is for the message if it fails."""
        self._wait(self.driver.cuEventQuery, event, what or f"waiting for {self.name}")

    def _wait(self, query: Callable[[int], int], handle: int, what: str) -> None:
        code = api.NOT_READY

        def ready() -> bool:
            nonlocal code
            code = query(handle)
            return code != api.NOT_READY

        wait_until(ready)
        self.driver.check(code, what)

    def follow(self, other: Context) -> None:
        """Makes work queued from now on wait for what is queued on the other device."""
        other.enter()
        event = other.event()
        other.record(event)
        self.enter()
        self.driver.check(self.driver.cuStreamWaitEvent(self.stream, event, 0), "waiting for another device")
        self.driver.check(self.driver.cuEventDestroy_v2(event), "an event")  # the driver keeps it while it is used

    def reaches(self, other: Context) -> bool:
        """Whether this device may read and write the other's memory; asks once, and allows it."""
        if other.driver is not self.driver:
            return False
        found = self._peers.get(other.index)
        if found is None:
            self.enter()
            found = other is self or bool(self.driver.number("cuDeviceCanAccessPeer", self.device, other.device))
            if found and other is not self:
                code = self.driver.cuCtxEnablePeerAccess(other.handle, 0)
                found = code in (api.SUCCESS, api.PEER_ACCESS_ALREADY_ENABLED)
            self._peers[other.index] = found
        return found


@atexit.register
def _end() -> None:
    Context.ended = True
