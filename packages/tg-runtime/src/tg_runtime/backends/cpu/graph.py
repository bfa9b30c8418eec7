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
from ...memory.buffer import Buffer
from ...steps.runner import Vars
from ...telemetry.profiler import PROFILE, launch
from .native import ENTRY_WORDS, PATCH_WORDS
from .pool import Pool, pool
from .program import CPUProgram

_WORD = 0xFFFFFFFFFFFFFFFF


class CPUGraph(KernelGraph[CPUProgram]):
    """Kernels in order, as plain data that native code walks.

    The arguments of all launches lie in one array. What a replay changes (addresses of the inputs, values of the
    variables, the number of threads never) is a list of patches: native code adds ``values[from]`` and a constant, and
    stores the sum at ``arguments[to]``; Python only fills ``values``.

    Args:
      items: what to run; each a CompiledRunner of the CPU, its buffers allocated or inputs.
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
            self.name = self.runners[0].name
        places = {var: len(self.inputs) + number for number, var in enumerate(self.vars)}
        arguments, patches, launches = array("Q"), array("Q"), []
        for item, runner, program in zip(self.items, self.runners, self.programs, strict=True):
            if runner.symbolic:
                raise DeviceError(f"{runner!r} has as many threads as a variable says: it cannot be part of a graph")
            first = len(arguments)
            for _, buffer, number, offset, _ in self.arguments(item):
                if number is not None:
                    patches.extend((len(arguments), number, offset & _WORD))
                    arguments.append(0)
                else:
                    arguments.append(self.keep(buffer).opaque.address)
            for var in runner.vars:
                patches.extend((len(arguments), places[var], 0))
                arguments.append(0)
            threads = runner.launch_size({})[0]
            launches.append((self.pool.thunk(len(arguments) - first), program.address, first, threads))
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
        self._moves: tuple[list[int], list[Place], ctypes.Array[ctypes.c_uint64]] = [], [], _words(array("Q"))
        self._threaded = any(launch[3] > 1 for launch in launches)

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
            self._one_by_one(native, var_vals)
        else:
            native.replay(native.address, self._call)
        return time.perf_counter() - start if wait else None

    def repeat(
        self, bufs: Sequence[Buffer], places: Sequence[Place], start: int, stop: int, flag: Buffer | None = None
    ) -> int:
        """Runs all kernels in each step, with one native call."""
        if PROFILE.value:
            return super().repeat(bufs, places, start, stop, flag)
        native = self.pool
        if self._threaded and not native.started:
            native.start()
        addresses = [buffer.opaque.address for buffer in bufs]
        last, at, table = self._moves
        if last != addresses or at != places:
            table = _words(_moves(addresses, places))
            self._moves = addresses, list(places), table
        told = None if flag is None else flag.opaque.address
        done: int = native.repeat(
            native.address, self._call, ctypes.addressof(table), len(places), start, stop, told
        )  # fmt: skip
        return done

    def _one_by_one(self, native: Pool, var_vals: Vars) -> None:
        """Runs the kernels by a native call each, so that the times of each are known."""
        table, _, base, patches, patch_count, values = self._replay
        patched = _words(array("Q", [table, 0, base, patches, patch_count, values]))
        native.replay(native.address, ctypes.addressof(patched))
        told = launch()
        for number, item in enumerate(self.items):
            one = _words(array("Q", [table + 8 * ENTRY_WORDS * number, 1, base, patches, 0, values]))
            start = time.perf_counter_ns()
            native.replay(native.address, ctypes.addressof(one))
            if told is not None:
                args = item.profile_args(var_vals)
                told.on_device("kernels", start, time.perf_counter_ns(), name=item.prg.name, args=args)


def _moves(addresses: Sequence[int], places: Sequence[Place]) -> array[int]:
    """Where each input lies and how it moves, as native code reads it."""
    moves = array("Q")
    for place in places:
        outside = addresses[place.outside] if place.outside >= 0 else 0
        moves.extend((
            addresses[place.buffer] + place.offset, place.stride, place.first & _WORD, place.move & _WORD,
            place.slots, place.ring - 1 & _WORD, outside,
        ))  # fmt: skip
    return moves


def _words(values: array[int]) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * max(len(values), 1))(*values)
