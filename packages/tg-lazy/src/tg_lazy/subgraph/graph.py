"""The subgraph of one schedule: the bases reachable from the outputs, operands first, symbols unbound."""

from __future__ import annotations

from collections.abc import Iterable

from tg_shape import prod, toposort

from ..graph.lazybuffer import LazyBuffer
from ..ops import Ops
from ..trackers import row_major_offset
from .bindings import Bindings
from .node import Edge, Node
from .split_reduction import split


class Graph:
    """The bases behind some outputs.

    Attributes:
      nodes: operands before what uses them.
      bindings: the values of the symbolic variables.
      of: the node of each base of the lazy graph.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.bindings = Bindings()
        self.of: dict[LazyBuffer, Node] = {}

    def reach(self, outputs: Iterable[LazyBuffer], reason: str) -> None:
        """Adds bases, to be realised for ``reason``, and what they depend on."""
        of = self.of

        def unmet(lazy: LazyBuffer) -> list[LazyBuffer]:
            bases = [src.srcs[0] if src.op is Ops.VIEW else src for src in lazy.srcs]
            return [base for base in bases if base not in of]

        outputs = list(outputs)
        for lazy in toposort([output for output in outputs if output not in of], unmet):
            self._add(lazy)
        for output in outputs:
            of[output].reason = of[output].reason or reason

    def _add(self, lazy: LazyBuffer) -> None:
        if lazy.stale is not None:
            if lazy.op is Ops.EMPTY:  # which reads nothing: a placeholder for what a recorded function would return
                raise RuntimeError(
                    f"a value of shape {lazy.shape}, made at {lazy.origin[0]}:{lazy.origin[1]}, was left by the "
                    f"function at {lazy.stale[0]}:{lazy.stale[1]} uncomputed, or as a view of its argument, and is not "
                    "left by replays of its record: realise it in the function, or a copy of it"
                )
            raise RuntimeError(
                f"{lazy.op.name} of shape {lazy.shape}, made at {lazy.origin[0]}:{lazy.origin[1]}, was not realised "
                f"before the memory that it reads was overwritten by the ASSIGN at {lazy.stale[0]}:{lazy.stale[1]}"
            )
        bindings, origin = self.bindings, lazy.origin
        edges: list[Edge] = []
        for src in lazy.srcs:
            if src.op is Ops.VIEW:
                edges.append((self.of[src.srcs[0]], bindings.tracker(src.st, origin)))
            else:
                edges.append((self.of[src], None))
        arg = lazy.arg
        if lazy.op is Ops.SYM:
            arg = bindings.number(arg, origin)
        elif lazy.op is Ops.UPDATE:
            op, where, found, distinct = arg
            kept = None if found is None else bindings.tracker(found, origin)
            arg = op, bindings.tracker(where, origin), kept, distinct
        shape = bindings.shape(lazy.shape, origin)
        node = Node(lazy.op, lazy.device, lazy.dtype, shape, tuple(edges), arg, origin, lazy)
        if lazy.op is Ops.REDUCE:
            part = split(node)
            if part is not None:
                self.add(part)
        elif lazy.op is Ops.BUFFER_VIEW:
            st = node.srcs[0][1]
            node.arg = 0 if st is None else row_major_offset(st, node.srcs[0][0].dtype)
        elif lazy.op in (Ops.COPY, Ops.CUSTOM):
            node.srcs = tuple(self._range(edge, origin) for edge in node.srcs)
        elif lazy.op is Ops.BUFFER:
            node.storage, node.reason = lazy.storage, "memory"
        self.of[lazy] = self.add(node)

    def release(self) -> None:
        """Drops the lazy graph, which this graph must not keep alive once it is scheduled."""
        for node in self.nodes:
            node.lazy = None
        self.of.clear()

    def add(self, node: Node) -> Node:
        """Appends a node whose operands are in the graph."""
        node.index = len(self.nodes)
        self.nodes.append(node)
        return node

    def _range(self, edge: Edge, origin: tuple[str, int]) -> Edge:
        """An operand that is read as a whole: a part of a buffer becomes a buffer of its own over the same memory."""
        source, st = edge
        if st is None or (st.contiguous and st.size == prod(source.shape)):
            return edge
        part = Node(Ops.BUFFER_VIEW, source.device, source.dtype, st.shape, (edge,), None, origin)
        part.arg = row_major_offset(st, source.dtype)
        part.reason = "a range of memory that is read as a whole"
        source.reason = source.reason or "a part of it is read as a whole"
        return self.add(part), None
