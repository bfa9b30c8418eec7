"""Signals wait while memory is overwritten: a step is done, or not begun, and never run twice.

Python calls the handlers of signals between two of its instructions, in the main thread, and they may raise: the one of
SIGINT raises ``KeyboardInterrupt``, others raise whatever a program wants. Inside of :class:`Uninterrupted` every
handler is put off to the end of the block. A second Ctrl-C does not wait: the block is abandoned, and says first what
it leaves half written.

Blocking signals (``pthread_sigmask``) would not do: one that another thread of the process receives has its handler
called in the main thread all the same.
"""

from __future__ import annotations

import signal as signals
import threading

# signal's own functions make an Enum's members of their results, which takes ten times as long
from _signal import getsignal, raise_signal, signal  # type: ignore[import-not-found]
from _thread import get_ident
from collections.abc import Callable
from types import FrameType, TracebackType

_SIGINT = int(signals.SIGINT)
_OWN = {"SIGKILL", "SIGSTOP", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL"}  # cannot wait
_NUMBERS = sorted(int(n) for n in signals.valid_signals() if getattr(n, "name", "") not in _OWN)

_caught: list[int] = []
_depth = 0
_abandoning = False
_abandons: list[Callable[[], object]] = []


class _Relay:
    """The handler of a signal while a block is uninterrupted; outside of blocks it only passes the signal on."""

    __slots__ = ("handler", "number")

    def __init__(self, number: int, handler: Callable[[int, FrameType | None], object]) -> None:
        self.number, self.handler = number, handler

    def __call__(self, number: int, frame: FrameType | None) -> object:
        global _abandoning, _depth
        if not _depth:
            return self.handler(number, frame)
        if number != _SIGINT or _SIGINT not in _caught or _abandoning:
            _caught.append(number)
            return None
        try:
            return self.handler(number, frame)
        except BaseException:
            _abandoning = True  # no other signal is heard before all is marked
            while _abandons:
                _abandons.pop()()
            _caught.clear()
            _abandoning, _depth = False, 0
            raise


_relays: list[_Relay] = []
_seen: list[object] = []


def _install() -> None:
    global _relays, _seen
    found = list(map(getsignal, _NUMBERS))
    if found != _seen:
        pairs = [(n, h) for n, h in zip(_NUMBERS, found, strict=True) if callable(h)]
        _relays = [h if isinstance(h, _Relay) else _Relay(n, h) for n, h in pairs]
        _seen = found
    for relay in _relays:
        signal(relay.number, relay)


def _restore() -> None:
    """Puts the handlers back. Where one of them raises meanwhile, that goes on after all are back."""
    try:
        for relay in _relays:
            if getsignal(relay.number) is relay:
                signal(relay.number, relay.handler)
    except BaseException:
        _restore()
        raise


def _deliver(numbers: list[int]) -> None:
    while numbers:
        try:
            raise_signal(numbers.pop(0))
        except BaseException:
            _deliver(numbers)
            raise


class Uninterrupted:
    """A ``with`` block in which signals wait for its end; in the main thread: others never handle any.

    Args:
      abandon: called when a second Ctrl-C ends the block: marks what is half written.

    Example:
      >>> with Uninterrupted():
      ...     "as a whole"
      'as a whole'
    """

    __slots__ = ("_abandon", "_mine")

    def __init__(self, abandon: Callable[[], object] | None = None) -> None:
        self._abandon, self._mine = abandon, False

    def __enter__(self) -> None:
        global _depth
        if get_ident() != threading.main_thread().ident:
            return
        if not _depth:
            try:
                _caught.clear()
                _abandons.clear()
                _install()
            except BaseException:
                _restore()
                raise
        # nothing raises from here on
        _depth += 1
        self._mine = True
        if self._abandon is not None:
            _abandons.append(self._abandon)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _depth
        if not self._mine:
            return
        self._mine = False
        if self._abandon is not None and _abandons:
            _abandons.pop()
        if _depth > 1:
            _depth -= 1
            return
        waiting = _caught[:]
        _depth = 0
        try:
            _restore()
        except BaseException:
            _deliver(waiting)
            raise
        _deliver(waiting)
