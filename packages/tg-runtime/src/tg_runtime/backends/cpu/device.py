"""CPU: the host's processor, all its cores; or another one, played by an emulator. LLVM through llvmlite, or clang."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping

from tg_codegen import Renderer
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import dtypes
from tg_lazy.cost import LIMITS, Limits

from ...compilers import clang, llvm
from ...device.compiled import Compiled, DeviceFacts
from ...device.compiler import Compiler
from ...device.dev import DevEntry
from ...emulators.qemu import guest
from ...emulators.qemu.guest import Guest, GuestProgram
from ...host.arch import MACHINES, CPUArch, this_machine
from ...host.locks import fork_safe_lock
from ...host.processor import core_count, host_name
from ...host.tools import c_compiler
from ...memory.arena import SharedAllocator
from ...memory.host import HostAllocator, physical_memory
from .graph import CPUGraph
from .pool import pool, pool_threads
from .program import CPUProgram

_QEMU = "QEMU"
_allocators: dict[str, HostAllocator] = {}
_lock = fork_safe_lock()


def _allocator(device: str) -> HostAllocator:
    """One allocator for each device name, whatever renderer it was opened with: the memory is the same."""
    with _lock:
        return _allocators.setdefault(device, HostAllocator(device))


class CPUDevice(Compiled):
    """The host's processor.

    Renderers: ``LLVM`` (LLVM IR through llvmlite) and ``CLANG`` (C through a clang on the PATH); the default is the
    first of them that the machine has. ARCH is what :class:`~tg_runtime.host.arch.CPUArch` reads. The interface
    ``QEMU`` runs kernels in an emulator, those of other machines too: ``QEMU+CPU:LLVM:aarch64``.

    Raises:
      DeviceUnavailable: if the machine has neither, or not the one that is asked for.
    """

    graph_from = 1

    def __init__(self, device: str, entry: DevEntry) -> None:
        self.require(device, entry)
        name = entry.renderer or next(n for n, why in self.renderers().items() if why is None)
        arch = _arch(entry)
        target = arch.target(1 if entry.iface == _QEMU else core_count())
        renderer: Renderer
        compiler: Compiler
        if name == "LLVM":
            renderer, compiler = LLVMRenderer(target), llvm.LLVMCompiler(arch, tuned=True)
        else:
            renderer, compiler = ClangRenderer(target), clang.ClangCompiler(arch)
        integers = any(dtypes.is_int(found.acc) for found in renderer.target.matrices)
        limits = Limits(row_bytes=target.l2_bytes, block_sums=integers, factor_bytes=target.l2_bytes)
        LIMITS["CPU"] = limits.of_threads(target.threads)
        if entry.iface == _QEMU:
            machine = Guest(arch)
            program = functools.partial(GuestProgram, machine)
            super().__init__(device, SharedAllocator(device, machine.arena), renderer, compiler, program)
            return
        super().__init__(device, _allocator(device), renderer, compiler, CPUProgram, CPUGraph)

    @property
    def steps_apart(self) -> int:
        """All threads, where native code walks the steps."""
        return pool_threads() if self.graph is not None else 0

    def ready(self) -> None:
        """Compiles the native code that launches kernels."""
        if self.graph is not None:
            pool()

    @classmethod
    def renderers(cls) -> Mapping[str, str | None]:
        """LLVM and CLANG."""
        return {
            "LLVM": None if llvm.available() else llvm.MISSING,
            "CLANG": None if c_compiler() is not None else clang.MISSING,
        }

    @classmethod
    def unavailable(cls, entry: DevEntry) -> str | None:
        """Needs llvmlite or clang. Where the entry names a processor or its features, the compiler is asked for them.

        Raises:
          DevSyntaxError: if ARCH cannot be read, or the compiler does not know what it names.
        """
        if sys.platform != "linux":
            return f"it wants Linux, this is {sys.platform}; use DEV=NUMPY, which interprets"
        if entry.iface not in ("", "HOST", _QEMU):
            return f"it has no interface {entry.iface}; there are HOST and {_QEMU}"
        arch = _arch(entry)
        if entry.iface == _QEMU:
            problem = guest.missing(arch.kind)
            if problem is not None:
                return problem
        elif arch.machine:
            return (
                f"code for {arch.machine} cannot run on {this_machine()}; "
                f"DEV={_QEMU}+CPU:{entry.renderer or 'LLVM'}:{entry.arch} runs it in an emulator"
            )
        elif arch.lacking():
            return f"code for {entry.arch} needs {', '.join(arch.lacking())}, which this processor does not have"
        found = cls.renderers()
        if entry.renderer:
            if entry.renderer not in found:
                return f"it has no renderer {entry.renderer}; there are {', '.join(found)}"
            if found[entry.renderer] is not None:
                return found[entry.renderer]
        elif all(found.values()):
            return f"{'; '.join(filter(None, found.values()))}; or use DEV=NUMPY, which interprets"
        if arch.cpu or arch.features:
            _check(entry.renderer or next(n for n, why in found.items() if why is None), arch)
        return None

    @classmethod
    def facts(cls, entry: DevEntry) -> DeviceFacts:
        """The processor, its cores, and the memory of the machine."""
        known = {"HOST": None, _QEMU: None if _emulated() else guest.missing(MACHINES["aarch64"])}
        count = core_count()
        threads = f"{count} thread{'s' if count > 1 else ''}"
        return DeviceFacts(entry.arch or f"{host_name()}, {threads}", physical_memory(), known)


def _arch(entry: DevEntry) -> CPUArch:
    """What an entry asks for; for the emulator this machine's processor is one like any other."""
    arch = CPUArch.parse(entry.arch)
    if entry.iface == _QEMU and not arch.machine:
        return arch._replace(machine=this_machine())
    return arch


@functools.cache
def _check(renderer: str, arch: CPUArch) -> None:
    (llvm.LLVMCompiler(arch) if renderer == "LLVM" else clang.ClangCompiler(arch)).check()


def _emulated() -> list[str]:
    """The machines that can be emulated here."""
    return [name for name, machine in MACHINES.items() if guest.missing(machine) is None]
