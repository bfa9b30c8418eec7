"""Rings: pointers of every kind against a model, padding, room, and the order of stores."""

from __future__ import annotations

import random
from array import array
from collections import deque

import pytest

from tg_hcq import MMIO, DeviceTimeout, Ring, System
from tg_runtime import DeviceError


def ring(words: int, **options: int | bool | None) -> Ring:
    memory = System().allocate(4 * words + 256)
    read, write, bell = (memory.view(4 * words // 64 * 64 + at, 8, "Q") for at in (64, 128, 192))
    return Ring("test", memory.view(0, 4 * words, "I"), read, write, bell, System(), **options)  # type: ignore[arg-type]


class Processor:
    """Reads a ring as hardware does: entry by entry, from the read pointer to what the write pointer says."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring

    def take(self, entries: int) -> list[int]:
        ring, taken = self.ring, []
        size = ring.entries
        for _ in range(entries):
            at = ring.read[0] // ring.scale % size
            taken += ring.words.read(at * ring.entry_words, ring.entry_words)
            following = ring.read[0] + ring.scale
            ring.read[0] = following % (size * ring.scale) if ring.read_wraps else following
        return taken


KINDS = [
    {},
    {"scale": 4},
    {"entry_words": 2, "wraps": True},
    {"entry_words": 16},
    {"filler": 0x80000000, "scale": 4},
    {"filler": 7, "wraps": True},
    {"read_wraps": True},
    {"read_wraps": True, "filler": 0xFFFF1000},
    {"entry_words": 2, "token": 0x1234},
]


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("entries", [3, 16, 37])
def test_words_arrive_in_order_and_whole(options: dict[str, int], entries: int) -> None:
    rng = random.Random(entries)
    unit = options.get("entry_words", 1)
    one = ring(entries * unit, **options)
    filler = options.get("filler")
    processor, expected = Processor(one), deque[int]()
    most = entries - (1 if one.read_wraps else 0)
    assert one.room() == most and one.used() == 0
    for _ in range(400):
        count, left = rng.randint(1, most), entries - one.place() // unit
        padding = [filler] * left if filler is not None and count > left else []
        if len(padding) + count > most:
            continue  # the processor would have to read the filler meanwhile
        while one.room() < len(padding) + count:
            for word in processor.take(1):
                assert word == expected.popleft()
        words = array("I", (rng.getrandbits(32) for _ in range(count * unit)))
        one.submit(words, timeout_ms=0)
        expected.extend([*padding, *words])
        assert one.doorbell[0] == options.get("token", one.write[0])
        assert [word for _, word in one.tail(len(words))] == list(words)
    while one.used():
        taken = processor.take(1)
        assert [expected.popleft() for _ in taken] == taken
    assert not expected


def test_a_submission_is_not_cut_where_the_end_is_filled() -> None:
    padded = ring(8, filler=0xFFFF1000)
    padded.submit(array("I", [1, 2, 3, 4, 5]), 0)
    Processor(padded).take(5)
    padded.submit(array("I", [6, 7, 8, 9]), 0)
    assert padded.words.read(0, 8) == [6, 7, 8, 9, 5, 0xFFFF1000, 0xFFFF1000, 0xFFFF1000]
    assert padded.write[0] == padded.doorbell[0] == 12 and padded.used() == 7


def test_a_full_ring() -> None:
    one = ring(8)
    one.submit(array("I", range(8)), 0)
    with pytest.raises(DeviceTimeout, match="test: the ring of 8 words has been full for 20 ms"):
        one.submit(array("I", [1]), 20)
    assert one.write[0] == 8 and one.room() == 0

    def stopped() -> None:
        raise DeviceError("stopped")

    asked = Ring("test", one.words, one.read, one.write, one.doorbell, System(), check=stopped)
    with pytest.raises(DeviceError, match="stopped"):
        asked.submit(array("I", [1]), 1000)
    one.restart()
    one.submit(array("I", range(8)), 0)
    assert one.tail(100) == [(i, i) for i in range(8)]


def test_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="9 words do not fit in a ring of 8"):
        ring(8).submit(array("I", range(9)), 0)
    with pytest.raises(ValueError, match="8 words do not fit"):
        ring(8, wraps=True).submit(array("I", range(8)), 0)
    with pytest.raises(ValueError, match="3 words are not whole entries of 2"):
        ring(8, entry_words=2).submit(array("I", range(3)), 0)
    with pytest.raises(ValueError, match="whole entries of 3"):
        ring(8, entry_words=3)
    one = ring(8)
    with pytest.raises(ValueError, match="whole entries"):
        Ring("bytes", MMIO.of(bytearray(8)), one.read, one.write, one.doorbell, System())


class Watched(System):
    """Notes what is stored at each fence."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, int]] = []
        self.ring: Ring | None = None

    def store_fence(self) -> None:
        assert self.ring is not None
        self.seen.append((self.ring.words[0], self.ring.write[0], self.ring.doorbell[0]))


def test_words_then_pointer_then_doorbell() -> None:
    system, plain = Watched(), ring(8)
    system.ring = Ring("test", plain.words, plain.read, plain.write, plain.doorbell, system)
    system.ring.submit(array("I", [42]), 0)
    assert system.seen == [(42, 0, 0), (42, 1, 0)] and plain.doorbell[0] == 1


def test_what_the_host_stored_is_flushed_before_words_are_put_in() -> None:
    order: list[str] = []

    class Noting(System):
        def store_fence(self) -> None:
            order.append(f"register {register[0]}, ring {one.words[0]:#x}, pointer {one.write[0]}")

    register = System().allocate(4).view(0, 4, "I")
    one = ring(16)
    one._system = Noting()
    one.submit(array("I", [0xA]), 10)
    assert order == ["register 0, ring 0xa, pointer 0", "register 0, ring 0xa, pointer 1"], "nothing is to be flushed"
    order.clear()
    register[0], one.flush[0] = 9, register.address
    one.submit(array("I", [0xB]), 10)
    assert one.words[1] == 0xB and order[:2] == [
        "register 9, ring 0xa, pointer 1", "register 0, ring 0xa, pointer 1",
    ]  # fmt: skip
