"""Bounds of integer values in kernel IR: the least and greatest value that a scalar or every lane can take."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from tg_dtype import DType, dtypes
from tg_lazy import COMPARISONS, ON_INTEGERS, SHIFTS, Ops
from tg_shape import upper

from .spec import LANE_MOVES, TRANSFERS
from .uop import UOp, UOps

Interval = tuple[int, int]
_COUNTED = ("int", "uint", "bool")
"""Kinds of dtype whose values have bounds here."""


def dtype_bounds(u: UOp) -> Interval:
    """Every value that the node's dtype has."""
    return _of_dtype(u.dtype.scalar())


@cache
def _of_dtype(scalar: DType) -> Interval:
    return int(dtypes.min(scalar)), int(dtypes.max(scalar))


class Bounds:
    """A memo of bounds. Bounds are those of the mathematical value, kept only where it fits the node's dtype.

    >>> from tg_codegen.ir.uop import UOp, UOps, const
    >>> i = UOp(UOps.RANGE, dtypes.int32, (const(0, dtypes.int32), const(10, dtypes.int32)), "i")
    >>> Bounds()(i.alu(Ops.MUL, const(3, dtypes.int32)))
    (0, 27)
    """

    def __init__(self) -> None:
        self._known: dict[UOp, Interval] = {}

    def __call__(self, u: UOp) -> Interval:
        """The bounds of an integer or bool node.

        Raises:
          TypeError: if the node is neither.
        """
        found = self._known.get(u)
        if found is not None:
            return found
        if u.dtype.kind not in _COUNTED:
            raise TypeError(f"bounds: {u!r} is not an integer")
        known, stack = self._known, [u]
        while stack:
            node = stack[-1]
            operands = self.operands(node)
            missing = [s for s in operands if s not in known]
            if missing:
                stack += missing
                continue
            stack.pop()
            low, high = dtype_bounds(node)
            own = self.own(node, [known[s] for s in operands])
            known[node] = own if own is not None and low <= own[0] and own[1] <= high else (low, high)
        return known[u]

    def wraps(self, u: UOp) -> bool:
        """Whether the mathematical value, as far as it is known, can lie outside of what the node's dtype holds."""
        own = self.own(u, [self(s) for s in self.operands(u)])
        low, high = dtype_bounds(u)
        return own is not None and not low <= own[0] <= own[1] <= high

    def operands(self, u: UOp) -> tuple[UOp, ...]:
        """The operands whose bounds the node's bounds are computed from."""
        return _operands(u)

    def own(self, u: UOp, of: list[Interval]) -> Interval | None:
        """The bounds of a node's mathematical value, from those of its operands; None if nothing is known of it."""
        return _own(u, of)


def wrapping_indices(uops: Sequence[UOp]) -> list[UOp]:
    """The arithmetic behind the indices of loads and stores that may leave its dtype: there is none in a right kernel.

    >>> from tg_codegen.ir.builder import LinearBuilder
    >>> k = LinearBuilder()
    >>> data, i = k.param(0, dtypes.uint8), k.special("gidx0", 8)
    >>> far = k.alu(Ops.MUL, i, k.const(1 << 29))
    >>> _ = k.store(data, far, k.const(1, dtypes.uint8))
    >>> [u.op.name for u in wrapping_indices(k.uops)]
    ['MUL']
    """
    bounds = Bounds()
    found: dict[UOp, None] = {}
    for access in uops:
        if access.op in TRANSFERS:
            for u in access.src[1].toposort():
                if dtypes.is_int(u.dtype) and u.op is not UOps.LOAD and bounds.wraps(u):
                    found[u] = None
    return list(found)


_THROUGH = frozenset({*(ON_INTEGERS - COMPARISONS - {Ops.NOT}), UOps.RANGE, *LANE_MOVES})
"""Whose bounds follow from those of the operands."""


def _operands(u: UOp) -> tuple[UOp, ...]:
    if u.op not in _THROUGH:
        return ()
    src = u.src[1:] if u.op is Ops.WHERE else u.src
    return src if all(s.dtype.kind in _COUNTED for s in src) else ()


def _own(u: UOp, of: list[Interval]) -> Interval | None:
    op = u.op
    if op is UOps.CONST:
        return int(u.arg), int(u.arg)
    if op is UOps.SPECIAL:
        size = u.arg[1]
        return 0, upper(size) - 1
    if op is UOps.VAR:
        return int(u.arg.vmin), int(u.arg.vmax)
    if not of or dtypes.is_bool(u.dtype):
        return None
    a = of[0]
    if op is UOps.RANGE:
        step = of[2][0] if len(of) > 2 else 1
        return (a[0], max(a[0], of[1][1] - 1)) if step > 0 else None
    if op in (Ops.CAST, UOps.BROADCAST):
        return a
    if op in (Ops.WHERE, UOps.VECTORIZE, UOps.GEP):
        return min(low for low, _ in of), max(high for _, high in of)
    if op is Ops.NEG:
        return -a[1], -a[0]
    b = of[1]
    if op is Ops.ADD:
        return a[0] + b[0], a[1] + b[1]
    if op is Ops.SUB:
        return a[0] - b[1], a[1] - b[0]
    if op is Ops.MUL:
        return _product(a, b)
    if op is Ops.MULACC:
        low, high = _product(a, b)
        return low + of[2][0], high + of[2][1]
    if op is Ops.MAX:
        return max(a[0], b[0]), max(a[1], b[1])
    if op in SHIFTS:
        if b[0] < 0 or b[1] >= u.dtype.scalar().bits:
            return None
        corners = [x << y if op is Ops.SHL else x >> y for x in a for y in b]
        return min(corners), max(corners)
    if op is Ops.IDIV:
        if b[0] <= 0:
            return None
        corners = [abs(x) // y * (1 if x >= 0 else -1) for x in a for y in b]
        return min(corners), max(corners)
    if op is Ops.MOD:
        if b[0] <= 0:
            return None
        if b[0] == b[1] and a[0] >= 0 and a[1] < b[0]:
            return a
        return (0 if a[0] >= 0 else max(a[0], 1 - b[1])), (0 if a[1] <= 0 else min(a[1], b[1] - 1))
    if op is Ops.AND:
        limits = [high for low, high in (a, b) if low >= 0]
        return (0, min(limits)) if limits else None
    if op in (Ops.OR, Ops.XOR) and a[0] >= 0 and b[0] >= 0:
        return 0, (1 << max(a[1].bit_length(), b[1].bit_length())) - 1
    return None


def _product(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)
