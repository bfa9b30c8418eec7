"""Where the cost model leads: lists of actions that are good by it, before anything is measured.

For each way in which a kernel can be parted there is what planners propose for the loops that it has then, and a list
to which actions are added one by one, of those that change which instructions a kernel has, as long as it takes fewer
cycles by the model (:mod:`tg_codegen.search.cycles`). The model knows no caches:
what an order of loops, packing or prefetching gains is for the search to measure, which goes on from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from tg_lazy import BufferArg
from tg_shape import Variable

from ..compile import render_kernel
from ..ir.errors import EmitError
from ..ir.program import ProgramSpec
from ..machine.renderer import Renderer
from ..nest.kernel import Kernel
from ..nest.nest import Nest
from ..nest.spec import LANE, Kind
from ..plan import cut_dimension
from ..plan.actions import Action, ActionError, In, KernelAction, LoopAction, Mark, Split
from ..plan.heuristic import applied
from .cycles import cycles
from .moves import loop_moves, other_walks, parting_moves
from .replanned import planned_from

LONGEST_MODELLED = 1000
"""UOps of a program that the cost model is asked of: making longer ones takes too long to try hundreds."""
LEAST_GAIN = 0.02
"""Part of the cycles that an action must save."""
PATIENCE = 400
"""Programs, about, that the cost model is asked of for a way to part a kernel: each takes tens of milliseconds."""


def descents(kernel: Kernel, renderer: Renderer) -> Iterator[tuple[Action, ...]]:
    """Lists of actions for each way in which a kernel can be parted: the planners', and the model's."""
    cuts = tuple(cut_dimension.proposed(kernel, renderer.target))
    parted = ((*cuts, action) for action in parting_moves(applied(kernel, cuts), renderer.target))
    starts: list[tuple[KernelAction, ...]] = [*dict.fromkeys(((), cuts)), *parted]
    choices = [(), *other_walks(())] if renderer.target.walks_memory else [()]
    for start in starts:
        with suppress(Exception):  # a planner's defects are not the search's
            planned = planned_from(kernel, start, renderer.target)
            yield from ((*planned, *walks) for walks in choices)
        try:
            yield descent(kernel, start, renderer)
        except (ActionError, EmitError):  # it cannot be parted so
            continue


def descent(kernel: Kernel, start: tuple[KernelAction, ...], renderer: Renderer) -> tuple[Action, ...]:
    """The list with ``start`` at its beginning to which the cost model leads.

    The parts of a kernel are looked at each by itself: what they take adds up.

    Raises:
      ActionError: if the kernel cannot be parted so.
      EmitError: if the kernel cannot be emitted.
    """
    parted = applied(kernel, start)
    if parted.single:
        return (*start, *best_loops(parted, renderer, 1))
    alone = renderer.with_target(replace(renderer.target, threads=1)) if parted.shared else renderer
    inside: list[KernelAction] = []
    for number, part in enumerate(parted.every_part):
        found = best_loops(by_itself(part), alone, len(parted.every_part))
        inside += (In(number, action) for action in found)
    marks = (Mark(axis.name, Kind.THREAD) for axis in parted.shared if renderer.target.threads > 1)
    around: list[tuple[KernelAction, ...]] = [(), *((mark,) for mark in marks)]
    lists = [(*start, *threads, *inside) for threads in around]
    best = min(lists, key=lambda actions: cost(kernel, actions, renderer))
    return min(((*best, *walks) for walks in ((), *other_walks(()))), key=lambda a: cost(kernel, a, renderer))


def by_itself(part: Nest) -> Kernel:
    """A part as a kernel of its own, whose scratch is an argument."""
    nest = replace(part, buffers=tuple(BufferArg(b.dtype, b.size) for b in part.buffers))
    return Kernel(nest, (nest,))


def best_loops(kernel: Kernel, renderer: Renderer, parts: int) -> tuple[LoopAction, ...]:
    """The actions for a kernel of one part after which no other gains, for whichever dimension has the lanes.

    What gains most at first need not be the best in the end: lanes along one dimension leave room for another tile than
    lanes along another. So each is tried.

    Args:
      kernel: of one part.
      renderer: the language and machine.
      parts: of the kernel that it is a part of, which share how long its program may be and how many are made.
    """
    target, longest = renderer.target, LONGEST_MODELLED // parts
    starts: dict[Variable, tuple[LoopAction, ...]] = {}
    for action in loop_moves(kernel.parts[0], target):
        if isinstance(action, (Split, Mark)) and action.kind in LANE:
            root = kernel.parts[0].axis(action.axis).root
            starts[root] = min(((action,), starts.get(root, ())), key=lambda a: cost(kernel, a, renderer, longest))
    patience = PATIENCE // parts // (1 + len(starts))
    found = [descent_from(kernel, start, renderer, longest, patience) for start in ((), *starts.values())]
    return min(found, key=lambda actions: cost(kernel, actions, renderer, longest))


def descent_from(
    kernel: Kernel, start: tuple[LoopAction, ...], renderer: Renderer, longest: int, patience: int
) -> tuple[LoopAction, ...]:
    """Adds to a list the action that gains most, as long as one does and fewer than ``patience`` were looked at."""
    best = start
    least = cost(kernel, best, renderer, longest)
    gains = True
    while gains and patience > 0:
        lists = [(*best, more) for more in loop_moves(applied(kernel, best).parts[0], renderer.target)]
        costs = [cost(kernel, longer, renderer, longest) for longer in lists]
        patience -= len(lists)
        takes = min(costs, default=least)
        gains = takes < least * (1 - LEAST_GAIN)
        if gains:
            best, least = lists[costs.index(takes)], takes
    return best


def cost(kernel: Kernel, actions: tuple[Action, ...], renderer: Renderer, longest: int = LONGEST_MODELLED) -> float:
    """The cycles that a kernel takes with some actions; infinite where they do not fit, or make it too long."""
    spec = program(kernel, actions, renderer)
    return float("inf") if spec is None or len(spec.uops) > longest else cycles(spec, renderer.target)


def program(kernel: Kernel, actions: tuple[Action, ...], renderer: Renderer) -> ProgramSpec | None:
    """The program that some actions make of a kernel; None where they do not fit it, or one another."""
    try:
        return render_kernel(kernel, renderer, actions, "candidate")
    except Exception:  # a search is never what fails
        return None
