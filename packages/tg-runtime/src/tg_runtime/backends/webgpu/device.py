"""WEBGPU: the adapter that Dawn or wgpu-native finds: Vulkan, Metal or Direct3D 12, or a CPU through lavapipe."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from tg_codegen import Target
from tg_codegen.render.wgsl import WGSLRenderer
from tg_lazy.cost import LIMITS, Limits

from ...device.compiled import Compiled, DeviceFacts
from ...device.dev import DevEntry
from ...errors import DeviceUnavailable
from . import library
from .driver import DRIVERS, Adapter
from .memory import WebGPUAllocator
from .program import WebGPUProgram, WGSLCompiler
from .queue import Queue


class WebGPUDevice(Compiled):
    """A WebGPU device. IFACE is the library: ``DAWN`` (if omitted, and there) or ``WGPU``.

    Attributes:
      queue: its queue; ``queue.driver.adapter`` tells what it is.

    Raises:
      DeviceUnavailable: if there is no library, or no adapter; the message says what to install.
    """

    def __init__(self, device: str, entry: DevEntry) -> None:
        problem = self.unavailable(entry)
        if problem is None and device.partition(":")[2] not in ("", "0"):
            problem = "there is one adapter: WEBGPU"
        if problem is not None:
            raise DeviceUnavailable.here(device, problem)
        self.queue = queue = Queue(DRIVERS[entry.iface or library.first()]())
        adapter = queue.driver.adapter
        LIMITS["WEBGPU"] = Limits(buffers=min(adapter.buffers, Limits().buffers))
        renderer = WGSLRenderer(
            target(adapter), half=adapter.half, buffers=adapter.buffers, cast_half=queue.driver.cast_half
        )
        super().__init__(
            device, WebGPUAllocator(device, queue), renderer, WGSLCompiler(queue),
            functools.partial(WebGPUProgram, queue),
        )  # fmt: skip

    def synchronize(self) -> None:
        """Waits until everything that was queued is done."""
        self.queue.finish()

    @classmethod
    def facts(cls, entry: DevEntry) -> DeviceFacts:
        """The libraries."""
        first = library.first()
        order = sorted(DRIVERS, key=lambda kind: kind != first)
        return DeviceFacts(interfaces={kind: library.problem(kind) for kind in order})

    def opened_facts(self) -> DeviceFacts:
        """The adapter as its driver calls it."""
        return self.facts(DevEntry("WEBGPU"))._replace(arch=self.queue.driver.adapter.name)

    @classmethod
    def renderers(cls) -> Mapping[str, str | None]:
        """WGSL."""
        return {WGSLRenderer.name: None}

    @classmethod
    def unavailable(cls, entry: DevEntry) -> str | None:
        """Needs a WebGPU library; whether there is an adapter is not seen without opening one."""
        if entry.iface and entry.iface not in DRIVERS:
            return f"it has no interface {entry.iface}; there are {' and '.join(DRIVERS)}"
        if entry.indices and entry.indices != (0,):
            return "there is one adapter: WEBGPU"
        if entry.renderer and entry.renderer != WGSLRenderer.name:
            return f"it has no renderer {entry.renderer}; there is {WGSLRenderer.name}"
        if entry.arch:
            return f"it has no ARCH {entry.arch!r}"
        return library.problem(entry.iface or library.first())


def target(adapter: Adapter) -> Target:
    """An adapter as the code generator sees it."""
    return Target(
        kind="gpu",
        vector_bytes=4,
        registers=128,
        # Narrow integers take a word each in workgroup memory.
        shared_bytes=adapter.shared_bytes,
        local_max=min(adapter.group_items, *adapter.group_sizes),
        global_max=(adapter.groups, adapter.groups, adapter.groups),
        max_params=adapter.buffers,
    )
