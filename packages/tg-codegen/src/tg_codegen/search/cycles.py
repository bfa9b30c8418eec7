"""A cost model: about how many cycles a linear kernel takes, counted from its instructions and how often they run.

It knows widths, the number of units and latencies as most machines of a kind have them, and no caches. It is there to
set apart programs that cannot be fast before they are compiled and measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tg_dtype import PtrDType, dtypes
from tg_lazy import Ops
from tg_shape import upper

from ..ir.program import ProgramSpec
from ..ir.scalar import scalar_function
from ..ir.uop import UOp, UOps, is_alu
from ..machine.costs import LATENCY, UNITS
from ..machine.target import Target

SLOW = {Ops.FDIV: 8.0, Ops.SQRT: 8.0, Ops.RECIP: 8.0, Ops.IDIV: 12.0, Ops.MOD: 12.0}
BY_CONSTANT = {Ops.IDIV: 2.0, Ops.MOD: 3.0}
"""Integers by a number that the compiler knows: a multiplication and shifts (Granlund and Montgomery, 1994)."""
FREE = frozenset({
    UOps.CONST, UOps.PARAM, UOps.VAR, UOps.SCRATCH, UOps.SPECIAL, UOps.ACC, UOps.READ, UOps.AFTER, UOps.ASSIGN,
    UOps.ENDIF, UOps.BROADCAST, UOps.ENDRANGE,
})  # fmt: skip
UNKNOWN = 16  # iterations of a loop whose extent is not known
BARRIER = 32.0
MACHINE = 1 << 14  # work-items that a GPU runs at once


def cycles(spec: ProgramSpec, target: Target) -> float:
    """An estimate of the time that a program takes, in cycles of one core; of a GPU, for all its work-items."""
    if target.kind != "gpu":  # the thread that has most to do
        return max(_body(spec.uops, target, core) for core in {0, spec.threads - 1})
    each = _body(spec.uops, target)
    items = prod(upper(n) for n in (*spec.global_size, *spec.local_size))
    return each * max(1.0, items / MACHINE)


def _body(uops: Sequence[UOp], target: Target, core: int = 0) -> float:
    """Cycles of one thread; what it does on a condition counts, unless its number says that it does not."""
    # for each open loop: what its body has taken so far, and its loop-carried values
    open_loops: list[tuple[float, list[float]]] = []
    total, chains = 0.0, [0.0]
    skipped: UOp | None = None
    for u in uops:
        if skipped is not None:
            if u.op is UOps.ENDIF and u.src[0] is skipped:
                skipped = None
        elif u.op is UOps.IF and _first(u.src[0], core, whenever=True) == 0:
            skipped = u
        elif u.op is UOps.RANGE:
            open_loops.append((total, chains))
            total, chains = 0.0, [0.0]
        elif u.op is UOps.ENDRANGE:
            body = max(total + 1, max(chains))
            total, chains = open_loops.pop()
            total += body * _trips(u.src[0], core)
        elif u.op is UOps.ASSIGN and dtypes.is_float(u.src[0].dtype):
            chains.append(float(LATENCY * _chain(u.src[1], u.src[0])))
        else:
            total += _cost(u, target)
    return total


def _chain(value: UOp, register: UOp) -> int:
    """How many operations one after the other make a register's next value of its last, on the longest way."""
    far = {register: 0}  # of what is computed from the register; of all else -1
    stack = [value]
    while stack:
        u = stack[-1]
        waiting = [s for s in u.src if s not in far] if u not in far and is_alu(u) else []
        if waiting:
            stack += waiting
            continue
        stack.pop()
        if u not in far:
            most = max((far[s] for s in u.src), default=-1) if is_alu(u) else -1
            far[u] = -1 if most < 0 else most + 1
    return max(0, far[value])


def _cost(u: UOp, target: Target) -> float:
    if u.op in FREE:
        return 0.0
    if u.op is UOps.BARRIER:
        return BARRIER
    if u.op is UOps.VECTORIZE:
        return float(len(u.src))
    if u.op is UOps.STORE:
        return _pieces(u.src[2], target) * (1.0 if len(u.src) < 4 else 2.0)
    if u.op is UOps.LOAD:
        return _pieces(u, target) * (1 / UNITS if len(u.src) < 3 else 1.0)
    if u.op is UOps.MATRIX:
        return _pieces(u, target) / UNITS
    if isinstance(u.op, Ops):
        known = u.op in BY_CONSTANT and dtypes.is_int(u.dtype) and _constant(u.src[1])
        return _pieces(u, target) * (BY_CONSTANT[u.op] if known else SLOW.get(u.op, 1 / UNITS))
    return _pieces(u, target)


def _constant(u: UOp) -> bool:
    return u.is_const or (u.op is UOps.BROADCAST and u.src[0].is_const)


def _pieces(u: UOp, target: Target) -> int:
    """Instructions of the machine's width for one value."""
    if isinstance(u.dtype, PtrDType):
        return 1
    width = target.vector_bytes if target.kind == "cpu" or u.op in (UOps.LOAD, UOps.STORE) else 4
    return max(1, -(-u.dtype.itemsize // width))


def _trips(loop: UOp, core: int) -> float:
    start, end = (_first(s, core) for s in loop.src[:2])
    step = _first(loop.src[2], core) if len(loop.src) > 2 else 1
    return UNKNOWN if start is None or end is None or not step else max(0, end - start) / step


def _first(u: UOp, core: int, whenever: bool = False) -> int | None:
    """An integer where all loops are in their first iteration, or ``whenever`` that is; variables at their greatest."""
    known: dict[UOp, int | None] = {}
    for here in u.toposort():
        if here.is_const:
            known[here] = int(here.arg)
        elif here.op is UOps.VAR:
            known[here] = here.arg.vmax
        elif here.op is UOps.SPECIAL:
            known[here] = core
        elif here.op is UOps.RANGE:
            known[here] = None if whenever else known[here.src[0]]
        else:
            operands = [known[s] for s in here.src]
            plain = is_alu(here) and here.dtype.count == 1 and None not in operands
            known[here] = int(scalar_function(here)(*operands)) if plain else None
    return known[u]
