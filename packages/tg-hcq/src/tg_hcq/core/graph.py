"""HCQGraph: a list of kernels as one bound queue, replayed with other inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter_ns

from tg_runtime import PROFILE, Buffer, CompiledRunner, DeviceError, ExecItem, Runner
from tg_runtime.telemetry.profiler import Launch
from tg_shape import Variable

from .allocator import HOST_OPTIONS
from .buffer import HCQBuffer
from .program import HCQProgram

_ADDRESS_MAX = 2**64 - 1


class HCQGraph(Runner):
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
        self.items, self.inputs = list(items), list(inputs)
        programs = [_program(item.prg) for item in self.items]
        if not programs:
            raise DeviceError("a graph of no kernels")
        self._device = device = programs[0].device
        self._addresses = [Variable(f"input{i}", 0, _ADDRESS_MAX) for i in range(len(self.inputs))]
        numbers = {id(buffer): i for i, buffer in enumerate(self.inputs)}
        kept: list[object] = []
        launches = []
        for item, program in zip(self.items, programs, strict=True):
            assert isinstance(item.prg, CompiledRunner)
            if program.device is not device:
                raise DeviceError(f"{item.prg!r} cannot be part of a graph on {device.device}")
            bufs = [self._argument(item.prg, buffer, numbers, kept) for buffer in item.bufs]
            launches.append((item.prg, program, bufs, program.layout_of(len(bufs), len(item.prg.vars))))
        sizes = [-(-layout.nbytes // 64) * 64 for *_, layout in launches]
        self._arguments = device.allocator.alloc(sum(sizes), HOST_OPTIONS)
        self._queue = device.compute_queue()
        with device.timeline.recording(self._queue) as queue:
            start = 0
            for (runner, program, bufs, layout), size in zip(launches, sizes, strict=True):
                args = program.fill_args(bufs, runner.vars, self._arguments.offset(start, layout.nbytes))
                queue.exec(program, args, runner.global_size, runner.local_size).memory_barrier()
                start += size
        self._queue.keep(*kept)
        self._queue.bind(device)
        super().__init__(f"graph of {len(self.items)} kernels", device.device)
        for item in self.items:
            self.op_estimate = self.op_estimate + item.prg.op_estimate
            self.mem_estimate = self.mem_estimate + item.prg.mem_estimate
        self.num_kernels = len(self.items)

    def __call__(self, bufs: Sequence[Buffer], var_vals: Mapping[Variable, int], wait: bool = False) -> float | None:
        """Runs all kernels with ``bufs`` for ``inputs``.

        Raises:
            ValueError: if there is another number of buffers than ``inputs``, or a variable without a value.
            DeviceFault: if the device is stopped.
        """
        if len(bufs) != len(self.inputs):
            raise ValueError(f"{self.name} takes {len(self.inputs)} buffers, got {len(bufs)}")
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
        numbers = {id(buffer): i for i, buffer in enumerate(self.inputs)}
        device, began = self._device, perf_counter_ns()
        for item in self.items:
            ready = []
            for buffer in item.bufs:
                assert buffer is not None
                number = numbers.get(id(buffer), numbers.get(id(buffer.base)))
                if number is None:
                    ready.append(buffer.ensure_allocated())
                elif buffer is self.inputs[number]:
                    ready.append(bufs[number])
                else:
                    offset = buffer.offset - self.inputs[number].offset
                    ready.append(bufs[number].view(buffer.size, buffer.dtype, offset))
            with Launch(item.prg.name, device.device, item.profile_args(var_vals)):
                item.prg(ready, var_vals)
        if not wait:
            return None
        device.synchronize()
        return (perf_counter_ns() - began) * 1e-9

    def _argument(
        self, runner: Runner, buffer: Buffer | None, numbers: Mapping[int, int], kept: list[object]
    ) -> HCQBuffer:
        if buffer is None:
            raise DeviceError(f"{runner!r} misses a buffer")
        number = numbers.get(id(buffer), numbers.get(id(buffer.base)))
        if number is None:
            kept.append(buffer)
            opaque: HCQBuffer = buffer.ensure_allocated().opaque
            return opaque
        offset = buffer.offset - self.inputs[number].offset if buffer is not self.inputs[number] else 0
        return HCQBuffer(self._addresses[number] + offset, buffer.nbytes)

    def __del__(self) -> None:
        arguments = self.__dict__.pop("_arguments", None)
        if arguments is not None:
            self._device.allocator.retire(arguments, HOST_OPTIONS)


def _program(runner: Runner) -> HCQProgram:
    if not isinstance(runner, CompiledRunner) or not isinstance(runner.program, HCQProgram):
        raise DeviceError(f"{runner!r} is no kernel of a queue-driven device: it cannot be part of a graph")
    return runner.program
