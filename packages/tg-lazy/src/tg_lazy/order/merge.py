"""Kernels with several outputs: kernels over the same loops that share memory become one.

Two steps are merged if they run over the same elements and reduce the same ranges, read a common input or one reads
what the other writes, and every direct dependency between them is on the same element. Merging them must not close a
cycle. Of what a merged kernel hands to itself, short sums need no memory.
"""

from __future__ import annotations

from collections.abc import Set

from ..cost import limits_of
from ..fusion.step import ELSEWHERE, ROW, Step, stored_through
from ..ops import Ops
from ..subgraph.node import Node, seen_shape, target_of, update_of
from ..trackers import max_size
from .order import Ordering, writes_where_it_reads

Signature = tuple[object, ...]


def signature(step: Step) -> Signature:
    """Steps with equal signatures have the same loops."""
    loops = tuple(dim for dim in step.space.shape if not (isinstance(dim, int) and dim == 1))
    return step.roots[0].device, loops


def reduction_ranges(step: Step) -> frozenset[object]:
    """What the reductions of a step run over."""
    return frozenset((seen_shape(r.srcs[0]), r.arg[1]) for r in step.reductions)


class Merging:
    """Merges the steps of an ordering, which stays valid."""

    def __init__(self, ordering: Ordering) -> None:
        self.ordering = ordering
        self.gone: set[Step] = set()

    def run(self) -> None:
        """Merges what can be merged."""
        latest: dict[tuple[Node, Signature], Step] = {}
        for step in list(self.ordering.steps):
            if not step.is_kernel:
                continue
            mark = signature(step)
            candidates: dict[Step, None] = {}
            for node in step.inputs:
                maker = self.ordering.maker.get(node)
                if maker is not None and maker.is_kernel:
                    candidates[maker] = None
                sibling = latest.get((node, mark))
                if sibling is not None:
                    candidates[sibling] = None
            for other in candidates:
                if other not in self.gone and self._fits(other, step) and self._merge(other, step):
                    step, mark = other, signature(other)
                    break
            for node in step.inputs:
                if 4 * node.size >= step.space.size:
                    latest[node, mark] = step
        self.ordering.steps = sorted((s for s in self.ordering.steps if s not in self.gone), key=lambda s: s.position)

    def _fits(self, first: Step, second: Step) -> bool:
        """Whether the two can share a kernel, the order aside."""
        limits = limits_of(first.roots[0].device)
        outputs = [*first.roots, *second.roots]
        if len({*first.inputs, *second.inputs, *outputs}) > limits.buffers:
            return False
        if first.computed + second.computed > limits.nodes:
            return False
        if any(stored_through(root) is not None or update_of(root) is not None for root in outputs):
            return False
        if signature(first) != signature(second):
            return self._is_row(first, second)
        if first.swaps or second.swaps or len({root.storage for root in outputs}) < len(outputs):
            return False
        vertical = any(root in second.inputs for root in first.roots)
        if second.contraction is not None:
            if not _alike(first, second):
                return False
        elif first.contraction is not None and (second.reductions or not vertical or second.computed > _BESIDE):
            return False
        if first.reductions and second.reductions and reduction_ranges(first) != reduction_ranges(second):
            return False
        if len(first.reductions) + len(second.reductions) > limits.stages:
            return False
        # what an ASSIGN overwrites must not be read again while the other's reductions run
        if any(root in second.nested for root in first.roots):
            ended = {root.storage for root in outputs if root.op is Ops.ASSIGN}
            if any(node.storage in ended for node in first.inputs):
                return False
        # what one hands to the other must be used at the same element
        for one, two in ((first, second), (second, first)):
            for root in one.roots:
                if root in two.places and two.places[root] != {None}:
                    return False
                if root.op is Ops.ASSIGN and not writes_where_it_reads(two, root):
                    return False
        return True

    def drop(self, chosen: Set[Node], private: bool = False) -> None:
        """Takes out of memory what only its own kernel uses: short sums, and of a private graph all.

        Who holds a sum and asks for it later has it computed again, which is little work. Where memory is overwritten,
        all stay: then what they read may be gone.

        Args:
          chosen: the nodes that are realised by choice: nobody outside of the schedule wants them in memory.
          private: nobody holds them.
        """
        if self.ordering.writers and not private:
            return
        read = {node for step in self.ordering.steps for node in step.inputs}
        for step in self.ordering.steps:
            for root in list(step.roots):
                if len(step.roots) > 1 and root in chosen and root not in read and (private or _is_short(root)):
                    step.roots.remove(root)
                    root.reason = ""

    def _is_row(self, first: Step, second: Step) -> bool:
        """Whether ``first`` computes one element for each row of ``second``, which uses it there."""
        rows = first.space.size
        if rows >= second.space.size or first.contraction or second.contraction or first.computed > _BESIDE:
            return False
        # the outer loops of ``second`` must also make the rows that ``first`` itself has merged
        if not all(second.space.has_rows(max_size(seen_shape(target_of(root)))) for root in first.roots):
            return False
        if any(not isinstance(dim, int) for dim in (*first.space.shape, *second.space.shape)):
            return False
        limits = limits_of(first.roots[0].device)
        if len(first.reductions) + len(second.reductions) > limits.stages:
            return False
        work = max(second.space.size, *(max_size(seen_shape(r.srcs[0])) for r in first.reductions), 0)
        if rows < limits.rows and work > limits.serial_elements:
            return False
        if any(root.op is Ops.ASSIGN or second.places.get(root, {ROW}) != {ROW} for root in first.roots):
            return False
        touched = {node.storage.root for node in first.inputs if node.storage is not None}
        written = [root.storage.root for root in second.roots if root.op is Ops.ASSIGN and root.storage is not None]
        return first.roots[0].device == second.roots[0].device and not touched.intersection(written)

    def _merge(self, first: Step, second: Step) -> bool:
        """Makes the two one, if a place in the order allows it."""
        before, after = self.ordering.before, self.ordering.after
        if all(step is first or step.position < first.position for step in before[second]):
            position = first.position
        elif all(step is second or step.position > second.position for step in after[first]):
            position = second.position
        else:
            return False
        for step in before.pop(second):
            del after[step][second]
            if step is not first:
                before[first][step] = None
                after[step][first] = None
        for step in after.pop(second):
            before[step].pop(second)
            if step is not first:
                after[first][step] = None
                before[step][first] = None
        first.position = position
        if first.space.size < second.space.size:
            first.places = {node: {ROW if p is None else ELSEWHERE for p in ps} for node, ps in first.places.items()}
            first.space, first.finished = second.space, None
        for node, places in second.places.items():
            if node not in first.roots:
                first.places.setdefault(node, set()).update(places)
        if any(root in second.nested for root in first.roots):
            first.nested.update(first.inputs)  # the root is evaluated in a reduction, and so are its inputs
        first.inputs.update((node, None) for node in second.inputs if node not in first.roots)
        first.roots += second.roots
        first.computed += second.computed
        first.nested |= second.nested
        first.reductions += second.reductions
        for root in second.roots:
            self.ordering.maker[root] = first
        self.gone.add(second)
        return True


_BESIDE = 24
"""Nodes, at the most, that a kernel computes of what it stores of a contraction, or for each row beside its elements.
They are written out for every register of a tile: more take longer to compile than to read what another kernel left."""
_SHORT = 16
"""Terms of a sum, at the most, that shares a kernel with another one over the same operands.

Each operand is then read once for both. Long sums are register tiles, and two at a time would leave each half of the
registers. The bound is an estimate: the sums in the passes of a Fourier transform, which gain, have 13 terms or fewer.
"""


def _alike(first: Step, second: Step) -> bool:
    """Whether two contractions are short sums over the same operands, as the parts of a complex product are."""
    if first.contraction is None or reduction_ranges(first) != reduction_ranges(second):
        return False
    if first.inputs.keys() != second.inputs.keys():
        return False
    return all(map(_is_short, second.reductions))


def _is_short(node: Node) -> bool:
    """Whether a node is a short sum, or another short reduction."""
    if node.op is not Ops.REDUCE:
        return False
    shape = seen_shape(node.srcs[0])
    return max_size(tuple(shape[axis] for axis in node.arg[1])) <= _SHORT
