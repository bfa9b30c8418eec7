"""Executable memory: an object file placed, linked and made executable in this process."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
from collections.abc import Callable

from . import elf
from .libc import PROT_EXEC, PROT_READ, address_of, libc


class ExecutableMemory:
    """An object file in memory, its code readable and executable but not writable.

    Attributes:
      mem: the mapping.
      address: where it begins.
      functions: addresses of the symbols that the object defines.

    Raises:
      elf.ELFError: if the object is damaged or cannot be linked.
      OSError: if the system gives no executable memory.
    """

    def __init__(self, lib: bytes, resolve: Callable[[str], int | None] = address_of) -> None:
        layout = elf.parse(lib)
        expected = {"x86_64": elf.EM_X86_64, "AMD64": elf.EM_X86_64, "aarch64": elf.EM_AARCH64}
        if layout.obj.machine != expected.get(platform.machine()):
            raise elf.ELFError(f"an object for machine {layout.obj.machine} cannot run on {platform.machine()}")
        self.mem = mmap.mmap(-1, layout.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.mem))
        self.mem[:] = layout.image(self.address, resolve)
        code = layout.writable
        if code and libc().mprotect(self.address, code, PROT_READ | PROT_EXEC) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot make {code} bytes executable: {os.strerror(number)}")
        clear = address_of("__clear_cache") if layout.obj.machine == elf.EM_AARCH64 else None
        if clear is not None:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(clear)(self.address, self.address + code)
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
