"""CPUGraph: a list of ExecItems as one native call."""

from __future__ import annotations

import ctypes
import time
from array import array
from collections.abc import Mapping, Sequence

from tg_shape import Variable

from ...errors import DeviceError
from ...execution.graph import KernelGraph, Place
from ...execution.item import ExecItem
from ...execution.loop import LoopRunner
from ...kernels.runner import CompiledRunner
from ...memory.buffer import Buffer
from ...steps.runner import Runner, Vars
from ...telemetry.profiler import PROFILE, launch
from .native import ENTRY_WORDS, MOVE_WORDS, PATCH_WORDS
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
        arguments, patches, launches = array("Q"), array("Q"), []
        programs = iter(self.programs)
        self._loops: list[_Loop] = []
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
                self._loops.append(_Loop(runner, native))
                launches.append((native.loop, self._loops[-1].address, first, 1))
                self._threaded |= self._loops[-1].graph._threaded
                continue
            assert isinstance(runner, CompiledRunner), "admit() lets nothing else in"
            for var in runner.vars:
                patches.extend((len(arguments), places[var], 0))
                arguments.append(0)
            threads = runner.launch_size({})[0]
            self._threaded |= threads > 1
            launches.append((native.thunk(len(arguments) - first), next(programs).address, first, threads))
        self._arguments, self._patches = _words(arguments), _words(patches)
        base = ctypes.addressof(self._arguments)
        table = array("Q")
        for thunk, kernel, first, threads in launches:
            table.extend((thunk, kernel, base + 8 * first, threads))
        self._table = _words(table)
        self._values = (ctypes.c_uint64 * max(len(self.inputs) + len(self.vars), 1))()
        self._replay = _words(
            array("Q", [
                ctypes.addressof(self._table), len(table) // ENTRY_WORDS, base, ctypes.addressof(self._patches),
                len(patches) // PATCH_WORDS, ctypes.addressof(self._values),
            ])
        )  # fmt: skip
        self._call = ctypes.addressof(self._replay)
        self._moves = Moves(())

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
        values = self._values
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
            native.replay(native.address, self._call)
        return time.perf_counter() - start if wait else None

    def repeat(
        self, bufs: Sequence[Buffer], places: Sequence[Place], start: int, stop: int, flag: int | None = None
    ) -> int:
        """Runs all kernels in each step, with one native call."""
        if PROFILE.value:
            return super().repeat(bufs, places, start, stop, flag)
        native = self.pool
        if self._threaded and not native.started:
            native.start()
        moves = self._moves
        if moves.places != places:
            moves = self._moves = Moves(places)
        addresses = [buffer.opaque.address for buffer in bufs]
        moves.put(addresses)
        told = None if flag is None else addresses[0] + flag
        done: int = native.repeat(native.address, self._call, moves.address, len(places), start, stop, told)
        return done

    def _one_by_one(self, native: Pool, bufs: Sequence[Buffer], var_vals: Vars) -> None:
        """Runs the kernels by a native call each, so that the times of each are known; also those of loops."""
        table, _, base, patches, patch_count, values = self._replay
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


class _Loop:
    """A loop as native code reads it: how its inputs move, and from which arguments of the launch they set out.

    Args:
      runner: the loop, prepared, of known length.
      native: the pool.

    Attributes:
      address: of the description.
      graph: of the body.
    """

    def __init__(self, runner: LoopRunner, native: Pool) -> None:
        graph = runner.body.graph
        assert isinstance(graph, CPUGraph), "admit() looked"
        assert runner.length is not None, "admit() looked"
        self.graph = graph
        self._moves = Moves(runner.places)  # those of its own: the graph's are for steps that Python begins
        homes = array("Q")
        for place in runner.places:
            homes.extend((place.buffer, place.offset, place.outside & _WORD))
        self._homes = _words(homes)
        parts = graph._call, self._moves.address, len(runner.places), runner.length, ctypes.addressof(self._homes)
        self._words = _words(array("Q", [native.home, *parts]))
        self.address: int = ctypes.addressof(self._words)


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
