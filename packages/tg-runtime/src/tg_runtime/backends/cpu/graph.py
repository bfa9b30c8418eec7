"""CPUGraph: a list of ExecItems as one native call."""

from __future__ import annotations

import ctypes
import time
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tg_shape import Variable

from ...errors import DeviceError
from ...execution.graph import KernelGraph, Place
from ...execution.item import ExecItem
from ...execution.loop import LoopRunner
from ...kernels.runner import CompiledRunner
from ...memory.buffer import Buffer
from ...steps.runner import Runner, Vars
from ...telemetry.profiler import PROFILE, launch
from .native import ENTRY_WORDS, LOOP_WORDS, MOVE_WORDS, PATCH_WORDS
from .pool import Pool, pool
from .program import CPUProgram

_WORD = 0xFFFFFFFFFFFFFFFF


class CPUGraph(KernelGraph[CPUProgram]):
    """Kernels in order, as plain data that native code walks.

    The arguments of all launches lie in one array. What a replay changes (addresses of the inputs, values of the
    variables, the number of threads never) is a list of patches: native code adds ``values[from]`` and a constant, and
    stores the sum at ``arguments[to]``; Python only fills ``values``.

    A loop of known length, whose body is such a graph, is a launch like any other: native code then goes through its
    steps, and no Python stands between those of the loops around it.

    Args:
      items: what to run; each a CompiledRunner of the CPU or such a loop, its buffers allocated or inputs.
      inputs: buffers that each replay replaces; a view of one follows it.
      var_vals: the values of the variables now; only their names matter.

    Raises:
      DeviceError: if an item is no CPU kernel, or its threads depend on a variable.
    """

    self_timed = True

    def __init__(
        self, items: Sequence[ExecItem], inputs: Sequence[Buffer] = (), var_vals: Mapping[Variable, int] | None = None
    ) -> None:
        super().__init__(items, inputs, CPUProgram, "the CPU")
        native = pool()
        if native is None:
            raise DeviceError("CPU graphs want the worker pool, which needs llvmlite or clang")
        self.pool = native
        if len(self.items) == 1:
            self.name = self.items[0].prg.name
        places = {var: len(self.inputs) + number for number, var in enumerate(self.vars)}
        arguments, patches = array("Q"), array("Q")
        launches: list[_Launch] = []
        programs = iter(self.programs)
        self._loops: list[tuple[CPUGraph, _Loop]] = []
        self._threaded = False
        for item in self.items:
            runner = item.prg
            if isinstance(runner, CompiledRunner) and runner.symbolic:
                raise DeviceError(f"{runner!r} has as many threads as a variable says: it cannot be part of a graph")
            first = len(arguments)
            for _, buffer, number, offset, _ in self.arguments(item):
                if number is not None:
                    patches.extend((len(arguments), number, offset & _WORD))
                    arguments.append(0)
                else:
                    arguments.append(self.keep(buffer).opaque.address)
            if isinstance(runner, LoopRunner):
                graph = runner.body.graph
                assert isinstance(graph, CPUGraph) and runner.length is not None, "admit() looked"
                loop = _Loop(graph, runner.places, 0, runner.length)
                self._loops.append((graph, loop))
                launches.append(_Launch(native.loop, loop.address, first, loop.threads))
                self._threaded |= graph._threaded
                continue
            assert isinstance(runner, CompiledRunner), "admit() lets nothing else in"
            for var in runner.vars:
                patches.extend((len(arguments), places[var], 0))
                arguments.append(0)
            threads = runner.launch_size({})[0]
            self._threaded |= threads > 1
            launches.append(_Launch(native.thunk(len(arguments) - first), next(programs).address, first, threads))
        self._launches, self._arguments, self._patches = launches, arguments, patches
        self._whole = _Replay(self)
        self._each: list[_Replay] = []
        self._moves = Moves(())
        self._apart: _Loop | None = None

    def walkers(self) -> list[_Replay]:
        """What goes through the steps of a loop: all threads together, or each by itself where they stay apart."""
        if not self.apart:
            return [self._whole]
        if not self._each:
            self._each = [_Replay(self, thread) for thread in range(self._launches[0].threads)]
        return self._each

    def admit(self, step: Runner) -> None:
        """Takes a kernel in, or a loop that native code can go through.

        Raises:
          DeviceError: if it is something else.
        """
        if isinstance(step, LoopRunner) and step.device == self.device and isinstance(step.body.graph, CPUGraph):
            if step.length is not None and step.condition is None:
                return
        super().admit(step)

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Runs all kernels with ``bufs`` for ``inputs``.

        Raises:
          ValueError: on another number of buffers than ``inputs``.
        """
        if len(bufs) != len(self.inputs):
            raise self.wrong_count(bufs)
        values = self._whole.values
        for place, buffer in enumerate(bufs):
            values[place] = (buffer._opaque or buffer.opaque).address
        if self.vars:
            for place, var in enumerate(self.vars, len(bufs)):
                values[place] = var_vals[var] & _WORD
        native = self.pool
        if self._threaded and not native.started:
            native.start()
        start = time.perf_counter() if wait else 0.0
        if PROFILE.value:
            self._one_by_one(native, bufs, var_vals)
        else:
            native.replay(native.address, self._whole.address)
        return time.perf_counter() - start if wait else None

    def repeat(
        self, bufs: Sequence[Buffer], places: Sequence[Place], start: int, stop: int, flag: int | None = None
    ) -> int:
        """Runs all kernels in each step, with one native call; threads that stay apart meet when all steps are done."""
        if PROFILE.value:
            return super().repeat(bufs, places, start, stop, flag)
        native = self.pool
        if self._threaded and not native.started:
            native.start()
        if self.apart and flag is None:
            if self._apart is None or self._apart.places != places:
                self._apart = _Loop(self, places)
            self._apart(native, bufs, start, stop)
            return stop
        moves = self._moves
        if moves.places != places:
            moves = self._moves = Moves(places)
        addresses = [(buffer._opaque or buffer.opaque).address for buffer in bufs]
        moves.put(addresses)
        told = None if flag is None else addresses[0] + flag
        done: int = native.repeat(native.address, self._whole.address, moves.address, len(places), start, stop, told)
        return done

    def _one_by_one(self, native: Pool, bufs: Sequence[Buffer], var_vals: Vars) -> None:
        """Runs the kernels by a native call each, so that the times of each are known; also those of loops."""
        table, _, base, patches, patch_count, values = self._whole.words
        patched = _words(array("Q", [table, 0, base, patches, patch_count, values]))
        native.replay(native.address, ctypes.addressof(patched))
        told = launch()
        for number, item in enumerate(self.items):
            if isinstance(item.prg, LoopRunner):
                item.prg(self.replaced(item, bufs), var_vals)
                continue
            one = _words(array("Q", [table + 8 * ENTRY_WORDS * number, 1, base, patches, 0, values]))
            start = time.perf_counter_ns()
            native.replay(native.address, ctypes.addressof(one))
            if told is not None:
                args = item.profile_args(var_vals)
                told.on_device("kernels", start, time.perf_counter_ns(), name=item.prg.name, args=args)


class _Launch(NamedTuple):
    """A row of the table of launches, whose arguments begin at ``first``."""

    thunk: int
    kernel: int
    first: int
    threads: int


class _Replay:
    """The launches of a graph as native code reads them, with arguments and values of their own.

    Args:
      graph: the graph.
      thread: the one thread whose part of each launch is done; None for all of them.

    Attributes:
      values: addresses of the inputs, then the values of the variables.
      words: the description of all that.
      address: of the description.
    """

    def __init__(self, graph: CPUGraph, thread: int | None = None) -> None:
        self._arguments, self._patches = _words(graph._arguments), _words(graph._patches)
        base = ctypes.addressof(self._arguments)
        table = array("Q")
        for thunk, kernel, first, threads in graph._launches:
            table.extend((thunk, kernel, base + 8 * first, threads if thread is None else 1 | thread << 32))
        self._table = _words(table)
        self.values = (ctypes.c_uint64 * max(len(graph.inputs) + len(graph.vars), 1))()
        self.words = _words(
            array("Q", [
                ctypes.addressof(self._table), len(graph._launches), base, ctypes.addressof(self._patches),
                len(graph._patches) // PATCH_WORDS, ctypes.addressof(self.values),
            ])
        )  # fmt: skip
        self.address: int = ctypes.addressof(self.words)


class _Loop:
    """A loop as native code reads it: how its inputs move, and from which arguments of the launch they set out.

    Args:
      graph: of the body, which holds the kernels and must live as long.
      places: where its inputs lie in each step.
      start: the first step.
      stop: the one after the last.

    Attributes:
      places: as they were given.
      threads: how many go through the steps, each by itself.
      address: of the description.
    """

    def __init__(self, graph: CPUGraph, places: Sequence[Place], start: int = 0, stop: int = 0) -> None:
        self.places, self._walkers = list(places), graph.walkers()
        self.threads = len(self._walkers)
        self._moves = [Moves(places) for _ in self._walkers]  # those of its own: the graph's are for all threads
        homes = array("Q")
        for place in places:
            homes.extend((place.buffer, place.offset, place.outside & _WORD))
        self._homes = _words(homes)
        words = array("Q")
        for walker, moves in zip(self._walkers, self._moves, strict=True):
            parts = walker.address, moves.address, len(places), ctypes.addressof(self._homes), start, stop
            words.extend((graph.pool.home, *parts))
        self._words = _words(words)
        self.address: int = ctypes.addressof(self._words)

    def __call__(self, native: Pool, bufs: Sequence[Buffer], start: int, stop: int) -> None:
        """Goes through the steps from ``start`` to before ``stop``, on parts of ``bufs``."""
        for at in range(0, len(self._words), LOOP_WORDS):
            self._words[at + LOOP_WORDS - 2], self._words[at + LOOP_WORDS - 1] = start, stop
        arguments = _words(array("Q", [buffer.opaque.address for buffer in bufs]))
        entry = _words(array("Q", [native.loop, self.address, ctypes.addressof(arguments), self.threads]))
        native.run_table(native.address, ctypes.addressof(entry), 1)


class Moves:
    """How each input of a loop moves, as native code reads it.

    Args:
      places: where they lie in each step.

    Attributes:
      address: of the table.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self.places = list(places)
        words = array("Q")
        for place in places:
            slots = place.stride, place.first & _WORD, place.move & _WORD, place.slots, place.ring - 1 & _WORD
            words.extend((0, *slots, 0))
        self._table = _words(words)
        self.address = ctypes.addressof(self._table)
        self._addresses: list[int] = []

    def put(self, addresses: list[int]) -> None:
        """Says where the buffers lie now that the places are parts of."""
        if addresses == self._addresses:
            return
        table = self._table
        for at, place in zip(range(0, len(table), MOVE_WORDS), self.places, strict=False):
            table[at] = addresses[place.buffer] + place.offset
            if place.outside >= 0:
                table[at + MOVE_WORDS - 1] = addresses[place.outside]
        self._addresses = addresses


def _words(values: array[int]) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * max(len(values), 1))(*values)
