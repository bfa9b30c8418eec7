"""Dispatches: what registers say becomes waves. The only instruction ends a wave; what it began with is looked at."""

from __future__ import annotations

import pytest

from tg_hcq.simulate.amd.kfd import KfdSystem
from tg_hcq.simulate.amd.testing.client import EXECUTABLE, PUBLIC, VRAM, WRITABLE, Client, packet3, release_mem, until
from tg_hcq.simulate.engine import AddressSpace, Instruction, InstructionSet, Launch, Machine, Status, Wave, engine
from tg_hcq.simulate.engine.launch import Group

SET = InstructionSet("endings", {"s": 128, "mode": 1}, vectors=3)
SET.control("s_endpgm", lambda b: b.stop(Status.ENDED))

RSRC1, RSRC2 = 0x2E12, 0x2E13
SCRATCH_BASE, TMPRING, USER_DATA = 0x2E10, 0x2E18, 0x2E40


class Looking(Machine):
    """Keeps the waves that it ran."""

    def __init__(self, lanes: int, space: AddressSpace, seen: list[tuple[int, Wave]]) -> None:
        super().__init__(engine(SET, lanes), space, lambda pc, data: Instruction("s_endpgm"))
        self._lanes, self._seen = lanes, seen

    def begin(self, launch: Launch, number: int, slot: int = 0) -> Group:
        group = super().begin(launch, number, slot)
        self._seen += [(self._lanes, wave) for wave in group.waves]
        return group


class Card:
    """A machine whose waves are looked at, and a queue."""

    def __init__(self, arch: str) -> None:
        self.seen: list[tuple[int, Wave]] = []
        self.machine = KfdSystem(arch, machines=lambda lanes, space: Looking(lanes, space, self.seen))
        self.client = Client(self.machine)
        self.code = self.client.alloc(VRAM | WRITABLE | EXECUTABLE | PUBLIC).map()
        self.done, self.queue = self.client.host(), self.client.queue()

    def launch(
        self, groups: tuple[int, int, int], threads: tuple[int, int, int], rsrc2: int, initiator: int,
        more: dict[int, list[int]] | None = None, rsrc1: int = 0xF0000,
    ) -> None:  # fmt: skip
        """Dispatches, and waits for the end or a fault."""
        signal, entry = self.done.view("Q"), self.code.address >> 8
        signal[0] = 0
        for at, values in {
            0x2E07: list(threads), 0x2E0C: [entry & 0xFFFFFFFF, entry >> 32], RSRC1: [rsrc1, rsrc2], **(more or {}),
        }.items():  # fmt: skip
            self.queue.put(*packet3(0x76, at - 0x2C00, *values))
        self.queue.submit(*packet3(0x15, *groups, initiator), *release_mem(self.done.address, 1))
        until(lambda: signal[0] == 1 or bool(self.machine.log))

    def close(self) -> None:
        """Ends it."""
        self.machine.close()


def test_waves_of_32_lanes_begin_with_user_data_workgroups_and_packed_threads() -> None:
    card = Card("gfx1100")
    card.launch((2, 3, 1), (10, 5, 1), 2 << 1 | 1 << 7 | 1 << 8 | 1 << 11, 1 | 4 | 1 << 15, {USER_DATA: [0x11, 0x22]})
    assert card.machine.log == [] and len(card.seen) == 2 * 3 * 2
    for lanes, wave in card.seen:
        assert lanes == 32 and wave.scalar("mode") == 0xF0
        assert [wave.scalar("s", n) for n in range(4)] == [0x11, 0x22, wave.group % 2, wave.group // 2]
        first = 32 * wave.index
        assert wave.exec == (0xFFFFFFFF if wave.index == 0 else (1 << 18) - 1)
        active = range(first, min(first + 32, 50))
        assert list(wave.row(0)[: len(active)]) == [t % 10 | t // 10 << 10 for t in active]
    card.close()


def test_gfx12_says_workgroups_in_trap_temporaries() -> None:
    card = Card("gfx1201")
    card.launch((1, 2, 3), (32, 1, 1), 1 << 7, 1 | 4 | 1 << 15)
    assert {(w.scalar("s", 117), w.scalar("s", 115)) for _, w in card.seen} == {
        (0, y | z << 16) for y in range(2) for z in range(3)
    }
    card.close()


def test_gfx10_has_a_register_for_each_axis_and_gfx9_waves_of_64() -> None:
    card = Card("gfx1030")
    card.launch((1, 1, 1), (4, 4, 4), 2 << 11, 1 | 4)
    ((lanes, wave),) = card.seen
    assert lanes == 64 and [wave.row(axis)[27] for axis in range(3)] == [3, 2, 1]
    card.close()
    card = Card("gfx942")
    card.launch((1, 1, 1), (65, 1, 1), 0, 1 | 4)
    assert [(lanes, wave.exec) for lanes, wave in sorted(card.seen, key=lambda s: s[1].index)] == [
        (64, (1 << 64) - 1), (64, 1)
    ]  # fmt: skip
    card.close()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"initiator": 4}, "COMPUTE_SHADER_EN"),
        ({"initiator": 1 | 4 | 8}, "ORDERED_APPEND_ENBL"),
        ({"initiator": 1 | 4 | 1 << 30}, "reserved bits"),
        ({"initiator": 1}, "COMPUTE_START_X was never written"),
        ({"threads": (1025, 1, 1)}, "1025 x 1 x 1"),
        ({"threads": (0, 1, 1)}, "0 x 1 x 1"),
        ({"rsrc1": 1 << 20}, "PRIV"),
        ({"rsrc1": 1 << 22}, "reserved bits"),
        ({"rsrc1": 1 << 26}, "FP16_OVFL"),
        ({"rsrc2": 129 << 15}, "66048 bytes of local memory"),
        ({"rsrc2": 3 << 1}, "COMPUTE_USER_DATA_0 was never written"),
        ({"rsrc2": 1}, "COMPUTE_TMPRING_SIZE was never written"),
        ({"rsrc2": 1, "more": {TMPRING: [1 | 4 << 12], SCRATCH_BASE: [0x1000, 0]}}, "is unmapped"),
    ],
)
def test_a_dispatch_that_cannot_be_is_refused(changed: dict[str, object], why: str) -> None:
    card = Card("gfx1100")
    given: dict[str, object] = {
        "groups": (1, 1, 1), "threads": (32, 1, 1), "rsrc2": 0, "initiator": 1 | 4 | 1 << 15
    }  # fmt: skip
    card.launch(**given | changed)  # type: ignore[arg-type]
    assert any(why in line for line in card.machine.log) and "PM4 queue 0, offset" in card.machine.log[0]
    assert card.done.view("Q")[0] == 0
    card.close()


def test_code_that_is_not_executable_faults_with_its_address() -> None:
    card = Card("gfx1100")
    card.code = card.client.alloc(VRAM | WRITABLE | PUBLIC).map()
    card.launch((1, 1, 1), (32, 1, 1), 0, 1 | 4 | 1 << 15)
    assert f"{card.code.address:#x}" in card.machine.log[0] and "execute" in card.machine.log[0]
    card.close()
