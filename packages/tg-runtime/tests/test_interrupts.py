"""Signals that wait for the end of a block."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Storage
from tg_runtime import Buffer, DeviceError, realize
from tg_runtime.interrupts import Uninterrupted


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
