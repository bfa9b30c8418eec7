"""Captures: the ExecItems that a thread executes, recorded as they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from weakref import ref

from tg_lazy import LazyBuffer, ScheduleItem, Storage

from ..memory.buffer import Buffer, buffer_of
from ..steps.runner import listening
from .item import ExecItem


class _Capturing(threading.local):
    into: list[ExecItem] | None = None
    look: Callable[[Sequence[LazyBuffer]], None] | None = None
    ended: list[Buffer] | None = None
    watched: dict[int, ref[Storage]] | None = None


current = _Capturing()
"""What this thread records; nothing while ``into`` is None."""


@contextmanager
def capture(
    into: list[ExecItem],
    ended: list[Buffer] | None = None,
    look: Callable[[Sequence[LazyBuffer]], None] | None = None,
) -> Iterator[list[ExecItem]]:
    """Appends every ExecItem that this thread executes inside the block to ``into``; they are executed too.

    A runner that is executed by hand (:meth:`~tg_runtime.steps.runner.Runner.exec`) becomes an ExecItem.

    Args:
      into: takes the ExecItems.
      ended: takes the buffers that got their memory inside the block and whose Storage was gone before its end, so that
        nothing but the ExecItems can use them. Their memory is given back at once.
      look: called with the outputs of each realisation before it is scheduled. What it realises itself is executed
        and not captured.

    Raises:
      RuntimeError: if a capture is going on in this thread already.
    """
    if current.into is not None:
        raise RuntimeError("a capture is going on already in this thread: captures do not nest")
    current.into, current.ended, current.watched, current.look = into, ended, {}, look
    listening.told = lambda runner, bufs: into.append(ExecItem(runner, bufs))
    try:
        yield into
    finally:
        current.into = current.ended = current.watched = current.look = listening.told = None


@contextmanager
def uncaptured() -> Iterator[None]:
    """What this thread executes inside the block is not captured, though a capture is going on around it."""
    before = current.into, current.ended, current.watched, current.look, listening.told
    current.into = current.ended = current.watched = current.look = listening.told = None
    try:
        yield
    finally:
        current.into, current.ended, current.watched, current.look, listening.told = before


def show(outputs: Sequence[LazyBuffer]) -> None:
    """Shows whoever captures what is about to be realised."""
    look = current.look
    if look is not None:
        with uncaptured():
            look(outputs)


def note_memory(item: ScheduleItem) -> None:
    """Gives memory that the step is the first to use back when its Storage is gone, while a capture wants to know."""
    ended, watched = current.ended, current.watched
    if ended is None or watched is None:
        return
    for storage in item.bufs:
        buffer = buffer_of(storage)
        if storage.uid not in watched and not buffer.is_allocated and buffer.base is buffer:
            watched[storage.uid] = ref(storage, partial(_end, buffer, ended))


def _end(buffer: Buffer, ended: list[Buffer], gone: ref[Storage]) -> None:
    if buffer.base is buffer:  # and did not become a view
        buffer.deallocate()
        ended.append(buffer)


def capturing() -> bool:
    """Whether this thread's executions are being captured."""
    return current.into is not None
