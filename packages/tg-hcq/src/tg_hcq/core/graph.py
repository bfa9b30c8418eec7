"""HCQGraph: kernels and copies of queue-driven devices, recorded once and replayed with other inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter_ns

from tg_runtime import PROFILE, Buffer, BufferXfer, CompiledRunner, Device, DeviceError, ExecItem
from tg_runtime.execution.graph import Argument, KernelGraph
from tg_runtime.steps.runner import Runner
from tg_runtime.telemetry.profiler import Launch, launch
from tg_shape import Variable

from .buffer import HCQBuffer
from .compiled import HCQCompiled
from .dependences import Use
from .profiling import calibrate
from .program import HCQProgram
from .recording import Copy, Kernel, Recording, Written

_ADDRESS_MAX = 2**63 - 1  # with an offset it fits in 64 bits


class HCQGraph(KernelGraph[HCQProgram]):
    """Kernels and copies of one or several devices in one submission a queue.

    The words and the arguments of all launches lie in device memory. A replay computes the addresses of the inputs and
    the values of the variables once, patches what changed, and jumps. What uses other bytes runs at once: other inputs
    count as the same bytes, since a replay may be given one buffer twice.

    Args:
      items: what to run; each a kernel or a copy of devices that reach one another's memory, its buffers allocated or
        inputs.
      inputs: buffers that each replay replaces; a view of one follows it.
      var_vals: the values of the variables now; only their names matter.

    Raises:
      DeviceError: if an item is neither, or there is no kernel.
    """

    self_timed = True

    def __init__(
        self, items: Sequence[ExecItem], inputs: Sequence[Buffer] = (), var_vals: Mapping[Variable, int] | None = None
    ) -> None:
        self._group: str | None = None
        super().__init__(items, inputs, HCQProgram, "a queue-driven device")
        if not self.programs:
            raise DeviceError("a graph of no kernels")
        self._device = self.programs[0].device
        self._addresses = [Variable(f"input{i}", 0, _ADDRESS_MAX) for i in range(len(self.inputs))]
        self._written: dict[int, HCQCompiled] = {}  # the inputs that are written
        self._recording = self._record(stamped=False)
        self._stamped: Recording | None = None

    def admit(self, step: Runner) -> None:
        """Takes a step in.

        Raises:
          DeviceError: if it is neither a kernel nor a copy of devices that reach one another's memory.
        """
        if isinstance(step, CompiledRunner) and isinstance(step.program, HCQProgram):
            self._reach(step.program.device, step)
            self.runners.append(step)
            self.programs.append(step.program)
        elif isinstance(step, BufferXfer):
            for name in (step.dest_device, step.src_device):
                self._reach(Device[name], step)
        else:
            super().admit(step)

    def _reach(self, device: object, step: Runner) -> None:
        group = device.allocator.peer_group if isinstance(device, HCQCompiled) else None
        self._group = self._group if self._group is not None else group
        if group is None or group != self._group:
            raise DeviceError(f"{step!r} cannot be part of a graph on {self.device}")

    def _record(self, stamped: bool) -> Recording:
        steps = [self._copy(item) if isinstance(item.prg, BufferXfer) else self._kernel(item) for item in self.items]
        recording = Recording(steps, stamped)
        recording.keep(*self.kept)
        return recording

    def _kernel(self, item: ExecItem) -> Kernel:
        runner = item.prg
        assert isinstance(runner, CompiledRunner) and isinstance(runner.program, HCQProgram)
        arguments = list(self.arguments(item))
        bufs = [self._memory(argument) for argument in arguments]
        written = set(runner.spec.outs)
        for argument in arguments:
            if argument.place in written and argument.input is not None:
                self._written[argument.input] = runner.program.device
        uses = [_use(a, buf, a.place in written) for a, buf in zip(arguments, bufs, strict=True)]
        return Kernel(runner.program, bufs, runner.vars, runner.global_size, _three(runner.local_size), uses)

    def _copy(self, item: ExecItem) -> Copy:
        dest, src = self.arguments(item)
        if dest.buffer.nbytes != src.buffer.nbytes or dest.buffer.readonly:
            raise DeviceError(f"{item.prg!r} cannot be part of a graph")
        ends = self._memory(dest), self._memory(src)
        uses = [_use(dest, ends[0], True), _use(src, ends[1], False)]
        there, here = Device[src.buffer.device], Device[dest.buffer.device]
        assert isinstance(there, HCQCompiled) and isinstance(here, HCQCompiled)
        if dest.input is not None:
            self._written[dest.input] = here
        return Copy(there, here, *ends, uses)

    def __call__(self, bufs: Sequence[Buffer], var_vals: Mapping[Variable, int], wait: bool = False) -> float | None:
        """Runs everything with ``bufs`` for ``inputs``.

        Raises:
          ValueError: if there is another number of buffers than ``inputs``, or a variable without a value.
          DeviceFault: if a device is stopped.
        """
        if len(bufs) != len(self.inputs):
            raise self.wrong_count(bufs)
        values = dict(var_vals)
        for variable, buffer in zip(self._addresses, bufs, strict=True):
            values[variable] = buffer.opaque.address
        written = [(device, bufs[number].opaque) for number, device in self._written.items()]
        if PROFILE.value or wait:
            return self._timed(values, written, var_vals, wait)
        self._recording.submit(values, written)
        return None

    def _timed(
        self, values: Mapping[Variable, int], written: Sequence[Written], var_vals: Mapping[Variable, int], wait: bool
    ) -> float | None:
        """A replay that notes when each step began and ended."""
        if self._stamped is None:
            self._stamped = self._record(stamped=True)
        recording, began = self._stamped, perf_counter_ns()
        read = recording.submit_stamped(values, written)
        if PROFILE.value:
            told = launch() or Launch(self.name, self.device, {})
            shown = [
                Launch(item.prg.name, recording.devices[place].device, item.profile_args(var_vals))
                for item, (place, _) in zip(self.items, recording.tracks, strict=True)
            ]

            def resolve() -> None:
                moments = read()
                for device in recording.devices:
                    if not device.clock_known:
                        calibrate(device)
                for step, (place, track), (start, stop) in zip(shown, recording.tracks, moments, strict=True):
                    step.on_device(track, start, stop, recording.devices[place].clock)

            told.later(resolve)
        if not wait:
            return None
        if PROFILE.value:  # the moments are read later
            for device in recording.devices:
                device.synchronize()
            return (perf_counter_ns() - began) * 1e-9
        moments = read()
        if len(recording.devices) > 1:  # each has a clock of its own
            return (perf_counter_ns() - began) * 1e-9
        return (max(stop for _, stop in moments) - min(start for start, _ in moments)) * 1e-9

    def _memory(self, argument: Argument) -> HCQBuffer:
        if argument.input is None:
            opaque: HCQBuffer = self.keep(argument.buffer).opaque
            return opaque
        return HCQBuffer(self._addresses[argument.input] + argument.offset, argument.buffer.nbytes)


def _use(argument: Argument, memory: HCQBuffer, writes: bool) -> Use:
    if argument.input is not None:
        return Use("inputs", argument.input, argument.offset, argument.offset + memory.nbytes, writes)
    assert isinstance(memory.address, int)
    return Use("memory", 0, memory.address, memory.address + memory.nbytes, writes)


def _three(size: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = size
    return x, y, z
