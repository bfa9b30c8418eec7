"""Words of AMD's packets, against submissions written by hand from the headers: nvd.h and sdma_v6_0_0_pkt_open.h."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tg_hcq.amd.architecture import NAMES
from tg_hcq.amd.queues.compute import ComputeQueue, packet_text
from tg_hcq.amd.queues.copy import CopyQueue
from tg_hcq.core.queue import HWQueue
from tg_shape import Variable

SIGNAL = Variable("signal", 0, 2**64 - 1)
ADDRESS = 0x7F00_1234_5000

COMPUTE: dict[str, tuple[Callable[[ComputeQueue], object], list[int]]] = {
    # RELEASE_MEM: event 0x14 index 5, GLM write-back and invalidation, L2 write-back, sequence, bypass; 64 bits
    "signal": (lambda q: q._signal(ADDRESS, 7), [0xC0064900, 0x06603514, 0x40000000, 0x12345000, 0x7F00, 7, 0, 0]),
    "timestamp": (
        lambda q: q._timestamp(ADDRESS + 8),
        [0xC0064900, 0x06603514, 0x60000000, 0x12345008, 0x7F00, 0, 0, 0],
    ),
    # WAIT_REG_MEM: memory, at least
    "wait": (lambda q: q._wait(ADDRESS, 7), [0xC0053C00, 0x15, 0x12345000, 0x7F00, 7, 0xFFFFFFFF, 4]),
    "poll": (lambda q: q.poll(ADDRESS, 1, 0xFF), [0xC0053C00, 0x13, 0x12345000, 0x7F00, 1, 0xFF, 4]),
    # EVENT_WRITE of CS_PARTIAL_FLUSH, then ACQUIRE_MEM over everything with each cache's bit
    "barrier": (
        lambda q: q.memory_barrier(),
        [0xC0004600, 0x407, 0xC0065800, 0, 0xFFFFFFFF, 0xFFFFFF, 0, 0, 0x0A, 0xC3B1],
    ),
    # WRITE_DATA: memory, confirmed
    "write": (lambda q: q.write(ADDRESS, [1, 2]), [0xC0043700, 0x00100500, 0x12345000, 0x7F00, 1, 2]),
    # DMA_DATA: both through L2, waited for
    "copy": (
        lambda q: q.copy(ADDRESS, 0x1000, 64),
        [0xC0055000, 0xE0300000, 0x1000, 0, 0x12345000, 0x7F00, 64],
    ),
    # INDIRECT_BUFFER: valid, 100 words
    "jump": (lambda q: q.put(*q._jump(ADDRESS, 100)), [0xC0023F00, 0x12345000, 0x7F00, 0x800064]),
}  # fmt: skip

COPY: dict[str, tuple[Callable[[CopyQueue], object], list[int]]] = {
    "signal": (lambda q: q._signal(ADDRESS, 7), [0x00030005, 0x12345000, 0x7F00, 7]),
    "timestamp": (lambda q: q._timestamp(ADDRESS + 8), [0x0000020D, 0x12345008, 0x7F00]),
    "wait": (lambda q: q._wait(ADDRESS, 7), [0xD0000008, 0x12345000, 0x7F00, 7, 0xFFFFFFFF, 0x0FFF0004]),
    "poll": (lambda q: q.poll(ADDRESS, 1, 0xFF), [0xB0000008, 0x12345000, 0x7F00, 1, 0xFF, 0x0FFF0004]),
    "barrier": (lambda q: q.memory_barrier(), []),
    "write": (lambda q: q.write(ADDRESS, [1, 2]), [0x00000002, 0x12345000, 0x7F00, 1, 1, 2]),
    "copy": (lambda q: q.copy(ADDRESS, 0x1000, 64), [0x00000001, 63, 0, 0x1000, 0, 0x12345000, 0x7F00]),
    # two NOPs, that the jump ends at a multiple of eight words
    "jump": (lambda q: q.put(*q._jump(ADDRESS, 100)), [0, 0, 0x00000004, 0x12345000, 0x7F00, 100, 0, 0]),
}


@pytest.mark.parametrize("name", COMPUTE)
@pytest.mark.parametrize("arch", ["gfx1030", "gfx1100", "gfx1201"])
def test_compute_packets(arch: str, name: str) -> None:
    append, expected = COMPUTE[name]
    queue = ComputeQueue(NAMES[arch])
    append(queue)
    assert list(queue._words) == expected
    told, at = [], 0
    while at < len(queue):
        count, text = packet_text(list(queue._words)[at:])
        told.append(text.split()[0])
        at += count
    assert at == len(queue) and all(not one.startswith(("opcode", "0x")) for one in told)


@pytest.mark.parametrize("name", COPY)
@pytest.mark.parametrize("arch", ["gfx1030", "gfx1100", "gfx1201"])
def test_copy_packets(arch: str, name: str) -> None:
    append, expected = COPY[name]
    queue = CopyQueue(NAMES[arch])
    append(queue)
    assert list(queue._words) == expected


def test_large_copies_are_cut_where_a_packet_ends() -> None:
    old, new = CopyQueue(NAMES["gfx1030"]), CopyQueue(NAMES["gfx1100"])
    most = 1 << old.architecture.sdma.COPY_LINEAR.fields["count"][2]
    for queue in (old, new):
        queue.copy(0, 1 << 40, most + 1)
    words = list(old._words)
    assert len(words) == 14 and words[1] == most - 1 and words[8] == 0
    assert words[10:] == [most, 1 << 8, most, 0]
    assert len(new) == 7 and new._words[1] == most
    compute = ComputeQueue(NAMES["gfx1100"])
    compute.copy(0, 1 << 40, (1 << 26) + 5)
    assert [compute._words[6], compute._words[13]] == [(1 << 26) - 32, 37]


@pytest.mark.parametrize("make", [ComputeQueue, CopyQueue])
def test_symbolic_copies_must_fit_a_packet(make: Callable[..., HWQueue]) -> None:
    with pytest.raises(ValueError, match="copy"):
        make(NAMES["gfx1100"]).copy(0, 1 << 40, Variable("n", 1, 1 << 40))
    queue = make(NAMES["gfx1100"])
    queue.copy(SIGNAL, 4096, Variable("n", 1, 4096))
    assert len(queue) == 7


def test_words_behind_a_submission_to_a_copy_engine_are_no_operations() -> None:
    queue = CopyQueue(NAMES["gfx1100"])
    queue.copy(0, 4096, 64)
    queue._end()
    assert list(queue._words)[7:] == [0]


def test_a_jump_has_at_most_so_many_words() -> None:
    with pytest.raises(ValueError, match="1048576 words are bound"):
        ComputeQueue(NAMES["gfx1100"])._jump(0, 1 << 20)
