"""Memory of devices in the hands of other libraries: where it is, as DLPack says it, and what waits for what.

A device whose kernels run behind the host's back gives a :class:`Sharing`: its work and that of others are on streams
of their own, and whoever takes memory must not touch it before the work that was queued is done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Sharing(ABC):
    """How a device lends its memory to other libraries, and uses theirs.

    Attributes:
      place: DLPack's (type, number) of the device.
      stream: what others are to make wait before we use their memory, as the protocol numbers streams.
    """

    place: tuple[int, int]
    stream: int

    @abstractmethod
    def address(self, opaque: Any) -> int:
        """Where memory of the device's allocator begins."""

    @abstractmethod
    def lend(self, opaque: Any, stream: int | None) -> None:
        """The taker's stream waits for all of our work on the memory, which from now on others may use, too.

        Args:
          opaque: memory of the device's allocator.
          stream: as the protocol numbers them; None is the legacy default stream, -1 wants nothing to wait.

        Raises:
          BufferError: if there is no such stream.
        """

    @abstractmethod
    def borrow(self, opaque: Any, ordered: bool) -> None:
        """Our work waits for what its owner has queued on the memory.

        Args:
          opaque: memory of somebody else's, as the allocator knows it.
          ordered: whether the owner made our stream wait already.
        """
