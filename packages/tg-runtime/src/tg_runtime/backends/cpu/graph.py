"""CPUGraph: a list of ExecItems as one native call."""

from __future__ import annotations

import ctypes
import time
from array import array
from collections.abc import Mapping, Sequence

from tg_shape import Variable

from ...errors import DeviceError
from ...execution.item import ExecItem
from ...kernels.runner import CompiledRunner
from ...memory.buffer import Buffer
from ...steps.runner import Runner, Vars
from ...telemetry.profiler import PROFILE, launch
from .native import ENTRY_WORDS, PATCH_WORDS
from .pool import Pool, pool
from .program import CPUProgram

_WORD = 0xFFFFFFFFFFFFFFFF


class CPUGraph(Runner):
    """Kernels in order, as plain data that native code walks.

    The arguments of all launches lie in one array. What a replay changes (addresses of the inputs, values of the
    variables, the number of threads never) is a list of patches: native code adds ``values[from]`` and a constant, and
    stores the sum at ``arguments[to]``; Python only fills ``values``.

    Args:
      items: what to run; each a CompiledRunner of the CPU, its buffers allocated or inputs.
      inputs: buffers that each replay replaces; a view of one follows it.
      var_vals: the values of the variables now; only their names matter.

    Raises:
      DeviceError: an item is no CPU kernel, or its threads depend on a variable.
    """

    self_timed = True

    def __init__(
        self, items: Sequence[ExecItem], inputs: Sequence[Buffer] = (), var_vals: Mapping[Variable, int] | None = None
    ) -> None:
        native = pool()
        if native is None:
            raise DeviceError("CPU graphs want the worker pool, which needs llvmlite or clang")
        self.pool = native
        self.items = list(items)
        self.inputs = list(inputs)
        self.vars: list[Variable] = []
        numbers = {id(buffer): i for i, buffer in enumerate(self.inputs)}
        places: dict[Variable, int] = {}
        arguments, patches, launches = array("Q"), array("Q"), []
        self.kept: list[object] = []
        for item in self.items:
            runner = item.prg
            if not isinstance(runner, CompiledRunner) or not isinstance(runner.program, CPUProgram):
                raise DeviceError(f"{runner!r} is no kernel of the CPU: it cannot be part of a CPU graph")
            if runner.symbolic:
                raise DeviceError(f"{runner!r} has as many threads as a variable says: it cannot be part of a graph")
            first = len(arguments)
            for buffer in item.bufs:
                if buffer is None:
                    raise DeviceError(f"{runner!r} misses a buffer")
                number = numbers.get(id(buffer), numbers.get(id(buffer.base)))
                if number is not None:
                    offset = buffer.offset - self.inputs[number].offset if buffer is not self.inputs[number] else 0
                    patches.extend((len(arguments), number, offset & _WORD))
                    arguments.append(0)
                else:
                    self.kept.append(buffer)
                    arguments.append(buffer.ensure_allocated().opaque.address)
            for var in runner.vars:
                place = places.setdefault(var, len(self.inputs) + len(places))
                patches.extend((len(arguments), place, 0))
                arguments.append(0)
            threads = runner.launch_size({})[0]
            launches.append((self.pool.thunk(len(arguments) - first), runner.program.address, first, threads))
        self.vars = list(places)
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
        self._threaded = any(launch[3] > 1 for launch in launches)
        device = self.items[0].prg.device if self.items else "CPU"
        name = self.items[0].prg.name if len(self.items) == 1 else f"graph of {len(self.items)} kernels"
        super().__init__(name, device)
        for item in self.items:
            self.op_estimate = self.op_estimate + item.prg.op_estimate
            self.mem_estimate = self.mem_estimate + item.prg.mem_estimate
        self.num_kernels = len(self.items)

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Runs all kernels with ``bufs`` for ``inputs``.

        Raises:
          ValueError: another number of buffers than ``inputs``.
        """
        if len(bufs) != len(self.inputs):
            raise ValueError(f"{self.name} takes {len(self.inputs)} buffers, got {len(bufs)}")
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


def _words(values: array[int]) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * max(len(values), 1))(*values)
