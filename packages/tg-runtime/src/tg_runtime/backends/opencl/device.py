"""CL: a device of any OpenCL driver, found through the ICD loader. ``CL:1`` is the second, in the loader's order."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_lazy.cost import LIMITS, Limits

from ...device.compiled import Compiled, DeviceFacts
from ...device.dev import DevEntry
from ...errors import DeviceUnavailable
from . import api
from .allocator import CLAllocator
from .discovery import PhysicalDevice, physical_devices
from .graph import CLGraph
from .program import CLCompiler, CLProgram
from .queue import Queue

_OLDEST = (1, 2)
_RESIDENT = 512
"""Work-items of a compute unit that hide the latency of memory: four for each of 128 lanes, as of a GPU's."""


class CLDevice(Compiled):
    """An OpenCL device.

    ARCH is ``buffers`` to use ``cl_mem`` even where host and device share memory.

    Attributes:
      physical: the device behind it.
      queue: its command queue.

    Raises:
      DeviceUnavailable: if there is no OpenCL here, or no such device; the message lists those that there are.
    """

    self_timed = True
    numbered = True

    def __init__(self, device: str, entry: DevEntry) -> None:
        self.require(device, entry)
        self.physical = physical = _choose(device, entry)
        if physical.version < _OLDEST:
            offered, needed = (".".join(map(str, version)) for version in (physical.version, _OLDEST))
            raise DeviceUnavailable.here(
                device,
                f"{physical.name} offers OpenCL {offered}, and {needed} is needed: update its driver",
            )
        self.queue = queue = Queue(physical)
        shared = physical.shares_memory and entry.arch != "buffers"
        allocator = CLAllocator(
            device,
            queue,
            shared,
            limit=physical.number(api.DEVICE_GLOBAL_MEM_SIZE),
            largest=physical.number(api.DEVICE_MAX_MEM_ALLOC_SIZE),
        )
        LIMITS["CL"] = _limits(physical)
        renderer = OpenCLRenderer(physical.target(), half=physical.half, double=physical.double)
        super().__init__(device, allocator, renderer, CLCompiler(queue), functools.partial(CLProgram, queue), CLGraph)

    def synchronize(self) -> None:
        """Waits until everything that was queued is done."""
        self.queue.finish()

    def opened_facts(self) -> DeviceFacts:
        """The device as its driver calls it."""
        physical = self.physical
        return DeviceFacts(f"{physical.name} ({physical.platform})", self.allocator.limit)

    @classmethod
    def renderers(cls) -> Mapping[str, str | None]:
        """OpenCL C."""
        return {OpenCLRenderer.name: None}

    @classmethod
    def unavailable(cls, entry: DevEntry) -> str | None:
        """Needs an OpenCL loader, and a driver that is registered with it."""
        if entry.iface:
            return f"it has no interface {entry.iface}"
        if entry.renderer and entry.renderer != OpenCLRenderer.name:
            return f"it has no renderer {entry.renderer}; there is {OpenCLRenderer.name}"
        if entry.arch not in ("", "buffers"):
            return f"its ARCH is 'buffers' or nothing, not {entry.arch!r}"
        return api.problem()


def _limits(physical: PhysicalDevice) -> Limits:
    """What the scheduler is told. A processor runs the items of a group in one thread: neighbours gain nothing."""
    if physical.is_cpu:
        return Limits().of_threads(1)
    return Limits(units=physical.number(api.DEVICE_MAX_COMPUTE_UNITS) * _RESIDENT)


def _choose(device: str, entry: DevEntry) -> PhysicalDevice:
    found = physical_devices()
    number = device.partition(":")[2] or "0"
    if not number.isdigit():
        raise DeviceUnavailable(f"the device {device} wants a number: CL or CL:1")
    index = int(number)
    chosen = [found[i] for i in entry.indices if i < len(found)] if entry.indices else list(found)
    if index >= len(chosen):
        rows = [f"  {i}: {d.name} ({d.platform})" for i, d in enumerate(found)]
        what = "\n".join(["it is not there; the OpenCL devices of this machine:", *rows]) if rows else (
            "the OpenCL loader has drivers registered, but none of them offers a device"
        )
        raise DeviceUnavailable.here(device, what)
    return chosen[index]
