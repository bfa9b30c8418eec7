"""The order of rewriting between emission and linearisation."""

from __future__ import annotations

from tg_dtype import DType
from tg_lazy import Ops

from ...ir.bounds import Bounds
from ...ir.uop import UOp, is_alu
from ...machine.renderer import Renderer
from ..engine import graph_rewrite
from .decompose import decompose
from .legalize import legalize
from .simplify import simplify


def _lacks(sink: UOp, renderer: Renderer) -> bool:
    """Whether the kernel has an elementwise op that the renderer does not."""
    seen: set[tuple[Ops, DType]] = set()
    for u in sink.toposort():
        if is_alu(u):
            assert isinstance(u.op, Ops)
            seen.add((u.op, u.src[-1].dtype.scalar()))
    return not all(renderer.supports_op(op, dtype) for op, dtype in seen)


def full_rewrite(sink: UOp, renderer: Renderer) -> UOp:
    """The structured form of a kernel, simplified and brought to the dtypes and ops that ``renderer`` has.

    Simplify; store and compute with dtypes that the renderer lacks through ones that it has; decompose missing ops;
    simplify what that made.

    Args:
      sink: a kernel as :mod:`tg_codegen.ir.uop` describes it.
    """
    sink = graph_rewrite(sink, simplify, Bounds())
    changed = legalize(sink, renderer)
    if _lacks(changed, renderer):
        changed = graph_rewrite(changed, decompose, renderer)
    if changed is not sink:
        sink = graph_rewrite(changed, simplify, Bounds())
        if _lacks(sink, renderer):  # simplification may bring back what is missing: a - b for a + -b
            sink = graph_rewrite(sink, decompose, renderer)
    return sink
