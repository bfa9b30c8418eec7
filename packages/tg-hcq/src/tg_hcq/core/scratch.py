"""Scratch: one piece of device memory for the private memory of all waves, which grows with the kernels."""

from __future__ import annotations

from typing import Final

from tg_runtime import BufferOptions
from tg_shape import Variable

from .allocator import HCQAllocator
from .buffer import HCQBuffer
from .queue import HWQueue
from .replay import Counter
from .timeline import Timeline

ADDRESS: Final = Variable("scratch_address", 0, 2**57 - 1)
"""No GPU's addresses are wider; what a descriptor holds above them can be added."""
NBYTES: Final = Variable("scratch_nbytes", 0, 2**63 - 1)
_OPTIONS: Final = BufferOptions(nolru=True)


class Scratch:
    """Memory that every kernel may use for itself, and none keeps anything in.

    A recorded queue holds :data:`ADDRESS` and :data:`NBYTES` in its words (see :meth:`use`), never their values: after
    the scratch has grown, its next submission has the new ones. The old memory is given back once everything is done
    that was submitted with it.

    Attributes:
      nbytes: how much there is.
    """

    def __init__(self, allocator: HCQAllocator, timeline: Timeline) -> None:
        self._allocator, self._timeline = allocator, timeline
        self._memory: HCQBuffer | None = None
        self._address, self._nbytes = Counter(), Counter()

    @property
    def nbytes(self) -> int:
        """How much there is."""
        return self._nbytes.value

    @property
    def address(self) -> int:
        """Where it is; 0 if there is none."""
        return self._address.value

    def ensure(self, nbytes: int) -> None:
        """Makes it at least so large; twice as large as it was, where it has to grow.

        Raises:
          OutOfMemory: if there is not so much memory; the scratch is as it was.
        """
        if nbytes <= self._nbytes.value:
            return
        with self._timeline.lock:
            if nbytes <= self._nbytes.value:
                return
            size = max(-(-nbytes // 4096) * 4096, 2 * self._nbytes.value)
            new, old = self._allocator.alloc(size, _OPTIONS), self._memory
            assert isinstance(new.address, int)
            self._memory, self._address.value, self._nbytes.value = new, new.address, size
            if old is not None:
                self._allocator.retire(old, _OPTIONS)

    def use(self, queue: HWQueue) -> None:
        """Lets a queue's words hold :data:`ADDRESS` and :data:`NBYTES`."""
        queue.count(ADDRESS, self._address, 0).count(NBYTES, self._nbytes, 0)
