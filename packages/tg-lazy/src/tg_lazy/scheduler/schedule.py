"""The way from outputs to schedule items, through every room below."""

from __future__ import annotations

from collections.abc import Sequence

from tg_shape import Variable

from ..ast.nodes import LazyOp
from ..cost import limits_of
from ..fusion.fusion import Fusion
from ..fusion.step import Step
from ..graph.lazybuffer import LazyBuffer, graph_lock
from ..graph.origin import Origin
from ..kernel.builder import KernelBuilder
from ..kernel.rows import in_rows
from ..kernel.steps import build_kernel, build_row_kernel
from ..ops import LEAVES, Ops
from ..order.merge import Merging
from ..order.order import Ordering, allocate
from ..order.peak_memory import lower_peak
from ..order.row_chains import chains
from ..order.verify import verify_order
from ..settings.collector import Uncollected
from ..subgraph.factor_layout import lay_out_factors
from ..subgraph.graph import Graph
from ..subgraph.hazards import READER, kept, reach_readers
from ..subgraph.narrow_gather import narrow_gathers
from . import template
from .anomaly import ANOMALY, Parts
from .item import ScheduleItem

_VIEW = Ops.VIEW


def schedule(
    outputs: Sequence[LazyBuffer], private: bool = False
) -> tuple[list[ScheduleItem], dict[Variable, int]]:  # fmt: skip
    """The steps that realise ``outputs``, in execution order, and the values of the symbolic variables in them.

    What is realised is each output's base. A base that is a constant, or in memory already, takes no step.

    Args:
      outputs: what is wanted.
      private: nobody holds another node of the graph, and nobody will ask for one later: what only the kernel reads
        that computes it needs no memory.

    Raises:
      ValueError: if a symbolic variable is bound to two values.
      RuntimeError: if a node is stale: it reads memory that was overwritten before the node was realised.
    """
    with graph_lock:
        bases = _unrealised(outputs)
        if not bases:
            return [], {}
        if ANOMALY.value:  # each step knows the lines of its parts, which differ in graphs of one structure
            return _scheduled(bases, private=private)
        found = template.structure(bases, private)
        if found is None:
            return _scheduled(bases, private=private)
        known = template.recall(found)
        if known is not None:
            return known.items(found.nodes), {}
        items, variables = _scheduled(bases, found, private)
        if not variables:
            template.remember(found, items)
        return items, variables


def recognise(
    outputs: Sequence[LazyBuffer],
) -> tuple[template.Template, list[LazyBuffer], list[ScheduleItem] | None] | tuple[()] | None:
    """The remembered schedule of a graph like that of ``outputs``, and the nodes that take the places in it.

    If it overwrites memory, its items are included: they hold the present readers of that memory, and the lock keeps
    others from becoming readers meanwhile.

    Returns:
      An empty tuple if there is nothing to do; None if no such schedule is remembered, and :func:`schedule` has to make
      one.
    """
    with graph_lock:
        bases = _unrealised(outputs)
        if not bases:
            return ()
        found = template.structure(bases)
        known = None if found is None else template.recall(found)
        if found is None or known is None:
            return None
        return known, found.nodes, known.items(found.nodes) if found.assigns else None


def _unrealised(outputs: Sequence[LazyBuffer]) -> list[LazyBuffer]:
    """The bases of ``outputs`` that it takes a step to realise."""
    bases = []
    for out in outputs:
        base = out.srcs[0] if out.op is _VIEW else out
        if base._storage is None and base.op not in LEAVES:
            bases.append(base)
    return bases


def _scheduled(
    bases: list[LazyBuffer], found: template.Structure | None = None, private: bool = False
) -> tuple[list[ScheduleItem], dict[Variable, int]]:
    extra = [] if found is None else found.readers
    held = None if found is None else found.held
    while True:  # what is kept changes what is fused, and so perhaps what else must be kept; it only ever grows
        with Uncollected(), _Plan(bases, extra) as plan:
            more = kept(plan.graph, held)
            if not more:
                return plan.items(private), plan.graph.bindings.values
        extra = [*extra, *more]


class _Plan:
    """A graph and its fusion, released at the end of a ``with`` block, so that they keep no lazy graph alive."""

    def __init__(self, bases: list[LazyBuffer], extra: Sequence[LazyBuffer] = ()) -> None:
        self.graph = Graph()
        self.graph.reach(bases, "output")
        self.graph.reach(extra, READER)
        reach_readers(self.graph)
        self.graph.nodes = lay_out_factors(narrow_gathers(self.graph.nodes))
        self.fusion = Fusion(self.graph)

    def __enter__(self) -> _Plan:
        return self

    def __exit__(self, *error: object) -> None:
        self.graph.release()
        for step in self.fusion.steps:
            step.release()

    def items(self, private: bool) -> list[ScheduleItem]:
        """The steps in order."""
        allocate(self.graph)
        ordering = Ordering(self.graph, self.fusion.steps)
        ordering.run()
        merging = Merging(ordering)
        merging.run()
        merging.drop(self.fusion.chosen, private)
        runs = lower_peak(chains(ordering, self.fusion.chosen), ordering)
        verify_order([step for run in runs for step in run])
        return [found for run in runs for found in run_items(run)]


def run_items(run: Sequence[Step]) -> list[ScheduleItem]:
    """The schedule items of steps that may share a kernel in blocks of rows: one, or one for each."""
    if len(run) > 1:
        sink, bufs, builders = build_row_kernel(run)
        found = in_rows(sink, limits_of(run[0].roots[0].device))
        if found is not None:
            last = item(run[-1])
            return [ScheduleItem(found, bufs, last.reason, _origin(run[-1], builders), last.commits,
                                 sum(step.computed for step in run))]
    return [item(step) for step in run]


def _origin(step: Step, builders: Sequence[KernelBuilder]) -> Origin:
    """Where the first output of a kernel comes from; in anomaly mode where each of its operations does."""
    origin = step.roots[0].origin
    return Parts.of(origin, builders) if ANOMALY.value else Origin(origin)


def item(step: Step) -> ScheduleItem:
    """The schedule item of a step."""
    root = step.roots[0]
    commits = tuple(
        (node.lazy, node.storage) for node in step.roots if node.lazy is not None and node.storage is not None
    )
    reason = "; ".join(dict.fromkeys(node.reason for node in step.roots))
    if not step.is_kernel:
        op = root.op if root.size else Ops.EMPTY
        srcs = [src.storage for src, _ in root.srcs] if root.size else []
        bufs = tuple(storage for storage in (root.storage, *srcs) if storage is not None)
        arg = root.arg if op is not Ops.EMPTY else None
        return ScheduleItem(LazyOp(op, root.dtype, root.shape, (), arg), bufs, reason, Origin(root.origin), commits)
    ast, builder = build_kernel(step)
    return ScheduleItem(ast, tuple(builder.slots), reason, _origin(step, [builder]), commits, step.computed)
