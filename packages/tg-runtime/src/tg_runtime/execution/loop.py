"""Loops: a part of a graph that was scheduled and lowered once, executed step after step on moving buffers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from threading import RLock
from typing import NamedTuple, TypeVar

from tg_dtype import DType, dtypes
from tg_lazy import LazyBuffer, LazyOp, Ops, ScheduleItem, Storage, schedule
from tg_lazy.graph.isolate import Isolated

from ..device.compiled import Compiled
from ..device.registry import Device
from ..errors import DeviceError
from ..kernels.compile_ahead import compile_ahead, foreseen, foresees
from ..kernels.runner import CompiledRunner
from ..kernels.settings import generation
from ..memory.buffer import Buffer, buffer_of
from ..steps.runner import Runner, Vars
from ..steps.transfer import BufferCopy
from .apart import threads_apart
from .graph import KernelGraph, Place, Walk, is_set, parts_at
from .item import ExecItem
from .lower import lower

T = TypeVar("T")
_CHUNK_S = 0.02
"""About how long steps run in native code before Ctrl-C is looked for."""
_CHUNK_WORK = 1 << 27
"""Operations, or bytes, of the steps after which that is looked for first: 30 ms at 4 G a second."""
_NESTED_WORK = 1 << 32
"""Operations, and bytes, of a loop that is done within a step of another one, without a look for Ctrl-C: less than half
a second at 10 G a second. Bytes are those of all buffers that a kernel gets, of which it may read a row."""


class Body:
    """What is executed in each step: scheduled when it is made, lowered when it is first executed under some settings.

    Args:
      part: what it computes.
      walk: how the loop goes through memory that alone executes it; None where something else does, too, or a condition
        ends it.

    Attributes:
      inputs: the buffers that are put in: those of the parameters, of the placeholders and of the outputs.
      lock: who executes it holds it: what it computes on the way has one place.
      graph: its kernels as one launch, once it is prepared, where the device has such.
      height: how many loops stand within one another in that.
    """

    def __init__(self, part: Isolated, walk: Walk | None = None) -> None:
        self._schedule, values = schedule(part.outputs, private=True)
        assert not values, "a part has no variables"
        homes: dict[LazyBuffer, Storage] = {node: to for item in self._schedule for node, to in item.commits}
        nodes = (*part.parameters, *part.placeholders, *part.outputs)
        # what no step uses has a storage of its own, to be counted
        storages = [homes.get(node) or Storage(node.device, _elements(node), node.dtype) for node in nodes]
        self.inputs = [buffer_of(storage) for storage in storages]
        self._numbers = {id(buffer): number for number, buffer in enumerate(self.inputs)}
        self._walk = walk
        self._items: list[ExecItem] = []
        self._work, self._count = (0, 0), 0
        self._inside: list[Body] = []
        self.height = 0
        self._prepared: tuple[int, ...] | None = None
        self._apart: tuple[tuple[int, ...], int] | None = None
        self.lock = RLock()
        self.graph: KernelGraph[object] | None = None
        if foresees():  # kernels of loops within were foreseen when these were made
            foreseen(_kernels(self._schedule), self._threads())

    @property
    def kinds(self) -> list[tuple[int, DType]]:
        """Elements and dtype of each input."""
        return [(buffer.size, buffer.dtype) for buffer in self.inputs]

    @property
    def kernels(self) -> int:
        """How many kernels and the like it executes, once it is prepared."""
        return self._count

    def sources(self) -> Iterator[tuple[Compiled, LazyOp]]:
        """The kernels that are executed, those of loops within included, each with its device."""
        yield from _kernels(self._schedule)
        for item in self._schedule:
            for body in _inside(item):
                yield from body.sources()

    def prepare(self) -> None:
        """Compiles the kernels, unless they are compiled under the settings of now."""
        now = generation()
        if self._prepared == now:
            return
        apart = self._threads()
        rest = [item for item in self._schedule if item.ast.op not in (Ops.BUFFER_VIEW, Ops.EMPTY)]
        compile_ahead(self.sources(), apart)
        items = [lower(item, apart) for item in rest]
        loops = [step.prg for step in items if isinstance(step.prg, LoopRunner)]
        for loop in loops:
            loop.prepare()
        self.graph = _condensed(items, self.inputs)
        if self.graph is not None:
            self.graph.apart = apart > 1
        inside = [] if self.graph is None else [body for loop in loops for body in (loop.body, *loop.body._inside)]
        self.height = max((body.height + 1 for body in inside), default=0)
        self._inside = sorted(dict.fromkeys(inside), key=lambda body: (-body.height, id(body)))
        for step in items:
            for buffer in step.bufs:
                if buffer is not None and id(buffer.base) not in self._numbers:
                    buffer.ensure_allocated()
        ops = (item.prg.op_estimate for item in items)
        nbytes = (item.prg.mem_estimate for item in items)
        self._work = sum(n for n in ops if isinstance(n, int)), sum(n for n in nbytes if isinstance(n, int))
        self._count = sum(item.prg.num_kernels for item in items)
        self._items, self._prepared = items, now

    def _threads(self) -> int:
        """How many threads go through the loop each by itself under the settings of now, see :func:`threads_apart`.

        It is found out once, while compilers are at work if the kernels are foreseen, for kernels are generated to
        look at. What is a view follows what it is a view of from then on.
        """
        now = generation()
        if self._apart is None or self._apart[0] != now:
            for item in self._schedule:
                if item.ast.op is Ops.BUFFER_VIEW:
                    step = lower(item)
                    step.prg([buffer for buffer in step.bufs if buffer is not None], {})
            apart = 0 if self._walk is None else threads_apart(self._schedule, self.inputs, self._walk)
            self._apart = now, apart
        return self._apart[1]

    def held(self, execute: Callable[[], T]) -> T:
        """Does something once it is prepared; nobody else executes it meanwhile, nor the loops within its graph."""
        with self.lock:
            self.prepare()
            if not self._inside:
                return execute()
            with ExitStack() as stack:
                for body in self._inside:  # of two that hold one another, everybody locks the same one first
                    stack.enter_context(body.lock)
                return execute()

    @property
    def foreseen(self) -> bool:
        """Whether the kernels that it will execute are known before it is prepared, and are not compiled yet.

        Of a loop within which there is none it is found out then whether threads go through it apart.
        """
        known = self._walk is None or any(item.ast.op is Ops.CUSTOM for item in self._schedule)
        return known and self._prepared != generation()

    @property
    def work(self) -> tuple[int, int]:
        """Operations and bytes of one step, once it is prepared."""
        return self._work

    def run(self, bufs: Sequence[Buffer]) -> None:
        """Executes the steps once, with ``bufs`` for the inputs."""
        if self.graph is not None:
            self.graph(bufs, {})
            return
        for item in self._items:
            put_in = []
            for buffer in item.bufs:
                assert buffer is not None
                number = self._numbers.get(id(buffer))
                if number is not None:
                    buffer = bufs[number]
                elif (number := self._numbers.get(id(buffer.base))) is not None:
                    offset = buffer.offset - self.inputs[number].offset
                    buffer = bufs[number].view(buffer.size, buffer.dtype, offset)
                put_in.append(buffer.ensure_allocated())
            item.prg(put_in, {})


def _elements(node: LazyBuffer) -> int:
    assert isinstance(node.size, int)
    return node.size


def _condensed(items: Sequence[ExecItem], inputs: Sequence[Buffer]) -> KernelGraph[object] | None:
    """The kernels and short loops as one launch, where they are of one device that has such graphs."""
    if not items or not all(isinstance(item.prg, CompiledRunner) or _is_short(item.prg) for item in items):
        return None
    device = Device[items[0].prg.device]
    if device.graph is None or len(items) < device.graph_from:
        return None
    try:
        made = device.graph(items, inputs, {})
    except DeviceError:
        return None
    return made if isinstance(made, KernelGraph) else None


def _is_short(runner: Runner) -> bool:
    """Whether it is a loop that may be gone through in one go."""
    return isinstance(runner, LoopRunner) and runner.condition is None and runner.body.graph is not None and all(
        isinstance(work, int) and work <= _NESTED_WORK for work in (runner.op_estimate, runner.mem_estimate)
    )  # fmt: skip


class Condition(NamedTuple):
    """What ends a loop.

    Attributes:
      first: the buffer whose byte says whether there is a first step.
      flag: where the byte lies that says, after each step, whether there is another one.
      results: for each result, where the last step left it, and where it belongs.
    """

    first: int
    flag: int
    results: tuple[tuple[Place, Place], ...]


class LoopRunner(Runner):
    """Executes a body step after step. Buffers: all that it computes, in one; then what it uses.

    Args:
      name: what to call it in print.
      device: canonical name of the device that the results are on.
      body: what is executed in each step.
      places: where each buffer of the body lies in each step.
      length: how many steps there are; None if a condition ends the loop.
      condition: what that is.
    """

    outs = (0,)

    def __init__(
        self, name: str, device: str, body: Body, places: Iterable[Place], length: int | None,
        condition: Condition | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, device)
        self.body, self.places, self.length, self.condition = body, list(places), length, condition

    @property
    def inside(self) -> tuple[Body, ...]:
        """What it executes."""
        return (self.body,)

    def prepare(self) -> None:
        """Compiles the kernels of all steps, and says how much work they are, where it is known how many there are."""
        with self.body.lock:
            self.body.prepare()
        if self.length is not None:
            self._tell(self.length)

    def _tell(self, steps: int) -> None:
        self.num_kernels = steps * self.body.kernels or 1
        ops, nbytes = self.body.work
        self.op_estimate, self.mem_estimate = steps * ops, steps * nbytes

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Executes all steps."""
        return self.body.held(lambda: self._execute(bufs, wait))

    def _execute(self, bufs: Sequence[Buffer], wait: bool) -> float | None:
        condition = self.condition
        start = time.perf_counter()
        for buffer in bufs:
            buffer.ensure_allocated()
        flag = None if condition is None else condition.flag
        going = condition is None or is_set(bufs[condition.first])
        done, chunk = 0, max(8, _CHUNK_WORK // max(*self.body.work, 1))
        while going and (self.length is None or done < self.length):
            before, end = time.perf_counter(), done + chunk
            end = end if self.length is None else min(end, self.length)
            done = self._steps(bufs, done, end, flag)
            # one that is cleared before the end stops there
            going = flag is None or (done == end and is_set(bufs[0], flag))
            if time.perf_counter() - before < _CHUNK_S:
                chunk *= 2
        if condition is not None:
            for last, result in condition.results:
                _copy(last, result, bufs, done - 1)
        self._tell(done)
        if wait:
            Device[self.device].synchronize()
            return time.perf_counter() - start
        return None

    def _steps(self, bufs: Sequence[Buffer], start: int, stop: int, flag: int | None) -> int:
        graph = self.body.graph
        if graph is not None:
            return graph.repeat(bufs, self.places, start, stop, flag)
        for step in range(start, stop):
            self.body.run(parts_at(bufs, self.places, self.body.kinds, step))
            if flag is not None and not is_set(bufs[0], flag):
                return step + 1
        return stop


def _copy(last: Place, result: Place, bufs: Sequence[Buffer], step: int) -> None:
    (source, begin), (dest, at), nbytes = last.at(step), result.at(0), last.stride
    if not nbytes or (source, begin) == (dest, at):
        return
    from_, to = bufs[source], bufs[dest]
    taken, given = from_.allocator, to.allocator
    if (
        taken.supports_offset
        and given.supports_offset
        and given.transfer(
            given.offset(to.base.opaque, nbytes, to.offset + at),
            taken.offset(from_.base.opaque, nbytes, from_.offset + begin),
            nbytes,
            taken,
        )
    ):
        return
    parts = [to.view(nbytes, dtypes.uint8, at), from_.view(nbytes, dtypes.uint8, begin)]
    BufferCopy(nbytes, to.device, from_.device)(parts, {})


class BranchRunner(Runner):
    """Executes one of two bodies. Buffers: all that it computes, in one; then what it uses.

    Args:
      name: what to call it in print.
      device: canonical name of the device that the results are on.
      choice: the buffer whose byte says which one.
      bodies: the one that is executed where the byte is set, and the other; each with where its buffers lie.
    """

    outs = (0,)

    def __init__(
        self, name: str, device: str, choice: int, bodies: tuple[tuple[Body, list[Place]], tuple[Body, list[Place]]]
    ) -> None:
        super().__init__(name, device)
        self.choice, self.bodies = choice, bodies

    @property
    def inside(self) -> tuple[Body, ...]:
        """What it executes one of."""
        return self.bodies[0][0], self.bodies[1][0]

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Executes one."""
        start = time.perf_counter()
        for buffer in bufs:
            buffer.ensure_allocated()
        body, places = self.bodies[0 if is_set(bufs[self.choice]) else 1]
        body.held(lambda: body.run(parts_at(bufs, places, body.kinds, 0)))
        self.num_kernels = body.kernels or 1
        self.op_estimate, self.mem_estimate = body.work
        if wait:
            Device[self.device].synchronize()
            return time.perf_counter() - start
        return None


def _kernels(items: Iterable[ScheduleItem]) -> Iterator[tuple[Compiled, LazyOp]]:
    """The kernels that are steps of a schedule, each with its device."""
    return ((Device[item.bufs[0].device], item.ast) for item in items if item.ast.op is Ops.SINK)


def _inside(item: ScheduleItem) -> tuple[Body, ...]:
    """What a loop or a branch executes, if that is the step."""
    runner = item.ast.arg
    return runner.inside if item.ast.op is Ops.CUSTOM and isinstance(runner, (LoopRunner, BranchRunner)) else ()


def sources_inside(items: Iterable[ScheduleItem]) -> Iterator[tuple[Compiled, LazyOp]]:
    """The kernels of loops and branches in a schedule, each with its device, where they are missing and foreseen."""
    for item in items:
        for body in _inside(item):
            if body.foreseen:
                yield from body.sources()
