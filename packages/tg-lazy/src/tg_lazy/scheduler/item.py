"""One step of a schedule."""

from __future__ import annotations

from ..ast.nodes import LazyOp
from ..graph.lazybuffer import LazyBuffer
from ..graph.origin import Origin
from ..graph.storage import Storage
from ..ops import Ops


class ScheduleItem:
    """One step: a kernel, a copy, a view, an allocation or a host function, and the memory it works on.

    Attributes:
      ast: the SINK of a kernel; or a COPY, BUFFER_VIEW (``arg``: offset in bytes), EMPTY or CUSTOM (``arg``: the
        function) without operands.
      bufs: memory in slot order, outputs first.
      reason: why the outputs are in memory.
      origin: the line of the user's program that made the first output.
      fused: how many nodes of the graph are computed inside.
      commits: the nodes of the lazy graph that it realises, each with its memory; none once they are committed.
    """

    __slots__ = ("_known", "ast", "bufs", "commits", "fused", "origin", "reason")

    def __init__(
        self, ast: LazyOp, bufs: tuple[Storage, ...], reason: str, origin: Origin,
        commits: tuple[tuple[LazyBuffer, Storage], ...] = (), fused: int = 0,
    ) -> None:  # fmt: skip
        self.ast, self.bufs, self.reason, self.origin, self.fused = ast, bufs, reason, origin, fused
        self.commits = commits
        # the readers, at this moment, of what an assignment overwrites
        self._known = tuple([
            (weak, node.origin) for node, _ in commits if node.op is Ops.ASSIGN
            for weak in list(node.srcs[0].base.readers)
        ])  # fmt: skip
        for weak, _ in self._known:
            reader = weak()
            if reader is not None:
                reader.unshare()  # so that a thread that builds the same graph does not get a node that will be stale

    @property
    def nodes(self) -> tuple[LazyBuffer, ...]:
        """The nodes of the lazy graph that the step realises and that are not committed yet."""
        return tuple(node for node, _ in self.commits)

    def commit(self) -> None:
        """Marks the nodes realised. To be called once the step was executed, or enqueued in order.

        An unrealised node that still reads memory that the step has overwritten becomes stale: scheduling it raises.
        One that another thread has made since then reads the new content, as the program did not order the two.
        """
        for node, storage in self.commits:
            node.realised_in(storage)
        for weak, origin in self._known:
            reader = weak()
            if reader is not None and not reader.is_realized and reader.op is not Ops.ASSIGN:
                reader.stale = origin
        self.commits = self._known = ()

    def __repr__(self) -> str:
        return f"<ScheduleItem {describe(self.ast)} on {', '.join(str(b.uid) for b in self.bufs)}: {self.reason}>"


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
