"""Shared memory beyond what a CUDA kernel may declare.

A kernel declares at most 48 KiB of shared memory. What takes more is one block whose size a launch states. How large it
must be is told by the name of a variable beside the kernel, ``KERNEL_takes_BYTES_shared``, which PTX and machine code
keep: so whoever loads it needs nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tg_dtype import AddrSpace, PtrDType

from ..ir.facts import element
from ..ir.uop import UOp, UOps
from ..machine.gpu import ACCESS_BYTES, STATIC_SHARED_BYTES


def places(uops: Sequence[UOp]) -> dict[UOp, int]:
    """Where each shared array of a kernel begins in the block; empty if the kernel can declare them."""
    found: dict[UOp, int] = {}
    at = 0
    for u in uops:
        if u.op is UOps.SCRATCH and isinstance(u.dtype, PtrDType) and u.dtype.space is AddrSpace.LOCAL:
            found[u] = at
            at += nbytes(u)
    return found if at > STATIC_SHARED_BYTES else {}


def nbytes(u: UOp) -> int:
    """Bytes of an array, up to where the next one may begin."""
    size: int = u.arg[1] * max(element(u).itemsize, 1)
    return -(-size // ACCESS_BYTES) * ACCESS_BYTES


def total(found: dict[UOp, int]) -> int:
    """Bytes of the block."""
    return max((at + nbytes(u) for u, at in found.items()), default=0)


def variable(kernel: str, size: int) -> str:
    """The name that tells how large the block is.

    >>> variable("r_64", 65536)
    'r_64_takes_65536_shared'
    """
    return f"{kernel}_takes_{size}_shared"


def wanted(kernel: str, binary: bytes) -> int:
    """How large a block a kernel of a binary wants; 0 if it declares what it uses.

    >>> wanted("r_64", b".global .b8 r_64_takes_65536_shared;"), wanted("r", b".entry r()")
    (65536, 0)
    """
    found = re.search(rb"(?<![A-Za-z0-9_])" + re.escape(kernel.encode()) + rb"_takes_(\d+)_shared", binary)
    return int(found[1]) if found else 0
