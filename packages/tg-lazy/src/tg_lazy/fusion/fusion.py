"""Fusion: which nodes are realised, and which are computed inside the kernels that use them.

One pass from the outputs back. When a node's turn comes, everything that uses it has been placed, so it is known in
which loops of which kernels it would be evaluated, and how often. It is realised if it has to be (outputs, memory, what
is read as a whole), if no single kernel could hold it (limits), if it is a reduction that its users do not see row by
row, or if computing it again would cost more than memory (see :mod:`tg_lazy.cost`).
"""

from __future__ import annotations

from tg_shape import ShapeTracker, prod

from ..cost import READING, limits_of
from ..ops import LEAVES, MEMORY, Ops
from ..subgraph.graph import Graph
from ..subgraph.node import Edge, Node, seen_shape, update_of
from ..trackers import injective, max_size, over
from .node_facts import NodeFacts
from .step import ELSEWHERE, ROW, Space, Step, Use, aligned, is_kernel


class Fusion:
    """The decisions for one graph.

    Attributes:
      steps: one per realised node, in the order in which operands come first.
      chosen: the nodes that are realised because it costs less, not because anybody wants them in memory.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.chosen = require(graph)
        self.facts = NodeFacts(graph)
        self.uses: list[dict[Use, None] | None] = [None] * len(graph.nodes)
        self.steps: list[Step] = []
        for node in reversed(graph.nodes):
            self._place(node)
        self.steps.reverse()

    def _place(self, node: Node) -> None:
        if node.op in LEAVES and not node.reason:
            return
        if node.op is Ops.BUFFER:
            self._note_reads(node)
            return
        uses = self.uses[node.index]
        if not node.reason:
            if uses is None:
                return
            node.reason = self._judge(node, uses)
            if not node.reason:
                self._fuse(node, uses)
                return
            self.chosen.add(node)
        self._start(node)
        self._note_reads(node)

    def _note_reads(self, node: Node) -> None:
        for space, st in self.uses[node.index] or ():
            step = space.step
            step.inputs[node] = None
            step.places.setdefault(node, set()).add(_place(step, space, st))

    # -- placing -----------------------------------------------------------------------------------------------------

    def _start(self, node: Node) -> None:
        step = Step(node)
        self.steps.append(step)
        if not is_kernel(node):
            if node.op is not Ops.EMPTY and node.size:
                for src, _ in node.srcs:
                    step.inputs[src] = None
                    if node.op is not Ops.BUFFER_VIEW:  # which only gives a name to a part
                        step.places[src] = {ELSEWHERE}
            return
        step.computed = 1
        space = step.space
        if node.op is Ops.ASSIGN:
            target, _ = node.srcs[0]
            step.inputs[target] = None
            update = update_of(node)
            if update is None:
                self._use(node, node.srcs[1], space, None)
            else:
                self._operands(update, space, None)
        elif node.op is Ops.REDUCE:
            self._open(node, space)
        else:
            self._operands(node, space, None)

    def _fuse(self, node: Node, uses: dict[Use, None]) -> None:
        for space, st in uses:
            step = space.step
            step.inputs.pop(node, None)
            step.computed += 1
            if node.op is Ops.REDUCE:
                if space is step.space and not self.facts.constant[node.index]:
                    step.finished = None if step.reductions else (node, st)
                self._open(node, space if st is None else self._apart(space))
            else:
                self._operands(node, space, st)

    def _operands(self, node: Node, space: Space, st: ShapeTracker | None) -> None:
        srcs = node.srcs
        if node.op is Ops.GATHER:
            source = srcs[0][0]
            space.step.inputs[source] = None
            space.step.places.setdefault(source, set()).add(ELSEWHERE)
            space.step.nested.add(source)
            srcs = srcs[1:]
        for edge in srcs:
            self._use(node, edge, space, st)

    def _open(self, node: Node, space: Space) -> None:
        step = space.step
        step.reductions.append(node)
        if self.facts.contracts(node):
            step.contraction = node
        self._use(node, node.srcs[0], space.inside(node, seen_shape(node.srcs[0])), None)

    def _apart(self, space: Space) -> Space:
        """``space`` with rows of its own: what is evaluated there does not walk the rows in order."""
        return Space(space.step, space.shape, space.order, space.units, {}, space.reduction)

    def _use(self, node: Node, edge: Edge, space: Space, st: ShapeTracker | None) -> None:
        """Notes that the operand ``edge`` of ``node``, which ``space`` sees through ``st``, is evaluated there."""
        src, own = edge
        if src.op in LEAVES and not src.reason:
            return
        if space is not space.step.space or node in space.step.nested:
            space.step.nested.add(src)
        seen = over(own, st)
        if seen is not None:
            elements = prod(src.shape)
            if seen.shape != space.shape:
                seen = seen.reshape(space.shape)
            if seen.contiguous and seen.size == elements:
                seen = None
            elif aligned(space.shape, space.order, seen, elements):
                space, seen = space.row(elements), None
        uses = self.uses[src.index]
        if uses is None:
            uses = self.uses[src.index] = {}
        uses[space, seen] = None
        space.step.inputs[src] = None

    # -- judging -----------------------------------------------------------------------------------------------------

    def _judge(self, node: Node, uses: dict[Use, None]) -> str:
        """Why ``node`` is realised; empty if it is not."""
        limits = limits_of(node.device)
        if self.facts.constant[node.index]:
            return ""
        most = limits.uses if node.op is Ops.REDUCE or self._evaluated(node, uses) > node.size else limits.beside
        if len(uses) > most:
            return f"it would be computed in {len(uses)} places, more than {most}"
        for space, _ in uses:
            step = space.step
            if step.computed >= limits.nodes:
                return f"a kernel holds at most {limits.nodes} nodes"
            if len(step.inputs) + len(node.srcs) >= limits.buffers:
                new = sum(1 for src, _ in node.srcs if src.op not in LEAVES and src not in step.inputs)
                if len(step.inputs) + new >= limits.buffers:
                    return f"a kernel takes at most {limits.buffers} buffers"
        return self._judge_reduction(node, uses) if node.op is Ops.REDUCE else self._judge_value(node, uses)

    def _evaluated(self, node: Node, uses: dict[Use, None]) -> int:
        """How often a node is evaluated for its uses. Kernels without reductions have short loops side by side."""
        facts, i = self.facts, node.index
        most = 1 if facts.rows[i] or facts.finishes[i] is not None else limits_of(node.device).beside
        return sum(
            space.evaluations(st, 1 if space.reduction is not None or space.step.reductions else most)
            for space, st in uses)

    def _judge_reduction(self, node: Node, uses: dict[Use, None]) -> str:
        limits = limits_of(node.device)
        if len(uses) > 1:
            kernels = len({id(space.step) for space, _ in uses})
            return f"a reduction used in {len(uses)} places of {kernels} kernel{'s' if kernels > 1 else ''}"
        (space, st), = uses
        step = space.step
        if update_of(step.roots[0]) is not None:
            return "an update reads each of its operands once"
        count = self._work(node)
        heavy = self.facts.contracts(node)
        block = heavy and self._is_block(node, space, st)
        if st is not None:
            if space is not step.space or step.reductions or not injective(st):
                return f"a reduction seen through a view that does not walk its {node.size} results row by row"
        elif len(step.reductions) >= limits.stages:
            return f"a kernel holds at most {limits.stages} reductions"
        if heavy and (space is not step.space or step.reductions) and not block:
            return f"a contraction ({count} products to {node.size} results) shares a kernel only with what follows it"
        if step.contraction is not None and not block:
            return f"a reduction to {node.size} results would wait inside a contraction"
        if space is step.space:
            return ""
        units = min(space.units, step.space.units) if space.reduction is not None else space.size
        if units < limits.rows and count > limits.serial_elements:
            return (
                f"{units} rows (fewer than {limits.rows}) would share {count} elements "
                f"(more than {limits.serial_elements}) in one kernel"
            )
        return ""

    def _is_block(self, contraction: Node, space: Space, st: ShapeTracker | None) -> bool:
        """Whether a kernel may add up what a contraction gives, or what is made of that, block by block.

        Args:
          contraction: of integers, if it is a block.
          space: where the terms are evaluated.
          st: how that sees the contraction, or what is made of it element by element.
        """
        around = space.reduction
        if not limits_of(contraction.device).block_sums or around is None or st is not None:
            return False
        seen, own = ([(axis, dim) for axis, dim in enumerate(shape) if dim != 1]
                     for shape in (space.shape, contraction.shape))
        if around.arg[0] is not Ops.ADD or [dim for _, dim in seen] != [dim for _, dim in own]:
            return False
        added = [mine for (axis, _), (mine, _) in zip(seen, own, strict=True) if axis in around.arg[1]]
        blocks = [contraction, *(node for node in space.step.reductions if node is not around)]
        return bool(added) and all(
            node.shape == contraction.shape and self.facts.gives_blocks(node, added) for node in blocks)

    def _work(self, node: Node) -> int:
        return max_size(seen_shape(node.srcs[0]))

    def _judge_value(self, node: Node, uses: dict[Use, None]) -> str:
        facts, i = self.facts, node.index
        rows = facts.rows[i]
        if rows and any(space.reduction is not None and not space.has_rows(rows) for space, _ in uses):
            return f"it is computed in {rows} rows, and reduced along other loops"
        finished = facts.finishes[i]
        if finished is not None:
            if len(uses) > 1:
                return f"it ends the epilogue of a reduction and is used in {len(uses)} places"
            (space, st), = uses
            if facts.contracts(finished) and (
                space is not space.step.space or space.step.contraction is not None
                or not (st is None or injective(st))
            ) and not self._is_block(finished, space, st):  # fmt: skip
                return "it ends the epilogue of a contraction"
        elif len(uses) == 1 and next(iter(uses))[1] is None:
            return ""
        again = self._evaluated(node, uses) - node.size
        if again <= 0 or not node.size:  # what has no elements is only padded
            return ""
        reads = facts.reads[i]
        if not reads and facts.flops[i] <= READING:
            return ""
        limits = limits_of(node.device)
        steps = {space.step for space, _ in uses}
        passes = len(steps)
        if reads > limits.cache_bytes * max(1, min(space.units for space, _ in uses)):
            passes = len(uses)
        saved = node.nbytes * (1 + passes) - (passes - 1) * reads
        balance, launch = limits.balance, limits.launch_bytes
        if any(space.reduction is not None and facts.contracts(space.reduction) for space, _ in uses):
            balance, launch = balance / 4, 0  # a contraction's inner loop has no time to spare
        flops = facts.flops[i] * again
        if flops <= balance * (saved + launch):
            return ""
        return (
            f"computing {node.size} elements again {again / node.size:.3g} times costs {flops:.3g} flops; "
            f"memory costs {max(saved + launch, 0):.3g} bytes at {balance:g} flops a byte"
        )


def _place(step: Step, space: Space, st: ShapeTracker | None) -> ShapeTracker | str | None:
    if space is step.space:
        return st
    return ROW if st is None and space.reduction is None and space.rows is step.space.rows else ELSEWHERE


def require(graph: Graph) -> set[Node]:
    """Gives a reason to the nodes that are realised whatever it costs.

    Returns:
      Those that nobody wants in memory: they are to be computed once.
    """
    intermediates: set[Node] = set()
    for node in graph.nodes:
        op = node.op
        if op is Ops.CONTIGUOUS and node.arg and not node.reason:
            intermediates.add(node)
        if op in MEMORY:
            node.reason = node.reason or f"{op.name} owns memory"
            read = node.srcs[:1] if op is Ops.ASSIGN else () if op is Ops.CONTIGUOUS else node.srcs
        else:
            read = node.srcs[:1] if op is Ops.GATHER else ()
        for src, _ in read:
            src.reason = src.reason or f"{op.name} reads it as a whole"
            intermediates.discard(src)
    return intermediates
