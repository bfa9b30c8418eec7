"""The order of rewriting between emission and linearisation."""

from __future__ import annotations

from collections.abc import Iterator

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
            seen.add((u.op, u.src[-1].dtype))
    return not all(renderer.supports_op(op, dtype.scalar()) for op, dtype in seen)


def full_rewrite(sink: UOp, renderer: Renderer) -> UOp:
    """The structured form of a kernel, simplified and brought to the dtypes and ops that ``renderer`` has.

    Args:
      sink: a kernel as :mod:`tg_codegen.ir.uop` describes it.
      renderer: the language and machine.
    """
    rewritten = sink
    for _, after in rewrites(sink, renderer):
        rewritten = after
    return rewritten


def rewrites(sink: UOp, renderer: Renderer) -> Iterator[tuple[str, UOp]]:
    """Each stage of :func:`full_rewrite` by its name, and the kernel after it; the last one is the result.

    Simplify; store and compute with dtypes that the renderer lacks through ones that it has; decompose missing ops;
    simplify what that made.
    """
    sink = graph_rewrite(sink, simplify, Bounds())
    yield "simplify", sink
    changed = legalize(sink, renderer)
    yield "legalize", changed
    if _lacks(changed, renderer):
        changed = graph_rewrite(changed, decompose, renderer)
        yield "decompose", changed
    if changed is not sink:
        sink = graph_rewrite(changed, simplify, Bounds())
        yield "simplify again", sink
        if _lacks(sink, renderer):  # simplification may bring back what is missing: a - b for a + -b
            yield "decompose again", graph_rewrite(sink, decompose, renderer)
