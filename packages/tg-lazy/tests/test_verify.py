"""The check of a schedule notices every way in which a kernel could find the wrong content."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from tg_lazy import LazyBuffer, Ops, schedule
from tg_lazy.fusion.step import Step
from tg_lazy.order.merge import Merging
from tg_lazy.order.order import Ordering
from tg_lazy.scheduler import template

MODULE = sys.modules["tg_lazy.scheduler.schedule"]  # by its name tg_lazy gives the function


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """No schedule is remembered: each is made here."""
    template._templates.clear()


def _accumulated(machine: Any) -> tuple[LazyBuffer, LazyBuffer]:
    a = machine.buffer(np.arange(6, dtype=np.float32))
    old = a.flip((0,)).alu(Ops.MUL, a)
    return a.assign(a.alu(Ops.ADD, a)), old


def test_a_reader_after_the_write_is_noticed(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    new, old = _accumulated(machine)
    plain = Ordering.run

    def turned(self: Ordering) -> None:
        plain(self)
        self.steps.reverse()

    monkeypatch.setattr(Ordering, "run", turned)
    monkeypatch.setattr(MODULE, "lower_peak", lambda runs, ordering: runs)
    monkeypatch.setattr(Merging, "run", lambda self: None)
    with pytest.raises(RuntimeError, match="has overwritten"):
        schedule([new, old])


def test_a_kernel_that_overwrites_what_it_reads_elsewhere_is_noticed(
    machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = machine.buffer(np.arange(6, dtype=np.float32))
    new = a.assign(a.flip((0,)))
    monkeypatch.setattr(Ordering, "_detour", lambda self, step, root: None)
    with pytest.raises(RuntimeError, match="overwrites what it has yet to read"):
        schedule([new])


def test_memory_that_nothing_wrote_is_noticed(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    a = machine.buffer(np.arange(6, dtype=np.float32))
    one = a.alu(Ops.ADD, a).contiguous()
    two = one.flip((0,)).alu(Ops.MUL, one).contiguous()
    plain = Ordering._sort

    def turned(self: Ordering) -> None:
        plain(self)
        self.steps.reverse()

    monkeypatch.setattr(Ordering, "_sort", turned)
    monkeypatch.setattr(MODULE, "lower_peak", lambda runs, ordering: runs)
    monkeypatch.setattr(Merging, "run", lambda self: None)
    with pytest.raises(RuntimeError, match="which nothing has written yet"):
        schedule([two])


def test_an_older_version_is_noticed(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    a = machine.buffer(np.arange(6, dtype=np.float32))
    one = a.assign(a.alu(Ops.ADD, a))
    between = one.flip((0,)).alu(Ops.MUL, one).contiguous()
    two = one.assign(one.alu(Ops.ADD, one))

    def forgetful(self: Ordering, first: Step, second: Step) -> None:
        if first.roots[0].op is Ops.ASSIGN and second.roots[0].op is not Ops.ASSIGN:
            plain(self, first, second)

    plain = Ordering._edge
    monkeypatch.setattr(Ordering, "_edge", forgetful)
    monkeypatch.setattr(Merging, "run", lambda self: None)
    with pytest.raises(RuntimeError, match="schedule: "):
        schedule([two, between])
