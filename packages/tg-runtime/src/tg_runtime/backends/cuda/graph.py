"""CUDAGraph: a list of ExecItems as one CUDA graph, launched as a whole."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter_ns

from tg_shape import Variable

from ...errors import DeviceError
from ...execution.item import ExecItem
from ...headers.cuda.api import KernelNodeParams
from ...kernels.runner import CompiledRunner
from ...memory.buffer import Buffer
from ...steps.runner import Runner, Vars
from ...telemetry.profiler import PROFILE, launch
from .program import Arguments, CUDAProgram


class _Node:
    """A kernel of the graph: its parameters as the driver reads them, and what changes them."""

    def __init__(self, item: ExecItem, runner: CompiledRunner, program: CUDAProgram) -> None:
        self.runner, self.program = runner, program
        self.arguments = Arguments(len(item.bufs), len(runner.vars))
        self.params = KernelNodeParams()
        self.params.func = program.function
        self.params.blockDimX, self.params.blockDimY, self.params.blockDimZ = runner.local_size
        self.params.sharedMemBytes = program.dynamic_bytes
        self.params.kernelParams = ctypes.cast(self.arguments.pointers, ctypes.POINTER(ctypes.c_void_p))
        self.inputs: list[tuple[int, int, int]] = []  # argument, number of the input, bytes to add
        self.handle = 0

    def update(self, bufs: Sequence[Buffer], var_vals: Vars) -> bool:
        """Puts in the inputs and the values; whether anything changed."""
        changed = False
        addresses, values = self.arguments.addresses, self.arguments.values
        for place, number, offset in self.inputs:
            address = bufs[number].opaque.address + offset
            if addresses[place] != address:
                addresses[place], changed = address, True
        for place, var in enumerate(self.runner.vars):
            if values[place] != var_vals[var]:
                values[place], changed = var_vals[var], True
        if self.runner.symbolic:
            grid = self.runner.launch_size(var_vals)
            if grid != (self.params.gridDimX, self.params.gridDimY, self.params.gridDimZ):
                self.size(grid)
                changed = True
        return changed

    def size(self, grid: tuple[int, int, int]) -> None:
        """Sets the number of blocks."""
        self.params.gridDimX, self.params.gridDimY, self.params.gridDimZ = grid


class CUDAGraph(Runner):
    """Kernels that the driver launches as a whole, each after those whose memory it shares.

    The graph is instantiated at the first replay. Later ones change those kernels alone whose arguments or sizes are
    others than before.

    Args:
      items: what to run; each a CompiledRunner of one CUDA device, its buffers allocated or inputs.
      inputs: buffers that each replay replaces; a view of one follows it.
      var_vals: the values of the variables now; only their names matter.

    Raises:
      DeviceError: an item is no kernel of the device, or needs a buffer that does not begin where vectors may.
    """

    def __init__(
        self, items: Sequence[ExecItem], inputs: Sequence[Buffer] = (), var_vals: Mapping[Variable, int] | None = None
    ) -> None:
        self.items, self.inputs = list(items), list(inputs)
        device = self.items[0].prg.device if self.items else "CUDA"
        super().__init__(f"graph of {len(self.items)} kernels", device)
        numbers = {id(buffer): number for number, buffer in enumerate(self.inputs)}
        self.kept: list[Buffer] = []
        self.nodes = [self._node(item, numbers) for item in self.items]
        self.blocks = list({id(b): b for b in (buffer.opaque.block for buffer in self.kept)}.values())
        self.edges = list(_edges(self.items, set(numbers)))
        self.vars = list(dict.fromkeys(var for node in self.nodes for var in node.runner.vars))
        for item in self.items:
            self.op_estimate = self.op_estimate + item.prg.op_estimate
            self.mem_estimate = self.mem_estimate + item.prg.mem_estimate
        self.num_kernels = len(self.items)
        self._graph = self._executable = 0
        self._moments: tuple[int, int] | None = None

    def _node(self, item: ExecItem, numbers: dict[int, int]) -> _Node:
        runner = item.prg
        if not isinstance(runner, CompiledRunner) or not isinstance(runner.program, CUDAProgram):
            raise DeviceError(f"{runner!r} is no kernel of a CUDA device: it cannot be part of a CUDA graph")
        if runner.device != self.device:
            raise DeviceError(f"{runner!r} does not run on {self.device}, whose graph this is")
        node = _Node(item, runner, runner.program)
        for place, buffer in enumerate(item.bufs):
            if buffer is None:
                raise DeviceError(f"{runner!r} misses a buffer")
            number = numbers.get(id(buffer), numbers.get(id(buffer.base)))
            if number is not None:
                offset = buffer.offset - self.inputs[number].offset if buffer is not self.inputs[number] else 0
                node.inputs.append((place, number, offset))
                continue
            self.kept.append(buffer)
            address = buffer.ensure_allocated().opaque.address
            if node.program.vectors and address % 16:
                raise DeviceError(f"{runner!r} works on a part of a buffer that begins at no multiple of 16 bytes")
            node.arguments.addresses[place] = address
        if not runner.symbolic:
            node.size(runner.launch_size({}))
        return node

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Launches all kernels with ``bufs`` for ``inputs``.

        Raises:
          ValueError: another number of buffers than ``inputs``.
          CUDAError: the driver refuses.
        """
        if len(bufs) != len(self.inputs):
            raise ValueError(f"{self.name} takes {len(self.inputs)} buffers, got {len(bufs)}")
        if not self.nodes:
            return 0.0 if wait else None
        empty = any(0 in node.runner.launch_size(var_vals) for node in self.nodes)
        if PROFILE.value or empty or not self._aligned(bufs):
            return self._one_by_one(bufs, var_vals, wait)
        context = self.nodes[0].program.context
        driver = context.driver
        context.enter()
        blocks = [*self.blocks, *(buffer.opaque.block for buffer in bufs)]
        context.order.before_kernel(blocks)
        changed = [node for node in self.nodes if node.update(bufs, var_vals)]
        if not self._executable:
            self._instantiate()
            changed = []
        for node in changed:
            code = driver.cuGraphExecKernelNodeSetParams(self._executable, node.handle, ctypes.byref(node.params))
            driver.check(code, f"{self.name}: the arguments of {node.runner.name}")
        if wait:
            if self._moments is None:
                self._moments = context.event(timed=True), context.event(timed=True)
            context.record(self._moments[0])
        driver.check(driver.cuGraphLaunch(self._executable, context.stream), f"launching the {self.name}")
        context.order.after_kernel(blocks)
        if not wait or self._moments is None:
            return None
        context.record(self._moments[1])
        context.wait(self._moments[1])
        milliseconds = ctypes.c_float()
        driver.check(driver.cuEventElapsedTime(ctypes.byref(milliseconds), *self._moments), f"timing the {self.name}")
        return milliseconds.value * 1e-3

    def _aligned(self, bufs: Sequence[Buffer]) -> bool:
        return not any(
            (bufs[number].opaque.address + offset) % 16
            for node in self.nodes
            if node.program.vectors
            for _, number, offset in node.inputs
        )

    def _one_by_one(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool) -> float | None:
        """The same without the graph: the times of each kernel are told, and inputs may be what it cannot take."""
        told = launch() if PROFILE.value else None
        context = self.nodes[0].program.context
        seconds = 0.0
        for item, node in zip(self.items, self.nodes, strict=True):
            allocator = bufs[0].allocator if bufs else None
            memory = [buffer.opaque for buffer in item.bufs if buffer is not None]
            for place, number, offset in node.inputs:
                assert allocator is not None
                original = item.bufs[place]
                assert original is not None
                memory[place] = allocator.offset(bufs[number].opaque, original.nbytes, offset)
            values = [var_vals[var] for var in node.runner.vars]
            size = node.runner.launch_size(var_vals)
            start = perf_counter_ns()
            taken = node.program(
                *memory,
                global_size=size,
                local_size=node.runner.local_size,
                vals=values,
                wait=wait or told is not None,
            ) or 0.0  # fmt: skip
            seconds += taken
            if told is not None:
                end = perf_counter_ns()
                name, args = node.runner.name, item.profile_args(var_vals)
                told.on_device(node.runner.queue, max(end - int(taken * 1e9), start), end, name=name, args=args)
        context.enter()
        return seconds if wait else None

    def _instantiate(self) -> None:
        driver = self.nodes[0].program.context.driver
        self._graph = driver.object("cuGraphCreate", 0)
        for node, before in zip(self.nodes, self.edges, strict=True):
            handles = (ctypes.c_void_p * max(len(before), 1))(*(self.nodes[number].handle for number in before))
            found = ctypes.c_void_p()
            code = driver.cuGraphAddKernelNode(
                ctypes.byref(found), self._graph, handles if before else None, len(before), ctypes.byref(node.params)
            )
            driver.check(code, f"{self.name}: adding {node.runner.name}")
            node.handle = found.value or 0
        self._executable = driver.object("cuGraphInstantiateWithFlags", self._graph, 0)

    def __del__(self) -> None:
        if not getattr(self, "_graph", 0):
            return
        context = self.nodes[0].program.context
        if not context.try_enter():
            return
        if self._executable:
            context.driver.cuGraphExecDestroy(self._executable)
        context.driver.cuGraphDestroy(self._graph)
        for event in self._moments or ():
            context.driver.cuEventDestroy_v2(event)


def _edges(items: Sequence[ExecItem], inputs: set[int]) -> Iterator[list[int]]:
    """For each item those before it that it must follow: whoever wrote what it uses, or used what it writes.

    Whole blocks count, not parts; and all inputs as one, since a replay may be given the same buffer twice.
    """
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    for number, item in enumerate(items):
        assert isinstance(item.prg, CompiledRunner)
        written = set(item.prg.spec.outs)
        before: set[int] = set()
        blocks = [
            (0 if not inputs.isdisjoint((id(buffer), id(buffer.base))) else id(buffer.base), place in written)
            for place, buffer in enumerate(item.bufs)
            if buffer is not None
        ]
        for block, writes in blocks:
            if block in writer:
                before.add(writer[block])
            if writes:
                before.update(readers.get(block, ()))
        for block, writes in blocks:
            if writes:
                writer[block], readers[block] = number, []
            else:
                readers.setdefault(block, []).append(number)
        before.discard(number)
        yield sorted(before)
