"""The probe of AMD cards, on the software card: healthy, and with each mechanism broken at its step."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tools import amd_probe

from tg_hcq import SoftwareSystem
from tg_hcq.amd import program
from tg_hcq.amd.code_object import kernel
from tg_hcq.amd.kfd.card import Card
from tg_hcq.amd.memory import AMDAllocator
from tg_hcq.amd.program import AMDProgram
from tg_hcq.amd.queues.compute import ComputeQueue
from tg_hcq.core.system import offer_system
from tg_hcq.simulate.amd.kfd import mock_kfd
from tg_runtime import DevEntry

pytest.importorskip("llvmlite", reason="LLVM compiles the kernels")
ENTRY = DevEntry("AMD", arch="gfx1100", iface="MOCKKFD")
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def software() -> None:
    offer_system("MOCKKFD+AMD", lambda entry: mock_kfd(entry))  # not the machine of another test


@pytest.mark.parametrize("arch", ["gfx1030", "gfx1100", "gfx1201", "gfx942", "gfx950"])
def test_a_healthy_card(arch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "probe.json"
    assert amd_probe.main([f"MOCKKFD+AMD::{arch}", str(out)]) == 0, capsys.readouterr().out
    told = json.loads(out.read_text(encoding="utf-8"))
    assert {step.__name__ for step in amd_probe.STEPS} <= told.keys()
    assert told["version"] == [1, 17] and told["topology"][0]["arch"] == arch
    assert told["stopped"] is None


def _raise(*_: object, **__: object) -> Any:
    raise OSError(errno.EINVAL, "Invalid argument")


def _break_version(patch: Patch) -> None:
    offer_system("MOCKKFD+AMD", lambda entry: SoftwareSystem())


def _break_topology(patch: Patch) -> None:
    patch.setattr(amd_probe, "nodes", lambda system: [])


def _break_queues(patch: Patch) -> None:
    patch.setattr(Card, "create_queue", _raise)


def _break_memory(patch: Patch) -> None:
    flags = AMDAllocator.flags
    patch.setattr(AMDAllocator, "flags", lambda self, options: 0 if options.executable else flags(self, options))


def _break_signal(patch: Patch) -> None:
    signal = ComputeQueue._signal
    patch.setattr(ComputeQueue, "_signal", lambda self, address, value: signal(self, address, value - 1))
    patch.setattr(amd_probe, "TIMEOUT_MS", 200)


def _break_write(patch: Patch) -> None:
    write = ComputeQueue.write
    patch.setattr(ComputeQueue, "write", lambda self, dest, words: write(self, dest + 4, words))


def _break_timestamp(patch: Patch) -> None:
    patch.setattr(Card, "_clock", lambda self: 30_000)


def _break_copy(patch: Patch) -> None:
    patch.setattr(AMDAllocator, "copyout", lambda self, dest, src: None)


def _break_dispatch(patch: Patch) -> None:
    launch = AMDProgram.dispatch
    patch.setattr(AMDProgram, "dispatch", lambda self, queue, args, groups, items: launch(
        self, queue, args, (8, 1, 1), items))  # fmt: skip


def _break_scratch(patch: Patch) -> None:
    patch.setattr(AMDProgram, "_scratch", lambda self, card: 0)


def _break_shared(patch: Patch) -> None:
    patch.setattr(program, "kernel", lambda *args: replace(kernel(*args), lds=0))


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [(["--help"], 0, "an entry of DEV"), (["--out"], 2, "--out"), (["a b"], 2, "DEV entry 'a b'"),
     (["CPU"], 2, "CPU is no card of AMD's")],
)  # fmt: skip
def test_it_tells_its_usage(
    arguments: list[str], status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        amd_probe.main(arguments)
    said = capsys.readouterr()
    assert end.value.code == status and told in said.out + said.err and "Traceback" not in said.err


@pytest.mark.parametrize(
    "broken",
    [
        _break_version,
        _break_topology,
        _break_queues,
        _break_memory,
        _break_signal,
        _break_write,
        _break_timestamp,
        _break_copy,
        _break_dispatch,
        _break_scratch,
        _break_shared,
    ],
    ids=lambda function: function.__name__.removeprefix("_break_"),
)
def test_it_stops_at_what_is_broken(broken: Callable[[Patch], None], monkeypatch: Patch) -> None:
    broken(monkeypatch)
    told: list[str] = []
    facts = amd_probe.run(ENTRY, told.append)
    assert facts["stopped"] == broken.__name__.removeprefix("_break_"), facts
    assert "DIFFERS" in told[-1] and all("as expected" in line for line in told[:-1])
