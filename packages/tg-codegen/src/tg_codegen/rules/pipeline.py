"""The order of rewriting between emission and linearisation."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import Ops

from ..bounds import Bounds
from ..renderer import Renderer
from ..rewrite import graph_rewrite
from ..uop import UOp
from .simplify import fuse_multiply_add, simplify


def full_rewrite(sink: UOp, renderer: Renderer) -> UOp:
    """The structured form of a kernel, simplified and brought to what ``renderer`` has.

    Args:
      sink: a kernel as :mod:`tg_codegen.uop` describes it.
    """
    sink = graph_rewrite(sink, simplify, Bounds())
    if renderer.target.fused_multiply_add and renderer.supports_op(Ops.MULACC, dtypes.float32):
        sink = graph_rewrite(sink, fuse_multiply_add)
    return sink
