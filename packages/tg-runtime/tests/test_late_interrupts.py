"""Ctrl-C while objects are freed."""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tg_runtime.host import late_interrupts
from tg_runtime.host.late_interrupts import finaliser, in_finaliser, interrupts_after_finalisers


class Freed:
    def __del__(self) -> None:
        sum(i for i in range(20))


class Watched:
    pass


def own_finaliser() -> None:
    Freed()


def weak_reference() -> None:
    watched = Watched()
    weakref.finalize(watched, lambda: sum(i for i in range(20)))


@finaliser
def gone(_: Any) -> None:
    sum(i for i in range(20))


def own_callback() -> None:
    watched = Watched()
    reference = weakref.ref(watched, gone)
    del watched  # the reference, which lives, calls
    assert reference() is None


def repeat(work: Callable[[], None], timer: threading.Timer) -> None:
    """Works until it is interrupted.

    A function of its own, for in Python 3.12 and 3.13 the jump at the end of a loop belongs to no block that the loop
    ends: what is raised there would pass by `pytest.raises` around it.
    """
    timer.start()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        work()


@pytest.mark.parametrize("work", [own_finaliser, weak_reference, own_callback])
def test_no_interrupt_is_lost(work: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    thread = threading.main_thread().ident
    assert thread is not None
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # so that the other threads need not wait long
    draw, before = random.Random(1), signal.getsignal(signal.SIGINT)
    with interrupts_after_finalisers():
        for _ in range(30):
            with pytest.raises(KeyboardInterrupt):
                timer = threading.Timer(draw.random() * 0.002, signal.pthread_kill, (thread, signal.SIGINT))
                repeat(work, timer)
            timer.join()
    sys.setswitchinterval(usual)
    assert not dropped
    assert signal.getsignal(signal.SIGINT) is before


def test_which_frames_are_finalisers() -> None:
    found: list[bool] = []

    class Telling:
        def __del__(self) -> None:
            found.append(in_finaliser(sys._getframe()))

    Telling()
    watched = Watched()
    weakref.finalize(watched, lambda: found.append(in_finaliser(sys._getframe())))
    del watched
    assert found == [True, True]
    assert not in_finaliser(sys._getframe()) and not in_finaliser(None)


def test_a_finaliser_that_waits_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_interrupts, "_MOST_S", 0.05)
    thread, ended = threading.main_thread().ident, list[float]()
    assert thread is not None

    class Waiting:
        def __del__(self) -> None:
            begin = time.monotonic()
            try:
                time.sleep(20)
            except KeyboardInterrupt:
                ended.append(time.monotonic() - begin)

    with interrupts_after_finalisers():
        threading.Timer(0.01, signal.pthread_kill, (thread, signal.SIGINT)).start()
        Waiting()
    assert 0.03 < ended[0] < 10


def test_other_handlers_and_threads_are_left_alone() -> None:
    seen: list[int] = []

    def own(number: int, frame: FrameType | None) -> None:
        seen.append(number)

    before = signal.signal(signal.SIGINT, own)
    try:
        with interrupts_after_finalisers():
            signal.raise_signal(signal.SIGINT)
        assert seen == [signal.SIGINT] and signal.getsignal(signal.SIGINT) is own
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with interrupts_after_finalisers():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)

    def elsewhere() -> None:
        with interrupts_after_finalisers():
            seen.append(-1)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen[-1] == -1
