"""What the scheduler works on: the bases reachable from the outputs, operands first, symbols unbound."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tg_dtype import DType, dtypes
from tg_shape import Expr, ShapeTracker, Variable, prod, sint, toposort, unbind

from ..cost import limits_of
from ..graph.lazybuffer import LazyBuffer, Shape, contiguous, max_size, row_major_offset
from ..graph.storage import Storage
from ..ops import Ops
from ..settings.context import STRICT
from .parts import in_parts

Edge = tuple["Node", ShapeTracker | None]
"""An operand: a node, and the tracker through which it is seen (None: as it is)."""


class Node:
    """A base as the scheduler sees it.

    Attributes:
      index: position in the graph's topological order.
      srcs: operands. Of an ASSIGN: the target, then the value.
      size: greatest number of elements.
      lazy: the node of the lazy graph that is realised with this one; None for one that the scheduler made.
      storage: the memory it is computed into, once that is decided.
      reason: why it is realised; empty while it is not.
    """

    __slots__ = (
        "arg", "device", "dtype", "index", "lazy", "op", "origin", "reason", "shape", "size", "srcs", "storage"
    )  # fmt: skip

    def __init__(
        self, op: Ops, device: str, dtype: DType, shape: Shape, srcs: tuple[Edge, ...], arg: Any = None,
        origin: tuple[str, int] = ("", 0), lazy: LazyBuffer | None = None,
    ) -> None:  # fmt: skip
        self.op, self.device, self.dtype, self.shape, self.srcs, self.arg = op, device, dtype, shape, srcs, arg
        self.origin, self.lazy = origin, lazy
        self.size = max_size(shape)
        self.index = -1
        self.storage: Storage | None = None
        self.reason = ""

    @property
    def nbytes(self) -> int:
        """Bytes of the value."""
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"<Node {self.index} {self.op.name} {self.dtype.name} {self.shape}>"


def seen_shape(edge: Edge) -> Shape:
    """The shape that an operand has for its user."""
    node, st = edge
    return node.shape if st is None else st.shape


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
            if not st.numeric:
                out, found = st.unbind()
                self._record(found, origin)
            self._trackers[st] = out
        return out


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
            if lazy.op is Ops.EMPTY:  # which reads nothing: it stands for what a replay would have to leave
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
        arg = bindings.number(lazy.arg, origin) if lazy.op is Ops.SYM else lazy.arg
        shape = bindings.shape(lazy.shape, origin)
        node = Node(lazy.op, lazy.device, lazy.dtype, shape, tuple(edges), arg, origin, lazy)
        if lazy.op is Ops.REDUCE:
            self._split(node)
        elif lazy.op is Ops.BUFFER_VIEW:
            st = node.srcs[0][1]
            node.arg = 0 if st is None else row_major_offset(st, node.srcs[0][0].dtype)
        elif lazy.op in (Ops.COPY, Ops.CUSTOM):
            node.srcs = tuple(self._range(edge, origin) for edge in node.srcs)
        elif lazy.op is Ops.BUFFER:
            node.storage, node.reason = lazy.storage, "memory"
        self.of[lazy] = self.add(node)

    def release(self) -> None:
        """Lets go of the lazy graph, which this graph must not keep alive once it is scheduled."""
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

    def _split(self, node: Node) -> None:
        """Puts a reduction of parts before a large reduction to few outputs, so that the parts can run in parallel."""
        source, st = node.srcs[0]
        shape = seen_shape(node.srcs[0])
        op, axes = node.arg
        limits = limits_of(node.device)
        count = max_size(shape) // max(node.size, 1)
        if STRICT.value and dtypes.is_float(node.dtype) and op is not Ops.MAX:
            return
        if count < limits.split_elements or node.size > limits.split_outputs:
            return
        if any(isinstance(dim, Expr) for dim in shape):
            return
        for axis in axes:
            size = shape[axis]
            assert isinstance(size, int)
            cut = in_parts(st or contiguous(shape), axis, op, node.dtype, min(limits.split_parts, max(size, 1)))
            parts = cut.shape[axis]
            assert isinstance(parts, int)
            if parts < limits.split_fewest or count // parts < limits.split_parts:
                continue
            inner = tuple(a + (a >= axis) for a in axes)
            kept = tuple(1 if a in inner else dim for a, dim in enumerate(cut.shape))
            part = self.add(Node(Ops.REDUCE, node.device, node.dtype, kept, ((source, cut),), (op, inner), node.origin))
            part.reason = f"{count} elements to each of {node.size} outputs: reduced in {parts} parts first"
            whole = tuple(parts if a == axis else dim for a, dim in enumerate(node.shape))
            node.srcs = ((part, contiguous(whole)),)
            node.arg = (op, (axis,))
            return
