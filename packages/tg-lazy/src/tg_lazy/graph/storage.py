"""Memory as the graph sees it: a size, a dtype and a device, with a slot that the runtime fills."""

from __future__ import annotations

from itertools import count, filterfalse
from operator import call
from typing import Any, Generic, TypeVar
from weakref import ref

from tg_dtype import DType

N = TypeVar("N")

_uids = count()


class Readers(dict["ref[N]", None], Generic[N]):
    """Weak references to the nodes that read some memory, in order; dead ones are swept once there are many.

    No lock is needed. Sweeping removes dead references one by one, so it loses nothing that another thread, or a
    finalizer run by the garbage collector, adds meanwhile; and every reader iterates over a copy. Nodes and owners of
    memory define neither length nor truth, so that a live one is always true.

    Attributes:
      limit: how many references there may be before they are swept.
    """

    limit = 32

    def sweep(self) -> None:
        """Removes dead references."""
        for gone in filterfalse(call, list(self)):
            self.pop(gone, None)
        self.limit = max(32, 2 * len(self))

    def alive(self) -> list[N]:
        """The readers that still exist, in the order in which they were made."""
        return list(filter(None, map(call, list(self))))


class Storage:
    """The identity of a buffer. The runtime keeps the memory itself in :attr:`payload`.

    Attributes:
      device: canonical device name.
      size: number of elements (the maximum, where the shape is symbolic).
      dtype: element dtype.
      payload: what the runtime put here (its ``Buffer``), ``None`` until memory is asked for. Dropping the last
        reference to a Storage drops the payload, and so frees the memory.
      uid: number unique in this process, for printing.
      root: the storage whose memory this one is a part of; itself, unless it was made by a BUFFER_VIEW.
      readers: the nodes that read this memory.
      holders: owners that hold it for its value, not for its memory; None if there are none. The root keeps them.
    """

    __slots__ = ("__weakref__", "_root", "device", "dtype", "holders", "payload", "readers", "size", "uid")

    def __init__(
        self, device: str, size: int, dtype: DType, payload: object | None = None, root: Storage | None = None
    ) -> None:
        if size < 0:
            raise ValueError(f"a buffer cannot have {size} elements")
        self.device, self.size, self.dtype, self.payload = device, size, dtype, payload
        self._root = root
        self.uid = next(_uids)
        self.holders: Readers[Any] | None = None
        # The nodes are LazyBuffers, whose module stands on this one.
        self.readers: Readers[Any] = Readers() if root is None else root.readers

    @property
    def root(self) -> Storage:
        """The storage whose memory this one is a part of, or itself."""
        return self if self._root is None else self._root

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * self.dtype.itemsize

    def place(self, payload: object) -> None:
        """Tells where the elements are; for whoever owns the memory, once it is asked for."""
        self.payload = payload

    def __repr__(self) -> str:
        state = "allocated" if self.payload is not None else "not allocated"
        return f"<Storage {self.uid} {self.device} {self.size} x {self.dtype.name}, {state}>"
