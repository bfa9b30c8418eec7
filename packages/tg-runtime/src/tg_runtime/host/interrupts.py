"""Signals wait while memory is overwritten: a step is done, or not begun, and never run twice.

Python calls the handlers of signals between two of its instructions, in the main thread, and they may raise: the one of
SIGINT raises ``KeyboardInterrupt``, others raise whatever a program wants. Inside of :class:`Uninterrupted` every
handler is put off to the end of the block. A second Ctrl-C does not wait: the block is abandoned, and says first what
it leaves half written.

Blocking signals (``pthread_sigmask``) would not do: one that another thread of the process receives has its handler
called in the main thread all the same.

To give a signal another handler is to change two things: the function that Python calls, and what the system does with
the signal. Only the first is wanted. The second (whether system calls go on after the signal, see
``signal.siginterrupt``; another library's handler in front of Python's, see ``faulthandler.register``) is put back at
once.
"""

from __future__ import annotations

# the functions of `signal` wrap results in Enum members, which takes ten times as long
import _signal as signals  # type: ignore[import-not-found]
import sys
import threading
from _signal import getsignal, raise_signal, signal
from _thread import get_ident
from collections.abc import Callable
from functools import cache
from types import FrameType, TracebackType

_SIGINT: int = signals.SIGINT
_OWN = ("SIGKILL", "SIGSTOP", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL")  # cannot wait
_NUMBERS: list[int] = sorted(set(signals.valid_signals()).difference(getattr(signals, name, 0) for name in _OWN))
_PLACES = {number: place for place, number in enumerate(_NUMBERS)}

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
            _abandoning = True  # other signals wait until everything is marked
            while _abandons:
                _abandons.pop()()
            _caught.clear()
            _abandoning, _depth = False, 0
            raise


_relays: list[_Relay] = []
_seen: list[object] = []
_special: set[int] = set()  # signals whose disposition is not the one that `signal` would set
_usual = b""  # the disposition that `signal` sets, without meaningless bits


class _System:
    """``sigaction``, called without giving the interpreter away."""

    BYTES = 256  # no system's struct sigaction has more

    def __init__(self) -> None:
        import ctypes

        self.put = ctypes.PyDLL(None).sigaction
        self.put.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
        self.found = ctypes.create_string_buffer(self.BYTES)
        self.mask = ctypes.sizeof(ctypes.c_void_p)

    def action(self, number: int) -> tuple[bytes, bytes]:
        """What the system does with a signal: the struct sigaction; and what is read of it: handler, mask, flags.

        The C libraries of Linux have room for a mask of 128 bytes, and leave anything in all but the first 8 of them;
        elsewhere the whole struct is no longer than that.
        """
        self.put(number, None, self.found)
        raw, mask = self.found.raw, self.mask
        return raw, raw[: mask + 8] + raw[mask + 128 : mask + 132]


@cache
def _system() -> _System | None:
    """None on systems without ``sigaction``."""
    return _System() if hasattr(signals, "siginterrupt") else None


def _install() -> None:
    global _relays, _seen, _usual
    _special.clear()
    found = list(map(getsignal, _NUMBERS))
    if found != _seen:
        pairs = [(n, h) for n, h in zip(_NUMBERS, found, strict=True) if callable(h)]
        _relays = [h if isinstance(h, _Relay) else _Relay(n, h) for n, h in pairs]
        _seen = found
    system = _system()
    for relay in _relays:
        number = relay.number
        handler = found[_PLACES[number]]
        if handler is not relay:
            relay.handler = handler  # an equal handler may be another object
        raw, action = (b"", b"") if system is None else system.action(number)
        if system is None or action == _usual:
            signal(number, relay)
            continue
        _special.add(number)
        signal(number, relay)
        _usual = system.action(number)[1]
        system.put(number, raw, None)


def _put_back() -> None:
    system = _system()
    for relay in _relays:
        number = relay.number
        # read now: LLVM's handlers, which come with PoCL, remove themselves when they are called
        raw, action = (b"", b"") if system is None or number not in _special else system.action(number)
        if getsignal(number) is relay:
            signal(number, relay.handler)
        if system is not None and action not in (b"", _usual) and getsignal(number) is relay.handler:
            system.put(number, raw, None)


def _restore(attempts: int = 4) -> None:
    """Puts the handlers back. Where one that is back raises meanwhile, that goes on after all are back.

    The next signal may raise before the first instruction of what goes on, so the attempts stand inside one another:
    each frame has entered its ``try`` before the first of them begins.
    """
    try:
        if attempts:
            _restore(attempts - 1)
        else:
            _put_back()
    except BaseException:
        _put_back()
        raise


def _deliver(numbers: list[int]) -> None:
    while numbers:
        number = numbers.pop(0)
        handler = getsignal(number)
        try:
            if callable(handler):  # C handlers and the wakeup descriptor were notified already
                handler(number, sys._getframe())
            else:
                raise_signal(number)
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
        _depth = 1  # relays note what comes until no relay is left, after a block that was abandoned as well
        try:
            _restore()
        except BaseException:
            _depth, waiting = 0, _caught[:]
            _deliver(waiting)
            raise
        _depth, waiting = 0, _caught[:]
        _deliver(waiting)
