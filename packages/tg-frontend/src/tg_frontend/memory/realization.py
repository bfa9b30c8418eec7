"""Computing tensors, and first what would otherwise lose the memory that it reads."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock, local
from weakref import ref

from tg_lazy import LazyBuffer, Ops, Storage, schedule
from tg_runtime import capturing, realize
from tg_runtime.host.interrupts import Uninterrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from tg_lazy import ScheduleItem
    from tg_shape import Variable

    class Holder(Protocol):
        """A tensor, as far as this module is concerned."""

        lazydata: LazyBuffer

        def __hash__(self) -> int: ...


_VIEW = Ops.VIEW  # an Enum's members take long to look up


class Tracing(local):
    """What a function that is traced in this thread gets: its values are known only when the trace is executed.

    Attributes:
      unknown: the placeholders of all traces that are going on, one within another.
      what: what calls the innermost function, for messages.
      written: the memories to which the innermost function wrote in place; None outside of any.
      noted: the assignments that were noted since it began; None outside of any.
    """

    unknown: tuple[LazyBuffer, ...] = ()
    what = ""
    written: list[object] | None = None
    noted: list[ref[LazyBuffer]] | None = None


TRACING = Tracing()


class Unavailable:
    """In the place of what computes a node: the value is not known yet, and asking for it raises.

    Args:
      message: what the error says.
    """

    __slots__ = ("_message",)

    def __init__(self, message: str) -> None:
        self._message = message

    def __call__(self, *_: object) -> None:
        """Raises.

        Raises:
          RuntimeError: if it is called at all.
        """
        raise RuntimeError(self._message)


class _Live(list["ref[Holder]"]):
    """Weak references to tensors, in the order in which they were made; dead ones are swept as the list grows."""

    FEWEST = 1024
    limit = FEWEST
    _sweeping = Lock()

    def sweep(self) -> None:
        """Forgets what is gone, also while other threads add to it."""
        with Uninterrupted():  # no signal between the lock's being taken and the block that gives it back
            if not self._sweeping.acquire(blocking=False):
                return
            try:
                seen = len(self)
                self[:seen] = [r for r in self[:seen] if r() is not None]
                self.limit = max(self.FEWEST, 2 * len(self))
            finally:
                self._sweeping.release()

    def forget(self, tensor: Holder) -> None:
        """Takes a tensor out, also while other threads add to it."""
        with Uninterrupted(), self._sweeping:
            seen = len(self)
            self[:seen] = [r for r in self[:seen] if r() is not tensor]


LIVE = _Live()
"""Every tensor that exists; add to it with :func:`enlist`, read it with :func:`live`."""


def enlist(tensor: Holder) -> None:
    """Adds a new tensor to those that exist."""
    LIVE.append(ref(tensor))
    if len(LIVE) > LIVE.limit:
        LIVE.sweep()


def delist(tensor: Holder) -> None:
    """Takes a tensor out of those that exist: from now on it is a pair of others, and holds no node itself."""
    LIVE.forget(tensor)


def live() -> list[Holder]:
    """Every tensor that exists, also while other threads make some."""
    return [tensor for r in LIVE[:] if (tensor := r()) is not None]


class Moves:
    """How often any tensor was given other memory or another ``requires_grad``, or memory another version: while the
    number stands, none was.

    Attributes:
      number: the count.
    """

    number = 0


ASSIGNS: list[ref[LazyBuffer]] = []
"""The assignments that were noted and not found executed since: see :func:`finish_assigns`."""


def note_assign(new: LazyBuffer) -> None:
    """Remembers an assignment that is not executed yet."""
    if new.op is Ops.ASSIGN:
        note = ref(new)
        ASSIGNS.append(note)
        if TRACING.noted is not None:
            TRACING.noted.append(note)


def forget_assigns(noted: Sequence[ref[LazyBuffer]]) -> None:
    """Takes back assignments that were noted: what they were part of failed, and nobody is to execute them."""
    for note in noted:
        with suppress(ValueError):
            ASSIGNS.remove(note)


def _pending() -> list[LazyBuffer]:
    if not ASSIGNS:
        return []
    alive = [node for r in ASSIGNS if (node := r()) is not None and not node.is_realized]
    ASSIGNS[:] = [ref(node) for node in alive]
    return alive


def unfinished_assigns() -> list[LazyBuffer]:
    """The assignments that are not executed yet."""
    return _pending()


def finish_assigns() -> list[LazyBuffer]:
    """Executes the assignments that are not executed yet.

    Returns:
      Those that cannot be, because a variable has two values in them: whoever reads what they write is told.
    """
    pending = _pending() if ASSIGNS else []
    if not pending:
        return []
    try:
        realize_all(pending)
    except ValueError:  # variables may have other values in one than in another: they need not be of one graph
        for node in pending:
            with suppress(ValueError):
                realize_all([node])
    return _pending()


def reachable(roots: Sequence[LazyBuffer]) -> set[LazyBuffer]:
    """The bases that some nodes are computed from, their own included."""
    seen: set[LazyBuffer] = set()
    stack = [root.base for root in roots]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            for src in node.srcs:
                stack.append(src.srcs[0] if src.op is _VIEW else src)
    return seen


def computable(roots: Sequence[LazyBuffer]) -> bool:
    """Whether some nodes can be computed now: they depend on no placeholder, and read nothing that was overwritten."""
    graph = reachable(roots)
    return graph.isdisjoint(TRACING.unknown) and not any(
        node.stale is not None or (node.op is Ops.CUSTOM and type(node.arg) is Unavailable) for node in graph
    )


def readable(root: LazyBuffer) -> bool:
    """Whether the value of a node may be looked at: TinyJit does not record, and no traced function gives it."""
    return not capturing() and computable([root])


def _target(node: LazyBuffer, known: dict[LazyBuffer, LazyBuffer]) -> LazyBuffer:
    """The node whose memory an assignment overwrites, through versions that are not executed either.

    Args:
      node: the assignment.
      known: what others overwrite, to which all on the way are added.
    """
    way: list[LazyBuffer] = []
    while node.op is Ops.ASSIGN and node not in known:
        srcs = node.srcs
        if not srcs:  # another thread has executed it meanwhile
            break
        way.append(node)
        node = srcs[0].base
    target = known.get(node, node)
    known.update(dict.fromkeys(way, target))
    return target


def outputs_with_readers(outputs: Sequence[LazyBuffer]) -> list[LazyBuffer]:
    """``outputs`` and, where they overwrite memory, every live tensor that has yet to read the old content."""
    pending = _pending()
    if not pending:
        return list(outputs)
    graph = reachable(outputs)
    late: set[LazyBuffer] = set()
    targets: dict[LazyBuffer, LazyBuffer] = {}
    for node in pending:
        if node in graph:
            readers = _target(node, targets).readers.alive()
            late.update(r for r in readers if r not in graph and r.op is not Ops.ASSIGN and not r.is_realized)
    if not late:
        return list(outputs)
    return [*outputs, *_held(late)]


def _held(late: set[LazyBuffer]) -> list[LazyBuffer]:
    """What live tensors hold of these nodes, and of what depends on them, found from the nodes upward."""
    dependent, stack = set(late), list(late)
    while stack:
        for reader in stack.pop().readers.alive():
            if reader not in dependent and not reader.is_realized:
                dependent.add(reader)
                stack.append(reader)
    return list(dict.fromkeys(tensor.lazydata for tensor in live() if tensor.lazydata.base in dependent))


def realize_all(outputs: Sequence[LazyBuffer]) -> None:
    """Computes ``outputs`` now.

    Raises:
      MemoryError: if there is not enough memory; the message says how much was asked and is held.
      RuntimeError: if they depend on placeholders of a trace.
    """
    if TRACING.unknown and not reachable(outputs).isdisjoint(TRACING.unknown):
        raise RuntimeError(
            f"{TRACING.what}: the function asks for the value of a tensor that is known only when the loop runs: "
            "choose by where() or cond(), not by if, and read values afterwards"
        )
    realize(outputs_with_readers(outputs) if ASSIGNS else outputs)


def realize_readers(base: LazyBuffer) -> None:
    """Computes every live tensor that has yet to read memory which is about to be overwritten at once."""
    late = {reader for reader in base.readers.alive() if not reader.is_realized}
    if late:
        realize_all(_held(late))


def spare(memory: LazyBuffer | Storage) -> None:
    """Lets everyone who holds memory for its value, as a result that is seen in its operand's, copy that now.

    Args:
      memory: what is to be written in place: a base, or its storage.
    """
    storage = memory if isinstance(memory, Storage) else memory.storage
    owner = memory if storage is None else storage.root
    holders = owner.holders
    if holders is None:
        return
    for holder in holders.alive():
        base = holder.base
        if base is memory or (storage is not None and base.storage is not None and base.storage.root is storage.root):
            holder.settle()
    owner.holders = None


def overwrite(storage: Storage, origin: tuple[str, int]) -> None:
    """Prepares memory to be overwritten by other means than the graph.

    What live tensors hold that has yet to read it is computed now; what is left cannot be any more, and says so.

    Args:
      storage: the memory.
      origin: file and line of what overwrites it.
    """
    spare(storage)
    readers = storage.readers
    if not readers:
        return
    late = {reader for reader in readers.alive() if _waits(reader)}
    if late:
        held = _held(late)
        if held:
            realize_all(held)
        for reader in late:
            if _waits(reader):
                reader.stale = origin
    # those that have read it, or never will, are removed one by one, as other threads may add some: the next to
    # overwrite the memory need not look at them
    readers.sweep()
    for reader in readers.alive():
        if reader.is_realized or reader.stale is not None:
            readers.pop(ref(reader), None)


def _waits(reader: LazyBuffer) -> bool:
    return not reader.is_realized and reader.op is not Ops.ASSIGN and reader.stale is None


def schedule_all(outputs: Sequence[LazyBuffer]) -> tuple[list[ScheduleItem], dict[Variable, int]]:
    """What :func:`realize_all` would execute."""
    return schedule(outputs_with_readers(outputs))
