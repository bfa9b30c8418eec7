"""BEAM search: better actions for one kernel, found by measuring.

The search starts from the heuristic's list of actions, what else could be planned and the plain kernel, and goes on
from the best lists so far to their neighbours: lists with one action more, one less, or one with another number, and
those in which a planner's whole list stands for what is done to one part (:mod:`tg_codegen.search.replanned`). Where no
neighbour is faster any more it starts again, for each way to part the kernel, from what planners propose then and from
where the cost model leads (:mod:`tg_codegen.search.descent`): that takes long to compute, and a good plan's neighbours
do not. It renders what comes of lists and asks a callback how long each program takes. The callback belongs to whoever
can run kernels; this module cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from tg_lazy import LazyOp

from ..compile import compile_ast, render_kernel
from ..ir.program import ProgramSpec
from ..machine.renderer import Renderer
from ..nest.kernel import Kernel
from ..nest.lower import lower
from ..nest.parts import stated
from ..plan.actions import Action, ActionError, KernelAction
from ..plan.draft import in_order
from ..plan.heuristic import applied
from ..plan.vocabulary import PARTING, parse_action
from .cycles import cycles
from .descent import descents
from .moves import alterations, even_walks, measured_moves, modelled_moves, other_walks
from .replanned import reparted, replanned

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

LONGEST = 3000
"""UOps of a program that is measured: longer ones take a compiler longer than a search can wait."""
MIN_GAIN = 0.01
"""Part of the best time by which a round must be faster for the search to go on, for some way to part the kernel."""
TIME_RATIO = 1.5
"""Times the best: from lists of actions that take longer the search does not go on."""
MOST_PROGRAMS = 48
"""Programs of a round that are measured, of those that the cost model judges, and of the others."""
MOST_NEIGHBOURS = 128
"""The same for the neighbours of the heuristic's list: few have more, and what they gain no model knows before."""
ROUND_CYCLES_RATIO = 3.0
"""Times the fewest cycles of a round: what the cost model puts farther off is not measured."""
CYCLES_RATIO = 8.0
"""Times the fewest cycles so far: a program that takes more runs whole loops again, whatever it gains in the caches."""

ActionList = tuple[Action, ...]
BestTimes = dict[tuple[type[Action], ...], float]
"""The least seconds of each way in which a kernel is parted."""
Measure = Callable[[ProgramSpec], float]
Prepare = Callable[[ProgramSpec], object]
Progress = Callable[["SearchState"], None]


@dataclass(frozen=True, slots=True)
class SearchState:
    """What a search has come to.

    Attributes:
      round: rounds finished.
      tried: programs measured.
      dropped: candidates that could not be made, prepared or measured, or that the measure rejected.
      left: programs of this round that are still to be measured.
      best_s: the best program's time in seconds.
      actions: the best program's actions.
    """

    round: int
    tried: int
    dropped: int
    left: int
    best_s: float
    actions: tuple[str, ...]


def beam_search(
    ast: LazyOp,
    renderer: Renderer,
    measure: Measure,
    width: int = 4,
    *,
    max_rounds: int = 16,
    planned: bool = True,
    progress: Progress | None = None,
    prepare: Prepare | None = None,
    workers: int = 1,
) -> ProgramSpec:
    """The fastest program found for a kernel; never slower than the heuristic's by the same measure.

    Args:
      ast: a SINK of :mod:`tg_lazy.ast`.
      renderer: the language and machine.
      measure: seconds that a program takes; infinity, or any exception, rejects it. Whoever can run programs also looks
        there whether one computes what it should.
      width: how many lists of actions each round goes on from.
      max_rounds: rounds at the most.
      planned: whether the search begins with the heuristic's list and its neighbours; without it, with what planners
        and the cost model make of each way to part the kernel, and with the empty list.
      progress: told before every program that is measured, and at the end of a round.
      prepare: called before ``measure`` with each program that will be measured, in a thread: to compile it.
      workers: how many such threads there are.

    Programs that take far more cycles than others by the cost model (:mod:`tg_codegen.search.cycles`) are not measured;
    the heuristic's always is. A ``KeyboardInterrupt`` ends the search with the best so far, if there is one.

    Raises:
      ValueError: if ``width`` is not positive.
      RuntimeError: if no program could be measured.
    """
    if width < 1:
        raise ValueError(f"the beam's width must be positive, got {width}")
    search = _Search(stated(lower(ast)), renderer, measure, progress, prepare, workers)
    try:
        if planned:
            heuristic = compile_ast(ast, renderer)
            plan = tuple(parse_action(line) for line in heuristic.actions)
            search.least = cycles(heuristic, renderer.target)
            search.consider((), (plan, *search.whole_lists(())))
            if search.best is None:  # nothing is known of a plan that cannot be measured
                search.least = math.inf
            search.climb({}, width, max_rounds, [plan])
        if search.round < max_rounds:
            before = search.fastest()
            search.round += planned
            search.consider((), chain(descents(search.kernel, renderer), ((),)))
            if search.best is None:  # what others take says nothing where they cannot be measured
                search.again(())
            search.climb(before, width, max_rounds)
    except KeyboardInterrupt:
        if search.best is None:
            raise
    if search.best is None:
        raise RuntimeError(f"no program for the kernel could be measured; the last problem: {search.problem}")
    return search.best


def parted_by(actions: ActionList) -> tuple[type[Action], ...]:
    """How a list of actions parts the kernel."""
    return tuple(type(action) for action in actions if isinstance(action, PARTING))


class _Search:
    """Programs tried so far, and the best."""

    def __init__(
        self, kernel: Kernel, renderer: Renderer, measure: Measure, progress: Progress | None, prepare: Prepare | None,
        workers: int,
    ) -> None:  # fmt: skip
        self.kernel, self.renderer, self.measure, self.progress = kernel, renderer, measure, progress
        self.prepare, self.workers = prepare, workers
        self.seen: set[str] = set()
        self.known: set[ActionList] = set()
        self.ranked: list[tuple[float, int, ActionList]] = []
        self.expanded: set[ActionList] = set()
        self.best: ProgramSpec | None = None
        self.best_s = self.least = math.inf
        self.round = self.tried = self.dropped = 0
        self.problem = "none"

    def drop(self, error: Exception) -> None:
        """Counts a candidate that goes no further, whatever the reason: a search is never what fails."""
        self.dropped += 1
        self.problem = f"{type(error).__name__}: {error}"

    def consider(self, judged: Iterable[ActionList], others: Iterable[ActionList], most: int = MOST_PROGRAMS) -> None:
        """Measures what comes of lists of actions: of those that the cost model can judge the best, and the others.

        Of the others only those are left out whose instructions alone take far longer than what is best so far.

        All are prepared before the first is measured: compilers take cores on which a program would run.
        """
        from concurrent.futures import ThreadPoolExecutor, wait  # and logging with it: most programs never search

        ranked = sorted(self.programs(judged), key=lambda entry: entry[0])
        found = [entry for entry in ranked[:most] if entry[0] <= ROUND_CYCLES_RATIO * ranked[0][0]]
        found += islice(self.near(others, min(self.least, ranked[0][0] if ranked else math.inf)), most)
        with ThreadPoolExecutor(self.workers) as pool:
            jobs = [self.prepared(pool, spec) for *_, spec in found]
            try:
                wait([job for job in jobs if job is not None])
                for number, (takes, actions, spec) in enumerate(found):
                    self.tell(len(found) - number)
                    if self.measured(actions, spec, jobs[number]):
                        self.least = min(self.least, takes)
                self.tell(0)
            finally:
                pool.shutdown(cancel_futures=True)
        self.ranked.sort(key=lambda entry: entry[:2])

    def programs(self, candidates: Iterable[ActionList]) -> Iterator[tuple[float, ActionList, ProgramSpec]]:
        """What comes of lists of actions, if its text is new, and the cycles that it takes by the cost model."""
        for actions in candidates:
            spec = self.rendered(actions)
            if spec is not None and spec.src not in self.seen and len(spec.uops) <= LONGEST:
                self.seen.add(spec.src)
                yield cycles(spec, self.renderer.target), actions, spec

    def near(self, candidates: Iterable[ActionList], least: float) -> Iterator[tuple[float, ActionList, ProgramSpec]]:
        """Programs of lists of actions that do not take far more cycles than any before them, or than ``least``."""
        for takes, actions, spec in self.programs(candidates):
            least = min(least, takes)
            if takes <= CYCLES_RATIO * least:
                yield takes, actions, spec

    def again(self, actions: ActionList) -> None:
        """Measures what comes of a list of actions that was left out for what others take, which do not count."""
        self.known.discard(actions)
        spec = self.rendered(actions)
        self.known.discard(actions)
        self.seen.discard("" if spec is None else spec.src)
        self.least = math.inf
        self.consider((), (actions,))

    def rendered(self, actions: ActionList) -> ProgramSpec | None:
        """The program of a list of actions that is new; None where they do not fit the kernel, or one another."""
        if actions in self.known:
            return None
        self.known.add(actions)
        try:
            return render_kernel(self.kernel, self.renderer, actions, "candidate")
        except ActionError as error:  # as it should be: not every action is for every kernel
            self.problem = str(error)
        except Exception as error:
            self.drop(error)
        return None

    def prepared(self, pool: ThreadPoolExecutor, spec: ProgramSpec) -> Future[object] | None:
        """A program on its way; None where it is made when it is measured."""
        if self.prepare is None:
            return None
        try:
            return pool.submit(copy_context().run, self.prepare, spec)  # with the settings that are in force here
        except RuntimeError:  # no thread can be started
            return None

    def tell(self, left: int) -> None:
        """Reports progress."""
        if self.progress is not None and self.best is not None:
            self.progress(SearchState(self.round, self.tried, self.dropped, left, self.best_s, self.best.actions))

    def measured(self, actions: ActionList, spec: ProgramSpec, job: Future[object] | None) -> bool:
        """Measures a program, once it is prepared; whether it could be."""
        try:
            if job is not None:
                job.result()
            seconds = self.measure(spec)
        except Exception as error:
            self.drop(error)
            return False
        self.tried += 1
        self.ranked.append((seconds, len(self.ranked), actions))
        if seconds < self.best_s:
            self.best, self.best_s = render_kernel(self.kernel, self.renderer, actions), seconds
        return True

    def fastest(self) -> BestTimes:
        """The best time of each way in which the kernel is parted, where it is near the best of all."""
        found: BestTimes = {}
        for seconds, _, actions in self.ranked:
            if seconds <= TIME_RATIO * self.best_s:
                found.setdefault(parted_by(actions), seconds)
        return found

    def climb(
        self, before: BestTimes, width: int, max_rounds: int, first: Sequence[ActionList] | None = None
    ) -> None:
        """Goes on, round by round, to what is next to the best lists, as long as some way to part the kernel gains.

        Args:
          before: the best times before the last lists were measured.
          width: how many lists a round goes on from.
          max_rounds: of the whole search.
          first: what the first round goes on from, where it is not the best lists; more of their neighbours are tried
            than of others, and the second round goes on from the best list, unless that is among them.
        """
        owed = False
        while self.round < max_rounds and (owed or self.gained(before)):
            before = self.fastest()
            self.round += 1
            front, most = (self.front(width), MOST_PROGRAMS) if first is None else (first, MOST_NEIGHBOURS)
            self.expanded.update(front)
            self.consider(
                (found for actions in front for found in self.neighbours(actions)),
                (found for actions in front for found in self.around_caches(actions)), most)
            owed = first is not None and bool(self.ranked) and self.ranked[0][2] not in self.expanded
            first = None

    def gained(self, before: BestTimes) -> bool:
        """Whether some way to part the kernel is faster than it was, or new."""
        least = {parting: seconds * (1 - MIN_GAIN) for parting, seconds in before.items()}
        return any(seconds < least.get(parting, math.inf) for parting, seconds in self.fastest().items())

    def front(self, width: int) -> list[ActionList]:
        """The best lists of actions that were not expanded before, some of each way in which the kernel is parted."""
        near = [actions for seconds, _, actions in self.ranked if seconds <= TIME_RATIO * self.best_s]
        chosen: list[ActionList] = []
        for parting in dict.fromkeys(map(parted_by, near)):
            alike = [actions for actions in near if parted_by(actions) == parting]
            chosen += [actions for actions in alike[:width] if actions not in self.expanded]
        return chosen

    def neighbours(self, actions: ActionList) -> Iterator[ActionList]:
        """Lists with one action more, one less, or one with another number, that the cost model can judge."""
        loops, walks = in_order(actions)
        kernel = applied(self.kernel, loops)
        yield from ((*found, *walks) for found in self.whole_lists(loops))
        yield from ((*loops, more, *walks) for more in modelled_moves(kernel, self.renderer.target))
        yield from ((*found, *walks) for found in alterations(loops))
        if self.renderer.target.walks_memory:
            yield from ((*loops, *found) for found in other_walks(walks))

    def whole_lists(self, loops: Sequence[KernelAction]) -> Iterator[ActionList]:
        """Lists in which a planner's own replaces what is done to a part, unless the planner fails."""
        try:
            yield from replanned(self.kernel, loops, self.renderer.target)
            yield from reparted(self.kernel, loops, self.renderer.target)
        except Exception as error:
            self.drop(error)

    def around_caches(self, actions: ActionList) -> Iterator[ActionList]:
        """Lists with one action more, or several that need each other, of those that only a measure can judge."""
        loops, walks = in_order(actions)
        kernel = applied(self.kernel, loops)
        if self.renderer.target.walks_memory:
            yield from even_walks(loops)
        yield from ((*loops, *more, *walks) for more in measured_moves(kernel, self.renderer.target))
