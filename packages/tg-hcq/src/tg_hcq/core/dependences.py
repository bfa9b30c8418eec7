"""Which work must follow which: from the bytes that each reads and writes to barriers, signals and waits."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple


class Use(NamedTuple):
    """Bytes that work reads or writes.

    Attributes:
      space: what they are in; bytes of different spaces are never the same.
      part: in which part of it. Different parts may be the same memory, whatever the ranges.
      start: the first byte.
      end: the byte behind the last.
      writes: whether it writes them.
    """

    space: Hashable
    part: int
    start: int
    end: int
    writes: bool

    def conflicts(self, other: Use) -> bool:
        """Whether the two must happen in order."""
        if self.space != other.space or not (self.writes or other.writes):
            return False
        return self.part != other.part or (self.start < other.end and other.start < self.end)

    def covers(self, other: Use) -> bool:
        """Whether all that conflicts with ``other`` conflicts with this, too."""
        same = self.space == other.space and self.part == other.part
        return same and self.writes and self.start <= other.start and other.end <= self.end


class Work(NamedTuple):
    """A step.

    Attributes:
      queue: the queue that executes it; a queue begins its work in order.
      uses: the bytes.
      after: numbers of steps that it follows whatever they use.
    """

    queue: int
    uses: Sequence[Use] = ()
    after: Sequence[int] = ()


class Order(NamedTuple):
    """What has to be done around a step.

    Attributes:
      waits: steps of other queues that its queue waits for, by their signals.
      barrier: whether a barrier comes between them and the step.
      signals: whether a signal follows the step.
    """

    waits: tuple[int, ...]
    barrier: bool
    signals: bool


def dependences(steps: Sequence[Work]) -> list[set[int]]:
    """For each step those before it that it conflicts with; not those that one of these covers."""
    found: list[set[int]] = []
    live: dict[Hashable, list[tuple[int, Use]]] = {}
    for number, step in enumerate(steps):
        before = set(step.after)
        for use in step.uses:
            before.update(earlier for earlier, other in live.get(use.space, ()) if use.conflicts(other))
        before.discard(number)
        for use in step.uses:
            rest = [(earlier, other) for earlier, other in live.get(use.space, ()) if not use.covers(other)]
            live[use.space] = [*rest, (number, use)]
        found.append(before)
    return found


def order(steps: Sequence[Work]) -> list[Order]:
    """Barriers, waits and signals that order what conflicts, and none that others imply.

    Work in one queue may overlap unless a barrier stands between. A signal comes when all work before it in its queue
    is done; after it, a wait and a barrier bring what the signalling queue knew to be done.

    Example:
      >>> a, b = Use("a", 0, 0, 64, True), Use("b", 0, 0, 64, True)
      >>> for step in order([Work(0, [a]), Work(0, [b]), Work(1, [a]), Work(0, [b])]):
      ...     print(step)
      Order(waits=(), barrier=False, signals=True)
      Order(waits=(), barrier=False, signals=False)
      Order(waits=(0,), barrier=True, signals=False)
      Order(waits=(), barrier=True, signals=False)
    """
    done: dict[int, dict[int, int]] = {}  # by queue: up to which step each queue is known to be done
    behind: list[dict[int, int]] = []  # the same at the signal after each step
    last: dict[int, int] = {}
    out: list[Order] = []
    for number, (step, before) in enumerate(zip(steps, dependences(steps), strict=True)):
        queue = step.queue
        known = done.setdefault(queue, {})
        waits = []
        barrier = any(known.get(queue, -1) < earlier for earlier in before if steps[earlier].queue == queue)
        # the latest first: what it brings may spare the others
        for earlier in sorted((e for e in before if steps[e].queue != queue), reverse=True):
            if known.get(steps[earlier].queue, -1) < earlier:
                waits.append(earlier)
                out[earlier] = out[earlier]._replace(signals=True)
                for other, upto in behind[earlier].items():
                    known[other] = max(known.get(other, -1), upto)
        if (barrier or waits) and queue in last:
            known[queue] = last[queue]
        last[queue] = number
        behind.append({**known, queue: number})
        out.append(Order(tuple(waits), barrier or bool(waits), False))
    return out
