"""Bases as the scheduler sees them."""

from __future__ import annotations

from typing import Any

from tg_dtype import DType
from tg_shape import ShapeTracker

from ..graph.lazybuffer import LazyBuffer
from ..graph.storage import Storage
from ..ops import Ops
from ..trackers import Shape, max_size

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


def update_of(root: Node) -> Node | None:
    """The UPDATE that an ASSIGN carries out; None of any other node."""
    value = root.srcs[1][0] if root.op is Ops.ASSIGN else root
    return value if value.op is Ops.UPDATE else None


def target_of(root: Node) -> Edge:
    """What an output is stored to: itself, or the part of the memory that an ASSIGN names."""
    return root.srcs[0] if root.op is Ops.ASSIGN else (root, None)
