"""Signals that wait for the end of a block."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Storage
from tg_runtime import Buffer, DeviceError, realize
from tg_runtime.host import interrupts
from tg_runtime.host.interrupts import Uninterrupted


class Told(Exception):
    """What the handlers of these tests raise."""


@pytest.fixture
def handlers() -> Iterator[list[int]]:
    """Handlers of SIGTERM and SIGALRM that raise, and one of SIGUSR1 that only notes."""
    noted: list[int] = []

    def raises(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        raise Told(number)

    before = {n: signal.signal(n, raises) for n in (signal.SIGTERM, signal.SIGALRM)}
    before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, lambda number, frame: noted.append(number))
    yield noted
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGALRM])
def test_any_handler_waits(handlers: list[int], number: signal.Signals) -> None:
    handler, done = signal.getsignal(number), []
    with pytest.raises(Told):
        with Uninterrupted():
            os.kill(os.getpid(), number)
            with Uninterrupted():
                sum(range(1000))
            done.append(list(handlers))
    assert done == [[]]
    assert handlers == [number]
    assert signal.getsignal(number) is handler


def test_every_signal_is_delivered_though_one_raises(handlers: list[int]) -> None:
    with pytest.raises(Told):
        with Uninterrupted():
            for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM):
                os.kill(os.getpid(), number)
    assert handlers == [signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM]


def interrupted(at: int, numbers: list[signal.Signals]) -> bool:
    """Runs an uninterrupted block; signals come at once, all of them, when it begins its ``at``-th call of a function
    of its module: Python handles signals there. Whether it made so many calls."""
    calls = 0

    def on_call(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        if event == "call" and frame.f_code.co_filename == interrupts.__file__:
            calls += 1
            if calls == at:
                signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
                for number in numbers:
                    signal.raise_signal(number)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)  # calls the handlers, up to one that raises

    block = Uninterrupted()
    sys.settrace(on_call)
    try:
        with block:
            pass
    finally:
        sys.settrace(None)
    return calls >= at


@pytest.mark.parametrize("numbers", [[signal.SIGALRM], [signal.SIGALRM, signal.SIGTERM]], ids=["one", "two"])
def test_handlers_are_back_wherever_a_signal_comes(handlers: list[int], numbers: list[signal.Signals]) -> None:
    usual = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1)}
    at, calls = 0, True
    while calls:
        at += 1
        handlers.clear()
        try:
            calls = interrupted(at, numbers)
        except Told:
            with contextlib.suppress(Told):
                signal.pthread_sigmask(signal.SIG_BLOCK, ())  # one that still waits has its handler called here
        assert {number: signal.getsignal(number) for number in usual} == usual, f"call {at}"
        if calls:
            assert sorted(handlers) == sorted(numbers), f"call {at}"
        with Uninterrupted():  # the next block is none inside of a block that has ended
            pass
        assert signal.getsignal(signal.SIGALRM) is usual[signal.SIGALRM], f"call {at}"
    assert at > 10


def action(number: int) -> bytes:
    """What the system does with a signal: handler, mask and flags."""
    found, mask = ctypes.create_string_buffer(256), ctypes.sizeof(ctypes.c_void_p)
    assert ctypes.CDLL(None).sigaction(number, None, found) == 0
    return found.raw[: mask + 8] + found.raw[mask + 128 : mask + 132]


def test_system_calls_that_go_on_after_a_signal_still_do(handlers: list[int]) -> None:
    """asyncio's handlers of signals are such."""
    signal.siginterrupt(signal.SIGUSR1, False)
    wanted, others = action(signal.SIGUSR1), action(signal.SIGTERM)
    assert wanted != others
    for _ in range(2):
        with Uninterrupted():
            assert action(signal.SIGUSR1) == wanted
            os.kill(os.getpid(), signal.SIGUSR1)
            assert not handlers
        assert handlers.pop() == signal.SIGUSR1
        assert (action(signal.SIGUSR1), action(signal.SIGTERM)) == (wanted, others)
    signal.siginterrupt(signal.SIGUSR1, True)
    with Uninterrupted():
        pass
    assert action(signal.SIGUSR1) == others != wanted


def test_a_handler_in_front_of_pythons_stays(handlers: list[int], tmp_path: Path) -> None:
    with (tmp_path / "trace").open("w") as file:
        faulthandler.register(signal.SIGUSR1, file, all_threads=False, chain=True)
        try:
            with Uninterrupted():
                os.kill(os.getpid(), signal.SIGUSR1)
                assert not handlers
            os.kill(os.getpid(), signal.SIGUSR1)
        finally:
            faulthandler.unregister(signal.SIGUSR1)
    assert (tmp_path / "trace").read_text().count("most recent call first") == 2
    assert handlers == [signal.SIGUSR1] * 2


def test_a_handler_in_front_that_goes_away_inside_stays_away(handlers: list[int], tmp_path: Path) -> None:
    with (tmp_path / "trace").open("w") as file:
        faulthandler.register(signal.SIGUSR1, file, all_threads=False, chain=True)
        with Uninterrupted():
            faulthandler.unregister(signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGUSR1)
    assert (tmp_path / "trace").read_text() == ""
    assert handlers == [signal.SIGUSR1]


def test_who_is_woken_by_a_signal_is_woken_once(handlers: list[int]) -> None:
    """asyncio calls a handler for each byte that arrives."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    before = signal.set_wakeup_fd(ends[1])
    try:
        with Uninterrupted():
            os.kill(os.getpid(), signal.SIGUSR1)
        assert handlers == [signal.SIGUSR1] == list(os.read(ends[0], 9))
    finally:
        signal.set_wakeup_fd(before)
        for end in ends:
            os.close(end)


def test_a_handler_that_is_given_inside_stays(handlers: list[int]) -> None:
    signal.siginterrupt(signal.SIGUSR1, False)
    with Uninterrupted():
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN


def test_what_puts_handlers_off_is_made_once_for_them(handlers: list[int]) -> None:
    def inside() -> object:
        with Uninterrupted():
            return signal.getsignal(signal.SIGUSR1)

    first = inside()
    assert inside() is first
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert inside() is not first


@dataclass
class Noting:
    """A handler that equals another one while both have noted the same."""

    noted: list[int] = field(default_factory=list)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.noted.append(number)


def test_handlers_that_are_equal_are_not_taken_for_one_another(handlers: list[int]) -> None:
    one, other = Noting(), Noting()
    for handler in (one, other):
        signal.signal(signal.SIGUSR1, handler)
        with Uninterrupted():
            pass
    with Uninterrupted():
        os.kill(os.getpid(), signal.SIGUSR1)
    assert (one.noted, other.noted) == ([], [signal.SIGUSR1])
    assert signal.getsignal(signal.SIGUSR1) is other


def test_a_second_ctrl_c_abandons_the_block() -> None:
    marked: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        with Uninterrupted(lambda: marked.append("outer")), Uninterrupted(lambda: marked.append("inner")):
            os.kill(os.getpid(), signal.SIGINT)
            marked.append("heard one")
            os.kill(os.getpid(), signal.SIGINT)
            marked.append("heard two")
    assert marked == ["heard one", "inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_ctrl_c_that_only_notes_abandons_nothing() -> None:
    noted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    try:
        with Uninterrupted(lambda: noted.append(-1)):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            assert noted == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)
    assert noted == [signal.SIGINT] * 2


def test_threads_are_not_concerned() -> None:
    handler = signal.getsignal(signal.SIGINT)
    found: list[object] = []

    def work() -> None:
        with Uninterrupted():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [handler]


@pytest.mark.parametrize("device", ["CPU", "NUMPY"])
def test_half_written_memory_says_so(device: str) -> None:
    buffer = Buffer(device, 4, dtypes.int32).copyin(memoryview(bytes(16)))
    view = buffer.view(2, dtypes.int32, 8).ensure_allocated()
    held = buffer.allocator.used
    view.spoil("a test")
    for one in (buffer, view):
        with pytest.raises(DeviceError, match="half written: a test"):
            one.tobytes()
    assert buffer.allocator.used == held - 16
    lazy = LazyBuffer.from_storage(Storage(device, 4, dtypes.int32, buffer))
    with pytest.raises(DeviceError, match="half written"):
        realize([lazy.clone()])
