"""METAL: the GPU of a Mac through Metal. ``METAL:1`` is the second, where there are two."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from tg_codegen.render.c.msl import MSLRenderer
from tg_lazy.cost import LIMITS, Limits

from ...device.compiled import Compiled, DeviceFacts
from ...device.dev import DevEntry
from ...errors import DeviceUnavailable
from . import api
from .context import Context
from .graph import MetalGraph
from .memory import MetalAllocator
from .program import MetalCompiler, MetalProgram
from .queue import Queue


class MetalDevice(Compiled):
    """A GPU behind Metal.

    Attributes:
      context: the device.
      queue: its command queue.

    Raises:
      DeviceUnavailable: if there is no Metal here, or no such device; the message says which.
    """

    self_timed = True
    numbered = True

    def __init__(self, device: str, entry: DevEntry) -> None:
        self.require(device, entry)
        self.context = context = Context(api.runtime(), _choose(device, entry))
        self.queue = queue = Queue(context)
        # one of the 31 buffers of a kernel is for its variables
        LIMITS["METAL"] = Limits(buffers=min(30, Limits().buffers))
        renderer = MSLRenderer(context.target(), bfloat=context.bfloat, simdgroup=context.simdgroup)
        compiler = MetalCompiler(context)
        program = functools.partial(MetalProgram, queue, compiler)
        super().__init__(device, MetalAllocator(device, queue), renderer, compiler, program, MetalGraph)

    def synchronize(self) -> None:
        """Waits until everything that was recorded is done.

        Raises:
          MetalError: if some of it failed.
        """
        self.queue.finish()

    @classmethod
    def renderers(cls) -> Mapping[str, str | None]:
        """MSL."""
        return {MSLRenderer.name: None}

    def opened_facts(self) -> DeviceFacts:
        """The device as Metal calls it."""
        return DeviceFacts(self.context.name, self.allocator.limit)

    @classmethod
    def unavailable(cls, entry: DevEntry) -> str | None:
        """Needs macOS; whether there is a device is not seen without asking Metal for it."""
        if entry.iface:
            return f"it has no interface {entry.iface}"
        if entry.renderer and entry.renderer != MSLRenderer.name:
            return f"it has no renderer {entry.renderer}; there is {MSLRenderer.name}"
        if entry.arch:
            return f"it has no ARCH {entry.arch!r}"
        return api.problem()


def _choose(device: str, entry: DevEntry) -> int:
    found = api.devices()
    number = device.partition(":")[2] or "0"
    if not number.isdigit():
        raise DeviceUnavailable(f"the device {device} wants a number: METAL or METAL:1")
    chosen = [found[i] for i in entry.indices if i < len(found)] if entry.indices else found
    if int(number) >= len(chosen):
        raise DeviceUnavailable.here(
            device,
            f"Metal has {len(found)} devices{f', of which DEV chooses {len(chosen)}' if entry.indices else ''}",
        )
    return chosen[int(number)]
