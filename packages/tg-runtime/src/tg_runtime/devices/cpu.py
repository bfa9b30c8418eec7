"""CPU: the host's processor. LLVM through llvmlite, or clang; all cores; vectors as wide as the machine has them."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from tg_codegen import Renderer
from tg_codegen.render_c import ClangRenderer
from tg_codegen.render_llvm import LLVMRenderer
from tg_lazy.cost import LIMITS, Limits

from ..compiled import Compiled, DeviceFacts
from ..compiler import Compiler
from ..cpu import clang, llvm
from ..cpu.graph import CPUGraph
from ..cpu.host import CPUArch, core_count, host_name, host_target
from ..cpu.memory import HostAllocator, physical_memory
from ..cpu.program import CPUProgram
from ..cpu.tools import c_compiler
from ..dev import DevEntry
from ..errors import DeviceUnavailable
from ..locks import fork_safe_lock

_allocators: dict[str, HostAllocator] = {}
_lock = fork_safe_lock()


def _allocator(device: str) -> HostAllocator:
    """One allocator for each device name, whatever renderer it was opened with: the memory is the same."""
    with _lock:
        return _allocators.setdefault(device, HostAllocator(device))


class CPUDevice(Compiled):
    """The host's processor.

    Renderers: ``LLVM`` (LLVM IR through llvmlite) and ``CLANG`` (C through a clang on the PATH); the default is the
    first of them that the machine has. ARCH is what :class:`~tg_runtime.cpu.host.CPUArch` reads.

    Raises:
      DeviceUnavailable: the machine has neither, or not the one that is asked for.
    """

    def __init__(self, device: str, entry: DevEntry) -> None:
        problem = self.unavailable(entry)
        if problem is not None:
            raise DeviceUnavailable(f"the device {device} is not available on this machine: {problem}")
        name = entry.renderer or next(n for n, why in self.renderers().items() if why is None)
        arch = CPUArch.parse(entry.arch)
        target = host_target(core_count(), arch)
        renderer: Renderer
        compiler: Compiler
        if name == "LLVM":
            renderer, compiler = LLVMRenderer(target), llvm.LLVMCompiler(arch, tuned=True)
        else:
            renderer, compiler = ClangRenderer(target), clang.ClangCompiler(arch)
        LIMITS["CPU"] = Limits(row_bytes=target.l2_bytes)
        super().__init__(device, _allocator(device), renderer, compiler, CPUProgram, CPUGraph)

    @classmethod
    def renderers(cls) -> Mapping[str, str | None]:
        """LLVM and CLANG."""
        return {
            "LLVM": None if llvm.available() else llvm.MISSING,
            "CLANG": None if c_compiler() is not None else clang.MISSING,
        }

    @classmethod
    def unavailable(cls, entry: DevEntry) -> str | None:
        """Needs llvmlite or clang."""
        if sys.platform != "linux":
            return f"it wants Linux, this is {sys.platform}; use DEV=NUMPY, which interprets"
        if entry.iface:
            return f"it has no interface {entry.iface}"
        found = cls.renderers()
        if entry.renderer:
            if entry.renderer not in found:
                return f"it has no renderer {entry.renderer}; there are {', '.join(found)}"
            return found[entry.renderer]
        if all(found.values()):
            return f"{'; '.join(filter(None, found.values()))}; or use DEV=NUMPY, which interprets"
        return None

    @classmethod
    def facts(cls, entry: DevEntry) -> DeviceFacts:
        """The processor, its cores, and the memory of the machine."""
        return DeviceFacts(entry.arch or f"{host_name()}, {core_count()} threads", physical_memory())
