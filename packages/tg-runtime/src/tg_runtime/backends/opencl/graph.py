"""CLGraph: a list of ExecItems as kernels whose arguments are set once, queued as a whole.

Where the driver has ``cl_khr_command_buffer``, a sequence that comes again with the same memory is recorded as one
command, at its second time.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence

from tg_shape import Variable

from ...errors import DeviceError
from ...execution.graph import KernelGraph
from ...execution.item import ExecItem
from ...kernels.runner import CompiledRunner
from ...memory.buffer import Buffer
from ...steps.runner import Vars
from ...telemetry.profiler import PROFILE, launch
from . import api
from .memory import CLMemory
from .program import CLProgram, tell_times

_MOST_RECORDS = 4
_PENDING = -59  # CL_INVALID_OPERATION: cl_khr_command_buffer, clEnqueueCommandBufferKHR


class _Node:
    """A launch: a kernel object of its own, so that its arguments stay, and what a replay changes of them.

    Attributes:
      inputs: for each argument that follows an input: its index, the input's number, the part's first byte and size;
        the byte is -1 for the input itself.
    """

    def __init__(self, item: ExecItem, runner: CompiledRunner, program: CLProgram) -> None:
        self.item, self.runner, self.program = item, runner, program
        self.inputs: list[tuple[int, int, int, int]] = []
        self.bound: dict[int, CLMemory] = {}
        self.values: list[int | None] = [None] * len(runner.vars)
        self.group = (ctypes.c_size_t * 3)(*runner.local_size)
        self.items = (ctypes.c_size_t * 3)()
        if not runner.symbolic:
            self.resize(runner.launch_size({}))
        self.kernel = program.another_kernel()

    def resize(self, groups: tuple[int, int, int]) -> None:
        """Sets the number of work-groups."""
        self.items[:] = [g * n for g, n in zip(groups, self.runner.local_size, strict=True)]

    def bind(self, place: int, memory: CLMemory) -> None:
        """Sets memory as an argument, unless it is set already."""
        if self.bound.get(place) is memory:
            return
        queue = self.program.queue
        code = memory.bind(queue, self.kernel, place)
        if code:
            raise queue.failed(code, f"kernel {self.runner.name}: argument {place}")
        self.bound[place] = memory

    def update(self, var_vals: Vars) -> None:
        """Puts in the values of the variables."""
        first = len(self.item.bufs)
        for number, var in enumerate(self.runner.vars):
            value = var_vals[var]
            if self.values[number] != value:
                argument = ctypes.c_int32(value)
                code = api.library().clSetKernelArg(self.kernel, first + number, 4, ctypes.byref(argument))
                if code:
                    raise self.program.queue.failed(code, f"kernel {self.runner.name}: the value {value} of {var.name}")
                self.values[number] = value
        if self.runner.symbolic:
            self.resize(self.runner.launch_size(var_vals))

    def __del__(self) -> None:
        if getattr(self, "kernel", 0):
            self.program.release_kernel(self.kernel)


class CLGraph(KernelGraph[CLProgram]):
    """Kernels in order, queued with the arguments that are set already.

    Args:
      items: what to run; each a CompiledRunner of one OpenCL device, its buffers allocated or inputs.
      inputs: buffers that each replay replaces; a view of one follows it.
      var_vals: the values of the variables now; only their names matter.

    Raises:
      DeviceError: if an item is no kernel of the device, or works on a part of a buffer that begins where no sub-buffer
        may.
    """

    self_timed = True

    def __init__(
        self, items: Sequence[ExecItem], inputs: Sequence[Buffer] = (), var_vals: Mapping[Variable, int] | None = None
    ) -> None:
        super().__init__(items, inputs, CLProgram, "an OpenCL device")
        self._constants: dict[int, CLMemory] = {}
        self.nodes = [self._node(*of) for of in zip(self.items, self.runners, self.programs, strict=True)]
        self._parts: dict[tuple[int, int, int, int], CLMemory] = {}
        self._records: dict[tuple[object, ...], _Record | None] = {}
        self._lock = threading.Lock()

    def _node(self, item: ExecItem, runner: CompiledRunner, program: CLProgram) -> _Node:
        node = _Node(item, runner, program)
        for place, buffer, number, offset, whole in self.arguments(item):
            if number is not None:
                node.inputs.append((place, number, -1 if whole else offset, buffer.nbytes))
                continue
            memory: CLMemory = self.keep(buffer).opaque
            if memory.must_detach(program.queue):
                raise DeviceError(f"{runner!r} works on a part of a buffer that begins where no sub-buffer may")
            node.bind(place, memory)
            self._constants[id(memory.root)] = memory.root
        return node

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Queues all kernels with ``bufs`` for ``inputs``.

        Raises:
          ValueError: on another number of buffers than ``inputs``.
          DeviceError: if the driver refuses, or the device was lost.
        """
        if len(bufs) != len(self.inputs):
            raise self.wrong_count(bufs)
        if not self.nodes:
            return 0.0 if wait else None
        memories: list[CLMemory] = [buffer.opaque for buffer in bufs]
        with self._lock:
            arguments = [[self._part(memories, input_) for input_ in node.inputs] for node in self.nodes]
            queue = self.nodes[0].program.queue
            if PROFILE.value or any(memory.must_detach(queue) for of in arguments for memory in of):
                return self._one_by_one(arguments, var_vals, wait)
            for node, of in zip(self.nodes, arguments, strict=True):
                for (place, *_), memory in zip(node.inputs, of, strict=True):
                    node.bind(place, memory)
                node.update(var_vals)
            record = None if wait else self._record(memories, var_vals)
            seconds = None
            if record is None or not record.enqueue(self.name):
                seconds = self._enqueue(wait)
            number = queue.queued()
            for memory in (*self._constants.values(), *(memory.root for memory in memories)):
                memory.used = max(memory.used, number)
        return seconds

    def _part(self, memories: Sequence[CLMemory], input_: tuple[int, int, int, int]) -> CLMemory:
        """The memory of an argument: an input, or a part of one, which is cached."""
        _, number, offset, nbytes = input_
        memory = memories[number]
        if offset < 0:
            return memory
        key = id(memory), memory.generation, offset, nbytes
        found = self._parts.get(key)
        if found is None or found.parent is not memory:
            if len(self._parts) > 64:
                self._parts.clear()
            found = self._parts[key] = memory.range(self.nodes[0].program.queue, nbytes, offset)
        return found

    def _enqueue(self, wait: bool) -> float | None:
        cl, queue = api.library(), self.nodes[0].program.queue
        handle = queue.handle
        first, last = ctypes.c_void_p(), ctypes.c_void_p()
        for node in self.nodes:
            event = None
            if wait and node is self.nodes[0]:
                event = ctypes.byref(first)
            elif wait and node is self.nodes[-1]:
                event = ctypes.byref(last)
            code = cl.clEnqueueNDRangeKernel(handle, node.kernel, 3, None, node.items, node.group, 0, None, event)
            if code:
                raise queue.failed(code, f"{self.name}: launch of {node.runner.name}")
        if not wait:
            cl.clFlush(handle)
            return None
        begin, end = tell_times(queue, first, f"{self.name}: its first kernel")
        if last.value:
            _, end = tell_times(queue, last, f"{self.name}: its last kernel")
        return (end - begin) * 1e-9

    def _one_by_one(self, arguments: list[list[CLMemory]], var_vals: Vars, wait: bool) -> float | None:
        """The same without the graph: the times of each kernel are told, and parts may begin anywhere."""
        told = launch() if PROFILE.value else None
        seconds = 0.0
        for node, of in zip(self.nodes, arguments, strict=True):
            memory: list[CLMemory] = [buffer.opaque for buffer in node.item.bufs if buffer is not None]
            for (place, *_), input_ in zip(node.inputs, of, strict=True):
                memory[place] = input_
            part = None if told is None else (node.runner.name, node.item.profile_args(var_vals))
            seconds += node.program.launch(memory, node.runner.how(var_vals, wait), part) or 0.0
        return seconds if wait else None

    def _record(self, memories: list[CLMemory], var_vals: Vars) -> _Record | None:
        """The sequence as one recorded command; None the first time that it comes with this memory."""
        queue = self.nodes[0].program.queue
        if not queue.physical.records:
            return None
        blocks = [*memories, *self._constants.values()]
        key = (*((id(m), m.generation) for m in blocks), *(var_vals[var] for var in self.vars))
        if key not in self._records:
            if len(self._records) >= _MOST_RECORDS:
                del self._records[next(iter(self._records))]
            self._records[key] = None
            return None
        found = self._records[key]
        if found is None:
            found = self._records[key] = _Record(self.nodes, blocks)
        return found


class _Record:
    """A sequence as a command of the driver.

    Args:
      nodes: its launches, their arguments bound.
      blocks: the memory that it uses, kept so that no other takes its identity.
    """

    def __init__(self, nodes: Sequence[_Node], blocks: Sequence[CLMemory]) -> None:
        self.queue, self.blocks = nodes[0].program.queue, list(blocks)
        self.cl = api.command_buffers(self.queue.physical.platform_handle)
        status, queues = ctypes.c_int32(), (ctypes.c_void_p * 1)(self.queue.handle)
        self.handle: int = self.cl.clCreateCommandBufferKHR(1, queues, None, ctypes.byref(status))
        api.check(status.value, "a command buffer")
        for node in nodes:
            code = self.cl.clCommandNDRangeKernelKHR(
                self.handle, None, None, node.kernel, 3, None, node.items, node.group, 0, None, None, None
            )
            api.check(code, f"recording {node.runner.name}")
        api.check(self.cl.clFinalizeCommandBufferKHR(self.handle), "closing a command buffer")
        self._event: ctypes.c_void_p | None = None

    def enqueue(self, what: str) -> bool:
        """Queues the sequence once its last run is done: it may not be queued twice at a time.

        Returns:
          False if the driver holds the last run for pending although its event is complete: PoCL wakes who waits for
          the event before it notes that the command buffer may be queued again. Nothing was queued then.
        """
        if self._event is not None:
            self.queue.wait(self._event)
        event = ctypes.c_void_p()
        self._wait()
        code = self.cl.clEnqueueCommandBufferKHR(0, None, self.handle, 0, None, ctypes.byref(event))
        if code == _PENDING:
            return False
        if code:
            raise self.queue.failed(code, what)
        self._event = event
        api.library().clFlush(self.queue.handle)
        return True

    def _wait(self) -> None:
        event, self._event = self._event, None
        if event is not None:
            api.library().clWaitForEvents(1, ctypes.byref(event))
            api.library().clReleaseEvent(event)

    def __del__(self) -> None:
        if getattr(self, "handle", 0) and self.queue.alive:
            self._wait()
            self.cl.clReleaseCommandBufferKHR(self.handle)
