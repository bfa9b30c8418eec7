"""Who reads memory, as memory remembers it."""

from __future__ import annotations

import sys
import threading
from weakref import ref

from tg_lazy.storage import Readers


class Node:
    """Something with weak references."""


def test_the_dead_are_forgotten_in_order() -> None:
    nodes = [Node() for _ in range(100)]
    readers: Readers[Node] = Readers(map(ref, nodes))
    kept = nodes[::3]
    del nodes
    assert readers.alive() == kept
    assert len(readers) == 100
    readers.sweep()
    assert readers.alive() == kept and len(readers) == len(kept)
    assert readers.limit == 2 * len(kept)


def test_no_reader_is_lost_where_threads_add_and_sweep_at_once() -> None:
    """Of a reader that is lost nobody knows that it has to be computed before the memory is overwritten."""
    nodes = [Node() for _ in range(300)]
    readers: Readers[Node] = Readers(map(ref, nodes))
    rounds, parties = 100, 4
    missed: list[int] = []
    meet = threading.Barrier(parties)

    def work(adds: bool, looks: bool) -> None:
        for _ in range(rounds):
            if adds:  # readers that are gone in front of all others: who sweeps meanwhile moves those
                gone = [Node() for _ in range(300)]
                readers[:0] = map(ref, gone)
                del gone
            meet.wait()
            known = len(nodes)
            for _ in range(5):
                if looks:
                    missed.append(max(0, known - len(readers.alive())))
                else:
                    readers.sweep()
            if adds:
                nodes.append(Node())
                readers.append(ref(nodes[-1]))
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
