"""Executable memory: an object file placed, linked and made executable in this process."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
from collections.abc import Callable

from . import elf
from .elf.aarch64 import AARCH64
from .elf.x86_64 import X86_64
from .libc import PROT_EXEC, PROT_READ, address_of, libc


def host_machines() -> dict[int, elf.Machine]:
    """The processor of this process, by its number, where its objects can be loaded."""
    here = {"x86_64": X86_64, "AMD64": X86_64, "aarch64": AARCH64}.get(platform.machine())
    return {} if here is None else {here.number: here}


def make_executable(layout: elf.Layout, address: int) -> None:
    """Makes what is not written to readable and executable but not writable, once the image is in memory.

    Raises:
      OSError: if the system allows no executable memory.
    """
    clear = address_of("__clear_cache") if layout.machine is AARCH64 else None
    for start, end, writable, _ in layout.regions:
        if writable:
            continue
        if libc().mprotect(address + start, end - start, PROT_READ | PROT_EXEC) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot make {end - start} bytes executable: {os.strerror(number)}")
        if clear is not None:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(clear)(address + start, address + end)


class ExecutableMemory:
    """An object file in memory, its code readable and executable but not writable.

    Attributes:
      mem: the mapping.
      address: where the object lies in it.
      functions: addresses of the symbols that the object defines.

    Raises:
      elf.ELFError: if the object is damaged or cannot be linked.
      OSError: if the system gives no executable memory.
    """

    def __init__(self, lib: bytes, resolve: Callable[[str], int | None] = address_of) -> None:
        layout = elf.parse(lib, host_machines())
        spare = layout.alignment - elf.PAGE  # a mapping begins at a multiple of a page
        self.mem = mmap.mmap(-1, layout.nbytes + spare, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.mem))
        self.address = -(-start // layout.alignment) * layout.alignment
        at = self.address - start
        self.mem[at : at + layout.nbytes] = layout.image(self.address, resolve)
        make_executable(layout, self.address)
        self.functions = layout.functions(self.address)

    def function(self, name: str) -> int:
        """The address of a function.

        Raises:
          elf.ELFError: if the object does not define it.
        """
        found = self.functions.get(name)
        if found is None:
            raise elf.ELFError(f"the object defines no {name}; it defines {', '.join(self.functions) or 'nothing'}")
        return found
