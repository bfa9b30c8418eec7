"""What the scheduler works on: the bases reachable from the outputs, operands first, symbols unbound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tg_dtype import DType
from tg_shape import Expr, ShapeTracker, Variable, prod, sint, unbind

from .lazybuffer import LazyBuffer, Shape, max_size
from .ops import Ops
from .storage import Storage

Edge = tuple["Node", ShapeTracker | None]
"""An operand: a node, and the tracker through which it is seen (None: as it is)."""


class Node:
    """A base as the scheduler sees it.

    Attributes:
      index: position in the graph's topological order.
      srcs: operands. Of an ASSIGN: the target, then the value.
      size: greatest number of elements.
      lazy: the nodes that are realised with this one (none for a node that the scheduler made).
      storage: the memory it is computed into, once that is decided.
      reason: why it is realised; empty while it is not.
    """

    __slots__ = (
        "arg", "device", "dtype", "index", "lazy", "op", "origin", "reason", "shape", "size", "srcs", "storage"
    )  # fmt: skip

    def __init__(
        self, op: Ops, device: str, dtype: DType, shape: Shape, srcs: tuple[Edge, ...], arg: Any,
        origin: tuple[str, int], lazy: tuple[LazyBuffer, ...] = (),
    ) -> None:  # fmt: skip
        self.op, self.device, self.dtype, self.shape, self.srcs, self.arg = op, device, dtype, shape, srcs, arg
        self.origin, self.lazy = origin, lazy
        self.size = max_size(shape)
        self.index = -1
        self.storage: Storage | None = None
        self.reason = ""

    def __repr__(self) -> str:
        return f"<Node {self.index} {self.op.name} {self.dtype.name} {self.shape}>"


class Bindings:
    """Replaces bound variables by the variables, and keeps their values."""

    def __init__(self) -> None:
        self.values: dict[Variable, int] = {}
        self._trackers: dict[ShapeTracker, ShapeTracker] = {}

    def _record(self, found: dict[Variable, int], origin: tuple[str, int]) -> None:
        for var, value in found.items():
            if self.values.setdefault(var, value) != value:
                raise ValueError(
                    f"schedule: the variable {var.name} is bound to {self.values[var]} and to {value} in one graph "
                    f"({origin[0]}:{origin[1]})"
                )

    def number(self, x: sint, origin: tuple[str, int]) -> sint:
        """``x`` unbound."""
        if isinstance(x, int):
            return x
        out, found = unbind(x)
        self._record(found, origin)
        return out

    def shape(self, shape: Shape, origin: tuple[str, int]) -> Shape:
        """``shape`` unbound."""
        for dim in shape:
            if isinstance(dim, Expr):
                return tuple([self.number(d, origin) for d in shape])
        return shape

    def tracker(self, st: ShapeTracker, origin: tuple[str, int]) -> ShapeTracker:
        """``st`` unbound."""
        out = self._trackers.get(st)
        if out is None:
            out = st
            if st.vars() or any(isinstance(dim, Expr) for dim in st.shape):
                out, found = st.unbind()
                self._record(found, origin)
            self._trackers[st] = out
        return out


class Graph:
    """The bases behind some outputs.

    Attributes:
      nodes: operands before what uses them.
      outputs: the nodes that were asked for.
      bindings: the values of the symbolic variables.
    """

    def __init__(self, outputs: Sequence[LazyBuffer]) -> None:
        self.nodes: list[Node] = []
        self.bindings = Bindings()
        self.of: dict[LazyBuffer, Node] = {}
        for output in outputs:
            self.reach(output.base)
        self.outputs = [self.of[output.base] for output in outputs]

    def reach(self, root: LazyBuffer) -> None:
        """Adds ``root`` and what it depends on."""
        of = self.of
        stack = [root]
        while stack:
            lazy = stack[-1]
            if lazy in of:
                stack.pop()
                continue
            missing = [src.base for src in lazy.srcs if src.base not in of]
            if missing:
                missing.reverse()
                stack.extend(missing)
                continue
            stack.pop()
            self._add(lazy)

    def _add(self, lazy: LazyBuffer) -> None:
        if lazy.stale is not None:
            raise RuntimeError(
                f"{lazy.op.name} of shape {lazy.shape}, made at {lazy.origin[0]}:{lazy.origin[1]}, was not realised "
                f"before the memory that it reads was overwritten by the ASSIGN at {lazy.stale[0]}:{lazy.stale[1]}"
            )
        bindings, origin = self.bindings, lazy.origin
        edges: list[Edge] = []
        for src in lazy.srcs:
            base = src.base
            edges.append((self.of[base], None if base is src else bindings.tracker(src.st, origin)))
        arg = bindings.number(lazy.arg, origin) if lazy.op is Ops.SYM else lazy.arg
        shape = bindings.shape(lazy.shape, origin)
        self.add(
            Node(lazy.op, lazy.device, lazy.dtype, shape, tuple(edges), arg, origin, (lazy,)), lazy
        ).storage = lazy.storage

    def add(self, node: Node, lazy: LazyBuffer | None = None) -> Node:
        """Appends a node whose operands are in the graph."""
        node.index = len(self.nodes)
        self.nodes.append(node)
        if lazy is not None:
            self.of[lazy] = node
        return node


def elements(shape: Shape) -> sint:
    """Number of elements."""
    return prod(shape)
