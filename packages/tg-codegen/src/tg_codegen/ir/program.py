"""ProgramSpec: a rendered kernel and all that a runtime needs to launch it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tg_dtype import DType
from tg_shape import Variable, sint

from .shares import Shares
from .uop import UOp


@dataclass(frozen=True, slots=True)
class Estimates:
    """What a kernel costs, where shapes are symbolic as expressions.

    Attributes:
      flops: arithmetic operations on the data (index arithmetic not counted; a multiply-add is two).
      lds: bytes loaded and stored by the instructions, whatever cache serves them.
      mem: bytes of the distinct buffer regions touched: the least that memory must move.
    """

    flops: sint = 0
    lds: sint = 0
    mem: sint = 0


@dataclass(frozen=True, slots=True)
class BufferParam:
    """A kernel's buffer argument: slot, element dtype, size in elements, and what is done with it.

    Attributes:
      shares: what each thread touches of the buffer (:mod:`tg_codegen.ir.shares`), where the target's are awake.
    """

    slot: int
    dtype: DType
    size: int
    written: bool
    read: bool
    shares: Shares = ()


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """A rendered kernel.

    Attributes:
      name: function name in ``src``.
      src: the text.
      uops: the linear UOps that were rendered.
      buffers: one entry per slot, in slot order; the kernel's leading arguments.
      vars: symbolic variables, sorted by name: the arguments after the buffers (int32).
      global_size: work-groups along x, y, z (GPU targets).
      local_size: work-items in a group along x, y, z (GPU targets).
      threads: how many values ``core_id`` (the last argument, int32, present only if this is > 1) takes on a CPU.
      estimates: cost.
      actions: the optimisations applied, as text.
      fallback: why this is the plain kernel in place of a planned one (:mod:`tg_codegen.fallback`); empty if it is not.
    """

    name: str
    src: str
    uops: tuple[UOp, ...]
    buffers: tuple[BufferParam, ...]
    vars: tuple[Variable, ...] = ()
    global_size: tuple[sint, sint, sint] = (1, 1, 1)
    local_size: tuple[int, int, int] = (1, 1, 1)
    threads: int = 1
    estimates: Estimates = field(default_factory=Estimates)
    actions: tuple[str, ...] = ()
    fallback: str = ""

    @property
    def outs(self) -> tuple[int, ...]:
        """Slots written."""
        return tuple(b.slot for b in self.buffers if b.written)

    @property
    def ins(self) -> tuple[int, ...]:
        """Slots read."""
        return tuple(b.slot for b in self.buffers if b.read)
