"""The final order of kernels, which keeps peak memory low: kernels that free memory run first.

The order by position in the graph puts an optimizer's updates at the end, and so keeps every gradient until then. Here
a kernel that frees at least as much temporary memory as it allocates runs as soon as it can; next come those that such
a kernel waits for, if both together free as much; the others keep their order. Memory that outlives the schedule, such
as outputs, does not count against a kernel that frees some.
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
"""Reasons of nodes that outlive the schedule."""


class _Memory:
    """What each run allocates and frees.

    Attributes:
      readers: for each temporary the runs that have yet to read it.
      reads: for each run the temporaries that it reads.
      taken: bytes of the temporaries that each run makes.
      stays: bytes that it makes and that outlive the schedule.
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
            for root in run[-1].roots:  # what earlier steps of a run make is internal to the kernel
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
            self.last_reader(storage)

    def last_reader(self, storage: Storage) -> int | None:
        """The only reader left of a temporary, which then frees it; None if there are several."""
        if len(self.readers[storage]) != 1:
            return None
        (last,) = self.readers[storage]
        self.given[last] += storage.nbytes
        return last

    def frees(self, *numbers: int) -> bool:
        """Whether runs free at least as much memory as they allocate."""
        given = sum(self.given[number] for number in numbers)
        taken = sum(self.taken[number] for number in numbers)
        return taken <= given and (given > 0 or not any(self.stays[number] for number in numbers))


def lower_peak(runs: Sequence[Run], ordering: Ordering) -> list[Run]:
    """Runs of steps, each one kernel or several that stay together, in an order that is as valid and takes less memory.

    Args:
      runs: in an order that is valid.
      ordering: what depends on what.
    """
    of = {step: number for number, run in enumerate(runs) for step in run}
    before = [{of[b] for step in run for b in ordering.before[step]} - {n} for n, run in enumerate(runs)]
    waiting = [len(others) for others in before]
    memory = _Memory(runs, ordering)
    first: list[int] = []
    soon: list[int] = []
    others: list[int] = []

    def enter(number: int) -> None:
        heappush(first if runs[number][0].is_kernel and memory.frees(number) else others, number)

    def look(number: int) -> None:
        """Enters a run that waits for nothing; of one that waits for one other, the other, if both free memory."""
        if not waiting[number]:
            enter(number)
        elif waiting[number] == 1 and runs[number][0].is_kernel:
            (last,) = (other for other in before[number] if not done[other])
            if not waiting[last] and runs[last][0].is_kernel and memory.frees(number, last):
                heappush(soon, last)

    done = [False] * len(runs)
    for number, count in enumerate(waiting):
        if not count:
            enter(number)
    out: list[Run] = []
    while first or soon or others:
        number = heappop(first or soon or others)
        if done[number]:
            continue  # it was entered a second time when it turned out to free memory
        done[number] = True
        out.append(runs[number])
        changed = {of[after] for step in runs[number] for after in ordering.after[step]} - {number}
        for following in changed:
            waiting[following] -= 1
        for storage in memory.reads[number]:
            memory.readers[storage].discard(number)
            last = memory.last_reader(storage)
            if last is not None:
                changed.add(last)
        for one in changed:
            look(one)
    assert len(out) == len(runs), "the order is not valid"
    return out
