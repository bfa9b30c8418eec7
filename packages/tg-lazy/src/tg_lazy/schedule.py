"""From a graph to steps: which nodes share a kernel, in which order the kernels run."""

from __future__ import annotations

from collections.abc import Sequence

from tg_shape import Variable

from .ast import LazyOp
from .graph import Graph, Node
from .kernel import Former
from .lazybuffer import LEAVES, MEMORY, LazyBuffer, byte_range, graph_lock
from .ops import ALU, Ops
from .origin import Origin
from .storage import Storage


class ScheduleItem:
    """One step: a kernel, a copy, a view, an allocation or a host function, and the memory it works on.

    Attributes:
      ast: SINK of a kernel, or a COPY, BUFFER_VIEW (``arg``: offset in bytes), EMPTY or CUSTOM (``arg``: the function)
        without operands.
      bufs: memory in slot order, outputs first.
      nodes: the nodes of the lazy graph that the step realises.
      reason: why these nodes are in memory.
      origin: the line of the user's program that made the first of them.
    """

    __slots__ = ("_commits", "ast", "bufs", "origin", "reason")

    def __init__(
        self, ast: LazyOp, bufs: tuple[Storage, ...], reason: str, origin: Origin,
        commits: tuple[tuple[LazyBuffer, Storage], ...] = (),
    ) -> None:  # fmt: skip
        self.ast, self.bufs, self.reason, self.origin = ast, bufs, reason, origin
        self._commits = commits

    @property
    def nodes(self) -> tuple[LazyBuffer, ...]:
        """The nodes of the lazy graph that the step realises."""
        return tuple(node for node, _ in self._commits)

    def commit(self) -> None:
        """Marks the nodes realised; to be called once the step was executed (or enqueued in order)."""
        for node, storage in self._commits:
            if node.op is Ops.ASSIGN:
                for reader in storage.readers.alive():
                    if reader is not node and not reader.is_realized and reader.op is not Ops.ASSIGN:
                        reader.stale = node.origin
            node.realised_in(storage)
        self._commits = ()

    def __repr__(self) -> str:
        return f"<ScheduleItem {self.ast.op.name} {[b.uid for b in self.bufs]} {self.reason} ({self.origin})>"


def schedule(outputs: Sequence[LazyBuffer]) -> tuple[list[ScheduleItem], dict[Variable, int]]:
    """The steps that realise ``outputs``, in order, and the values of the symbolic variables in them."""
    with graph_lock:
        graph = Graph(outputs)
        items: list[ScheduleItem] = []
        _decide(graph)
        for node in graph.nodes:
            if node.reason and node.op is not Ops.BUFFER:
                items.append(_item(node))
        return items, graph.bindings.values


def _decide(graph: Graph) -> None:
    uses: dict[Node, int] = {}
    for node in graph.nodes:
        for src, _ in node.srcs:
            uses[src] = uses.get(src, 0) + 1
    for node in graph.nodes:
        if node.op is Ops.BUFFER:
            node.reason = "memory"
        elif node.op in MEMORY:
            node.reason = "memory op"
    for node in graph.outputs:
        if node.op not in LEAVES:
            node.reason = "output"
    fused: set[Node] = set()
    for node in graph.nodes:
        for n, (src, st) in enumerate(node.srcs):
            if node.op in (Ops.COPY, Ops.CUSTOM, Ops.BUFFER_VIEW) or (node.op is Ops.GATHER and n == 0):
                src.reason = src.reason or "read whole"
            elif uses[src] == 1 and src.op in ALU and st is None and node.op in ALU:
                fused.add(src)
    for node in graph.nodes:
        if not node.reason and node.op not in LEAVES and node not in fused:
            node.reason = "realised"
        if node.reason and node.storage is None:
            node.storage = node.srcs[0][0].storage if node.op is Ops.ASSIGN else None
            node.storage = node.storage or Storage(node.device, node.size, node.dtype)


def _item(node: Node) -> ScheduleItem:
    assert node.storage is not None
    commits = tuple((lazy, node.storage) for lazy in node.lazy)
    origin = Origin(node.origin)
    if node.size == 0 or node.op is Ops.EMPTY:
        return ScheduleItem(LazyOp(Ops.EMPTY, node.dtype, node.shape), (node.storage,), node.reason, origin, commits)
    if node.op in (Ops.COPY, Ops.CUSTOM, Ops.BUFFER_VIEW):
        srcs = tuple(src.storage for src, _ in node.srcs if src.storage is not None)
        arg = node.arg if node.op is not Ops.BUFFER_VIEW else byte_range(node.lazy[0].srcs[0])
        return ScheduleItem(
            LazyOp(node.op, node.dtype, node.shape, (), arg), (node.storage, *srcs), node.reason, origin, commits
        )
    former = Former((node,))
    ast, bufs = former.form()
    return ScheduleItem(ast, bufs, node.reason, origin, commits)


def explain(items: Sequence[ScheduleItem]) -> str:
    """Each step and why it is one."""
    return "\n".join(repr(item) for item in items)
