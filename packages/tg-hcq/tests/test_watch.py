"""Watching a word: natively and in Python, the same answers; and what watching costs."""

from __future__ import annotations

import random
import resource
import threading
import time
from collections.abc import Callable

import pytest

from tg_hcq import MMIO, HCQSignal
from tg_hcq.core import watch as watch_module
from tg_hcq.core.watch import SPIN_NS, Until, nap_ns, native_watch, watch, watch_in_python
from tg_hcq.hostq import HostQueue, HostQueueDevice
from tg_hcq.hostq.device import QueueKind

KINDS: tuple[QueueKind, ...] = ("compute", "copy")


def view(fmt: str) -> MMIO:
    return MMIO.of(bytearray(16), fmt)  # type: ignore[arg-type]


@pytest.fixture(params=["native", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both watchers in turn."""
    if request.param == "python":
        monkeypatch.setattr(watch_module, "native_watch", lambda: None)
    elif native_watch() is None:
        pytest.skip("there is no LLVM to compile the native watcher with")
    return str(request.param)


def test_conditions(engine: str) -> None:
    rng, stop = random.Random(5), view("Q")
    stop[0] = 1  # whoever would wait returns
    for _ in range(500):
        fmt = rng.choice("IQ")
        bits = 32 if fmt == "I" else 64
        word, mask = view(fmt), rng.getrandbits(bits) | rng.choice((0, 2**bits - 1))
        word[0] = rng.choice((0, 1, 2**bits - 1, 2 ** (bits - 1), rng.getrandbits(bits)))
        value = rng.choice((word[0] & mask, rng.getrandbits(bits), 0, 2**bits - 1))
        seen = word[0] & mask
        for until, expected in (
            (Until.DIFFERENT, seen != value), (Until.AT_LEAST, seen >= value), (Until.EQUAL, seen == value),
        ):  # fmt: skip
            assert watch(word, until, value, stop, mask=mask) is expected


def test_it_ends_by_a_store_a_stop_or_the_clock(engine: str) -> None:
    word, stop = view("Q"), view("Q")
    begin = time.monotonic()
    assert not watch(word, Until.DIFFERENT, 0, stop, most_ns=20_000_000)
    assert 0.02 <= time.monotonic() - begin < 5

    def later(act: Callable[[], None]) -> None:
        threading.Timer(0.02, act).start()

    later(lambda: word.write(0, (7).to_bytes(8, "little")))
    assert watch(word, Until.AT_LEAST, 7, stop) and word[0] == 7
    later(lambda: stop.write(0, b"\1" + bytes(7)))
    assert not watch(word, Until.AT_LEAST, 8, stop)


def test_the_interpreter_runs_on_meanwhile(engine: str) -> None:
    word, stop, counted = view("Q"), view("Q"), 0
    watcher = threading.Thread(target=watch, args=(word, Until.DIFFERENT, 0, stop), daemon=True)
    watcher.start()
    until = time.monotonic() + 0.02
    while time.monotonic() < until:
        counted += 1
    word[0] = 1
    watcher.join(10)
    assert counted > 100 and not watcher.is_alive()


def test_an_idle_queue_costs_little(device: HostQueueDevice) -> None:
    """Both threads of a device, watching their doorbells."""
    for kind in KINDS:
        HostQueue(kind).signal(device.new_signal(), 1).submit(device)
    time.sleep(0.1)

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    time.sleep(0.5)
    assert spent() - before < 0.2  # two spinning threads take 1.0


def test_nobody_is_called(device: HostQueueDevice) -> None:
    """Words and a doorbell that are stored by hand are executed, and so is a wait for a word that is."""
    ring, gate, done = device.ring("compute"), device.new_signal(), device.new_signal()
    queue = HostQueue().wait(gate, 3).signal(done, 9)
    ring.words.write(0, queue._words)
    ring.doorbell[0] = len(queue)
    time.sleep(0.01)
    assert done.value == 0
    gate.slot.host_view("Q")[0] = 3
    done.wait(9)
    until = time.monotonic() + 5
    while ring.read[0] != len(queue) and time.monotonic() < until:
        time.sleep(0.001)
    assert ring.read[0] == len(queue) and isinstance(done, HCQSignal)


def test_naps_grow_with_the_wait() -> None:
    ms = 1_000_000
    assert [nap_ns(ns) for ns in (0, SPIN_NS - 1, SPIN_NS, 4 * ms, 8 * ms, 500 * ms)] == [
        0, 0, SPIN_NS // 8, ms // 2, ms, ms
    ]  # fmt: skip
    assert [nap_ns(s * 1000 * ms) for s in (1, 3, 1000)] == [1000 * ms // 512, 5 * ms, 5 * ms]


def test_python_is_the_reference() -> None:
    word, stop = view("I"), view("Q")
    word[0] = 5
    assert watch_in_python(word, Until.EQUAL, 5, stop, 2**32 - 1, 0)
    assert not watch_in_python(word, Until.EQUAL, 6, stop, 2**32 - 1, 0)
