"""NULL: compiles everything for any target, allocates nothing and runs nothing: kernels to look at, no hardware."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tg_codegen import Renderer
from tg_codegen.machine.amdgpu import ARCHS
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.render.c.cuda import CUDARenderer
from tg_codegen.render.llvm import AMDLLVMRenderer, LLVMRenderer
from tg_codegen.render.ptx import PTXRenderer
from tg_codegen.render.renderers import RENDERERS

from ...compilers import llvm
from ...device.allocator import Allocator, BufferOptions
from ...device.compiled import Compiled
from ...device.compiler import Compiler
from ...device.dev import DevEntry
from ...device.launch import Launch, LoadedProgram
from ...errors import DevSyntaxError
from ...host.arch import CPUArch


class NullMemory(NamedTuple):
    """The size of what was not allocated."""

    nbytes: int


class NullAllocator(Allocator[NullMemory]):
    """Accounts for memory without having any. What is copied out is zeros."""

    supports_offset = True

    def _alloc(self, nbytes: int, options: BufferOptions) -> NullMemory:
        return NullMemory(nbytes)

    def copyin(self, dest: NullMemory, src: memoryview) -> None:
        """Does nothing."""

    def copyout(self, dest: memoryview, src: NullMemory) -> None:
        """Gives zeros."""
        dest[:] = bytes(dest.nbytes)

    def offset(self, opaque: NullMemory, nbytes: int, byte_offset: int) -> NullMemory:
        """A part of nothing."""
        return NullMemory(nbytes)


class NullCompiler(Compiler):
    """The binary is the source."""

    def compile(self, src: str) -> bytes:
        """The source's bytes."""
        return src.encode()

    def disassemble(self, lib: bytes) -> str:
        """The source."""
        return lib.decode()


class NullProgram(LoadedProgram[NullMemory]):
    """A program that does nothing.

    Attributes:
      lib: its source.
    """

    def __init__(self, name: str, lib: bytes) -> None:
        self.name, self.lib = name, lib

    def launch(self, bufs: Sequence[NullMemory], how: Launch) -> float | None:
        """Does nothing, in no time.

        Raises:
          DeviceError: if the sizes are none.
        """
        how.runs(f"NULL: kernel {self.name}")
        return how.idle


class NullDevice(Compiled):
    """A device without hardware: ``NULL`` (LLVM IR), ``NULL:LLVM:gfx1100``, ``NULL:CUDA:sm_90``, ``NULL:CL``."""

    executes = False

    def __init__(self, device: str, entry: DevEntry) -> None:
        self.require(device, entry)
        super().__init__(device, NullAllocator(device), _renderer(entry), NullCompiler(), NullProgram)

    @classmethod
    def renderers(cls) -> Mapping[str, str | None]:
        """Every renderer that the code generator has."""
        return dict.fromkeys(("LLVM", *(name for name in RENDERERS if name != "LLVM")))

    @classmethod
    def unavailable(cls, entry: DevEntry) -> str | None:
        """Needs nothing.

        Raises:
          DevSyntaxError: if the renderer has no architectures, or not that one.
        """
        if entry.renderer and entry.renderer not in RENDERERS:
            return f"it has no renderer {entry.renderer}; there are {', '.join(cls.renderers())}"
        _renderer(entry)
        return None


@functools.cache
def _known(arch: CPUArch) -> None:
    llvm.LLVMCompiler(arch).check()


def _renderer(entry: DevEntry) -> Renderer:
    """The renderer that an entry asks for.

    Raises:
      DevSyntaxError: if it has no architectures, or not that one.
    """
    cls = RENDERERS[entry.renderer or "LLVM"]
    if cls is LLVMRenderer and entry.arch in ARCHS:
        return AMDLLVMRenderer(entry.arch)
    if issubclass(cls, (LLVMRenderer, ClangRenderer)):
        arch = CPUArch.parse(entry.arch)
        if (arch.cpu or arch.features) and llvm.available():
            _known(arch)
        return cls(arch.target(1))
    if not entry.arch:
        plain: Callable[[], Renderer] = cls  # each has a default target
        return plain()
    if not issubclass(cls, (CUDARenderer, PTXRenderer)):
        raise DevSyntaxError(f"DEV entry {str(entry)!r}: the renderer {cls.name} has no architectures")
    try:
        return cls(entry.arch)
    except ValueError as error:
        raise DevSyntaxError(f"DEV entry {str(entry)!r}: {error}") from None
