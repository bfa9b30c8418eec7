"""Ctrl-C that comes while an object is being freed is raised after that.

Python drops what is raised in a finaliser (``__del__``, a callback of a weak reference), for there is nobody to catch
it: it prints ``Exception ignored in …`` and goes on, and the interrupt is lost. Finalisers cannot mend that themselves:
Python may call the handler of a signal before their first instruction. So the handler looks where it was called.
"""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

_WEAK_REFERENCES = frozenset({"weakref", "_weakrefset"})
"""Modules whose functions are callbacks of weak references, or short."""
_IMPORTS = ("importlib._bootstrap", "cb")
"""The import system's own callback: it forgets the lock of a module."""
_RETRY_S = 0.001


def in_finaliser(frame: FrameType | None) -> bool:
    """Whether a frame, or one that called it, is a finaliser."""
    while frame is not None:
        name, module = frame.f_code.co_name, frame.f_globals.get("__name__")
        if name == "__del__" or module in _WEAK_REFERENCES or (module, name) == _IMPORTS:
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

    def handler(number: int, frame: FrameType | None) -> None:
        if in_finaliser(frame):
            _thread.start_new_thread(_again, (thread,))  # `threading` has locks that the signal may have found held
        else:
            before(number, frame)

    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
