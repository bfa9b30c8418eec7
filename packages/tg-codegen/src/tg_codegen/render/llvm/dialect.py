"""What differs between the machines that LLVM IR is written for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...ir.facts import KernelFacts, element
from ...ir.uop import UOp, UOps
from ...machine.memory import PAGE_BYTES
from .text import FLAT, LLVMText, Spaces

Coordinate: TypeAlias = Callable[[LLVMText, UOp], str]


@dataclass(frozen=True)
class LLVMDialect:
    """How a kernel of a machine is written.

    Attributes:
      language: for messages.
      spaces: address spaces of buffers, shared memory and what a work-item has for itself.
      convention: what stands before the type that a kernel returns.
      attributes: of a kernel, as text.
      coordinate: writes what a work-item's place is; returns its value.
      barrier: writes what has the items of a group wait for one another, and what stands before it stay before it.
      metadata: of a kernel, behind its attributes.
      matrix: writes a matrix instruction that a group's items do together; returns its value. None if there are none.
      alu: writes an elementwise node that this machine has another way for; returns its value, or None for all others.
    """

    language: str
    spaces: Spaces
    convention: str
    attributes: Callable[[KernelFacts, Sequence[UOp]], str]
    coordinate: Coordinate
    barrier: Callable[[LLVMText], None]
    metadata: Callable[[LLVMText, KernelFacts], str]
    matrix: Coordinate | None = None
    alu: Callable[[LLVMText, UOp], str | None] = lambda text, u: None


def _cpu_attributes(facts: KernelFacts, uops: Sequence[UOp]) -> str:
    """Has LLVM touch a large frame page by page: without stack it faults, and does not write elsewhere."""
    nbytes = sum(u.arg[1] * element(u).itemsize for u in uops if u.op is UOps.SCRATCH)
    return ' "probe-stack"="inline-asm"' if nbytes > PAGE_BYTES else ""


def _none_on_a_cpu(text: LLVMText, u: UOp) -> str:
    raise ValueError(f"LLVM: SPECIAL {u.arg[0]} has no meaning on a CPU")


def _cpu_barrier(text: LLVMText) -> None:
    """A label, across which LLVM's scheduler moves nothing (``TargetInstrInfo::isSchedulingBoundary``).

    A kernel is one thread of control: it has nothing to wait for. The label of a remark for Windows' debuggers is one
    that no instruction comes of, and that other passes look past.
    """
    remark = '!{!"in order"}'
    known = [number for number, line in enumerate(text.metadata) if line.endswith(remark)]
    number = known[0] if known else text.fresh_metadata(remark)
    text.call("llvm.codeview.annotation", "void", ("metadata", f"!{number}"))


CPU = LLVMDialect(
    language="LLVM", spaces=FLAT, convention="", attributes=_cpu_attributes, coordinate=_none_on_a_cpu,
    barrier=_cpu_barrier,
    metadata=lambda text, facts: "",
)  # fmt: skip
