"""A kernel between lowering and emission: parts that run one after another, inside the loops that they share.

Most kernels have one part and share no loop: their loops are the part's. A kernel whose stores hand intermediates to
one another through *internal* buffers (see :mod:`tg_lazy.ast`) has a part for each store, and around them all the
outer dimensions that every access of those buffers walks alike. An output that was put together from several operands
may be written operand by operand, which makes parts as well. Whatever is done to a kernel's loops is an action
(:mod:`tg_codegen.plan.actions`) on one part, on the shared loops, or on what the parts are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .nest import Axis, Nest
from .spec import Kind


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel's parts and the loops around them.

    Attributes:
      whole: the kernel as one nest, of which the parts are made.
      parts: one nest each, in the order in which they run.
      shared: the loops around all parts, outermost first; where rows are done in blocks, the last one counts blocks.
      block: rows in a block.
      last: the same parts for the rows that are left over, after the last shared loop; none where blocks divide them.
      scratch: for each internal buffer the number of elements that a block needs of it.
    """

    whole: Nest
    parts: tuple[Nest, ...]
    shared: tuple[Axis, ...] = ()
    block: int = 1
    last: tuple[Nest, ...] = ()
    scratch: Mapping[int, int] = field(default_factory=dict)

    @property
    def every_part(self) -> tuple[Nest, ...]:
        """All parts, those for the rows that are left over last: an action's number of a part counts these."""
        return self.parts + self.last

    @property
    def single(self) -> bool:
        """Whether the kernel is one nest: an action on its loops need not say for which part it is."""
        return len(self.parts) == 1 and not self.shared

    @property
    def untouched(self) -> bool:
        """Whether no action has changed a loop yet."""
        return all(part.untouched for part in self.every_part) and all(a.kind is Kind.LOOP for a in self.shared)

    @property
    def as_stated(self) -> bool:
        """Whether no action has changed a loop, or which parts there are, but for values that rows reuse."""
        return self.untouched and self.block == 1 and (self.single or bool(self.scratch))

    @property
    def threaded(self) -> bool:
        """Whether a loop is divided among the CPU's threads."""
        loops = (*self.shared, *(axis for part in self.parts for axis in part.axes))
        return any(axis.kind is Kind.THREAD for axis in loops)

    @property
    def outline(self) -> Nest:
        """The nest that tells what the kernel computes: the only part, or the whole."""
        return self.parts[0] if self.single else self.whole

    def with_part(self, number: int, part: Nest) -> Kernel:
        """The kernel with another nest in place of one part."""
        every = [*self.every_part]
        every[number] = part
        return replace(self, parts=tuple(every[: len(self.parts)]), last=tuple(every[len(self.parts) :]))
