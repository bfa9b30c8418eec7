"""BEAM search: better actions for one kernel, found by measuring.

The search starts from the plain nest and from the heuristic's, tries every action on the best nests so far, renders the
results and asks a callback how long each takes. The callback belongs to whoever can run kernels; this module cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tg_lazy import LazyOp
from tg_shape import sint

from ..compile import compile_ast, render_nest
from ..ir.program import ProgramSpec
from ..machine.renderer import Renderer
from ..machine.target import Target
from ..nest.lower import lower
from ..nest.nest import Kind, Nest
from ..nest.row_nest import PART
from ..plan.actions import (
    Action,
    ActionError,
    Mark,
    Outermost,
    Pack,
    Partial,
    Share,
    Split,
    apply,
    loads_of,
    reductions_of,
)
from ..plan.heuristic import heuristic
from .cycles import cycles

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

MAX_UOPS = 3000
MIN_GAIN = 0.01
PIECE = 256  # iterations of a long reduction
SHARED_PIECE = 16  # the same on a GPU, where operands of a piece may be in shared memory

MOST = 24  # programs of a round that are measured
FAR = 3.0  # times the cycles of the best: what the cost model puts farther off is not measured

Measure = Callable[[ProgramSpec], float]
Prepare = Callable[[ProgramSpec], object]
Progress = Callable[["Step"], None]


@dataclass(frozen=True, slots=True)
class Step:
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


def candidates(nest: Nest, target: Target) -> Iterator[Action]:
    """Actions that may be worth a try on a nest."""
    gpu = target.kind == "gpu"
    for axis in nest.axes:
        if axis.kind in (Kind.LOOP, Kind.THREAD, Kind.GLOBAL):
            kinds: tuple[Kind, ...] = (Kind.UPCAST, Kind.VECTOR, Kind.LOCAL) if gpu else (Kind.UPCAST, Kind.VECTOR)
            yield from (Split(axis.name, factor, kind.name) for kind in kinds for factor in factors(axis.extent, kind))
        if axis.kind is Kind.LOOP:
            yield Outermost(axis.name)
            if gpu:
                yield Mark(axis.name, Kind.GLOBAL.name)
            else:
                if target.threads > 1:
                    yield Mark(axis.name, Kind.THREAD.name)
                yield from (Pack(number, axis.name) for number in range(len(loads_of(nest))))
                yield from (Partial(number, axis.name) for number in cut_reductions(nest))
        if axis.kind is Kind.REDUCE:
            kinds = (Kind.UNROLL, Kind.GROUP) if gpu else (Kind.UNROLL, Kind.SPREAD, Kind.LANES)
            if target.strict:
                kinds = (Kind.UNROLL,)
            yield from (Split(axis.name, factor, kind.name) for kind in kinds for factor in factors(axis.extent, kind))
            deep = sorted({m.shape[2] for m in target.matrices if not target.strict})
            yield from (Split(axis.name, k, Kind.CONTRACT.name) for k in deep)
            if isinstance(axis.extent, int) and axis.extent <= 16:
                yield Mark(axis.name, Kind.UNROLL.name)
            piece = SHARED_PIECE if gpu else PIECE
            if isinstance(axis.extent, int) and axis.extent >= 2 * piece:
                yield Split(axis.name, piece, Kind.REDUCE.name)
            if gpu and target.shared_bytes:
                yield from (Share(number, axis.name) for number in range(len(loads_of(nest))))


def cut_reductions(nest: Nest) -> Iterator[int]:
    """The numbers of the reductions that have a serial loop inside another one."""
    for number, node in enumerate(reductions_of(nest)):
        if sum(a.kind is Kind.REDUCE and a.root in node.arg[1] for a in nest.axes) > 1:
            yield number


def factors(extent: sint, kind: Kind) -> tuple[int, ...]:
    """Sizes to try for the inner part of a split."""
    sizes = {
        Kind.VECTOR: (4, 8, 16), Kind.LANES: (4, 8, 16), Kind.LOCAL: (8, 16, 32, 64), Kind.GROUP: (8, 16, 32, 64),
    }.get(kind, (2, 3, 4, 6, 8))
    return tuple(f for f in sizes if not isinstance(extent, int) or f < extent)


def beam_search(
    ast: LazyOp,
    renderer: Renderer,
    measure: Measure,
    width: int = 4,
    *,
    max_rounds: int = 16,
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
      width: how many nests each round goes on from.
      max_rounds: rounds at the most.
      progress: told before every program that is measured, and at the end of a round.
      prepare: called before ``measure`` with each program that will be measured, in a thread: to compile it.
      workers: how many such threads there are.

    Programs that take far more cycles than others by the cost model (:mod:`tg_codegen.search.cycles`) are not measured;
    the heuristic's always is. A ``KeyboardInterrupt`` ends the search with the best so far, if there is one.

    Raises:
      ValueError: ``width`` is not positive.
      RuntimeError: not even the heuristic's program could be measured.
    """
    if width < 1:
        raise ValueError(f"the beam's width must be positive, got {width}")
    planned = compile_ast(ast, renderer)
    if any(buffer.internal for buffer in ast.arg):
        return planned  # of several parts, each planned by itself: no action says which it is for
    nest = lower(ast)
    search = _Search(renderer, measure, progress, prepare, workers)
    beam = [*search.heuristics(nest), nest]
    try:
        if planned.actions and planned.actions[0].startswith(PART):
            search.try_program(planned)
        search.consider(beam)
        for number in range(max_rounds):
            before = search.best_s
            search.round = number + 1
            search.consider(n for start in search.front(width) for n in search.grow(start))
            if not search.best_s < before * (1 - MIN_GAIN):
                break
    except KeyboardInterrupt:
        if search.best is None:
            raise
    if search.best is None:
        raise RuntimeError(f"no program for the kernel could be measured; the last problem: {search.problem}")
    return search.best


class _Search:
    """Programs tried so far, and the best."""

    def __init__(
        self, renderer: Renderer, measure: Measure, progress: Progress | None, prepare: Prepare | None, workers: int
    ) -> None:
        self.renderer, self.measure, self.progress = renderer, measure, progress
        self.prepare, self.workers = prepare, workers
        self.seen: set[str] = set()
        self.ranked: list[tuple[float, int, Nest]] = []
        self.expanded: set[tuple[str, ...]] = set()
        self.best: ProgramSpec | None = None
        self.best_s = math.inf
        self.round = self.tried = self.dropped = 0
        self.problem = "none"

    def drop(self, error: Exception) -> None:
        """Counts a candidate that goes no further, whatever the reason: a search is never what fails."""
        self.dropped += 1
        self.problem = f"{type(error).__name__}: {error}"

    def heuristics(self, nest: Nest) -> Iterator[Nest]:
        """The heuristic's nest, if there is one."""
        try:
            yield apply(nest, heuristic(nest, self.renderer.target))
        except Exception as error:
            self.drop(error)

    def consider(self, nests: Iterable[Nest]) -> None:
        """Renders nests, and measures those whose text is new and that may be fast."""
        from concurrent.futures import ThreadPoolExecutor  # and logging with it: most programs never search

        found: list[tuple[float, int, Nest, ProgramSpec]] = []
        for nest in nests:
            try:
                spec = render_nest(nest, self.renderer, "candidate")
            except Exception as error:
                self.drop(error)
                continue
            if spec.src not in self.seen and len(spec.uops) <= MAX_UOPS:
                self.seen.add(spec.src)
                found.append((cycles(spec, self.renderer.target), len(found), nest, spec))
        if self.round:  # what the search begins with is measured as it is
            found.sort(key=lambda entry: entry[:2])
            found = [entry for entry in found[:MOST] if entry[0] <= FAR * found[0][0]]
        with ThreadPoolExecutor(self.workers) as pool:
            jobs = [self.prepared(pool, spec) for *_, spec in found]
            try:
                for number, (_, _, nest, spec) in enumerate(found):
                    self.tell(len(found) - number)
                    self.try_one(nest, spec, jobs[number])
                self.tell(0)
            finally:
                pool.shutdown(cancel_futures=True)
        self.ranked.sort()

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
            self.progress(Step(self.round, self.tried, self.dropped, left, self.best_s, self.best.actions))

    def try_one(self, nest: Nest, spec: ProgramSpec, job: Future[object] | None) -> None:
        """Measures a program, once it is prepared."""
        try:
            if job is not None:
                job.result()
            seconds = self.measure(spec)
        except Exception as error:
            self.drop(error)
            return
        self.tried += 1
        self.ranked.append((seconds, len(self.ranked), nest))
        if seconds < self.best_s:
            self.best, self.best_s = render_nest(nest, self.renderer), seconds

    def try_program(self, spec: ProgramSpec) -> None:
        """Measures a program that no actions lead to."""
        try:
            self.best_s, self.best = self.measure(spec), spec
        except Exception as error:
            self.drop(error)

    def front(self, width: int) -> list[Nest]:
        """The best nests that were not expanded before."""
        chosen = [nest for _, _, nest in self.ranked[:width] if nest.log not in self.expanded]
        self.expanded.update(nest.log for nest in chosen)
        return chosen

    def grow(self, nest: Nest) -> Iterator[Nest]:
        """The nests one action away."""
        for action in candidates(nest, self.renderer.target):
            try:
                yield action.apply(nest)
            except ActionError as error:  # as it should be: not every action is for every nest
                self.problem = str(error)
            except Exception as error:
                self.drop(error)
