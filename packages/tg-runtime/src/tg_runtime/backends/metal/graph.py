"""MetalGraph: a list of ExecItems as one indirect command buffer, encoded once and executed as a whole."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from tg_shape import Variable

from ...errors import DeviceError
from ...execution.graph import KernelGraph
from ...execution.item import ExecItem
from ...kernels.runner import CompiledRunner
from ...memory.buffer import Buffer
from ...steps.runner import Vars
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


class MetalGraph(KernelGraph[MetalProgram]):
    """Kernels in an indirect command buffer, each behind a barrier if it uses what one before it writes.

    It is encoded at the first replay. Later ones encode anew those arguments alone that are others than before, which
    have to wait for the last replay. Variables lie in a buffer of the graph.

    Args:
      items: what to run; each a CompiledRunner of one Metal device, its buffers allocated or inputs.
      inputs: buffers that each replay replaces; a view of one follows it.
      var_vals: the values of the variables now; only their names matter.

    Raises:
      DeviceError: if an item is no kernel of the device, or there are too many.
    """

    def __init__(
        self, items: Sequence[ExecItem], inputs: Sequence[Buffer] = (), var_vals: Mapping[Variable, int] | None = None
    ) -> None:
        super().__init__(items, inputs, MetalProgram, "a Metal device")
        if len(self.items) > _MOST_COMMANDS:
            raise DeviceError(f"{self.name}: an indirect command buffer has at most {_MOST_COMMANDS}")
        self.commands = [self._command(*of) for of in zip(self.items, self.runners, self.programs, strict=True)]
        self._set_barriers()
        self._value_bytes = 0
        for command in self.commands:
            if command.runner.vars:
                command.values = self._value_bytes
                self._value_bytes += -(-4 * len(command.runner.vars) // api.CONSTANT_ALIGNMENT) * api.CONSTANT_ALIGNMENT
        self._handle = 0
        self._values: MetalMemory | None = None
        self._last = 0  # the command buffer of the last replay

    def _command(self, item: ExecItem, runner: CompiledRunner, program: MetalProgram) -> _Command:
        command = _Command(runner, program, len(item.bufs))
        for place, buffer, number, offset, _ in self.arguments(item):
            if number is not None:
                command.inputs.append((place, number, offset))
            else:
                memory = self.keep(buffer).opaque
                command.wanted[place] = memory.handle, memory.begin
        return command

    def _set_barriers(self) -> None:
        """Puts a barrier before each kernel that conflicts with one since the last barrier."""
        read: set[int] = set()
        written: set[int] = set()
        for command, item in zip(self.commands, self.items, strict=True):
            blocks = self.blocks(item)
            changes = {blocks[slot] for slot in command.runner.spec.outs}
            if not written.isdisjoint(blocks) or not read.isdisjoint(changes):
                command.barrier = True
                read, written = set(), set()
            read.update(blocks)
            written |= changes

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Executes all kernels with ``bufs`` for ``inputs``.

        Raises:
          ValueError: on another number of buffers than ``inputs``.
          MetalError: if Metal refuses, or, if ``wait``, a kernel failed.
        """
        if len(bufs) != len(self.inputs):
            raise self.wrong_count(bufs)
        if not self.commands:
            return 0.0 if wait else None
        queue = self.commands[0].program.queue
        memories: list[MetalMemory] = [buffer.opaque for buffer in bufs]
        with queue.lock:
            queue.context.enter()
            sizes = [command.runner.launch_size(var_vals) for command in self.commands]
            if PROFILE.value or any(0 in size for size in sizes):
                return self._one_by_one(bufs, var_vals, wait)
            self._prepare()
            self._change(memories, sizes, var_vals)
            if not wait:
                self._record(memories)
                return None
            handle = queue.alone(lambda: self._record(memories))
        start, end = queue.times(handle)
        return end - start

    def _one_by_one(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool) -> float | None:
        """The same without the indirect command buffer: where a kernel has nothing to do, and to time each of them."""
        told = launch() if PROFILE.value else None
        seconds = 0.0
        for item, runner in zip(self.items, self.runners, strict=True):
            ready = self.replaced(item, bufs)
            part = nullcontext() if told is None else Launch(
                runner.name, runner.device, item.profile_args(var_vals), runner.queue)
            with part:
                taken = runner(ready, var_vals, wait or told is not None)
            seconds += taken or 0.0
        if told is not None:
            told.later(lambda: None)  # its kernels reported their times themselves
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
        """Encodes what changed since the last replay, once that is done."""
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
