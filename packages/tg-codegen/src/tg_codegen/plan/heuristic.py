"""The heuristic: a list of actions that makes a kernel fast on its target without measuring anything.

Each step looks at what the ones before it made of the kernel, and proposes actions in the vocabulary that the search
speaks as well: what the parts are, then the loops of each part, then what concerns all of them, and at last what the
kernel is emitted as.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from tg_shape import upper

from ..ir.uop import UOp
from ..machine.target import Target
from ..nest.kernel import Kernel
from ..nest.nest import Nest
from ..nest.spec import Kind
from . import code_copies, cut_dimension, pipeline_rows, reuse_row_values, row_blocks, split_concat, trim_rows
from .actions import In, KernelAction, LoopAction, Mark, Prefetch, Stream, StructureAction, apply, loads_of, reads
from .cpu.ahead import fetched_ahead
from .cpu.planner import CPUPlanner
from .cpu.planner import cpu_loops as cpu_loops
from .cpu.updates import UpdatePlanner
from .draft import Draft
from .gpu.planner import GPUPlanner
from .planner import most_even
from .work import worth_threads

Proposals = Callable[[Kernel, Target], Iterable[KernelAction]]
"""Actions for a kernel and a machine."""
StructureProposals = Callable[[UOp], Iterable[StructureAction]]
"""Actions for the structured form of a kernel."""


def heuristic(draft: Draft, target: Target) -> None:
    """Takes the actions that make a kernel fast, step by step, each for what the ones before made of it.

    Args:
      draft: the kernel as it was stated.
      target: the machine as planners are to see it.
    """
    for propose in (*OF_PARTS, *OF_LOOPS):
        draft.take(propose(draft.kernel, target))
    for look in OF_STRUCTURE:
        draft.take(look(draft.sink))


def before_emission(kernel: Kernel, target: Target) -> list[KernelAction]:
    """The heuristic's actions on the loops of a kernel: all but those on its structured form."""
    return proposed(kernel, target, (*OF_PARTS, *OF_LOOPS))


def completed(kernel: Kernel, target: Target) -> list[KernelAction]:
    """The heuristic's actions on the loops of a kernel whose parts are what they are to be."""
    return proposed(kernel, target, OF_LOOPS)


def proposed(kernel: Kernel, target: Target, proposals: Iterable[Proposals]) -> list[KernelAction]:
    """What is proposed step by step, each for what the ones before made of the kernel."""
    actions: list[KernelAction] = []
    for propose in proposals:
        for action in propose(kernel, target):
            actions.append(action)
            kernel = action.on(kernel)
    return actions


def alternatives(nest: Nest, target: Target) -> Iterator[list[LoopAction]]:
    """What else could be planned for a nest: lanes along each dimension of its output, threads with even shares.

    A planner compares them by instructions alone; a search measures what comes of them.
    """
    if planner_of(nest, target) is not CPUPlanner:
        return
    for root in nest.roots.values():
        if not root.reduce and upper(root.extent) > 1:
            yield with_copies(nest, CPUPlanner(nest, target, wanted=root).planned())
    if target.threads > 1:
        yield with_copies(nest, CPUPlanner(nest, target, evenly=True).planned())


def applied(kernel: Kernel, actions: Sequence[KernelAction]) -> Kernel:
    """A kernel with all actions applied in order.

    Raises:
      ActionError: if one does not fit.
    """
    for action in actions:
        kernel = action.on(kernel)
    return kernel


def planner_of(nest: Nest, target: Target) -> type[CPUPlanner | GPUPlanner | UpdatePlanner]:
    """Who plans the loops of a nest on a target."""
    if target.grid:
        return GPUPlanner
    return UpdatePlanner if any(store.update is not None for store in nest.stores) else CPUPlanner


def loop_actions(nest: Nest, target: Target) -> list[LoopAction]:
    """Actions for the loops of one nest on a target."""
    planner = planner_of(nest, target)
    return with_copies(
        nest, cpu_loops(nest, target) if planner is CPUPlanner else planner(nest, target).planned())


def with_copies(nest: Nest, actions: list[LoopAction]) -> list[LoopAction]:
    """A planner's actions for a nest, followed by those that say which copies of the code there are."""
    return [*actions, *code_copies.proposed(apply(nest, actions))]


def threads_around(kernel: Kernel, target: Target) -> Iterator[KernelAction]:
    """Divides a shared loop among all threads, if none is divided yet: the outermost with the most even shares.

    A kernel that is over sooner than threads are awake is left to one of them.
    """
    divided = most_even([a for a in kernel.shared if upper(a.extent) >= target.threads], target.threads)
    if divided is not None and not kernel.threaded and worth_threads(kernel.outline, target):
        yield Mark(divided.name, Kind.THREAD)


def loops(kernel: Kernel, target: Target) -> Iterator[KernelAction]:
    """What planners propose for the loops of each part.

    Where the parts share loops, threads divide these, and none divides a loop of its own. A part writes nothing past
    the caches that another one reads.
    """
    if kernel.single:
        yield from loop_actions(kernel.parts[0], target)
        return
    alone = replace(target, threads=1) if kernel.shared else target
    for number, part in enumerate(kernel.every_part):
        for action in loop_actions(part, alone):
            if isinstance(action, Stream) and any(reads(other, action.slot) for other in kernel.parts):
                continue
            yield In(number, action)


def rows_ahead(kernel: Kernel, target: Target) -> Iterator[KernelAction]:
    """Fetches what the next block of rows reads while this one's are walked again."""
    if kernel.scratch and target.prefetches:
        row = kernel.shared[-1]
        for number, load, distance in fetched_ahead(kernel.parts, row.root, upper(row.extent), 1, target):
            part = kernel.parts[number]
            if all(load is not told for told, _ in part.ahead):
                yield In(number, Prefetch(loads_of(part).index(load), distance))


OF_PARTS: tuple[Proposals, ...] = (
    cut_dimension.proposed, reuse_row_values.proposed, split_concat.proposed, row_blocks.proposed)
"""What the dimensions and the parts of a kernel are to be is proposed by these, in this order."""
OF_LOOPS: tuple[Proposals, ...] = (threads_around, loops, trim_rows.proposed, rows_ahead)
"""What is proposed for the loops of a kernel in parts, in this order."""
OF_STRUCTURE: tuple[StructureProposals, ...] = (pipeline_rows.proposed,)
"""What is proposed for the structured form of a kernel whose loops are what they are to be."""
