"""Kernel ASTs: what one kernel computes. The forms are in :mod:`tg_lazy.ast.nodes`.

This room knows neither the lazy graph nor the scheduler: :mod:`tg_lazy.kernel` makes ASTs, and a code generator
takes them.
"""

from .nodes import (
    BufferArg,
    InvalidAST,
    LazyOp,
    alu,
    bitcast,
    cast,
    const,
    gather,
    iota,
    load,
    reduce,
    sink,
    store,
    symbol,
    update,
    verify,
    view,
)

__all__ = [
    "BufferArg", "InvalidAST", "LazyOp", "alu", "bitcast", "cast", "const", "gather", "iota", "load", "reduce", "sink",
    "store", "symbol", "update", "verify", "view",
]
