"""Memory that tensors share: a tensor and its views are one memory, each seeing it in its own way.

Nodes of the lazy graph are values, which never change. What changes when a tensor is written is which node its memory
is: every tensor that shares the memory finds the newest one here before it reads. Whether anything was computed yet
makes no difference. The rules are those of PyTorch: see ``docs/memory.md``.
"""

from __future__ import annotations

from functools import lru_cache
from weakref import ref

from tg_dtype import DType, dtypes
from tg_lazy import LazyBuffer, Ops
from tg_lazy.graph.lazybuffer import graph_lock
from tg_lazy.graph.storage import Readers
from tg_lazy.ops import LEAVES, MEMORY
from tg_lazy.trackers import contiguous
from tg_shape import ShapeTracker, sint

from ..host import transfer
from .realization import TRACING, Moves, note_assign, spare
from .recut import recut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VIEW = Ops.VIEW


@lru_cache(maxsize=1024)
def proxy(shape: tuple[sint, ...]) -> LazyBuffer:
    """Stands for row-major memory of a shape that is not there yet, to say how views of it will see it."""
    return LazyBuffer.empty(shape, dtypes.uint8, "CPU")


class Clock:
    """Counts writes.

    Attributes:
      now: the number of the last one.
    """

    now = 0


class Lineage:
    """Where elements come from, for tensors that share memory and through which gradients flow together.

    A tensor and its views have one: their :class:`Memory`. What ``detach`` cuts off them has another one, which it
    shares with its own views: what is written to it changes the elements of all, and the gradients of these alone.

    Attributes:
      node: the newest version as a tensor through which a gradient flows, once such a one was written.
      computed: whether what ``node`` first replaced was computed from what may want a gradient, and was not kept data.
      owner: refers to the tensor of which the others are views.
    """

    __slots__ = ("computed", "node", "owner")

    def __init__(self, owner: ref[Any] | None = None) -> None:
        self.node: Any = None
        self.computed = False
        self.owner = owner


class Memory(Lineage):
    """What a tensor and its views share.

    Attributes:
      root: the newest version, as the tensor that is no view of another sees it.
      base: the node that ``root`` is a view of, or is.
      direct: whether ``base`` is this memory, or will be. If not, it is only where the value comes from (a constant,
        another tensor's memory, padded or repeated perhaps), and the first write makes memory of ``root``.
      written: number of the last write; 0 before the first.
      bits: the memories that see this one in another dtype.
    """

    __slots__ = ("__weakref__", "base", "bits", "direct", "root", "written")

    def __init__(self, root: LazyBuffer, direct: bool, owner: ref[Any] | None = None) -> None:
        super().__init__(owner)
        self.root, self.direct, self.written = root, direct, 0
        self.base: LazyBuffer = root.srcs[0] if root.op is _VIEW else root
        self.bits: list[ref[Bits]] | None = None

    @classmethod
    def of(cls, lazy: LazyBuffer, owner: ref[Any] | None = None) -> Memory:
        """The memory of a tensor that is no view."""
        return cls(lazy, lazy.op is not _VIEW or lazy.srcs[0].op in MEMORY or lazy.is_whole, owner)

    @classmethod
    def apart(cls, lazy: LazyBuffer, owner: ref[Any]) -> Memory:
        """Memory of its own for a value whose node is that of another tensor: it is made when either is written."""
        base = lazy.base
        self = cls(lazy, False, owner)
        if base.op not in LEAVES:
            with graph_lock:
                held = base if base.storage is None else base.storage.root
                holders = held.holders
                if holders is None:
                    holders = held.holders = Readers()
                holders[ref(self)] = None
                if len(holders) > holders.limit:
                    holders.sweep()
        return self

    def holds(self, other: Memory | None) -> bool:
        """Whether another memory is this one, or bits of it."""
        while isinstance(other, Bits):
            other = other.whole
        return other is self

    def settle(self) -> None:
        """Makes memory of the value, which stays: row-major, its own, and to be written in place."""
        with graph_lock:
            if not self._is_settled():
                self._move(self._copied())

    def _is_settled(self) -> bool:
        base = self.base
        return self.direct and base.op in MEMORY and not base.shared and not _is_borrowed(base)

    def _copied(self) -> LazyBuffer:
        return self.base.clone() if self.direct else self.root.clone()

    def _move(self, base: LazyBuffer) -> None:
        """Another base: the same value in other memory, or a new version. Those who see bits of it follow."""
        Moves.number += 1  # also before: a signal's handler may raise in between
        root = base.seen(self.root.st if self.direct else contiguous(self.root.shape))
        self.root, self.base, self.direct = root, base, True
        Moves.number += 1
        for weak in self.bits or ():
            child = weak()
            if child is not None:
                child.follow()

    def write(self, st: ShapeTracker, value: LazyBuffer, computed: bool = False) -> None:
        """Makes the next version.

        Args:
          st: which part, seen from row-major memory.
          value: of the shape of ``st`` and the memory's dtype; its new content.
          computed: whether the value was computed for this memory alone, which need not be made before that is.

        Raises:
          ValueError: if the part shows an element twice.
        """
        with graph_lock:
            old = self.base
            if self._is_settled():
                spare(old)
                new = old.seen(st).assign(value)
            elif st.contiguous and st.size == (old if self.direct else self.root).size:
                new = value if computed else value.clone()
            else:
                new = self._copied().seen(st).assign(value)
            self.advance(new.base)

    def update(
        self, where: ShapeTracker, index: LazyBuffer, value: LazyBuffer, op: Ops | None, distinct: bool
    ) -> None:
        """Makes the next version, of elements at computed positions: see :meth:`tg_lazy.LazyBuffer.update`."""
        with graph_lock:
            old = self.base
            if self._is_settled():
                spare(old)
            else:
                old = self._copied()
            self.advance(old.update(value, index, where, op, distinct=distinct).base)

    def advance(self, base: LazyBuffer) -> None:
        """Takes a new version, and remembers the write if it is still to be executed."""
        note_assign(base)
        if TRACING.written is not None:
            TRACING.written.append(self)
        Clock.now += 1
        self.written = Clock.now
        self._end()
        self._move(base)

    def take(self, root: LazyBuffer) -> None:
        """Takes a new version of all of the memory, which is no other tensor's."""
        self.advance(root.base)

    def _end(self) -> None:
        """Marks the version that there was as overwritten; not a node that others hold, too: they keep its value."""
        base = self.base
        if not (base.shared or base.op in LEAVES):
            base.ended = True

    def rewritten(self) -> None:
        """Takes a new version that is in the same memory already, which was written by other means than the graph."""
        storage = self.base.storage
        assert storage is not None
        self.advance(LazyBuffer.from_storage(storage, self.base.shape))


class Bits(Memory):
    """A part of a memory taken as another dtype.

    Args:
      of: the memory.
      st: the part.
      dtype: the other dtype.
    """

    __slots__ = ("dtype", "st", "whole")

    def __init__(self, of: Memory, st: ShapeTracker, dtype: DType) -> None:
        self.whole, self.st, self.dtype = of, st, dtype
        super().__init__(taken(of.base.seen(st), dtype), True)
        if of.bits is None:
            of.bits = []
        of.bits = [weak for weak in of.bits if weak() is not None]
        of.bits.append(ref(self))

    def follow(self) -> None:
        """Looks at the newest version of the memory."""
        self.written = self.whole.written
        self._end()
        root = taken(self.whole.base.seen(self.st), self.dtype)
        self.root, self.base = root, root.base
        for weak in self.bits or ():
            child = weak()
            if child is not None:
                child.follow()

    def settle(self) -> None:
        """Makes memory of the whole, so that a part of it is memory, too."""
        self.whole.settle()
        self.follow()

    def take(self, root: LazyBuffer) -> None:
        """Writes the bits of the new version to the memory itself."""
        self.write(contiguous(root.shape), root)

    def rewritten(self) -> None:
        """The memory itself has a new version."""
        self.whole.rewritten()

    def write(self, st: ShapeTracker, value: LazyBuffer, computed: bool = False) -> None:
        """Writes the same bits to the memory itself."""
        with graph_lock:
            self.whole.settle()
            kind = self.whole.base.dtype
            self._end()
            if kind.itemsize == self.dtype.itemsize:
                self.whole.write(self.st + st, value.bitcast(kind))
                return
            if not (st.contiguous and st.size == self.root.size):
                value = self.root.clone().seen(st).assign(value).base
            self.whole.write(self.st, taken(value.reshape(self.root.shape), kind))


def taken(lazy: LazyBuffer, dtype: DType) -> LazyBuffer:
    """The bits of the elements as another dtype."""
    return lazy.bitcast(dtype) if lazy.dtype.itemsize == dtype.itemsize else recut(lazy, dtype)


def _is_borrowed(base: LazyBuffer) -> bool:
    storage = base.storage
    return storage is not None and transfer.is_borrowed(storage)
