"""The C library of this process: the few calls that Python does not have, and the addresses of its functions."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os

PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4


_HELPERS = "libgcc_s.so.1"


class HelperLibrary:
    """An attribute that is the compiler's library of helpers, opened when somebody asks for it."""

    def __get__(self, instance: object, owner: type) -> ctypes.CDLL:
        return ctypes.CDLL(_HELPERS)


@functools.cache
def libraries() -> tuple[ctypes.CDLL, ...]:
    """Where symbols are looked for: the process, the math library, and the compiler's helpers (half floats …)."""
    names = [None, ctypes.util.find_library("m") if os.name == "posix" else None, _HELPERS]
    found = []
    for name in dict.fromkeys(names):
        try:
            found.append(ctypes.CDLL(name, use_errno=True))
        except (OSError, TypeError):
            continue
    return tuple(found)


@functools.cache
def address_of(symbol: str) -> int | None:
    """The address of a C function, None if no library has it."""
    for library in libraries():
        try:
            function = getattr(library, symbol)
        except AttributeError:
            continue
        return ctypes.cast(function, ctypes.c_void_p).value
    return None


def trim() -> None:
    """Gives the system back what ``malloc`` keeps of memory that was freed, where it can (glibc)."""
    address = address_of("malloc_trim")
    if address is not None:
        ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t)(address)(0)


@functools.cache
def libc() -> ctypes.CDLL:
    """The C library, with the types of the calls that this package makes."""
    c = ctypes.CDLL(None, use_errno=True)
    c.posix_memalign.argtypes = (ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_size_t)
    c.free.argtypes = (ctypes.c_void_p,)
    c.free.restype = None
    c.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    c.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return c
