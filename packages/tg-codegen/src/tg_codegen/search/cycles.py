"""A cost model: about how many cycles a linear kernel takes, counted from its instructions and how often they run.

It knows widths, the number of units and latencies as most machines of a kind have them, and no caches. It is there to
set apart programs that cannot be fast before they are compiled and measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tg_dtype import PtrDType, dtypes
from tg_lazy import BY_DIVIDER, INTEGER_DIVISIONS, Ops
from tg_shape import toposort, upper

from ..ir.program import ProgramSpec
from ..ir.scalar import scalar_function
from ..ir.spec import NO_INSTRUCTION, TRANSFERS
from ..ir.uop import UOp, UOps, is_alu
from ..machine.costs import CPUCosts
from ..machine.target import Target

UNKNOWN_TRIPS = 16
"""Iterations that a loop is taken to have where its extent is not known."""


def cycles(spec: ProgramSpec, target: Target) -> float:
    """An estimate of the time that a program takes, in cycles of one core; of a GPU, for all its work-items."""
    each = max(_body(spec.uops, target, core) for core in {0, spec.threads - 1})  # the thread that has most to do
    items = prod(upper(n) for n in (*spec.global_size, *spec.local_size))
    return each * max(1.0, items / target.gpu.lanes)


def _body(uops: Sequence[UOp], target: Target, core: int = 0) -> float:
    """Cycles of one thread; what it does on a condition counts, unless its number says that it does not."""
    # for each open loop: what its body has taken so far, its loop-carried values, and in how many registers they are
    open_loops: list[tuple[float, list[float], int]] = []
    total, chains, carried = 0.0, [0.0], 0
    skipped: UOp | None = None
    for u in uops:
        if skipped is not None:
            if u.op is UOps.ENDIF and u.src[0] is skipped:
                skipped = None
        elif u.op is UOps.IF and _first(u.src[0], core, whenever=True) == 0:
            skipped = u
        elif u.op is UOps.RANGE:
            open_loops.append((total, chains, carried))
            total, chains, carried = 0.0, [0.0], 0
        elif u.op is UOps.ENDRANGE:
            spilled = max(0, carried - target.registers) * (target.cpu.load + target.cpu.store)
            body = max(total + 1 + spilled, max(chains))
            total, chains, carried = open_loops.pop()
            total += body * _trips(u.src[0], core)
        elif u.op is UOps.ASSIGN and dtypes.is_float(u.src[0].dtype):
            chains.append(float(target.cpu.latency * _chain(u.src[1], u.src[0])))
            carried += _pieces(u.src[0], target)
        else:
            total += _cost(u, target)
    return total


def _chain(value: UOp, register: UOp) -> int:
    """The length of the longest chain of operations from a register's value to its next one."""
    far: dict[UOp, int] = {}  # of what is computed from the register; of all else -1
    for u in toposort((value,), lambda u: u.src if is_alu(u) else ()):
        most = max((far[s] for s in u.src), default=-1) if is_alu(u) else -1
        far[u] = 0 if u is register else -1 if most < 0 else most + 1
    return max(0, far[value])


def _cost(u: UOp, target: Target) -> float:
    costs = target.cpu
    if u.op in NO_INSTRUCTION:
        return 0.0
    if u.op is UOps.BARRIER:
        return target.gpu.barrier if target.local_max else 0.0
    if u.op is UOps.VECTORIZE:
        return len(u.src) * costs.insertion
    if u.op is UOps.STORE:
        return _pieces(u.src[2], target) * (costs.store if len(u.src) < 4 else costs.masked_store)
    if u.op is UOps.LOAD:
        return _pieces(u, target) * (costs.load if len(u.src) < 3 else costs.masked_load)
    if u.op is UOps.MATRIX:
        return costs.tile_product if u.arg.tiled else _pieces(u, target) * costs.product(u.arg.a)
    return _pieces(u, target) * (_arithmetic(u, costs) if isinstance(u.op, Ops) else 1.0)


def _arithmetic(u: UOp, costs: CPUCosts) -> float:
    """Cycles of one instruction of an elementwise op."""
    if u.op in BY_DIVIDER:
        return costs.division
    if u.op not in INTEGER_DIVISIONS:
        return 1 / costs.units
    if dtypes.is_int(u.dtype) and _constant(u.src[1]):
        return costs.constant_quotient if u.op is Ops.IDIV else costs.constant_remainder
    return costs.integer_division


def _constant(u: UOp) -> bool:
    return u.is_const or (u.op is UOps.BROADCAST and u.src[0].is_const)


def _pieces(u: UOp, target: Target) -> int:
    """Instructions of the machine's width for one value."""
    if isinstance(u.dtype, PtrDType):
        return 1
    width = target.vector_bytes if u.op in TRANSFERS else target.alu_bytes
    return max(1, -(-u.dtype.itemsize // width))


def _trips(loop: UOp, core: int) -> float:
    start, end = (_first(s, core) for s in loop.src[:2])
    step = _first(loop.src[2], core) if len(loop.src) > 2 else 1
    return UNKNOWN_TRIPS if start is None or end is None or not step else max(0, end - start) / step


def _first(u: UOp, core: int, whenever: bool = False) -> int | None:
    """An integer in the first iteration of all loops, or, ``whenever``, in any; variables are at their greatest."""
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
