"""Submissions that were written by hand, word by word, which the software cards must accept and execute.

The words are from nvd.h, sdma_v6_0_0_pkt_open.h, gc_11_0_0_offset.h and *RDNA3 Instruction Set Architecture*; no table
of the driver's or of the card's makes them. They are the same on gfx1030 and gfx1201 (navi10_sdma_pkt_open.h,
gc_10_3_0_offset.h, gc_12_0_0_offset.h), whose programs have other words (*RDNA 2* and *RDNA4 Instruction Set
Architecture*). The driver's own are in ``tests/test_amd_packets.py``; AQL is in ``test_amd_aql.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tg_hcq.simulate.amd.kfd import KfdSystem
from tg_hcq.simulate.amd.testing.client import (
    COHERENT,
    COMPUTE,
    EXECUTABLE,
    GTT,
    PUBLIC,
    SDMA,
    VRAM,
    WRITABLE,
    Client,
    until,
)

DATA, CODE = 0x7E00_0000_1000, 0x7E00_0010_0000
DONE = 0x3F8 // 4
WRITE_42 = [0xC0033700, 0x00100500, 0x00001000, 0x00007E00, 42]
STORE_42 = {  # v[2:3] = DATA, v4 = 42, global_store_b32 v[2:3], v4, off, s_endpgm
    "gfx1030": [0x7E0402FF, 0x00001000, 0x7E0602FF, 0x00007E00, 0x7E0802AA, 0xDC708000, 0x007D0402, 0xBF810000],
    "gfx1100": [0x7E0402FF, 0x00001000, 0x7E0602FF, 0x00007E00, 0x7E0802AA, 0xDC6A0000, 0x007C0402, 0xBFB00000],
    "gfx1201": [0x7E0402FF, 0x00001000, 0x7E0602FF, 0x00007E00, 0x7E0802AA, 0xEE06807C, 0x02000000, 0x00000002,
                0xBFB00000],
}  # fmt: skip


@dataclass(frozen=True)
class Golden:
    """A submission.

    Attributes:
      words: it.
      after: what words of memory hold then, by their index; -1 for what is not known and not 0.
      before: what they hold at first.
      kind: of the queue.
    """

    words: list[int]
    after: dict[int, int]
    before: dict[int, int] = field(default_factory=dict)
    kind: int = COMPUTE


GOLDEN = {
    # 4 words behind the first but one; memory, confirmed
    "WRITE_DATA": Golden([0xC0043700, 0x00100500, 0x00001000, 0x00007E00, 0x11, 0x22], {0: 0x11, 1: 0x22}),
    # event 0x14 with index 5, GLM and GL2 are written back, sequence, bypass; 64 bits
    "RELEASE_MEM of a number": Golden(
        [0xC0064900, 0x06603514, 0x40000000, 0x00001008, 0x00007E00, 7, 9, 0], {2: 7, 3: 9}
    ),
    "RELEASE_MEM of the clock": Golden(
        [0xC0064900, 0x06603514, 0x60000000, 0x00001008, 0x00007E00, 0, 0, 0], {2: -1}
    ),
    # memory, equal under a mask
    "WAIT_REG_MEM": Golden(
        [0xC0053C00, 0x00000013, 0x00001010, 0x00007E00, 0x34, 0xFF, 4, *WRITE_42], {0: 42}, {4: 0x1234}
    ),
    # CS_PARTIAL_FLUSH, then everything with each cache's bit
    "EVENT_WRITE and ACQUIRE_MEM": Golden(
        [0xC0004600, 0x00000407, 0xC0065800, 0, 0xFFFFFFFF, 0x00FFFFFF, 0, 0, 0x0A, 0xC3B1, *WRITE_42], {0: 42}
    ),
    # from the packet, 32 bits; memory, confirmed
    "COPY_DATA of a number": Golden([0xC0044000, 0x00100505, 0xABCD, 0, 0x00001000, 0x00007E00], {0: 0xABCD}),
    # from memory, 64 bits
    "COPY_DATA of memory": Golden(
        [0xC0044000, 0x00110501, 0x00001010, 0x00007E00, 0x00001000, 0x00007E00], {0: 5, 1: 6}, {4: 5, 5: 6}
    ),
    # both through L2, waited for; 8 bytes
    "DMA_DATA": Golden(
        [0xC0055000, 0xE0300000, 0x00001010, 0x00007E00, 0x00001000, 0x00007E00, 8], {0: 5, 1: 6, 2: 0}, {4: 5, 5: 6}
    ),
    # valid, 5 words at index 64
    "INDIRECT_BUFFER": Golden(
        [0xC0023F00, 0x00001100, 0x00007E00, 0x00800005], {0: 42}, {64 + i: word for i, word in enumerate(WRITE_42)}
    ),
    # type 2; one word long by its count of 0x3FFF; with two words behind it
    "NOPs": Golden([0x80000000, 0xFFFF1000, 0xC0011000, 0xDEADBEEF, 0xDEADBEEF, *WRITE_42], {0: 42}),
    # NUM_THREAD_X to Z, PGM_LO and HI, RSRC1 and 2, and one workgroup of a wave of 32 lanes
    "a dispatch": Golden(
        [0xC0037600, 0x207, 32, 1, 1, 0xC0027600, 0x20C, 0x00001000, 0x7E, 0xC0027600, 0x212, 0x000F0000, 0,
         0xC0031500, 1, 1, 1, 0x00008005], {0: 42},
    ),
    # two words; 8 bytes
    "WRITE_UNTILED and COPY_LINEAR": Golden(
        [0x00000002, 0x00001000, 0x00007E00, 1, 0x11, 0x22,
         0x00000001, 7, 0, 0x00001000, 0x00007E00, 0x00001010, 0x00007E00], {4: 0x11, 5: 0x22}, kind=SDMA,
    ),
    # 8 bytes of words
    "CONSTANT_FILL": Golden(
        [0x8000000B, 0x00001000, 0x00007E00, 0xDEADBEEF, 7], {0: 0xDEADBEEF, 1: 0xDEADBEEF, 2: 0}, kind=SDMA
    ),
    # memory, equal, for ever; then the clock
    "POLL_REGMEM and TIMESTAMP": Golden(
        [0xB0000008, 0x00001010, 0x00007E00, 0x34, 0xFF, 0x0FFF0004, 0x0000020D, 0x00001008, 0x00007E00], {2: -1},
        {4: 0x1234}, kind=SDMA,
    ),
}  # fmt: skip
END = {
    COMPUTE: [0xC0064900, 0x06603514, 0x20000000, 0x000013F8, 0x00007E00, 1, 0, 0],
    SDMA: [0x00000005, 0x000013F8, 0x00007E00, 1],
}


@pytest.fixture(scope="module", params=list(STORE_42))
def card(request: pytest.FixtureRequest) -> Iterator[tuple[str, Client]]:
    """A card's architecture and a client of it."""
    machine = KfdSystem(request.param)
    yield request.param, Client(machine)
    machine.close()


@pytest.mark.parametrize("name", GOLDEN)
def test_the_card_executes_what_was_written_by_hand(card: tuple[str, Client], name: str) -> None:
    (arch, client), golden = card, GOLDEN[name]
    if name == "a dispatch":
        pytest.importorskip("llvmlite", reason="LLVM compiles what executes instructions")
    memory = client.alloc(GTT | WRITABLE | COHERENT, address=DATA).map()
    code = client.alloc(VRAM | WRITABLE | EXECUTABLE | PUBLIC, address=CODE).map()
    words = memory.view()
    for index, word in golden.before.items():
        words[index] = word
    for index, word in enumerate(STORE_42[arch]):
        code.view()[index] = word
    queue = client.queue(golden.kind).submit(*golden.words, *END[golden.kind])
    until(lambda: words[DONE] == 1 or bool(client.machine.log))
    assert client.machine.log == []
    for index, word in golden.after.items():
        assert words[index] == word or (word < 0 and words[index] != 0), f"word {index} is {words[index]:#x}"
    queue.destroy()
    for buffer in (memory, code):
        buffer.unmap()
        buffer.free()
