"""Branches and calls, barriers, the end, traps, and hints that change nothing.

Sources: AMD, "RDNA3 Instruction Set Architecture", sections 16.3 and 16.5; "RDNA4", the same (split barriers).
"""

from __future__ import annotations

from collections.abc import Callable

from ...engine import I32, I64, Emitter, FaultKind, InstructionSet, Status, Value
from ..architecture import Architecture

NOTHING = (
    "s_delay_alu", "s_clause", "s_nop", "s_sleep", "s_wakeup", "s_setprio", "s_inst_prefetch",
    "s_set_inst_prefetch_distance", "s_version", "s_waitcnt_depctr", "s_wait_alu",
)  # fmt: skip
"""Of no effect on results: hints, and waits for what the hardware does by itself or this one does at once."""


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""
    for name in NOTHING:
        to.control(name, lambda e: e.go_on())
    to.control("s_endpgm", lambda e: e.stop(Status.ENDED))
    to.control("s_branch", lambda e: e.jump(e.immediate()))
    to.control("s_cbranch_execz", _branch(lambda e: e.compare("eq", e.exec(), 0)))
    to.control("s_cbranch_execnz", _branch(lambda e: e.compare("ne", e.exec(), 0)))
    to.control("s_cbranch_scc0", _branch(lambda e: e.compare("eq", e.read(0), 0)))
    to.control("s_cbranch_scc1", _branch(lambda e: e.compare("ne", e.read(0), 0)))
    mask = I32 if arch.lanes == 32 else I64
    to.control("s_cbranch_vccz", _branch(lambda e: e.compare("eq", e.read(1, mask), 0)))
    to.control("s_cbranch_vccnz", _branch(lambda e: e.compare("ne", e.read(1, mask), 0)))
    to.control("s_getpc_b64", _get_pc)
    to.control("s_setpc_b64", lambda e: e.jump(e.read(0, I64)))
    to.control("s_swappc_b64", _swap_pc)
    to.control("s_call_b64", _call)
    to.control("s_trap", lambda e: e.fault(FaultKind.TRAP))
    if arch.generation < 12:
        to.control("s_barrier", lambda e: e.barrier())
    else:
        to.control("s_barrier_signal", lambda e: e.barrier(wait=False))
        to.control("s_barrier_wait", lambda e: e.barrier(signal=False))
    if arch.generation >= 11:
        to.control("s_sendmsg", lambda e: e.go_on())


def _branch(test: Callable[[Emitter], Value]) -> Callable[[Emitter], None]:
    def body(e: Emitter) -> None:
        e.do(f"br i1 {test(e).text}, label %taken, label %not.taken")
        e.label("taken")
        e.jump(e.immediate())
        e.label("not.taken")
        e.go_on()

    return body


def _get_pc(e: Emitter) -> None:
    e.write(0, e.following())
    e.go_on()


def _swap_pc(e: Emitter) -> None:
    target = e.read(1, I64)
    e.write(0, e.following())
    e.jump(target)


def _call(e: Emitter) -> None:
    e.write(0, e.following())
    e.jump(e.immediate())
