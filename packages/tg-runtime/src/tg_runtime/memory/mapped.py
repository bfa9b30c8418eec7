"""Memory at an address of the host, as views: for the moment, or for keeping."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

_from_memory: Any = ctypes.pythonapi.PyMemoryView_FromMemory
_from_memory.restype, _from_memory.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
_READ_WRITE = 0x200  # PyBUF_WRITE of CPython's pybuffer.h


class MappedMemory:
    """A block that the host can address, or a range of one.

    Attributes:
      address: where it begins.
      nbytes: its size.
    """

    __slots__ = ("__weakref__", "_exports", "address", "nbytes")

    address: int
    nbytes: int
    _exports: tuple[weakref.ref[Any], ...]

    @property
    def block(self) -> MappedMemory:
        """The whole block that it belongs to; itself, if it is one."""
        return self

    def view(self, nbytes: int) -> memoryview:
        """The first ``nbytes`` bytes, valid while the block lives."""
        view: memoryview = _from_memory(self.address, nbytes, _READ_WRITE)
        return view

    def export(self, nbytes: int) -> memoryview:
        """The first ``nbytes`` bytes as a view that keeps the block alive."""
        array = (ctypes.c_uint8 * nbytes).from_address(self.address)
        array._block = self  # type: ignore[attr-defined]
        block = self.block
        block._exports = (*(e for e in block._exports if e() is not None), weakref.ref(array))
        return memoryview(array).cast("B")

    @property
    def exported(self) -> bool:
        """Whether a view that :meth:`export` gave, of the block or of a part of it, is alive."""
        return bool(self._exports) and any(e() is not None for e in self._exports)
