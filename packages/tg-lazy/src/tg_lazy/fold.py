"""Folding: AST constructors that apply the rewrites of constants on the way."""

from __future__ import annotations

from tg_dtype import DType, bitcast_scalar, cast_scalar, dtypes
from tg_shape import ShapeTracker

from . import ast
from .ast import LazyOp
from .ops import Ops, SPEC


def view(x: LazyOp, st: ShapeTracker | None) -> LazyOp:
    """``x`` through ``st``; a splat that no mask hides stays a splat."""
    if st is None:
        return x
    if x.op is Ops.CONST and all(v.mask is None for v in st.views):
        return ast.const(x.arg, x.dtype, st.shape)
    return ast.view(x, st)


def keeps_zero(op: Ops, node: object) -> bool:
    """Whether the op gives 0 where all its operands are 0."""
    return op in (Ops.ADD, Ops.MUL, Ops.MAX, Ops.SUB, Ops.NEG, Ops.CAST, Ops.BITCAST, Ops.WHERE, Ops.SIN, Ops.TRUNC,
                  Ops.SQRT, Ops.CMPLT, Ops.CMPNE, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.MULACC)


def alu(op: Ops, *src: LazyOp) -> LazyOp:
    """An elementwise op."""
    python = SPEC[op].python
    if python is not None and all(s.op is Ops.CONST for s in src):
        out = ast.alu(op, *src)
        return ast.const(python(*[s.arg for s in src]), out.dtype, out.shape)
    return ast.alu(op, *src)


def cast(x: LazyOp, dtype: DType) -> LazyOp:
    """A conversion."""
    if x.op is Ops.CONST:
        return ast.const(cast_scalar(x.arg, x.dtype, dtype), dtype, x.shape)
    return ast.cast(x, dtype)


def bitcast(x: LazyOp, dtype: DType) -> LazyOp:
    """A reinterpretation of bits."""
    if x.op is Ops.CONST:
        return ast.const(bitcast_scalar(x.arg, x.dtype, dtype), dtype, x.shape)
    return ast.bitcast(x, dtype)


def reduce(x: LazyOp, op: Ops, axes: tuple[int, ...]) -> LazyOp:
    """A reduction."""
    return ast.reduce(x, op, axes)


assert dtypes
