"""Launches: programs called by name, or handed sizes and values as one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tg_runtime import DeviceError
from tg_runtime.device.launch import Launch, LoadedProgram, launcher


class Recorded(LoadedProgram[int]):
    def __init__(self) -> None:
        self.seen: list[tuple[list[int], Launch]] = []

    def launch(self, bufs: Sequence[int], how: Launch) -> float | None:
        self.seen.append((list(bufs), how))
        return 1.0 if how.wait else None


def test_a_call_by_name_is_a_launch() -> None:
    program = Recorded()
    assert program(1, 2) is None
    assert program(3, global_size=(4, 5, 6), local_size=(7, 8, 9), vals=[10], wait=True) == 1.0
    assert program.seen == [([1, 2], Launch()), ([3], Launch((4, 5, 6), (7, 8, 9), [10], True))]


def test_a_launcher_of_a_program_here_is_its_own() -> None:
    program = Recorded()
    assert launcher(program)([1], Launch(vals=(2,))) is None
    assert program.seen == [([1], Launch(vals=(2,)))]


def test_a_program_that_only_has_a_call_gets_everything_by_name() -> None:
    def program(
        *bufs: int, global_size: tuple[int, int, int] = (1, 1, 1), local_size: tuple[int, int, int] = (1, 1, 1),
        vals: Sequence[int] = (), wait: bool = False,
    ) -> float | None:  # fmt: skip
        seen.append((bufs, global_size, local_size, vals, wait))
        return 2.0

    seen: list[object] = []
    assert launcher(program)([1, 2], Launch((3, 1, 1), (4, 1, 1), (5,), True)) == 2.0
    assert seen == [((1, 2), (3, 1, 1), (4, 1, 1), (5,), True)]


def test_sizes() -> None:
    assert Launch().runs("here") and not Launch(groups=(1, 0, 1)).runs("here")
    assert Launch(wait=True).idle == 0.0 and Launch().idle is None
    assert Launch(groups=(3, 1, 1)).threads("here", 4) == 3
    with pytest.raises(DeviceError, match="here: launch of .* groups"):
        Launch(groups=(-1, 1, 1)).runs("here")
    with pytest.raises(DeviceError, match="4 threads at most"):
        Launch(groups=(5, 1, 1)).threads("here", 4)
