"""A planner's whole list as one move: for every part of a kernel, or for one of them and the others as they are.

Vectors, a tile, an operand that is packed and threads gain most together, and some of them nothing alone: a search
that adds one action at a time comes to such a list late or never. What a planner proposes for a part as it stands is
tried at once; which parts there are, for which of them it is taken and what is altered in it is for the search to
measure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from ..ir.errors import EmitError
from ..machine.target import Target
from ..nest.kernel import Kernel
from ..nest.nest import Nest
from ..plan.actions import ActionError, In, KernelAction, LoopAction
from ..plan.heuristic import alternatives, applied, completed, loop_actions
from ..plan.vocabulary import PARTING
from .moves import other_numbers, parting_moves

KernelActions = tuple[KernelAction, ...]


def replanned(kernel: Kernel, actions: Sequence[KernelAction], target: Target) -> Iterator[KernelActions]:
    """Lists in which a planner's own replaces what is done to the loops of all parts, or of one part.

    Args:
      kernel: as it was stated.
      actions: what is done to it so far.
      target: the machine.
    """
    around: list[KernelAction] = []
    inside: dict[int, list[LoopAction]] = {}
    for action in actions:
        if isinstance(action, In):
            inside.setdefault(action.number, []).append(action.action)
        elif isinstance(action, LoopAction) and kernel.single:
            inside.setdefault(0, []).append(action)
        else:
            around.append(action)
            kernel = action.on(kernel)
    yield (*around, *completed(kernel, target))
    alone = replace(target, threads=1) if kernel.shared else target
    for number, part in enumerate(kernel.every_part):
        for planned in planned_lists(part, alone):
            changed = inside | {number: planned}
            yield (*around, *(action if kernel.single else In(place, action)
                              for place in sorted(changed) for action in changed[place]))  # fmt: skip


def reparted(kernel: Kernel, actions: Sequence[KernelAction], target: Target) -> Iterator[KernelActions]:
    """Lists in which the kernel is cut or parted once more, or once less, and planned anew.

    What was done to the loops of other parts says nothing of these.
    """
    parts = [action for action in actions if isinstance(action, PARTING)]
    starts = [(*parts, more) for more in parting_moves(applied(kernel, parts), target)]
    for at, action in enumerate(parts):
        starts.append((*parts[:at], *parts[at + 1 :]))
        starts += [(*parts[:at], other, *parts[at + 1 :]) for other in other_numbers(action)]
    for start in starts:
        with suppress(ActionError, EmitError):  # not every kernel can be parted so
            yield planned_from(kernel, start, target)


def planned_lists(part: Nest, target: Target) -> Iterator[list[LoopAction]]:
    """What planners propose for the loops of a part."""
    yield loop_actions(part, target)
    yield from alternatives(part, target)


def planned_from(kernel: Kernel, start: Sequence[KernelAction], target: Target) -> KernelActions:
    """The planner's list for a kernel that is parted by ``start``.

    Raises:
      ActionError: if the kernel cannot be parted so.
    """
    return (*start, *completed(applied(kernel, start), target))
