"""The numpy oracle for nodes without memory or loops."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_codegen.uop import UOp
from tg_lazy import Ops

_NUMPY: dict[Any, Callable[..., Any]] = {
    Ops.ADD: operator.add,
    Ops.SUB: operator.sub,
    Ops.MUL: operator.mul,
    Ops.FDIV: operator.truediv,
    Ops.NEG: operator.neg,
    Ops.NOT: operator.invert,
    Ops.AND: operator.and_,
    Ops.OR: operator.or_,
    Ops.XOR: operator.xor,
    Ops.SHL: operator.lshift,
    Ops.SHR: operator.rshift,
    Ops.CMPLT: operator.lt,
    Ops.CMPEQ: operator.eq,
    Ops.CMPNE: operator.ne,
    Ops.WHERE: np.where,
    Ops.SQRT: np.sqrt,
    Ops.TRUNC: np.trunc,
    Ops.MAX: np.maximum,
}


def _multiply_add(a: Any, b: Any, c: Any) -> Any:
    """One rounding, but for one result in millions: in a wider float."""
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    return (a.astype(wide) * b + c).astype(a.dtype)


OnArrays = Callable[..., Any]


@pytest.fixture
def on_arrays() -> OnArrays:
    return _on_arrays


def _on_arrays(root: UOp, known: dict[UOp, Any], fused: bool = True) -> Any:
    """A node without memory or loops, evaluated by numpy for arrays of operands.

    Args:
      known: arrays that stand for nodes.
      fused: whether MULACC rounds once.
    """
    done = dict(known)
    with np.errstate(all="ignore"):
        for u in root.toposort():
            if u in done or not (u.is_const or isinstance(u.op, Ops)):
                continue
            operands = [done[s] for s in u.src]
            wanted = np.dtype(u.dtype.name)
            if u.is_const:
                done[u] = np.asarray(u.arg, dtype=wanted)
            elif u.op is Ops.CAST:
                done[u] = operands[0].astype(wanted)
            elif u.op is Ops.BITCAST:
                done[u] = operands[0].view(wanted)
            elif u.op is Ops.MULACC:
                a, b, c = np.broadcast_arrays(*operands)
                done[u] = _multiply_add(a, b, c) if fused else a * b + c
            else:
                done[u] = np.asarray(_NUMPY[u.op](*operands))
            assert done[u].dtype == wanted, u
    return done[root]
