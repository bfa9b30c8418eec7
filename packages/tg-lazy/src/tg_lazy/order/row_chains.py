"""Chains: kernels that hand large intermediates to one another row by row become one kernel in blocks of rows.

An intermediate that one kernel makes and one other kernel reads goes to memory only because no kernel could hold all
of it. Where both walk its rows alike, a kernel that works on a block of rows at a time needs to hold no more than the
block: the intermediate becomes an *internal* buffer of the joint kernel (see :mod:`tg_lazy.ast`). What else reads the
intermediate comes along where the other kernel alone reads what it makes. Attention is the case in point: scores,
exponentials, their sums and a weighted sum, with memory linear in the sequence.

It pays where the intermediate is large and outweighs what the kernels read for every block again, such as a matrix.
What each row has for itself is read once in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from heapq import heappop, heappush
from math import inf

from tg_shape import ShapeTracker

from ..cost import Limits, limits_of
from ..fusion.step import Step
from ..ops import Ops
from ..subgraph.node import Node, seen_shape
from ..trackers import Shape, contiguous, most_shown, seen_in_rows
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
    return node.nbytes >= limits.row_bytes and node.nbytes >= 2 * _read_again(run)


def _read_again(run: list[Step]) -> float:
    """Bytes that the steps read, for every block of rows, of what none of them makes; infinite if they share no rows.

    That is of each node as much as they see of it: a view may show a part only, such as the rows that one of several
    kernels is for, or the part of a cache that is filled. What shows other elements to each row does not count.
    """
    made = {root for step in run for root in step.roots}
    reads = [read for step in run for read in _reads(step, step is run[-1])]
    rows = min((_rows_within(*read) for read in reads if read[0] in made), default=0)
    if not rows:
        return inf
    seen: dict[Node, int] = {}
    for node, st, depth in reads:
        if node not in made and min(depth, _rows_apart(st, node.shape)) < rows:
            seen[node] = seen.get(node, 0) + (node.size if st is None else most_shown(st))
    return sum(min(node.size, count) * node.dtype.itemsize for node, count in seen.items())


def _rows_within(node: Node, st: ShapeTracker | None, depth: int) -> int:
    """How many outer dimensions of a reader, of ``depth`` that count rows, are those of what it reads, too."""
    return depth if st is None else min(depth, seen_in_rows(st, node.shape))


def _rows_apart(st: ShapeTracker | None, shape: Shape) -> int:
    """How many outer dimensions of a reader step from one element to another in each iteration."""
    view = (st or contiguous(shape)).views[-1]
    steps = zip(view.shape, view.strides, strict=True)
    return next((axis for axis, (dim, stride) in enumerate(steps) if dim != 1 and stride == 0), len(view.shape))


def _reads(step: Step, last: bool) -> Iterator[tuple[Node, ShapeTracker | None, int]]:
    """The inputs of a step as often as it names them, each with how it is seen, and in which rows.

    The rows are a number of outer dimensions: those of what the step makes that the reader of the input has, too.

    Args:
      step: a kernel of one output.
      last: whether its output is that of the joint kernel, which then may be in another order than the loops.
    """
    found = step.rearranged if last else None
    roots = step.roots if found is None else [found[0]]
    kept = {root: len(root.shape) for root in roots}
    waiting = [(-root.index, root) for root in roots]
    while waiting:  # what uses a node comes before it
        _, node = heappop(waiting)
        for position, (source, st) in enumerate(node.srcs):
            depth = kept[node]
            if node.op is Ops.REDUCE:
                depth = min([depth, *(axis for axis in node.arg[1] if seen_shape((source, st))[axis] != 1)])
            elif node.op is Ops.GATHER and position == 0:
                depth = 0
            if source in step.inputs:
                yield source, st, depth
                continue
            if source not in kept:
                heappush(waiting, (-source.index, source))
            kept[source] = min(kept.get(source, depth), _rows_within(source, st, depth))
