"""Memory as the graph sees it: a size, a dtype and a device, with a slot that the runtime fills."""

from __future__ import annotations

from itertools import count
from operator import call
from typing import Any, Generic, TypeVar
from weakref import ref

from tg_dtype import DType

N = TypeVar("N")

_uids = count()


class Readers(list["ref[N]"], Generic[N]):
    """Weak references to the nodes that read some memory; dead ones are swept as the list grows.

    What is done here is done by one call of C functions each, between which neither threads nor handlers of signals
    come: who looks at the list while another one sweeps it misses nobody. What exists is true, as neither nodes nor
    owners of memory have a length or a truth value.

    Attributes:
      limit: how many references there may be before it is swept.
    """

    limit = 32

    def sweep(self) -> None:
        """Forgets what is gone."""
        self[:] = filter(call, self)
        self.limit = max(32, 2 * len(self))

    def alive(self) -> list[N]:
        """The readers that still exist, in the order in which they were made."""
        return list(filter(None, map(call, self)))


class Storage:
    """A buffer's identity. The runtime keeps the memory itself in :attr:`payload`.

    Attributes:
      device: canonical device name.
      size: number of elements (the maximum, where the shape is symbolic).
      dtype: element dtype.
      payload: what the runtime put here (its ``Buffer``), ``None`` until memory is asked for. Dropping the last
        reference to a Storage drops the payload, and so frees the memory.
      uid: number unique in this process, for printing.
      root: the storage whose memory this one is a part of; itself, unless it was made by a BUFFER_VIEW.
      readers: the nodes that read this memory.
      holders: owners who hold it for its value, not for the memory; None if there are none. They are kept by the root.
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

    def __repr__(self) -> str:
        state = "allocated" if self.payload is not None else "not allocated"
        return f"<Storage {self.uid} {self.device} {self.size} x {self.dtype.name}, {state}>"
