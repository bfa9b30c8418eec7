"""The kernels of a program, as they are scheduled for a machine."""

from __future__ import annotations

from tg_lazy import Context, LazyOp, Ops, schedule
from tg_lazy.cost import LIMITS

from .machines import Machine
from .programs import Case


def kernels(case: Case, machine: Machine) -> list[LazyOp]:
    """The kernels of a program, as they are scheduled for a machine."""
    before = dict(LIMITS)
    LIMITS[machine.device] = machine.limits  # which the device would set when it is opened
    try:
        with Context(FALLBACK=1, NOOPT=0, BEAM=0, DEBUG=0):
            steps, _ = schedule([result.lazydata for result in case.outputs(machine.device)])
    finally:
        LIMITS.clear()
        LIMITS.update(before)
    return [step.ast for step in steps if step.ast.op is Ops.SINK]
