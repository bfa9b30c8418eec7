"""The numpy oracle for nodes without memory or loops, and sources of many kernels as few."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tg_codegen.ir.uop import UOp, UOps
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
    if a.dtype == np.float32:
        return (a.astype(np.float64) * b + c).astype(a.dtype)
    wide = np.longdouble
    (a, a_exponent), (b, b_exponent) = np.frexp(a), np.frexp(b)  # whose parts, and products of those, are in range
    product = a * b
    x, y = (large - (large - v) for v, large in ((a, a * _SPLIT), (b, b * _SPLIT)))
    x_rest, y_rest = a - x, b - y
    lost = ((x * y - product) + x * y_rest + x_rest * y) + x_rest * y_rest
    product, lost = (np.ldexp(v.astype(wide), a_exponent + b_exponent) for v in (product, lost))
    total = product + c
    back = total - product
    lost_too = (product - (total - back)) + (c - back)
    rest = np.where(np.isfinite(lost), lost_too + lost, 0.0)
    return np.where(rest == 0, total, total + rest).astype(c.dtype)  # a sum with 0 has lost the sign of -0


_SPLIT = 2.0**27 + 1
"""Times a double, less what it is more than that: the upper half of its bits (T. Dekker, 1971)."""

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
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # underflow is the caller's to choose
        for u in root.toposort():
            if u in done or not (u.is_const or isinstance(u.op, Ops) or u.op is UOps.READ):
                continue
            if u.op is UOps.READ:
                register, branch = u.src
                value = next(done[e.src[1]] for e in branch.src[1:] if e.src[0] is register)
                done[u] = np.where(done[branch.src[0]], value, done[register.src[0]])
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


Selected = Callable[[str], list[Any]]


@pytest.fixture(scope="module")
def selected(request: pytest.FixtureRequest) -> Selected:
    """The values that a parameter has in the tests of this file that run: what others would need is not compiled."""
    items = [item for item in request.session.items if item.path == request.path]
    given = [vars(item)["callspec"].params for item in items if "callspec" in vars(item)]
    return lambda name: [params[name] for params in given if name in params]


_DECLARED = re.compile(
    r"^static .*?\b(\w+)\(|^struct (?:__align__\(\d+\) )?(\w+) \{|^typedef .*?(\w+) __attribute__"
    r"|^typedef struct .*?(\w+);$", re.MULTILINE
)

Joined = Callable[[Mapping[str, str]], dict[str, tuple[str, ...]]]


@pytest.fixture(scope="module")
def joined() -> Joined:
    return _joined


def _joined(sources: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Sources of one kernel each, by its name, as sources of many with the names of those: a compiler starts once.

    None sees what another declares: functions, structures and types get names of their own, and only sources with the
    same directives are together.
    """
    together: dict[tuple[str, ...], dict[str, str]] = {}
    for number, (kernel, source) in enumerate(sources.items()):
        directives = tuple(line for line in source.splitlines() if line.startswith(("#pragma", "#include")))
        own = {name for names in _DECLARED.findall(source) for name in names if name}
        if own:
            source = re.sub(rf"\b({'|'.join(own)})\b", rf"\1_{number}", source)
        together.setdefault(directives, {})[kernel] = source
    return {"\n".join(part.values()): tuple(part) for part in together.values()}
