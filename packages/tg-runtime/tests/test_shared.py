"""Kernels that share a program: the values of variables are in 32 bits, and threads may ask at once."""

from __future__ import annotations

import random
from threading import Barrier, Thread
from time import sleep
from types import SimpleNamespace
from typing import Any

import pytest

from tg_dtype import dtypes
from tg_lazy import LazyOp, Ops
from tg_lazy.ast.nodes import BufferArg
from tg_runtime.kernels import shared
from tg_shape import ShapeTracker, View


def copies(size: int, begin: int, count: int, stride: int = 1) -> LazyOp:
    """The kernel that copies elements of a buffer from one on."""
    kind, shape = dtypes.uint8, (count,)
    read = LazyOp(Ops.LOAD, kind, shape, (), (1, ShapeTracker((View(shape, (stride,), begin),))))
    written = LazyOp(Ops.STORE, kind, shape, (read,), (0, ShapeTracker.from_shape(shape)))
    return LazyOp(Ops.SINK, dtypes.void, (), (written,), (BufferArg(kind, count), BufferArg(kind, size)))


def device() -> Any:
    return SimpleNamespace(families={})


@pytest.mark.parametrize("seed", range(40))
def test_values_are_in_32_bits(seed: int) -> None:
    draw = random.Random(seed)
    count, stride = draw.randint(1, 9), draw.choice((1, 3, -1))
    size = draw.choice((101, (1 << 31) - draw.randint(-20, 20), (1 << 31) + draw.randint(0, 1 << 33)))
    span = (count - 1) * abs(stride)
    here, found = device(), 0
    for begin in (0, size - 1 - span, *(draw.randint(0, size - 1 - span) for _ in range(5))):
        form = shared.shared_form(here, copies(size, begin + (span if stride < 0 else 0), count, stride))
        for variable, value in form[1].items() if form else ():
            found += 1
            assert 0 <= value <= variable.vmax < 1 << 31
    assert (found > 0) == (size - (span if stride > 0 else 0) <= 1 << 31)


def test_families_are_forgotten_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(dict[Any, Any]):
        def __delitem__(self, key: Any) -> None:
            sleep(0.002)
            super().__delitem__(key)

    monkeypatch.setattr(shared, "MOST_FAMILIES", 2)
    here, start, done = SimpleNamespace(families=Slow()), Barrier(4), list[int]()

    def ask(number: int) -> None:
        start.wait()
        for size in range(11, 31):
            shared.shared_form(here, copies(size, 1, number + 1))  # type: ignore[arg-type]
        done.append(number)

    threads = [Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [0, 1, 2, 3] and len(here.families) <= 2
