"""HCQGraph: a list of kernels as one bound queue, replayed with other inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter_ns

from tg_runtime import PROFILE, Buffer, DeviceError, ExecItem
from tg_runtime.execution.graph import Argument, KernelGraph
from tg_runtime.telemetry.profiler import Launch
from tg_shape import Variable

from .allocator import HOST_OPTIONS
from .buffer import HCQBuffer
from .program import HCQProgram

_ADDRESS_MAX = 2**64 - 1


class HCQGraph(KernelGraph[HCQProgram]):
    """Kernels of one device, in order, in one submission.

    The words and the arguments of all launches lie in device memory. A replay computes the addresses of the inputs and
    the values of the variables once, patches what changed, and jumps.

    Args:
      items: what to run; each a kernel of the device, its buffers allocated or inputs.
      inputs: buffers that each replay replaces; a view of one follows it.
      var_vals: the values of the variables now; only their names matter.

    Raises:
      DeviceError: if an item is no kernel of a queue-driven device, or of another one than the first.
    """

    self_timed = True

    def __init__(
        self, items: Sequence[ExecItem], inputs: Sequence[Buffer] = (), var_vals: Mapping[Variable, int] | None = None
    ) -> None:
        super().__init__(items, inputs, HCQProgram, "a queue-driven device")
        if not self.programs:
            raise DeviceError("a graph of no kernels")
        self._device = device = self.programs[0].device
        self._addresses = [Variable(f"input{i}", 0, _ADDRESS_MAX) for i in range(len(self.inputs))]
        launches = []
        for item, runner, program in zip(self.items, self.runners, self.programs, strict=True):
            bufs = [self._argument(argument) for argument in self.arguments(item)]
            launches.append((runner, program, bufs, program.layout_of(len(bufs), len(runner.vars))))
        sizes = [-(-layout.nbytes // 64) * 64 for *_, layout in launches]
        self._arguments = device.allocator.alloc(sum(sizes), HOST_OPTIONS)
        self._queue = device.compute_queue()
        with device.timeline.recording(self._queue) as queue:
            start = 0
            for (runner, program, bufs, layout), size in zip(launches, sizes, strict=True):
                args = program.fill_args(bufs, runner.vars, self._arguments.offset(start, layout.nbytes))
                queue.exec(program, args, runner.global_size, runner.local_size).memory_barrier()
                start += size
        self._queue.keep(*self.kept)
        self._queue.bind(device)

    def __call__(self, bufs: Sequence[Buffer], var_vals: Mapping[Variable, int], wait: bool = False) -> float | None:
        """Runs all kernels with ``bufs`` for ``inputs``.

        Raises:
          ValueError: if there is another number of buffers than ``inputs``, or a variable without a value.
          DeviceFault: if the device is stopped.
        """
        if len(bufs) != len(self.inputs):
            raise self.wrong_count(bufs)
        values = dict(var_vals)
        for variable, buffer in zip(self._addresses, bufs, strict=True):
            values[variable] = buffer.opaque.address
        device = self._device
        if PROFILE.value:
            return self._one_by_one(bufs, var_vals, wait)
        if not wait:
            device.timeline.replay(self._queue, values)
            return None
        start, stop = device.new_signal(), device.new_signal()
        with device.timeline.lock:
            with device.submission() as queue:
                queue.timestamp(start)
            device.timeline.replay(self._queue, values)
            with device.submission() as queue:
                queue.timestamp(stop)
        device.synchronize()
        return (stop.timestamp - start.timestamp) * 1e-6

    def _one_by_one(self, bufs: Sequence[Buffer], var_vals: Mapping[Variable, int], wait: bool) -> float | None:
        """Runs the kernels by a submission each, so that the times of each are known."""
        device, began = self._device, perf_counter_ns()
        for item in self.items:
            ready = self.replaced(item, bufs)
            with Launch(item.prg.name, device.device, item.profile_args(var_vals)):
                item.prg(ready, var_vals)
        if not wait:
            return None
        device.synchronize()
        return (perf_counter_ns() - began) * 1e-9

    def _argument(self, argument: Argument) -> HCQBuffer:
        if argument.input is None:
            opaque: HCQBuffer = self.keep(argument.buffer).opaque
            return opaque
        return HCQBuffer(self._addresses[argument.input] + argument.offset, argument.buffer.nbytes)

    def __del__(self) -> None:
        arguments = self.__dict__.pop("_arguments", None)
        if arguments is not None:
            self._device.allocator.retire(arguments, HOST_OPTIONS)
