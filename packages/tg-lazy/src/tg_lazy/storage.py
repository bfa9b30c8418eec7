"""Memory as the graph sees it: a size, a dtype and a device, with a slot that the runtime fills."""

from __future__ import annotations

from itertools import count

from tg_dtype import DType

_uids = count()


class Storage:
    """A buffer's identity. The runtime keeps the memory itself in :attr:`payload`.

    Attributes:
      device: canonical device name.
      size: number of elements (the maximum, where the shape is symbolic).
      dtype: element dtype.
      payload: what the runtime put here (its ``Buffer``), ``None`` until memory is asked for. Dropping the last
        reference to a Storage drops the payload, and so frees the memory.
      uid: number unique in this process, for printing.
    """

    __slots__ = ("__weakref__", "device", "dtype", "payload", "size", "uid")

    def __init__(self, device: str, size: int, dtype: DType, payload: object | None = None) -> None:
        if size < 0:
            raise ValueError(f"a buffer cannot have {size} elements")
        self.device, self.size, self.dtype, self.payload = device, size, dtype, payload
        self.uid = next(_uids)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        state = "allocated" if self.payload is not None else "not allocated"
        return f"<Storage {self.uid} {self.device} {self.size} x {self.dtype.name}, {state}>"
