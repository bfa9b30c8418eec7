"""Bound schedules: schedules that are remembered, bound to the programs that their kernels became.

The way of a small graph that was computed before: its structure is looked up, memory is taken for what is new, and the
programs are launched. Nothing else is made on that way. It is for kernels alone, none of which overwrites what it
reads; everything else, and everything that is recorded, printed or profiled, goes the long way of schedule items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Literal
from weakref import finalize

from tg_dtype import DType
from tg_lazy import LazyBuffer, LazyOp, Ops, Storage
from tg_lazy.scheduler.item import describe
from tg_lazy.scheduler.template import Template

from ..device.allocator import Allocator
from ..device.dev import DEV
from ..device.limits import ONE
from ..device.registry import Device
from ..kernels.compile_ahead import compile_ahead
from ..kernels.programs import get_runner
from ..kernels.runner import CompiledRunner
from ..kernels.settings import generation
from ..memory.buffer import Buffer, buffer_of
from ..telemetry.counters import GlobalCounters

_address = attrgetter("address")


class _Kernel:
    """A kernel of a bound schedule: its program, and its memory as numbers of places.

    Attributes:
      ast: what it computes, to say which one failed.
      program: launches its program.
      how: its sizes.
      fresh: the places that it is the first to use.
      done: the places that it is the last to use.
      commits: the nodes that it realises, by number, and where.
      origin: which of the nodes that are realised has the line that is told if it fails.
      direct: takes addresses, where the program can be called with these, and nothing else.
    """

    __slots__ = (
        "ast", "bufs", "commits", "direct", "done", "fresh", "how", "mem", "ops", "origin", "program",
    )  # fmt: skip

    def __init__(
        self, ast: LazyOp, runner: CompiledRunner, bufs: tuple[int, ...], commits: tuple[tuple[int, int], ...]
    ) -> None:
        self.ast, self.bufs, self.commits = ast, bufs, commits
        self.program, self.how = runner.launch, runner.how({})
        ops, mem = runner.op_estimate, runner.mem_estimate
        assert isinstance(ops, int) and isinstance(mem, int)
        self.ops, self.mem = ops, mem
        simple = self.how.groups == self.how.items == ONE
        direct: Callable[[int], Callable[..., object]] | None = getattr(runner.program, "direct", None)
        self.direct = direct(len(bufs)) if simple and direct is not None and not self.how.vals else None
        self.fresh: tuple[int, ...] = ()
        self.done: tuple[int, ...] = ()
        self.origin = 0


class BoundSchedule:
    """A schedule that is ready to be executed on any memory.

    It holds nothing of the template but its ASTs, so that it can go when the template does.

    Attributes:
      settings: under which its programs were made (:func:`in_force`).

    Args:
      template: the schedule.
      runners: of its kernels, in order.
    """

    __slots__ = ("_committed", "_launches", "_new", "_there", "settings")

    def __init__(self, template: Template, runners: Iterable[CompiledRunner]) -> None:
        self.settings = in_force()
        self._there: list[int] = []
        self._committed: list[int] = []
        self._launches: list[_Kernel] = []
        places: dict[int, int] = {}  # the number of memory in the template; places of what is there come first
        for step in template.steps:
            for n in step.bufs:
                if n >= 0 and n not in places:
                    places[n] = len(self._there)
                    self._there.append(n)
        self._new: list[tuple[Allocator[Any], str, int, DType]] = []
        for device, size, dtype, _ in template.new:
            places[~len(self._new)] = len(places)
            self._new.append((Device[device].allocator, device, size, dtype))
        last: dict[int, _Kernel] = {}
        for step, runner in zip(template.steps, runners, strict=True):
            bufs = tuple(places[n] for n in step.bufs)
            commits = tuple((len(self._committed) + i, bufs[slot]) for i, (_, slot) in enumerate(step.commits))
            self._committed += [n for n, _ in step.commits]
            launch = _Kernel(step.ast, runner, bufs, commits)
            launch.fresh = tuple(dict.fromkeys(n for n in bufs if n >= len(self._there) and n not in last))
            last.update(dict.fromkeys(bufs, launch))
            self._launches.append(launch)
        origin = 0
        for launch in reversed(self._launches):
            launch.done = tuple(n for n in dict.fromkeys(launch.bufs) if last[n] is launch)
            origin = launch.origin = launch.commits[0][0] if launch.commits else origin  # else of what it is for

    def run(self, nodes: list[LazyBuffer]) -> None:
        """Computes a graph that has the structure of the template.

        Args:
          nodes: its nodes as the structure counts them; the list is emptied, to keep nothing longer than it is needed.
        """
        storages: list[Any] = []
        realised: list[Any] = []
        for n in self._there:
            storages.append(nodes[n]._storage)
        for n in self._committed:
            realised.append(nodes[n])
        nodes.clear()
        new, first = self._new, len(storages)
        storages += [None] * len(new)
        for launch in self._launches:
            try:
                for n in launch.fresh:
                    allocator, device, size, dtype = new[n - first]
                    storages[n] = Storage(device, size, dtype, Buffer.allocated(allocator, device, size, dtype))
                opaques: list[Any] = []
                for n in launch.bufs:
                    buffer = storages[n].payload or buffer_of(storages[n])
                    opaques.append(buffer._opaque or buffer.opaque)
                if launch.direct is not None:
                    launch.direct(*map(_address, opaques))
                else:
                    launch.program(opaques, launch.how)
            except Exception as error:
                file, line = realised[launch.origin].origin
                error.add_note(f"in the step {describe(launch.ast)}, which stems from {file}:{line}")
                raise
            GlobalCounters.kernel_count += 1
            GlobalCounters.global_ops += launch.ops
            GlobalCounters.global_mem += launch.mem
            for n, place in launch.commits:
                realised[n].realised_in(storages[place])
                realised[n] = None
            for n in launch.done:
                storages[n] = None


def in_force() -> tuple[object, ...]:
    """The settings that decide which programs a schedule becomes."""
    return generation(), DEV.value


_bound: dict[int, BoundSchedule | None] = {}
"""What templates were bound to, by their identity; None for those that take the long way. They go together."""


def bound_schedule(template: Template) -> BoundSchedule | None:
    """What a schedule is bound to, made when it is first asked for; None if it takes the long way."""
    known: BoundSchedule | Literal[False] | None = _bound.get(id(template), False)
    if known is None:
        return None
    if known and known.settings == in_force():
        return known
    try:
        made = _bind(template)
    except Exception:  # it comes again on the long way, which tells the user's line
        return None
    if id(template) not in _bound:
        finalize(template, _bound.pop, id(template)).atexit = False
    _bound[id(template)] = made
    return made


def _bind(template: Template) -> BoundSchedule | None:
    if any(root is not None for *_, root in template.new):
        return None
    if any(step.ast.op is not Ops.SINK or step.bufs[0] >= 0 for step in template.steps):
        return None
    kernels = [(Device[template.new[~step.bufs[0]][0]], step.ast) for step in template.steps]
    compile_ahead(kernels, shared=True)
    runners = []
    for device, ast in kernels:
        runner = get_runner(device, ast, shared=True)
        if not isinstance(runner, CompiledRunner) or runner.vars or runner.in_place or runner.symbolic:
            return None
        if not isinstance(runner.op_estimate, int) or not isinstance(runner.mem_estimate, int):
            return None
        runner.first_run = False
        runners.append(runner)
    return BoundSchedule(template, runners)
