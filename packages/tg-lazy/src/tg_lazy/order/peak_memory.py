"""The last word on the order of kernels: what gives memory back goes first.

The order by position in the graph puts an optimizer's updates at the end, and so keeps every gradient of an activation
until then. Here a kernel that frees at least what it takes for a while runs as soon as it can; the others keep their
order. Memory that is there to stay when all is done, such as outputs, does not count against a kernel that frees some.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from ..fusion.step import Step
from ..graph.storage import Storage
from ..subgraph.hazards import READER
from .order import Ordering

Run = list[Step]
LASTING = frozenset({"output", READER})
"""Why a node is realised that somebody holds."""


class _Memory:
    """What each run takes and gives back.

    Attributes:
      readers: for each temporary the runs that have yet to read it.
      reads: for each run the temporaries that it reads.
      taken: bytes of the temporaries that each run makes.
      stays: bytes of what else it makes.
      given: bytes of the temporaries of which it is the last reader, as far as that is known.
    """

    def __init__(self, runs: Sequence[Run], ordering: Ordering) -> None:
        self.readers: dict[Storage, set[int]] = {}
        self.reads: list[list[Storage]] = [[] for _ in runs]
        self.taken, self.stays, self.given = ([0] * len(runs) for _ in range(3))
        made: dict[Storage, int] = {}
        lasting: set[Storage] = set()
        for number, run in enumerate(runs):
            before = {node.storage for step in run for node in step.inputs}
            for root in run[-1].roots:  # what the steps before it make is no memory
                if root.storage is not None and root.storage not in before and root.storage.root is root.storage:
                    made[root.storage] = number
                    if root.reason in LASTING:
                        lasting.add(root.storage)
        for number, run in enumerate(runs):
            for step in run:
                for node in step.inputs:
                    storage = step.swaps.get(node, node).storage
                    if storage is not None and made.get(storage.root, number) != number:
                        self.readers.setdefault(storage.root, set()).add(number)
        for storage, number in made.items():
            temporary = storage in self.readers and storage not in lasting
            (self.taken if temporary else self.stays)[number] += storage.nbytes
        for storage in lasting:
            self.readers.pop(storage, None)
        for storage, numbers in self.readers.items():
            for number in numbers:
                self.reads[number].append(storage)
            self.look(storage)

    def look(self, storage: Storage) -> int | None:
        """The last reader of a temporary, from now on known to be that; None if there are several."""
        if len(self.readers[storage]) != 1:
            return None
        (last,) = self.readers[storage]
        self.given[last] += storage.nbytes
        return last

    def spares(self, number: int) -> bool:
        """Whether memory is won, or at least not lost, by a run."""
        given = self.given[number]
        return self.taken[number] <= given and (given > 0 or not self.stays[number])


def lower_peak(runs: Sequence[Run], ordering: Ordering) -> list[Run]:
    """Runs of steps, each one kernel or several that stay together, in an order that is as valid and takes less memory.

    Args:
      runs: in an order that is valid.
      ordering: what depends on what.
    """
    of = {step: number for number, run in enumerate(runs) for step in run}
    waiting = [len({of[b] for step in run for b in ordering.before[step]} - {n}) for n, run in enumerate(runs)]
    memory = _Memory(runs, ordering)
    first: list[int] = []
    others: list[int] = []

    def enter(number: int) -> None:
        heappush(first if runs[number][0].is_kernel and memory.spares(number) else others, number)

    for number, count in enumerate(waiting):
        if not count:
            enter(number)
    done = [False] * len(runs)
    out: list[Run] = []
    while first or others:
        number = heappop(first or others)
        if done[number]:
            continue  # it was entered again when it was found to spare memory
        done[number] = True
        out.append(runs[number])
        for storage in memory.reads[number]:
            memory.readers[storage].discard(number)
            last = memory.look(storage)
            if last is not None and not waiting[last]:
                enter(last)
        for following in {of[after] for step in runs[number] for after in ordering.after[step]} - {number}:
            waiting[following] -= 1
            if not waiting[following]:
                enter(following)
    assert len(out) == len(runs), "the order is not valid"
    return out
