"""Memory fences: the one instruction that Python cannot express, as machine code of this process.

Stores to ordinary memory reach other observers in order on x86-64. Those to write-combined memory (a card's memory
behind its BAR) do not, and on AArch64 and RISC-V no stores do.

Sources: Intel SDM volume 2 (SFENCE, MFENCE); Arm ARM, section C6.2 (DMB); RISC-V unprivileged ISA, section 2.7 (FENCE).
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
from collections.abc import Callable
from typing import Final

from tg_runtime.host.libc import PROT_EXEC, PROT_READ, libc

_X86: Final = {"store": bytes.fromhex("0faef8c3"), "full": bytes.fromhex("0faef0c3")}  # sfence, mfence; ret
_ARM: Final = {  # dmb st, dmb sy; ret
    "store": bytes.fromhex("bf3e03d5c0035fd6"),
    "full": bytes.fromhex("bf3f03d5c0035fd6"),
}
_RISCV: Final = {  # fence ow,ow, fence iorw,iorw; ret
    "store": bytes.fromhex("0f00500567800000"),
    "full": bytes.fromhex("0f00f00f67800000"),
}
CODE: Final = {"x86_64": _X86, "AMD64": _X86, "aarch64": _ARM, "arm64": _ARM, "riscv64": _RISCV}
"""The instruction and a return, by the machine's name as ``platform.machine`` says it."""


@functools.cache
def fence(kind: str) -> Callable[[], None]:
    """A function that executes a fence: ``"store"`` orders stores, ``"full"`` loads too.

    Raises:
      OSError: if the processor is none of those known, or the system gives no executable memory.
    """
    code = CODE.get(platform.machine())
    if code is None:
        raise OSError(f"no memory fence is known for the processor {platform.machine()}")
    pages = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.write(code[kind])
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    if libc().mprotect(address, mmap.PAGESIZE, PROT_READ | PROT_EXEC) != 0:
        raise OSError(ctypes.get_errno(), "cannot make a memory fence executable")
    if platform.machine() not in ("x86_64", "AMD64"):
        clear = getattr(ctypes.CDLL("libgcc_s.so.1"), "__clear_cache")
        clear(ctypes.c_void_p(address), ctypes.c_void_p(address + len(code[kind])))
    call = ctypes.PYFUNCTYPE(None)(address)
    call.__dict__["pages"] = pages
    return call
