"""CUDA: NVIDIA GPUs through the vendor's driver. ``CUDA:1`` is the second; ``MOCK+CUDA`` runs kernels on the host."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from tg_codegen import Renderer
from tg_codegen.machine.capability import capability, newest
from tg_codegen.render.c.cuda import CUDARenderer
from tg_codegen.render.ptx import PTXRenderer

from ...compilers import llvm
from ...device.compiled import Compiled, DeviceFacts
from ...device.compiler import Compiler
from ...device.dev import DevEntry
from ...errors import DeviceUnavailable
from ...headers.cuda import api
from ...headers.cuda.api import Driver
from . import assembler, nvrtc
from .assembler import PTXCompiler
from .context import Context
from .graph import CUDAGraph
from .memory import CUDAAllocator
from .program import CUDAProgram
from .sharing import CUDASharing

_MOCK = "MOCK"


class CUDADevice(Compiled):
    """A GPU behind the CUDA driver API.

    Renderers: ``CUDA`` (CUDA C++ through NVRTC) and ``PTX`` (no compiler but the driver's own); the default is the
    first that is there. ARCH is the compute capability to compile for, ``sm_80``, where it shall be an older one than
    the device has. The interface ``MOCK`` is a driver whose GPUs run PTX on the host; ARCH is then what they are.

    Attributes:
      context: the device's context.

    Raises:
      DeviceUnavailable: if there is no driver, no such device, or not what it needs; the message says which.
    """

    numbered = True

    def __init__(self, device: str, entry: DevEntry) -> None:
        self.require(device, entry)
        driver = _mock(entry.arch or "sm_90") if entry.iface == _MOCK else api.system_driver()
        self.context = context = Context(driver, _choose(device, entry, driver))
        arch = entry.arch or newest(int(context.arch.removeprefix("sm_")))
        name = entry.renderer or ("CUDA" if nvrtc.available() else "PTX")
        renderer: Renderer = (CUDARenderer if name == "CUDA" else PTXRenderer)(arch, context.target())
        # Machine code is for one architecture; the mock has none.
        exact = arch == context.arch and entry.iface != _MOCK
        compiler = choose_compiler(name, arch, driver.number("cuDriverGetVersion") // 1000 if exact else 0)
        program = functools.partial(CUDAProgram, context)
        super().__init__(device, CUDAAllocator(device, context), renderer, compiler, program, CUDAGraph)
        self.sharing = CUDASharing(context)

    def synchronize(self) -> None:
        """Waits until everything that was queued is done.

        Raises:
          CUDAError: if a kernel failed.
        """
        self.context.synchronize()

    @classmethod
    def renderers(cls) -> Mapping[str, str | None]:
        """CUDA C++ and PTX."""
        return {"CUDA": None if nvrtc.available() else nvrtc.MISSING, "PTX": None}

    @classmethod
    def facts(cls, entry: DevEntry) -> DeviceFacts:
        """The architecture that is asked for, and the interfaces."""
        mock = None if llvm.available() else llvm.MISSING
        return DeviceFacts(entry.arch, None, {"DRIVER": api.problem(), _MOCK: mock})

    def opened_facts(self) -> DeviceFacts:
        """The device as its driver calls it."""
        return DeviceFacts(f"{self.context.name} ({self.context.arch})", self.allocator.limit)

    @classmethod
    def unavailable(cls, entry: DevEntry) -> str | None:
        """Needs the driver of the GPU, or, as a mock, llvmlite."""
        if entry.iface not in ("", "DRIVER", _MOCK):
            return f"it has no interface {entry.iface}; there are DRIVER and {_MOCK}"
        found = cls.renderers()
        if entry.renderer and entry.renderer not in found:
            return f"it has no renderer {entry.renderer}; there are {', '.join(found)}"
        try:
            capability(entry.arch or "sm_80")
        except ValueError as error:
            return f"its ARCH is a compute capability: {error}"
        if entry.renderer and found[entry.renderer] is not None:
            return found[entry.renderer]
        if entry.iface == _MOCK:
            return None if llvm.available() else llvm.MISSING
        return api.problem()


def choose_compiler(renderer: str, arch: str, driver: int) -> Compiler:
    """The compiler of a renderer's text.

    A driver loads machine code of compilers up to its own major version, and PTX only up to its own minor version:
    machine code is made where that fits, which also keeps the driver from assembling at each load.

    Args:
      renderer: ``CUDA`` or ``PTX``.
      arch: compute capability.
      driver: the driver's major version; 0 for whoever takes PTX only.
    """
    if renderer == "CUDA":
        fits = driver >= nvrtc.version()[0] and int(arch.removeprefix("sm_").rstrip("af")) in nvrtc.architectures()
        return nvrtc.NVRTCCompiler(arch, cubin=fits)
    return assembler.JitLinkCompiler(arch) if assembler.available() and driver >= assembler.major() else PTXCompiler()


def _mock(arch: str) -> Driver:
    # imports the PTX translator, which listing devices does not need
    from ...emulators.cuda_driver.driver import mock_driver

    return mock_driver(arch)


def _choose(device: str, entry: DevEntry, driver: Driver) -> int:
    """The driver's number of a device."""
    count = driver.number("cuDeviceGetCount")
    number = device.partition(":")[2] or "0"
    if not number.isdigit():
        raise DeviceUnavailable(f"the device {device} wants a number: CUDA or CUDA:1")
    chosen = [i for i in entry.indices if i < count] if entry.indices else list(range(count))
    if int(number) >= len(chosen):
        raise DeviceUnavailable.here(
            device,
            f"the driver has {count} devices{f', of which DEV chooses {len(chosen)}' if entry.indices else ''}",
        )
    return chosen[int(number)]
