"""Who reads memory, as memory remembers it."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import ref

from tg_lazy.graph.storage import Readers


class Node:
    """Something with weak references."""


class Garbage:
    """A cycle, whose finalizer does something when the collector finds it: in the middle of whatever allocates."""

    def __init__(self, final: Callable[[], object]) -> None:
        self.own, self.final = self, final

    def __del__(self) -> None:
        self.final()


@contextmanager
def collecting() -> Iterator[None]:
    """The collector runs with every object that is made."""
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(1)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def test_the_dead_are_forgotten_in_order() -> None:
    nodes = [Node() for _ in range(100)]
    readers: Readers[Node] = Readers(dict.fromkeys(map(ref, nodes), None))
    kept = nodes[::3]
    del nodes
    assert readers.alive() == kept
    assert len(readers) == 100
    readers.sweep()
    assert readers.alive() == kept and len(readers) == len(kept)
    assert readers.limit == 2 * len(kept)


def test_no_reader_is_lost_where_a_finalizer_adds_one() -> None:
    """The collector may run within any call that allocates, and runs finalizers, which are Python."""
    nodes = [Node() for _ in range(50)]
    readers: Readers[Node] = Readers(dict.fromkeys(map(ref, nodes), None))

    def add() -> None:
        nodes.append(Node())
        readers[ref(nodes[-1])] = None
        if len(nodes) < 200:
            Garbage(add)  # the next collection finds this one

    Garbage(add)
    with collecting():
        while len(nodes) < 200:
            del nodes[0]  # a dead one in front of all others
            readers.sweep()
            assert all(map(nodes.__contains__, readers.alive()))
    assert readers.alive() == nodes


def test_no_reader_is_lost_where_threads_add_and_sweep_at_once() -> None:
    """Of a reader that is lost nobody knows that it has to be computed before the memory is overwritten."""
    nodes = [Node() for _ in range(300)]
    readers: Readers[Node] = Readers(dict.fromkeys(map(ref, nodes), None))
    rounds, parties = 100, 4
    missed: list[int] = []
    meet = threading.Barrier(parties)

    def work(adds: bool, looks: bool) -> None:
        for _ in range(rounds):
            if adds:  # readers that are gone in front of all others: who sweeps meanwhile moves those
                gone = [Node() for _ in range(300)]
                others = list(readers)
                readers.clear()
                readers.update(dict.fromkeys([*map(ref, gone), *others], None))
                del gone, others
            meet.wait()
            known = len(nodes)
            for _ in range(5):
                if looks:
                    missed.append(max(0, known - len(readers.alive())))
                else:
                    readers.sweep()
            if adds:
                node = Node()
                readers[ref(node)] = None  # before it is counted: who looks meanwhile must not miss it
                nodes.append(node)
            meet.wait()

    threads = [threading.Thread(target=work, args=(n == 0, n >= 2)) for n in range(parties)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(nodes) == 300 + rounds and readers.alive() == nodes and not any(missed)
