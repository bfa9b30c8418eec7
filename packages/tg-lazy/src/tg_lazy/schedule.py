"""From a graph to steps: which nodes share a kernel, and in which order the kernels run."""

from __future__ import annotations

from collections.abc import Sequence

from tg_shape import Variable

from .ast import LazyOp
from .fusion import Fusion
from .graph import Graph
from .hazards import READER, held, reach_readers
from .kernel import Former, frames_of
from .lazybuffer import LEAVES, LazyBuffer, graph_lock
from .merge import Merging
from .ops import Ops
from .order import Ordering, allocate
from .origin import Origin
from .step import Step
from .storage import Storage


class ScheduleItem:
    """One step: a kernel, a copy, a view, an allocation or a host function, and the memory it works on.

    Attributes:
      ast: the SINK of a kernel; or a COPY, BUFFER_VIEW (``arg``: offset in bytes), EMPTY or CUSTOM (``arg``: the
        function) without operands.
      bufs: memory in slot order, outputs first.
      reason: why the outputs are in memory.
      origin: the line of the user's program that made the first output.
      fused: how many nodes of the graph are computed inside.
    """

    __slots__ = ("_commits", "ast", "bufs", "fused", "origin", "reason")

    def __init__(
        self, ast: LazyOp, bufs: tuple[Storage, ...], reason: str, origin: Origin,
        commits: tuple[tuple[LazyBuffer, Storage], ...] = (), fused: int = 0,
    ) -> None:  # fmt: skip
        self.ast, self.bufs, self.reason, self.origin, self.fused = ast, bufs, reason, origin, fused
        self._commits = commits

    @property
    def nodes(self) -> tuple[LazyBuffer, ...]:
        """The nodes of the lazy graph that the step realises and that are not committed yet."""
        return tuple(node for node, _ in self._commits)

    def commit(self) -> None:
        """Marks the nodes realised; to be called once the step was executed, or enqueued in order.

        An unrealised node that still reads memory that the step has overwritten is marked stale: it cannot be
        scheduled any more, and says so.
        """
        before = [
            (weak, node.origin)
            for node, storage in self._commits if node.op is Ops.ASSIGN for weak in storage.readers
        ]  # fmt: skip
        for node, storage in self._commits:
            node.realised_in(storage)
        for weak, origin in before:
            reader = weak()
            if reader is not None and not reader.is_realized and reader.op is not Ops.ASSIGN:
                reader.stale = origin
        self._commits = ()

    def __repr__(self) -> str:
        return f"<ScheduleItem {describe(self.ast)} on {', '.join(str(b.uid) for b in self.bufs)}: {self.reason}>"


def schedule(outputs: Sequence[LazyBuffer]) -> tuple[list[ScheduleItem], dict[Variable, int]]:
    """The steps that realise ``outputs``, in execution order, and the values of the symbolic variables in them.

    What is realised is each output's base. A base that is a constant, or in memory already, takes no step.

    Raises:
      ValueError: a symbolic variable is bound to two values.
      RuntimeError: a node reads memory that was overwritten since it was made, while nothing kept it from that.
    """
    with graph_lock:
        return _scheduled([out.base for out in outputs if out.base.op not in LEAVES and not out.is_realized])


def _scheduled(bases: list[LazyBuffer]) -> tuple[list[ScheduleItem], dict[Variable, int]]:
    kept: list[LazyBuffer] = []
    while True:  # what is kept changes what is fused, and so perhaps what else must be kept; it only ever grows
        with _Plan(bases, kept) as plan:
            more = [node.lazy for node in held(plan.graph) if node.lazy is not None]
            if not more:
                return plan.items(), plan.graph.bindings.values
        kept += more


class _Plan:
    """A graph and its fusion, let go of at the end of a ``with`` block: nothing here may keep the lazy graph alive."""

    def __init__(self, bases: list[LazyBuffer], kept: Sequence[LazyBuffer] = ()) -> None:
        self.graph = Graph()
        self.graph.reach(bases, "output")
        self.graph.reach(kept, READER)
        reach_readers(self.graph)
        self.fusion = Fusion(self.graph)

    def __enter__(self) -> _Plan:
        return self

    def __exit__(self, *error: object) -> None:
        self.graph.release()
        for step in self.fusion.steps:
            step.release()

    def items(self) -> list[ScheduleItem]:
        """The steps in order."""
        allocate(self.graph)
        ordering = Ordering(self.graph, self.fusion.steps)
        ordering.run()
        Merging(ordering).run()
        return [item(step) for step in ordering.steps]


def item(step: Step) -> ScheduleItem:
    """The schedule item of a step."""
    root = step.roots[0]
    commits = tuple(
        (node.lazy, node.storage) for node in step.roots if node.lazy is not None and node.storage is not None
    )
    reason = "; ".join(dict.fromkeys(node.reason for node in step.roots))
    origin = Origin(root.origin)
    if not step.is_kernel:
        op = root.op if root.size else Ops.EMPTY
        srcs = [src.storage for src, _ in root.srcs] if root.size else []
        bufs = tuple(storage for storage in (root.storage, *srcs) if storage is not None)
        arg = root.arg if op is not Ops.EMPTY else None
        return ScheduleItem(LazyOp(op, root.dtype, root.shape, (), arg), bufs, reason, origin, commits)
    ast, bufs = form(step)
    return ScheduleItem(ast, bufs, reason, origin, commits, len(step.members))


def form(step: Step) -> tuple[LazyOp, tuple[Storage, ...]]:
    """A kernel's AST and memory: over the loops of the reduction that it finishes, if that keeps reads simple."""
    former = Former(step.roots, step.swaps)
    sink = former.form(frames_of(step.roots, step.finished))
    if step.finished is not None and _views(sink) > len(former.slots):
        plain = Former(step.roots, step.swaps)
        other = plain.form(frames_of(step.roots, None))
        if _views(other) < _views(sink):
            return other, tuple(plain.slots)
    return sink, tuple(former.slots)


def _views(sink: LazyOp) -> int:
    return sum(len(n.arg[1].views) for n in sink.toposort() if n.op in (Ops.LOAD, Ops.STORE))


def describe(ast: LazyOp) -> str:
    """A kernel in a few words."""
    if ast.op is not Ops.SINK:
        return f"{ast.op.name} {ast.dtype.name}{list(ast.shape)}"
    counts: dict[str, int] = {}
    for node in ast.toposort():
        if node.op not in (Ops.CONST, Ops.SINK, Ops.STORE, Ops.LOAD):
            counts[node.op.name] = counts.get(node.op.name, 0) + 1
    ops = " ".join(f"{name}*{n}" if n > 1 else name for name, n in counts.items())
    shapes = " ".join(f"{s.src[0].dtype.name}{list(s.shape)}" for s in ast.src)
    return f"{shapes} = {ops or 'LOAD'}"
