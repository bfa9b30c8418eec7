"""Queues of AQL packets: what is in them, word by word, and that dies which meet do not miss one another.

The dies here are a model: each executes the packets by itself, a step at a time, in an order that a seed draws.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest

from tg_hcq import MMIO, HCQBuffer, Ring, System
from tg_hcq.amd.architecture import NAMES
from tg_hcq.amd.queues.aql import MEETINGS, AQLQueue, Dies, entry_text
from tg_hcq.amd.queues.compute import ComputeQueue
from tg_hcq.amd.queues.pool import QueuePool
from tg_hcq.core.signal import HCQSignal
from tg_runtime import BufferOptions, DeviceError
from tg_shape import Variable

HOST = BufferOptions(host=True)
DIES = 8
PRED_EXEC, WRITE_DATA, WAIT, INDIRECT, RELEASE, ACQUIRE = 0x23, 0x37, 0x3C, 0x3F, 0x49, 0x58


class Bench:
    """A device that executes nothing: what is submitted stays in its ring."""

    def __init__(self, entries: int = 64) -> None:
        self.device, self.generation, self.timeout_ms, self.system = "AMD", 0, 100, System()
        self.ticks_per_us = 100.0
        memory = self.system.allocate(64 * entries + 256)
        read, write, bell = (memory.view(64 * entries + at, 8, "Q") for at in (0, 64, 128))
        words = memory.view(0, 64 * entries, "I")
        self.ring = Ring(
            "AMD compute queue", words, read, write, bell, self.system, entry_words=16, invalid=1, behind=1
        )
        self.pool = QueuePool(self.alloc)
        self.queue_memory = self.pool
        self.taken = 0
        self.error_state: DeviceError | None = None

    def alloc(self, nbytes: int, options: BufferOptions = HOST) -> HCQBuffer:
        self.taken += 1
        view = self.system.allocate(nbytes)
        return HCQBuffer(view.address, nbytes, view, mappings={"AMD"})

    def new_signal(self, value: int = 0) -> HCQSignal:
        return HCQSignal(self.alloc(16), self, value)

    def release_signal(self, slot: HCQBuffer) -> None:
        pass

    def hardware_ring(self, kind: str) -> Ring:
        return self.ring

    def raise_error_state(self) -> None:
        pass

    def sleep(self, waited_ms: float) -> None:
        pass

    def packets(self) -> list[list[int]]:
        """What the ring holds, and has been told of."""
        count = self.ring.write[0]
        return [self.ring.words.read(16 * n, 16) for n in range(count)]


def queue(bench: Bench, dies: Dies) -> AQLQueue:
    return AQLQueue(NAMES["gfx942"], dies)


def submit(one: AQLQueue, bench: Bench, **values: int) -> None:
    one.submit(bench, {Variable(name, 0, 1 << 20): value for name, value in values.items()})


def pm4(packet: list[int]) -> list[int]:
    """The words that a vendor packet refers to."""
    assert packet[0] == 0x0001_0100, "a vendor packet with PM4, after all before it; its fences are in the PM4"
    assert packet[1] == 3 << 30 | 2 << 16 | INDIRECT << 8 and packet[4] >> 20 == 8 and packet[5] == 10
    return MMIO(packet[2] | packet[3] << 32, 4 * (packet[4] & 0xFFFFF), "I").read(0, packet[4] & 0xFFFFF)


def commands(words: list[int]) -> Iterator[tuple[int, list[int]]]:
    at = 0
    while at < len(words):
        count = (words[at] >> 16 & 0x3FFF) + 2
        yield words[at] >> 8 & 0xFF, words[at + 1 : at + count]
        at += count


@pytest.mark.parametrize("number", [1, DIES])
def test_a_launch_between_pm4(number: int) -> None:
    bench = Bench()
    dies = Dies.of(number, bench.alloc, HOST)
    one, groups = queue(bench, dies), Variable("groups", 0, 1 << 20)
    done = bench.new_signal()
    one.wait(done, 3).memory_barrier()
    one.launch(0x7F0000001000, 0x7F0000002040, (groups, 5, 1), (64, 4, 1), private=24, group=1000)
    one.launch(0x7F0000001040, groups * 64 + 0x1000, (1, 1, 1), (256, 1, 1), private=0, group=0)
    one.signal(done, 4)
    submit(one, bench, groups=7)
    before, first, second, after = bench.packets()
    assert bench.ring.doorbell[0] == 3, "the doorbell tells the last packet"
    assert {opcode for opcode, _ in commands(pm4(before))} >= {WAIT, ACQUIRE}
    assert RELEASE in {opcode for opcode, _ in commands(pm4(after))}
    assert first == [
        3 << 16 | 0x0102, 4 << 16 | 64, 1, 7 * 64, 5 * 4, 1, 24, 1000, 0x00001000, 0x7F00, 0x00002040, 0x7F00,
        0, 0, 0, 0,
    ]  # fmt: skip
    assert second[0] == 3 << 16 | 2, "a launch behind another one does not wait for it"
    assert second[2:6] == [1, 256, 1, 1] and second[10:12] == [0x1000 + 7 * 64, 0]
    assert entry_text(first) == (16, "KERNEL_DISPATCH 0x7f0000001000 of 448 x 20 x 1 in groups of 64 x 4 x 1")
    assert entry_text(after)[1].startswith("PM4 at 0x")
    assert bench.ring.words[16 * 4] == 1, "what is behind is no packet"


def test_a_launch_of_too_many_work_items() -> None:
    bench = Bench()
    one = queue(bench, Dies.of(1, bench.alloc, HOST))
    with pytest.raises(ValueError, match="grid_size_x: 4294967296 does not fit in 32 bits"):
        one.launch(0, 0, (1 << 22, 1, 1), (1024, 1, 1), private=0, group=0)
    with pytest.raises(ValueError, match="grid_size_y: .* may be more than 4294967295"):
        one.launch(0, 0, (1, Variable("y", 0, 1 << 30), 1), (1, 8, 1), private=0, group=0)


def test_memory_of_queues_is_used_again() -> None:
    bench = Bench(256)
    dies, host = Dies.of(1, bench.alloc, HOST), bench.alloc(64)
    for number in range(20):
        one = queue(bench, dies).write(host.address, [number])
        submit(one, bench)
        assert one._fence is not None
        one._fence.value = one._serial.value  # as the card would
        del one
    assert bench.taken < 26, "a fence for each, and a piece of memory or two"


class Die:
    """One of the dies: executes PM4 by itself, a command at a time, and knows only what is in memory."""

    def __init__(self, number: int, rng: random.Random) -> None:
        self.number, self._rng = number, rng
        self.todo: list[tuple[int, list[int]]] = []
        self.flushed = 0
        self._skip = 0

    def take(self, words: list[int]) -> None:
        self.todo += commands(words)

    def step(self, log: list[tuple[int, int, int]]) -> bool:
        """Executes a command, unless it must wait."""
        opcode, body = self.todo[0]
        if self._skip:
            self._skip -= len(body) + 1
        elif opcode == PRED_EXEC:
            if not body[0] >> 24 >> self.number & 1:
                self._skip = body[0] & 0x3FFF
        elif opcode == WAIT:
            value = MMIO(body[1] | body[2] << 32, 4, "I")[0] & body[4]
            function = body[0] & 7
            if not (value >= body[3] if function == 5 else value == body[3]):
                return False
        elif opcode == RELEASE:
            self.flushed += 1
            address = body[2] | body[3] << 32
            log.append((self.number, address, body[4]))
            MMIO(address, 8, "Q")[0] = body[4] | body[5] << 32
        elif opcode == WRITE_DATA:
            address = body[1] | body[2] << 32
            for index, word in enumerate(body[3:]):
                log.append((self.number, address + 4 * index, word))
                MMIO(address + 4 * index, 4, "I")[0] = word
        else:
            assert opcode == ACQUIRE, f"{opcode:#x}"
            log.append((self.number, 0, 0))
        del self.todo[0]
        assert self._skip >= 0
        return True


def run(bench: Bench, rng: random.Random) -> list[tuple[int, int, int]]:
    """Has all dies execute the PM4 of the ring in a random interleaving; who stored what."""
    dies, log = [Die(number, rng) for number in range(DIES)], list[tuple[int, int, int]]()
    for packet in bench.packets():
        for die in dies:
            die.take(pm4(packet))
    slow = rng.randrange(DIES)
    while busy := [die for die in dies if die.todo]:
        rng.shuffle(busy)
        busy.sort(key=lambda die: die.number == slow and rng.random() < 0.9)
        assert any(die.step(log) for die in busy), "all dies wait"
    return log


@pytest.mark.parametrize("seed", range(20))
def test_dies_meet(seed: int) -> None:
    """A signal is set once, after every die has written back its caches, and nobody goes on before from a barrier."""
    rng, bench = random.Random(seed), Bench()
    dies, host, done = Dies.of(DIES, bench.alloc, HOST), bench.alloc(64), bench.new_signal()
    kept = []
    for number in range(1, 6):
        one = queue(bench, dies)
        for _ in range(rng.randrange(3)):
            one.memory_barrier()
        one.write(host.address, [number, number]).signal(done, number)
        submit(one, bench)
        kept.append(one)
    log = run(bench, rng)
    assert done.value == 5 and host.host_view("I").read(0, 2) == [5, 5]
    assert isinstance(done.address, int) and isinstance(host.address, int) and dies.memory is not None
    assert isinstance(dies.memory.address, int)
    lines = range(dies.memory.address, dies.memory.address + 64 * DIES)
    arrived = [0] * DIES
    for die, address, value in log:
        if address in lines:
            assert (address - lines.start) // 64 == die and value > arrived[die]
            arrived[die] = value
        elif address == 0:
            assert min(arrived) >= arrived[die], f"die {die} forgets what it holds after meetings {arrived}"
        else:
            assert die == 0, "what happens once is the first die's"
        if address == done.address:
            assert min(arrived) >= arrived[0] > 0, f"set to {value} after meetings {arrived}"
    assert dies.meetings.value == max(arrived)


def no_meetings(patch: pytest.MonkeyPatch, name: str) -> None:
    patch.setattr(AQLQueue, name, lambda self: MEETINGS)


def everybody(patch: pytest.MonkeyPatch) -> None:
    """What one die does, all of them do."""
    patch.setattr(AQLQueue, "_only", lambda self, mask: nullcontext())


def no_wait(patch: pytest.MonkeyPatch, function: str) -> None:
    """What a function waits for is not waited for."""
    wait, inside = AQLQueue._wait_memory, getattr(AQLQueue, function)

    def without(queue: AQLQueue) -> object:
        with pytest.MonkeyPatch.context() as now:
            now.setattr(AQLQueue, "_wait_memory", lambda *args: None)
            if function == "_together":  # that before the first die goes on is kept
                now.setattr(AQLQueue, "_meet", lambda queue: _meeting(queue, wait))
            return inside(queue)

    patch.setattr(AQLQueue, function, without)


def _meeting(queue: AQLQueue, wait: Callable[..., None]) -> object:
    with pytest.MonkeyPatch.context() as now:
        now.setattr(AQLQueue, "_wait_memory", wait)
        return _MEET(queue)


def no_go(patch: pytest.MonkeyPatch) -> None:
    """The first die tells nobody that a meeting is over."""
    patch.setattr(ComputeQueue, "write", lambda self, dest, words: self)


_MEET = AQLQueue._meet
BROKEN: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a meeting": lambda patch: no_meetings(patch, "_meet"),
    "the meeting of a barrier": lambda patch: no_meetings(patch, "_together"),
    "PRED_EXEC": everybody,
    "the first die's WAIT_REG_MEM": lambda patch: no_wait(patch, "_meet"),
    "the others' WAIT_REG_MEM": lambda patch: no_wait(patch, "_together"),
    "WRITE_DATA that ends a meeting": no_go,
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_deleted_from_a_meeting_is_seen(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BROKEN[broken](monkeypatch)
    with pytest.raises(AssertionError):
        for seed in range(20):
            test_dies_meet(seed)


def test_the_words_of_a_signal_are_those_of_gfx9() -> None:
    bench = Bench()
    done = bench.new_signal()
    one = queue(bench, Dies.of(1, bench.alloc, HOST)).memory_barrier().signal(done, 9)
    words = list(commands(list(one._words)))
    assert words[0] == (ACQUIRE, [0x28C40000, 0xFFFFFFFF, 0xFFFFFF, 0, 0, 10])
    assert isinstance(done.address, int)
    low, high = done.address & 0xFFFFFFFF, done.address >> 32
    assert words[1] == (RELEASE, [0x00228514, 2 << 29, low, high, 9, 0, 0])
    assert array("I", one._words)[0] == 3 << 30 | 5 << 16 | ACQUIRE << 8
