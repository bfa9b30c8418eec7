"""MetalGraph: a list of ExecItems as one indirect command buffer, encoded once and executed as a whole."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from tg_shape import Variable

from ...errors import DeviceError
from ...execution.item import ExecItem
from ...kernels.runner import CompiledRunner
from ...memory.buffer import Buffer
from ...steps.runner import Runner, Vars
from ...telemetry.profiler import PROFILE, Launch, launch
from . import api
from .memory import MetalMemory
from .objc import Range
from .program import MetalProgram

_MOST_COMMANDS = 16384
_Place = tuple[int, int]  # MTLBuffer, first byte


class _Command:
    """A kernel of the graph: what is encoded, and what changes it."""

    def __init__(self, runner: CompiledRunner, program: MetalProgram, arguments: int) -> None:
        self.runner, self.program = runner, program
        self.inputs: list[tuple[int, int, int]] = []  # argument, number of the input, bytes to add
        self.places: list[_Place | None] = [None] * arguments  # where each argument lies, as it is encoded
        self.wanted: list[_Place] = [(0, 0)] * arguments
        self.groups: tuple[int, int, int] | None = None
        self.values = 0  # where the values of its variables begin, in bytes
        self.barrier = False


class MetalGraph(Runner):
    """Kernels in an indirect command buffer, each behind a barrier if it uses what one before it writes.

    It is encoded at the first replay. Later ones encode anew those arguments alone that are others than before, which
    have to wait for the last replay. Variables lie in a buffer of the graph.

    Args:
      items: what to run; each a CompiledRunner of one Metal device, its buffers allocated or inputs.
      inputs: buffers that each replay replaces; a view of one follows it.
      var_vals: the values of the variables now; only their names matter.

    Raises:
      DeviceError: an item is no kernel of the device, or there are too many.
    """

    def __init__(
        self, items: Sequence[ExecItem], inputs: Sequence[Buffer] = (), var_vals: Mapping[Variable, int] | None = None
    ) -> None:
        self.items, self.inputs = list(items), list(inputs)
        device = self.items[0].prg.device if self.items else "METAL"
        super().__init__(f"graph of {len(self.items)} kernels", device)
        if len(self.items) > _MOST_COMMANDS:
            raise DeviceError(f"{self.name}: an indirect command buffer has at most {_MOST_COMMANDS}")
        numbers = {id(buffer): number for number, buffer in enumerate(self.inputs)}
        self.kept: list[Buffer] = []
        self.commands = [self._command(item, numbers) for item in self.items]
        self._set_barriers(set(numbers))
        self.vars = list(dict.fromkeys(var for command in self.commands for var in command.runner.vars))
        self._value_bytes = 0
        for command in self.commands:
            if command.runner.vars:
                command.values = self._value_bytes
                self._value_bytes += -(-4 * len(command.runner.vars) // api.CONSTANT_ALIGNMENT) * api.CONSTANT_ALIGNMENT
        for item in self.items:
            self.op_estimate = self.op_estimate + item.prg.op_estimate
            self.mem_estimate = self.mem_estimate + item.prg.mem_estimate
        self.num_kernels = len(self.items)
        self._handle = 0
        self._values: MetalMemory | None = None
        self._last = 0  # the command buffer of the last replay

    def _command(self, item: ExecItem, numbers: dict[int, int]) -> _Command:
        runner = item.prg
        if not isinstance(runner, CompiledRunner) or not isinstance(runner.program, MetalProgram):
            raise DeviceError(f"{runner!r} is no kernel of a Metal device: it cannot be part of a graph of one")
        if runner.device != self.device:
            raise DeviceError(f"{runner!r} does not run on {self.device}, whose graph this is")
        command = _Command(runner, runner.program, len(item.bufs))
        for place, buffer in enumerate(item.bufs):
            if buffer is None:
                raise DeviceError(f"{runner!r} misses a buffer")
            number = numbers.get(id(buffer), numbers.get(id(buffer.base)))
            if number is not None:
                offset = buffer.offset - self.inputs[number].offset if buffer is not self.inputs[number] else 0
                command.inputs.append((place, number, offset))
                continue
            self.kept.append(buffer)
            memory = buffer.ensure_allocated().opaque
            command.wanted[place] = memory.handle, memory.begin
        return command

    def _set_barriers(self, inputs: set[int]) -> None:
        """A barrier before each kernel that has to do with what one since the last barrier did.

        Whole blocks count, not parts; and all inputs as one, since a replay may be given the same buffer twice.
        """
        read: set[int] = set()
        written: set[int] = set()
        for command, item in zip(self.commands, self.items, strict=True):
            blocks = [
                0 if not inputs.isdisjoint((id(buffer), id(buffer.base))) else id(buffer.base)
                for buffer in item.bufs if buffer is not None
            ]  # fmt: skip
            changes = {blocks[slot] for slot in command.runner.spec.outs}
            if not written.isdisjoint(blocks) or not read.isdisjoint(changes):
                command.barrier = True
                read, written = set(), set()
            read.update(blocks)
            written |= changes

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Executes all kernels with ``bufs`` for ``inputs``.

        Raises:
          ValueError: another number of buffers than ``inputs``.
          MetalError: Metal refuses, or, if ``wait``, a kernel failed.
        """
        if len(bufs) != len(self.inputs):
            raise ValueError(f"{self.name} takes {len(self.inputs)} buffers, got {len(bufs)}")
        if not self.commands:
            return 0.0 if wait else None
        queue = self.commands[0].program.queue
        memories: list[MetalMemory] = [buffer.opaque for buffer in bufs]
        with queue.lock:
            queue.context.enter()
            sizes = [command.runner.launch_size(var_vals) for command in self.commands]
            if PROFILE.value or any(0 in size for size in sizes):
                return self._one_by_one(memories, var_vals, wait)
            self._prepare()
            self._change(memories, sizes, var_vals)
            if not wait:
                self._record(memories)
                return None
            handle = queue.alone(lambda: self._record(memories))
        start, end = queue.times(handle)
        return end - start

    def _one_by_one(self, memories: Sequence[MetalMemory], var_vals: Vars, wait: bool) -> float | None:
        """The same without the indirect command buffer: where a kernel has nothing to do, and to time each of them."""
        told = launch() if PROFILE.value else None
        seconds = 0.0
        for item, command in zip(self.items, self.commands, strict=True):
            arguments = [buffer.opaque for buffer in item.bufs if buffer is not None]
            for place, number, offset in command.inputs:
                whole = memories[number]
                arguments[place] = MetalMemory(
                    whole.context, whole.handle, whole.address + offset, whole.nbytes - offset, whole.begin + offset,
                    whole.block,
                )  # fmt: skip
            runner = command.runner
            part = nullcontext() if told is None else Launch(
                runner.name, runner.device, item.profile_args(var_vals), runner.queue)
            with part:
                taken = command.program(
                    *arguments, global_size=runner.launch_size(var_vals), local_size=runner.local_size,
                    vals=[var_vals[var] for var in runner.vars], wait=wait or told is not None,
                )  # fmt: skip
            seconds += taken or 0.0
        if told is not None:
            told.later(lambda: None)  # its kernels have told their times
        return seconds if wait else None

    def _prepare(self) -> None:
        """Makes the indirect command buffer, and encodes what does not change."""
        if self._handle:
            return
        first = self.commands[0].program
        queue, objc = first.queue, first.objc
        for command in self.commands:
            command.program.check((1, 1, 1), command.runner.local_size)
        with objc.pool():
            descriptor = objc.new("MTLIndirectCommandBufferDescriptor")
            objc.send(descriptor, "setCommandTypes:", api.CONCURRENT_DISPATCH)
            objc.send(descriptor, "setInheritBuffers:", False)
            objc.send(descriptor, "setInheritPipelineState:", False)
            most = max(len(command.places) + bool(command.runner.vars) for command in self.commands)
            objc.send(descriptor, "setMaxKernelBufferBindCount:", most)
            selector = "newIndirectCommandBufferWithDescriptor:maxCommandCount:options:"
            handle = objc.send(queue.context.handle, selector, descriptor, len(self.commands), api.STORAGE_SHARED)
            objc.send(descriptor, "release")
            if not handle:
                raise api.MetalError(f"Metal: {queue.context.name} gives no indirect command buffer for {self.name}")
            if self._value_bytes:
                buffer = objc.send(
                    queue.context.handle, "newBufferWithLength:options:", self._value_bytes, api.STORAGE_SHARED
                )
                if not buffer:
                    objc.send(handle, "release")
                    raise api.MetalError(f"Metal: {queue.context.name} gives no {self._value_bytes} bytes")
                self._values = MetalMemory(queue.context, buffer, objc.send(buffer, "contents"), self._value_bytes)
            for number, command in enumerate(self.commands):
                encoded = objc.send(handle, "indirectComputeCommandAtIndex:", number)
                objc.send(encoded, "setComputePipelineState:", command.program.pipeline)
                if command.runner.vars:
                    assert self._values is not None
                    objc.send(
                        encoded, "setKernelBuffer:offset:atIndex:", self._values.handle, command.values,
                        len(command.places),
                    )  # fmt: skip
                if command.barrier:
                    objc.send(encoded, "setBarrier")
        self._handle = handle

    def _change(
        self, memories: Sequence[MetalMemory], sizes: Sequence[tuple[int, int, int]], var_vals: Vars
    ) -> None:
        """Encodes what is other than at the last replay, once that is done."""
        changed = []
        for number, (command, size) in enumerate(zip(self.commands, sizes, strict=True)):
            for place, source, offset in command.inputs:
                command.wanted[place] = memories[source].handle, memories[source].begin + offset
            if command.wanted != command.places or command.groups != size:
                changed.append((number, command, size))
        values: list[tuple[int, bytes]] = []
        if self._values is not None:
            for command in self.commands:
                chosen = [var_vals[var] for var in command.runner.vars]
                if chosen:
                    values.append((command.values, bytes((ctypes.c_int32 * len(chosen))(*chosen))))
            view = self._values.view(self._value_bytes)
            values = [(at, raw) for at, raw in values if view[at : at + len(raw)] != raw]
        if not changed and not values:
            return
        first = self.commands[0].program
        first.queue.wait(self._last)
        for at, raw in values:
            view[at : at + len(raw)] = raw
        objc = first.objc
        with objc.pool():
            for number, command, size in changed:
                encoded = objc.send(self._handle, "indirectComputeCommandAtIndex:", number)
                for place, (now, wanted) in enumerate(zip(command.places, command.wanted, strict=True)):
                    if now != wanted:
                        objc.send(encoded, "setKernelBuffer:offset:atIndex:", *wanted, place)
                command.places = list(command.wanted)
                if command.groups != size:
                    program = command.program
                    objc.send(
                        encoded, "concurrentDispatchThreadgroups:threadsPerThreadgroup:", program.size(size),
                        program.size(command.runner.local_size),
                    )  # fmt: skip
                    command.groups = size

    def _record(self, memories: Sequence[MetalMemory]) -> None:
        first = self.commands[0].program
        queue, objc = first.queue, first.objc
        with objc.pool():
            queue.seal()
            encoder = queue.encoder()
            self._last = queue.number
            blocks = [*(buffer.opaque.block for buffer in self.kept), *(memory.block for memory in memories)]
            for block in blocks:
                block.used = self._last
            handles = list(dict.fromkeys(block.handle for block in blocks))
            if self._values is not None:
                handles.append(self._values.handle)
            if handles:
                array = (ctypes.c_void_p * len(handles))(*handles)
                objc.send(
                    encoder, "useResources:count:usage:", ctypes.addressof(array), len(handles), api.USAGE_READ_WRITE
                )
            if not queue.context.icb_resident:
                nothing = first.size((0, 0, 0))
                for program in dict.fromkeys(command.program for command in self.commands):
                    objc.send(encoder, "setComputePipelineState:", program.pipeline)
                    objc.send(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", nothing, nothing)
            objc.send(encoder, "executeCommandsInBuffer:withRange:", self._handle, Range(0, len(self.commands)))
            queue.seal()
            queue.recorded(self.name, [*memories, self])

    def __del__(self) -> None:
        handle = getattr(self, "_handle", 0)
        if handle and self.commands[0].program.queue.context.mine:
            self.commands[0].program.objc.send(handle, "release")
