"""Which matrix instruction does a reduction: asked by planners, which choose its loops, and by the emitter."""

from __future__ import annotations

from collections.abc import Iterable

from tg_dtype import DType, dtypes
from tg_lazy import Ops
from tg_shape import Variable

from ..ir.matrix import MatrixInstruction
from .nest import Node


def factors(node: Node) -> tuple[Node, Node] | None:
    """What a sum of products multiplies, before it is widened; None if the reduction is not such a sum."""
    if node.arg[0] is not Ops.ADD or node.src[0].op is not Ops.MUL:
        return None
    narrow = tuple(s.src[0] if s.op is Ops.CAST and exact(s.src[0].dtype, s.dtype) else s for s in node.src[0].src)
    return narrow[0], narrow[1]


def exact(narrow: DType, wide: DType) -> bool:
    """Whether every number of one dtype is one of the other, so that a product may be taken before or after."""
    if dtypes.is_float(narrow):
        return dtypes.is_float(wide) and narrow.itemsize < wide.itemsize
    signs = dtypes.is_unsigned(narrow) or not dtypes.is_unsigned(wide)
    return dtypes.is_int(narrow) and dtypes.is_int(wide) and narrow.itemsize < wide.itemsize and signs


def instruction_for(
    node: Node, columns: Variable, rows: Variable | None, available: Iterable[MatrixInstruction]
) -> tuple[MatrixInstruction, Node, Node] | None:
    """The first instruction that does a reduction whose results are lanes along ``columns``, with its operands.

    Only the instruction's second operand depends on the columns, and, where several threads do it together, only the
    first on ``rows``; the same holds of tile registers.
    """
    pair = factors(node)
    if pair is None or (columns in pair[0].free) is (columns in pair[1].free):
        return None
    a, b = pair if columns in pair[1].free else reversed(pair)
    if rows is not None and (rows not in a.free or rows in b.free):
        return None
    wanted = (a.dtype, b.dtype, node.dtype)
    for found in available:
        by_rows = found.threads > 1 or found.tiled
        if not found.paired and by_rows is (rows is not None) and (found.a, found.b, found.acc) == wanted:
            return found, a, b
    return None


def paired_instruction_for(
    node: Node, available: Iterable[MatrixInstruction]
) -> tuple[MatrixInstruction, Node, Node] | None:
    """The first instruction that does a reduction whose lanes run over its own terms, with its operands."""
    pair = factors(node)
    if pair is None:
        return None
    wanted = (*(factor.dtype for factor in pair), node.dtype)
    return next(((found, *pair) for found in available
                 if found.paired and (found.a, found.b, found.acc) == wanted), None)
