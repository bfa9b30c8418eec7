"""Steps that a second Ctrl-C ends in the middle: what they were writing raises until it is written anew."""

from __future__ import annotations

import gc
import inspect
import os
import signal

import pytest

from tg_frontend import Tensor, TinyJit
from tg_runtime import Device, DeviceError, ExecItem

RUN = ExecItem.run


def interrupt(monkeypatch: pytest.MonkeyPatch, at: int, times: int) -> None:
    """Sends SIGINT from within the run of step number ``at``."""
    seen = [0]

    def run(self: ExecItem, *args: object, **kwargs: object) -> float | None:
        seconds = RUN(self, *args, **kwargs)  # type: ignore[arg-type]
        seen[0] += 1
        if seen[0] == at:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
        return seconds

    monkeypatch.setattr(ExecItem, "run", run)


def test_a_second_interrupt_spoils_what_is_assigned_to(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = Tensor([1.0, 2.0]).realize(), Tensor([3.0]).realize()
    x.assign(x + 1)
    interrupt(monkeypatch, 1, 2)
    with pytest.raises(KeyboardInterrupt):
        x.realize()
    monkeypatch.undo()
    with pytest.raises(DeviceError, match="half written: the assignment to it at .*interrupted twice"):
        x.tolist()
    with pytest.raises(DeviceError, match="half written"):
        (x + 1).tolist()
    assert y.tolist() == [3.0]
    x.assign(Tensor([5.0, 6.0]))
    assert (x + 1).tolist() == [6.0, 7.0]


def test_one_interrupt_waits_for_all_assignments(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = Tensor([1.0]).realize(), Tensor([2.0, 3.0]).realize()
    a.assign(a + b.sum())
    b.assign(b * 2)
    interrupt(monkeypatch, 1, 1)
    with pytest.raises(KeyboardInterrupt):
        a.realize(b)
    monkeypatch.undo()
    assert a.lazydata.base.is_realized
    assert b.lazydata.base.is_realized
    assert (a.tolist(), b.tolist()) == ([6.0], [4.0, 6.0])


def test_a_replay_is_whole_or_spoiled(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = Tensor([1.0]).realize(), Tensor([1.0, 2.0]).realize()

    def step(x: Tensor) -> Tensor:
        a.assign(a + x)
        a.realize()
        b.assign(b + a)
        return (b.sum() * 1).realize()

    function, one = TinyJit(step), Tensor([1.0]).realize()
    for _ in range(3):
        function(one)
    assert (a.tolist(), b.tolist()) == ([4.0], [10.0, 11.0])
    interrupt(monkeypatch, 1, 1)
    try:
        function(one)
    except KeyboardInterrupt:
        pass
    monkeypatch.undo()
    assert (a.tolist(), b.tolist()) == ([5.0], [15.0, 16.0])
    if function.captured is None or len(function.captured.steps) == 1:
        return  # one native call, which no signal ends
    interrupt(monkeypatch, 1, 2)
    with pytest.raises(KeyboardInterrupt):
        function(one)
    monkeypatch.undo()
    for one_of in (a, b):
        with pytest.raises(DeviceError, match="a replay of TinyJit was interrupted twice"):
            one_of.tolist()
    assert function.captured is None


def test_the_end_of_memory_says_who_holds_it() -> None:
    """How much was asked, is held, was held at most; and the largest holders with shape, dtype, device and line."""
    allocator = Device["CPU"].allocator
    before = allocator.limit
    gc.collect()
    allocator.limit = allocator.used + allocator.cached + (32 << 20)
    try:
        large = Tensor.full((512, 2048), 1.0, device="CPU").contiguous().realize()
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        with pytest.raises(MemoryError) as caught:
            Tensor.full((1 << 25,), 2.0, device="CPU").contiguous().realize()
        rest = Tensor.full((1 << 10,), 3.0, device="CPU").contiguous().realize()
    finally:
        allocator.limit = before
    text = str(caught.value)
    assert "128.00 MiB asked (134217728 bytes)" in text
    assert " held by " in text and " in the cache; the limit is " in text and "at most " in text
    assert f"4.00 MiB  <Buffer CPU 1048576 x float32>, of shape (512, 2048), made at {__file__}:{line}" in text
    assert (large.sum() + rest.sum()).item() == 512 * 2048 + 3 * 1024
