"""BEAM search on a real device: candidates are timed on buffers of their own, and the winner is kept on disk.

Each candidate first has to compute what the plain kernel computes (:mod:`tg_runtime.kernels.comparison`); where
that would take long, what the planned one computes, which would run without a search. What is kept is for this kernel,
code generator, compiler and machine alone; its actions are applied anew, so that they have to be legal.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Sequence
from statistics import median

from tg_codegen import ProgramSpec, Renderer, SearchState, beam_search, compile_ast, parse_action
from tg_codegen.search.beam import TIME_RATIO
from tg_codegen.search.cycles import cycles
from tg_lazy import DEBUG, LazyOp

from ..cache import diskcache
from ..device.compiled import Compiled
from ..errors import DeviceError
from ..memory.buffer import Buffer
from ..telemetry.progress import Progress
from . import speccache
from .comparison import Comparison, WrongResult
from .runner import CompiledRunner

_RUNS = 5
_CLOSE_RUNS = 15  # of a program that may be the fastest: with fewer, whichever of many alike ones was lucky would be
_TURNS = 9  # of the fastest that were found and what is planned, at the end, at the least
_MOST_TURNS = 45  # the same at the most
_TURNS_S = 2.0  # for which they take turns: a machine's memory is slower for some tenths of a second now and then
_FINALISTS = 4  # of those that were found
_REFERENCES = 2  # that others were timed beside, the latest: what was measured rests on them
_CLOSE = 1.1  # times the fastest one's time, at the most, that a finalist took, or a program that may be the fastest
_LEAST_S = 5e-3  # for which a short program runs again and again: the first is slow, and some is not disturbed
_MOST_S = 0.5  # after which a program, however slow, is not run again, nor the reference beside it
_FAR = 3.0  # times the best one's time: a program that takes so long is not run again
_FASTER = 1.25  # times as fast as the reference: from there on a program replaces it, for a little may be luck
_ALIKE_S = 0.05  # for which a program ran, at the most, that runs again to be timed: a longer one fills the caches
_MOST_CYCLES = 3e8  # that a plain kernel takes by the cost model; without its cache misses, of which it has most


def search(device: Compiled, renderer: Renderer, ast: LazyOp, width: int) -> ProgramSpec:
    """The fastest program that a search of this width finds; from the disk if it was found before.

    Raises:
      DeviceError: if the device runs no kernels.
    """
    if device.compiler is None or device.runtime is None:
        raise DeviceError(f"{device.device} runs no kernels: it cannot be searched on")
    key = result_key(device, renderer, ast, width)
    known = diskcache.get("beam", key)
    if known is not None:
        try:
            return compile_ast(ast, renderer, actions=[parse_action(line) for line in known.decode().splitlines()])
        except Exception:
            diskcache.delete("beam", key)  # no actions, or not for this kernel
    try:
        with Progress("BEAM", 0) as progress:
            spec = searched(device, renderer, ast, width, progress=_Report(progress))
    except Exception as error:  # too little memory for the buffers of a search, say
        if DEBUG.value >= 1:
            print(f"BEAM: the kernel is as planned, for the search failed: {type(error).__name__}: {error}")
        return compile_ast(ast, renderer)
    diskcache.put("beam", key, "\n".join(spec.actions).encode())
    return spec


def searched(
    device: Compiled, renderer: Renderer, ast: LazyOp, width: int, *, planned: bool = True,
    progress: Callable[[SearchState], None] | None = None,
) -> ProgramSpec:  # fmt: skip
    """What a search on a device finds now.

    Args:
      device: where programs are measured.
      renderer: the language and machine.
      ast: the kernel.
      width: how many lists of actions each round goes on from.
      planned: whether the search begins with the heuristic's list; without it, with the plain kernel and the lists to
        which the cost model leads.
      progress: told before every program that is measured, and at the end of a round.

    Raises:
      RuntimeError: if no program could be measured.
    """
    assert device.compiler is not None
    measure = _Measure(device, renderer, ast)
    found = beam_search(
        ast, renderer, measure, width, planned=planned, progress=progress, prepare=measure.prepare,
        workers=device.compiler.parallel)
    others = [compile_ast(ast, renderer, actions=list(map(parse_action, actions))) for actions in measure.finalists()]
    return measure.fastest([found, *others], compile_ast(ast, renderer) if planned else None)


def result_key(device: Compiled, renderer: Renderer, ast: LazyOp, width: int) -> str:
    """Under what a search's result is kept: all that decides what is legal, right and fast."""
    machine = f"{platform.machine()} {device.opened_facts().arch}"
    return diskcache.digest(
        ast.key, renderer.key, device.key, machine, speccache.generator_identity(), str(width))


def reference(ast: LazyOp, renderer: Renderer) -> ProgramSpec:
    """The program whose results are right: the plain kernel, or the planned one where the plain one takes seconds."""
    plain = compile_ast(ast, renderer, actions=())
    return plain if cycles(plain, renderer.target) <= _MOST_CYCLES else compile_ast(ast, renderer)


def ratio(times: Sequence[float], others: Sequence[float]) -> float:
    """How long one program takes beside another with which it ran in turns: the median of the turns' ratios.

    A machine that others use is slower for some turns, and for both; in a few it is faster than it mostly is. The least
    time of each is then that of such a turn, if it had one: of a product of 8 ms, which ran in turns with itself on two
    shared cores, ratios of least times of nine turns were off by 7.6 % (root mean square), and medians by 4.6 %.

    >>> ratio([2.0, 1.5, 4.0], [1.0, 1.5, 2.0])
    2.0
    """
    return median(mine / (other or math.inf) for mine, other in zip(times, others, strict=True))


class _Report:
    """Shows how far a search is; the rounds are printed where ``DEBUG`` asks for it."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def __call__(self, step: SearchState) -> None:
        self.progress.total = step.tried + step.left
        self.progress.tell(step.tried)
        if DEBUG.value >= 2 and not step.left:
            best = f"the best takes {step.best_s * 1e6:.1f} us"
            print(f"BEAM round {step.round}: {step.tried} programs tried, {step.dropped} dropped, {best}")


class _Measure:
    """Times programs for one AST on scratch buffers, if they compute what they should."""

    def __init__(self, device: Compiled, renderer: Renderer, ast: LazyOp) -> None:
        self.device = device
        arguments = [arg for arg in ast.arg if not arg.internal]
        self.buffers = [Buffer(device.device, arg.size, arg.dtype).allocate() for arg in arguments]
        self.values = {v: (v.vmin + v.vmax) // 2 for v in ast.variables()}
        self.best = math.inf
        self.reference: CompiledRunner | None = None
        self.reference_s = math.inf
        self.references: list[tuple[float, tuple[str, ...]]] = []
        self.measured: list[tuple[float, tuple[str, ...]]] = []
        self.ready: dict[str, bytes] = {}
        self.comparison: Comparison | None = None
        if device.executes:
            right = CompiledRunner(reference(ast, renderer), device, cached=False)
            self.comparison = Comparison(ast, self.buffers, lambda values: right(self.buffers, values, wait=True))

    def finalists(self) -> list[tuple[str, ...]]:
        """The actions of programs that took about as long as the fastest one, its own first, and of references."""
        close = sorted(entry for entry in self.measured if entry[0] <= _CLOSE * self.best)
        beside = (entry for entry in self.references[-_REFERENCES:] if entry[0] <= _FAR * self.best)
        return list(dict.fromkeys(actions for _, actions in (*close[:_FINALISTS], *beside)))

    def fastest(self, found: Sequence[ProgramSpec], planned: ProgramSpec | None = None) -> ProgramSpec:
        """The fastest of programs that run in turns: of many that were tried, the one that seemed best was also lucky.

        Each is compared with the first one, turn by turn (:func:`ratio`).

        Args:
          found: what a search found; of equals the first is taken.
          planned: what would run without a search, and is taken where none of them is as fast.
        """
        specs = list({spec.src: spec for spec in (*found, *([planned] if planned is not None else []))}.values())
        if len(specs) == 1:
            return specs[0]
        runners = [CompiledRunner(spec, self.device, cached=False) for spec in specs]
        times: list[list[float]] = [[] for _ in specs]
        end = time.monotonic() + _TURNS_S
        while len(times[0]) < _TURNS or (len(times[0]) < _MOST_TURNS and time.monotonic() < end):
            for runner, taken in zip(runners, times, strict=True):
                taken.append(self.seconds(runner))
        ratios = [ratio(taken, times[0]) for taken in times]
        return specs[ratios.index(min(ratios))]

    def prepare(self, spec: ProgramSpec) -> None:
        """Compiles a program, in a thread."""
        assert self.device.compiler is not None
        self.ready[spec.src] = self.device.compiler.compile(spec.src)

    def __call__(self, spec: ProgramSpec) -> float:
        """Seconds that a program takes, on the scale of the first one's; infinity where it is far from the fastest.

        It runs in turns with a reference: the first program, or the latest that was much faster than the one before.
        What else the machine does, and at which clock, is then the same for both, and their ratio is worth more than
        seconds that were taken minutes apart.
        """
        runner = CompiledRunner(spec, self.device, cached=False, lib=self.ready.pop(spec.src, None))
        seconds = self.in_turns(runner)
        if seconds > TIME_RATIO * self.best:  # it is not compared: the search goes on from none so slow
            return math.inf
        if self.comparison is not None:
            try:
                self.comparison.check(lambda values: runner(self.buffers, values, wait=True))
            except WrongResult as error:
                if DEBUG.value >= 1:
                    print(f"BEAM: wrong, and not used: {'; '.join(spec.actions)}: {error}")
                raise
        self.best = min(self.best, seconds)
        if seconds * _FASTER < self.reference_s:
            self.reference, self.reference_s = runner, seconds
            self.references.append((seconds, spec.actions))
        self.measured.append((seconds, spec.actions))
        return seconds

    def in_turns(self, runner: CompiledRunner) -> float:
        """What a program takes beside the reference, in seconds on its scale."""
        end, times, others = time.monotonic() + _MOST_S, list[float](), list[float]()
        while True:
            times.append(self.seconds(runner))
            if self.reference is not None:
                others.append(self.seconds(self.reference))
            found = median(times) if self.reference is None else self.reference_s * ratio(times, others)
            runs = _RUNS if found > _CLOSE * self.best else _CLOSE_RUNS
            seen = len(times) >= runs or found > _FAR * self.best
            if (seen and sum(times) > _LEAST_S) or time.monotonic() > end:
                return found

    def seconds(self, runner: CompiledRunner) -> float:
        """A run's that comes after one of the same program; infinity where the device does not tell.

        What runs in turns would else begin with what the other left in the caches: a program that writes past them
        would have its operands there, and leave the other one none.
        """
        taken = runner(self.buffers, self.values, wait=True)
        if taken is not None and taken < _ALIKE_S:
            taken = runner(self.buffers, self.values, wait=True)
        return math.inf if taken is None else taken
