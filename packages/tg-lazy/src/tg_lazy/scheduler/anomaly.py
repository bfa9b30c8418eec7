"""Anomaly mode: schedule items that record which line of the user's program made each of their operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tg_shape import ShapeTracker, sint

from ..ast.nodes import LazyOp
from ..graph.lazybuffer import tell_methods
from ..graph.origin import Origin
from ..kernel.builder import KernelBuilder
from ..ops import LEAVES, Ops
from ..settings.context import ContextVar

ANOMALY: ContextVar[int] = ContextVar("ANOMALY", 0, tell_methods)
"""Whether what kernels write is checked: 1 for NaN, 2 for infinities as well."""


class Part(NamedTuple):
    """What a node of a kernel's AST is in the lazy graph.

    Attributes:
      origin: file and line of the user's program; a :class:`~tg_lazy.graph.origin.Told` where more is known.
      shape: the shape of the node of the lazy graph.
      seen: how the kernel sees it; None: as it is.
    """

    origin: tuple[str, int]
    shape: tuple[sint, ...]
    seen: ShapeTracker | None


class Parts(Origin):
    """The origin of a kernel, and of its parts.

    Attributes:
      parts: what nodes of the kernel's AST are, as far as that is known.
    """

    parts: dict[LazyOp, Part]

    @staticmethod
    def of(origin: tuple[str, int], builders: Sequence[KernelBuilder]) -> Parts:
        """What a kernel's AST was formed of."""
        made = Parts(origin)
        made.parts = {}
        for builder in builders:
            for (node, seen, _), formed in builder.memo.items():
                if node.op in LEAVES or node.op is Ops.BUFFER:
                    continue
                made.parts.setdefault(formed, Part(node.origin, node.shape, seen))
                for inner in formed.src:  # of which a select or a view was made
                    if inner.op is node.op:
                        own = seen if inner.shape == formed.shape and inner.op is not Ops.REDUCE else None
                        made.parts.setdefault(inner, Part(node.origin, node.shape, own))
        return made
