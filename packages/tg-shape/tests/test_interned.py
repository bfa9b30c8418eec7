from __future__ import annotations

import gc
import os
import threading
from weakref import ref

import pytest

from tg_shape import Interned, Variable, bounds_of
from tg_shape._lock import LOCK


class Thing:
    pass


def test_what_is_gone_is_made_anew() -> None:
    table: Interned[Thing] = Interned()
    row = Thing()
    table.add((1,), ref(row))
    weak = table.find((1,))
    assert weak is not None and weak() is row and table.find((2,)) is None
    del row
    assert weak() is None
    other = Thing()
    table.add((1,), ref(other))
    assert len(table) == 1
    table.drop((1,), Thing())
    assert len(table) == 1
    table.drop((1,), other)
    assert len(table) == 0


def test_a_table_does_not_grow_without_end() -> None:
    table: Interned[Thing] = Interned()
    kept = [Thing() for n in range(10)]
    for n, row in enumerate(kept):
        table.add((n,), ref(row))
    for n in range(10, 10 * Interned.FEWEST):
        table.add((n,), ref(Thing()))
        assert len(table) <= Interned.FEWEST + 1
    table.sweep()
    assert len(table) == 10
    for n, row in enumerate(kept):
        weak = table.find((n,))
        assert weak is not None and weak() is row


def test_a_table_holds_at_most_twice_what_is_there() -> None:
    table: Interned[Thing] = Interned()
    kept = [Thing() for n in range(Interned.FEWEST)]
    for n, row in enumerate(kept):
        table.add((n,), ref(row))
    table.sweep()
    for n in range(len(kept), 5 * len(kept)):
        table.add((n,), ref(Thing()))
        assert len(table) <= 2 * len(kept)
    assert len(table) > len(kept)


def test_finalizers_may_add_while_it_is_swept() -> None:
    """The collector may run within any call that allocates, and runs finalizers, which are Python."""
    table: Interned[Thing] = Interned()
    kept: list[Thing] = []

    def put(number: int) -> None:
        kept.append(Thing())
        table.add((number,), ref(kept[-1]))

    class Garbage:
        def __init__(self) -> None:
            self.own = self

        def __del__(self) -> None:
            put(len(kept))
            if len(kept) < 200:
                Garbage()  # the next collection finds this one

    for number in range(1000):
        table.add((-1, number), ref(Thing()))
    before = gc.get_threshold()
    Garbage()
    gc.set_threshold(1)
    try:
        while len(kept) < 200:
            table.sweep()
    finally:
        gc.set_threshold(*before)
    table.sweep()
    assert len(table) == len(kept) and all(table.find((n,)) is not None for n in range(len(kept)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_waits_for_the_lock_and_leaves_it_free() -> None:
    """What another thread holds when a process forks nobody would ever release in the child."""
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with LOCK:
            held.set()
            go.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    threading.Timer(0.1, go.set).start()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if LOCK.acquire(timeout=5):
                LOCK.release()
                status = 0 if bounds_of(Variable("made_by_a_child", 0, 9) * 2) == (0, 18) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    holder.join()
    assert LOCK.acquire(timeout=5)
    LOCK.release()
