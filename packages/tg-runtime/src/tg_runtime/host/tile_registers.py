"""Tile registers of x86-64 (AMX): Linux saves them for processes alone that have asked for it."""

from __future__ import annotations

import functools
import sys

from .libc import libc
from .processor import features

_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


@functools.cache
def tiles_permitted() -> bool:
    """Whether this process may use tile registers, which it asks for the first time.

    All of its threads then may, and the children that it forks. The system refuses where it is older than Linux 5.16,
    or where a thread has an alternate stack for signals that has no room for the registers.

    Source: Linux, ``Documentation/arch/x86/xstate.rst``, "Using dynamically enabled XSTATE features in user space
    applications"; the numbers are those of ``asm/unistd_64.h``, ``asm/prctl.h`` and ``asm/fpu/types.h``.
    """
    if sys.platform != "linux" or "amx_tile" not in features():
        return False
    return bool(libc().syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA) == 0)
