"""Trimmed rows: the parts of a kernel in blocks of rows go no farther along them than some row of the block asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tg_shape import Variable, ceildiv, sint

from ..machine.target import Target
from ..nest.kernel import Kernel
from ..nest.nest import Axis, Nest
from ..nest.reach import reaches
from .actions import ActionError, KernelAction

STEP = 64
"""Elements of a row: so vectors, unrolled loops and tiles of registers stay whole on any machine."""


@dataclass(frozen=True, slots=True)
class TrimRows(KernelAction):
    """Ends loops along the rows of a block where comparisons of counters leave nothing to do: at a diagonal.

    They end after a multiple of ``step`` elements.
    """

    step: int

    def on(self, kernel: Kernel) -> Kernel:
        if self.step < 1:
            raise ActionError(f"{self}: loops end after a positive number of elements")
        groups = (kernel.parts, kernel.last)
        parts, last = (tuple(map(ended_part, group, reaches(group, self.step))) for group in groups)
        if all(new is old for new, old in zip((*parts, *last), kernel.every_part, strict=True)):
            raise ActionError(f"{self}: no comparison bounds a loop of the kernel")
        return replace(kernel, parts=parts, last=last)


def ended_part(part: Nest, bounds: Mapping[Variable, sint]) -> Nest:
    """A part whose dimensions end at bounds."""
    if not bounds:
        return part
    outermost = {part.of_root(root)[0]: end for root, end in bounds.items()}

    def ended(axis: Axis) -> Axis:
        end = outermost.get(axis)
        return axis if end is None else replace(axis, extent=ceildiv(end, axis.stride))

    roots = {var: replace(root, extent=bounds.get(var, root.extent)) for var, root in part.roots.items()}
    return replace(part, roots=roots, axes=tuple(map(ended, part.axes)))


def proposed(kernel: Kernel, target: Target) -> list[TrimRows]:
    """The action, wherever it finds something."""
    if not kernel.scratch:
        return []
    try:
        TrimRows(STEP).on(kernel)
    except ActionError:
        return []
    return [TrimRows(STEP)]
