"""Chains: kernels that hand large intermediates to one another row by row become one kernel in blocks of rows.

An intermediate that one kernel makes and one other kernel reads goes to memory only because no kernel could hold all
of it. Where both walk its rows alike, a kernel that works on a block of rows at a time needs to hold no more than the
block: the intermediate becomes an *internal* buffer of the joint kernel (see :mod:`tg_lazy.ast`). What else reads the
intermediate comes along where the other kernel alone reads what it makes. Attention is the case in point: scores,
exponentials, their sums and a weighted sum, with memory linear in the sequence.

It pays where the intermediate is large and outweighs what the kernels read besides, which they read again for every
block.
"""

from __future__ import annotations

from collections.abc import Set

from ..cost import Limits, limits_of
from ..fusion.step import Step
from ..ops import Ops
from ..subgraph.node import Node
from ..trackers import most_shown
from .order import Ordering


def chains(ordering: Ordering, chosen: Set[Node]) -> list[list[Step]]:
    """The steps in order, those that may share a kernel in blocks of rows together.

    Args:
      ordering: the steps and what depends on what.
      chosen: the nodes that are realised by choice: nobody outside of the schedule wants them in memory.
    """
    runs: dict[Step, list[Step]] = {}
    for step in ordering.steps:
        runs[step] = [step]
        limits = limits_of(step.roots[0].device)
        if not limits.row_bytes or not _plain(step):
            continue
        for node in step.inputs:
            maker = ordering.maker.get(node)
            if maker is None or node not in chosen or maker.roots != [node] or not _plain(maker):
                continue
            between = [other for other in ordering.after[maker] if other is not step]
            if step not in ordering.after[maker] or not all(_between(b, step, ordering, chosen) for b in between):
                continue
            run = [*runs[maker], *sorted(between, key=lambda other: other.position), step]
            if all(runs.get(b) == [b] for b in between) and _pays(node, run, limits) and _may_wait(run):
                for other in (maker, *between):
                    del runs[other]
                runs[step] = run
                break
    return list(runs.values())


def _between(other: Step, step: Step, ordering: Ordering, chosen: Set[Node]) -> bool:
    """Whether ``other`` makes something that nobody but ``step`` reads, such as the sum of an intermediate's rows."""
    return _plain(other) and other.roots[0] in chosen and list(ordering.after[other]) == [step]


def _plain(step: Step) -> bool:
    """Whether a step is a kernel of one output that overwrites nothing."""
    return step.is_kernel and len(step.roots) == 1 and step.roots[0].op is not Ops.ASSIGN and not step.swaps


def _may_wait(run: list[Step]) -> bool:
    """Whether the steps of ``run`` may be put off until their last one: nothing that they read is overwritten."""
    return all(node.op is not Ops.ASSIGN for step in run for node in step.inputs)


def _pays(node: Node, run: list[Step], limits: Limits) -> bool:
    """Whether keeping ``node`` out of memory saves more than reading the kernel's inputs once a block costs."""
    return node.nbytes >= limits.row_bytes and node.nbytes >= 2 * _read_bytes(run)


def _read_bytes(run: list[Step]) -> int:
    """Bytes that the steps read of what none of them makes: of each node as much as they see of it.

    A view may show a part only, such as the rows that one of several kernels is for, or the part of a cache that is
    filled.
    """
    made = {root for step in run for root in step.roots}
    seen: dict[Node, int] = {}
    for step in run:
        stack, known = list(step.roots), set(step.roots)
        while stack:
            for source, st in stack.pop().srcs:
                if source in step.inputs:
                    if source not in made:
                        seen[source] = seen.get(source, 0) + (source.size if st is None else most_shown(st))
                elif source not in known:
                    known.add(source)
                    stack.append(source)
    return sum(min(node.size, count) * node.dtype.itemsize for node, count in seen.items())
