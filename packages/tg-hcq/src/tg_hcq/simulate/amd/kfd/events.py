"""Events of a process, as ``kfd_events.c`` keeps them: signals with a slot in memory, exceptions without one."""

from __future__ import annotations

import errno
import os
import struct
import threading
import time
from dataclasses import dataclass
from typing import Final

from . import abi
from .user import UserMemory

LIMIT: Final = 4096  # KFD_SIGNAL_EVENT_LIMIT
PAGE_BYTES: Final = 8 * LIMIT
UNSIGNALED: Final = (1 << 64) - 1
FIRST_OTHER: Final = (1 << 30)  # KFD_FIRST_NONSIGNAL_EVENT_ID: (INT_MAX >> 1) + 1
_INFINITE: Final = 0xFFFFFFFF
_SIGNALS: Final = (abi.SIGNAL_EVENT, abi.DEBUG_EVENT)


def refuse(number: int, why: str) -> OSError:
    """An error of a system call, with what the kernel would only say in its log."""
    return OSError(number, f"{os.strerror(number)}: {why}")


@dataclass(eq=False)
class Event:
    """One of them.

    Attributes:
      number: its id.
      kind: its type.
      auto_reset: whether a wait that it ends takes the signal away.
      signaled: whether it is.
      age: grows with each signal.
      data: what an exception says.
      waiting: the waits that it may end.
      gone: whether it was destroyed.
    """

    number: int
    kind: int
    auto_reset: bool
    signaled: bool = False
    age: int = 1
    data: bytes = b""
    waiting: int = 0
    gone: bool = False


class _Waiter:
    """One event in one wait (``init_event_waiter``)."""

    def __init__(self, event: Event, last_age: int) -> None:
        self.event, self.activated = event, event.signaled
        event.signaled = event.signaled and not event.auto_reset
        self.aged = event.kind == abi.SIGNAL_EVENT and last_age != 0
        if self.aged and event.age != last_age:
            self.activated = True
        self.seen = event.age


class Events:
    """All events of a process, and the page with their slots."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: dict[int, Event] = {}
        self._page: memoryview | None = None
        self.page_handle = 0

    def has_page(self) -> bool:
        """Whether the page of slots was handed over."""
        return self._page is not None

    def set_page(self, page: memoryview, handle: int) -> None:
        """Takes the memory of the slots (``kfd_event_page_set``).

        Raises:
          OSError: if it is too small (EINVAL).
        """
        if len(page) < PAGE_BYTES:
            raise refuse(errno.EINVAL, f"an event page of {len(page)} bytes; {PAGE_BYTES} are needed")
        page[:PAGE_BYTES] = b"\xff" * PAGE_BYTES
        self._page, self.page_handle = page.cast("Q"), handle

    def create(self, kind: int, auto_reset: bool) -> Event:
        """A new event.

        Raises:
          OSError: if there are as many as the page has slots (ENOSPC), or there is no page (EINVAL).
        """
        with self._changed:
            if kind in _SIGNALS:
                if self._page is None:
                    raise refuse(errno.EINVAL, "a signal event, and no event page was handed over")
                number = next((n for n in range(1, len(self._page)) if n not in self._events), 0)
                if not number:
                    raise refuse(errno.ENOSPC, f"more than {len(self._page) - 1} signal events")
                self._page[number] = UNSIGNALED
            else:
                number = next(n for n in range(FIRST_OTHER, 1 << 31) if n not in self._events)
            event = self._events[number] = Event(number, kind, auto_reset)
            return event

    def destroy(self, number: int) -> None:
        """Takes an event away; waits for it fail.

        Raises:
          OSError: if there is none (EINVAL).
        """
        with self._changed:
            event = self._events.pop(number, None)
            if event is None:
                raise refuse(errno.EINVAL, f"no event {number}")
            event.gone = True
            self._changed.notify_all()

    def change(self, number: int, signaled: bool) -> None:
        """Sets or resets an event for the host.

        Raises:
          OSError: if it is no signal event (EINVAL).
        """
        with self._changed:
            event = self._events.get(number)
            if event is None or event.kind != abi.SIGNAL_EVENT:
                raise refuse(errno.EINVAL, f"{number} is no signal event")
            if signaled:
                self._set(event)
            else:
                event.signaled = False

    def _set(self, event: Event) -> None:
        event.signaled = not event.auto_reset or not event.waiting
        event.age += 1
        self._changed.notify_all()

    def interrupt(self, context: int) -> None:
        """An interrupt of the GPU came in (``kfd_signal_event_interrupt``): events whose slot was written are set.

        Args:
          context: what the packet said; the id of an event, or anything.
        """
        with self._changed:
            page = self._page
            if page is None:
                return
            exact = self._events.get(context) if 0 < context < len(page) and page[context] != UNSIGNALED else None
            for event in [exact] if exact else list(self._events.values()):
                if event.kind in _SIGNALS and page[event.number] != UNSIGNALED:
                    page[event.number] = UNSIGNALED
                    self._set(event)

    def exception(self, kind: int, data: bytes) -> None:
        """Sets all events of a kind of exception, with what there is to say of it."""
        with self._changed:
            for event in self._events.values():
                if event.kind == kind:
                    event.data = data
                    self._set(event)

    def wait(self, user: UserMemory, address: int, count: int, everything: bool, timeout_ms: int) -> int:
        """Waits for events (``kfd_wait_on_events``).

        Args:
          user: where the array of ``struct kfd_event_data`` is.
          address: of the array.
          count: how many events there are in it.
          everything: whether all must have come.
          timeout_ms: how long; all ones for ever.

        Returns:
          the result: complete or timed out.

        Raises:
          OSError: for an event that there is not (EINVAL), or one that is destroyed meanwhile (EIO).
        """
        end = None if timeout_ms == _INFINITE else time.monotonic() + timeout_ms / 1000
        with self._changed:
            waiters = []
            for index in range(count):
                data = user.read(address + abi.EVENT_DATA_BYTES * index, abi.EVENT_DATA_BYTES)
                (last_age,), (number,) = struct.unpack_from("<Q", data), struct.unpack_from("<I", data, 40)
                event = self._events.get(number)
                if event is None:
                    raise refuse(errno.EINVAL, f"a wait for event {number}, which there is not")
                waiters.append(_Waiter(event, last_age))
            for waiter in waiters:
                waiter.event.waiting += 1
            try:
                while not self._done(waiters, everything):
                    left = None if end is None else end - time.monotonic()
                    if left is not None and left <= 0:
                        return abi.WAIT_TIMEOUT
                    self._changed.wait(left)
            finally:
                for waiter in waiters:
                    waiter.event.waiting -= 1
            for index, waiter in enumerate(waiters):
                if waiter.activated:
                    said = struct.pack("<Q", waiter.event.age) if waiter.aged else waiter.event.data
                    user.write(address + abi.EVENT_DATA_BYTES * index, said)
            return abi.WAIT_COMPLETE

    def _done(self, waiters: list[_Waiter], everything: bool) -> bool:
        for waiter in waiters:
            if waiter.event.gone:
                raise refuse(errno.EIO, f"event {waiter.event.number} was destroyed during a wait")
            waiter.activated |= waiter.event.age != waiter.seen
        return (all if everything else any)(waiter.activated for waiter in waiters)
