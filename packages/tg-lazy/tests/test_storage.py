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
    readers: Readers[Node] = Readers()
    made: list[list[Node]] = [[] for _ in range(4)]

    def work(mine: list[Node]) -> None:
        for n in range(2000):
            node = Node()
            readers.append(ref(node))
            if n % 2 == 0:
                mine.append(node)
            if n % 4 == 0:
                readers.sweep()

    threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    there = set(map(id, readers.alive()))
    assert not [node for mine in made for node in mine if id(node) not in there]
