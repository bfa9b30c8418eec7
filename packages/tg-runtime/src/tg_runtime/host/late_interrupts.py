"""Ctrl-C that comes while an object is being freed is raised after that.

Python drops what is raised in a finaliser (``__del__``, a callback of a weak reference), for there is nobody to catch
it: it prints ``Exception ignored in …`` and goes on, and the interrupt is lost. Finalisers cannot mend that themselves:
Python may call the handler of a signal before their first instruction. So the handler looks where it was called.

It knows ``__del__``, what the module `weakref` calls, and what says that it is a finaliser (:func:`finaliser`). It does
not know a generator that is freed before its end, nor what C calls.
"""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_WEAK_REFERENCES = frozenset({"weakref", "_weakrefset"})
"""Modules whose functions are callbacks of weak references, or short."""
_IMPORTS = ("importlib._bootstrap", "cb")
"""The import system's own callback: it forgets the lock of a module."""
_RETRY_S = 0.001
_MOST_S = 1.0
"""After which the signal is handled wherever it comes: what is freed waits for something."""
_FINALISERS = set[CodeType]()


def finaliser(function: F) -> F:
    """A function that a weak reference calls, or something else that drops what is raised in it."""
    _FINALISERS.add(function.__code__)
    return function


def in_finaliser(frame: FrameType | None) -> bool:
    """Whether a frame, or one that called it, is a finaliser."""
    while frame is not None:
        name, module = frame.f_code.co_name, frame.f_globals.get("__name__")
        if name == "__del__" or module in _WEAK_REFERENCES or (module, name) == _IMPORTS or frame.f_code in _FINALISERS:
            return True
        frame = frame.f_back
    return False


def _again(thread: int) -> None:
    time.sleep(_RETRY_S)
    signal.pthread_kill(thread, signal.SIGINT)  # a real signal, which ends a system call that waits


@contextlib.contextmanager
def interrupts_after_finalisers() -> Iterator[None]:
    """A block in which the handler of SIGINT is not called in finalisers: the signal comes again a moment later.

    Outside of the main thread, and where Python does not handle the signal, nothing changes.

    Example:
      >>> with interrupts_after_finalisers():
      ...     "Ctrl-C is raised here, or later"
      'Ctrl-C is raised here, or later'
    """
    before = signal.getsignal(signal.SIGINT)
    thread = threading.main_thread().ident
    if thread is None or thread != _thread.get_ident() or not callable(before) or not hasattr(signal, "pthread_kill"):
        yield
        return

    first = 0.0

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal first
        now = time.monotonic()
        if not in_finaliser(frame) or (first and now - first > _MOST_S):
            first = 0.0
            before(number, frame)
        else:
            first = first or now
            _thread.start_new_thread(_again, (thread,))  # `threading` has locks that the signal may have found held

    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
