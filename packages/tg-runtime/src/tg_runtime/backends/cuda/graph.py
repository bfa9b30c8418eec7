"""CUDAGraph: a list of ExecItems as one CUDA graph, launched as a whole."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter_ns

from tg_shape import Variable

from ...errors import DeviceError
from ...execution.graph import KernelGraph
from ...execution.item import ExecItem
from ...headers.cuda.api import KernelNodeParams
from ...kernels.runner import CompiledRunner
from ...memory.buffer import Buffer
from ...steps.runner import Vars
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


class CUDAGraph(KernelGraph[CUDAProgram]):
    """Kernels that the driver launches as a whole, each after those whose memory it shares.

    The graph is instantiated at the first replay. Later ones change those kernels alone whose arguments or sizes are
    others than before.

    Args:
      items: what to run; each a CompiledRunner of one CUDA device, its buffers allocated or inputs.
      inputs: buffers that each replay replaces; a view of one follows it.
      var_vals: the values of the variables now; only their names matter.

    Raises:
      DeviceError: if an item is no kernel of the device, or needs a buffer that does not begin where vectors may.
    """

    def __init__(
        self, items: Sequence[ExecItem], inputs: Sequence[Buffer] = (), var_vals: Mapping[Variable, int] | None = None
    ) -> None:
        super().__init__(items, inputs, CUDAProgram, "a CUDA device")
        self.nodes = [self._node(*of) for of in zip(self.items, self.runners, self.programs, strict=True)]
        self._kept_blocks = list({id(b): b for b in (buffer.opaque.block for buffer in self.kept)}.values())
        self.edges = list(self._edges())
        self._graph = self._executable = 0
        self._moments: tuple[int, int] | None = None

    def _node(self, item: ExecItem, runner: CompiledRunner, program: CUDAProgram) -> _Node:
        node = _Node(item, runner, program)
        for place, buffer, number, offset, _ in self.arguments(item):
            if number is not None:
                node.inputs.append((place, number, offset))
                continue
            address = self.keep(buffer).opaque.address
            if program.vectors and address % 16:
                raise DeviceError(f"{runner!r} works on a part of a buffer that begins at no multiple of 16 bytes")
            node.arguments.addresses[place] = address
        if not runner.symbolic:
            node.size(runner.launch_size({}))
        return node

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Launches all kernels with ``bufs`` for ``inputs``.

        Raises:
          ValueError: on another number of buffers than ``inputs``.
          CUDAError: if the driver refuses.
        """
        if len(bufs) != len(self.inputs):
            raise self.wrong_count(bufs)
        if not self.nodes:
            return 0.0 if wait else None
        empty = any(0 in node.runner.launch_size(var_vals) for node in self.nodes)
        if PROFILE.value or empty or not self._aligned(bufs):
            return self._one_by_one(bufs, var_vals, wait)
        context = self.nodes[0].program.context
        driver = context.driver
        context.enter()
        blocks = [*self._kept_blocks, *(buffer.opaque.block for buffer in bufs)]
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

    def _edges(self) -> Iterator[list[int]]:
        """For each item those before it that it must follow: whoever wrote what it uses, or used what it writes."""
        writer: dict[int, int] = {}
        readers: dict[int, list[int]] = {}
        for number, (item, runner) in enumerate(zip(self.items, self.runners, strict=True)):
            written = set(runner.spec.outs)
            before: set[int] = set()
            uses = [(block, place in written) for place, block in enumerate(self.blocks(item))]
            for block, writes in uses:
                if block in writer:
                    before.add(writer[block])
                if writes:
                    before.update(readers.get(block, ()))
            for block, writes in uses:
                if writes:
                    writer[block], readers[block] = number, []
                else:
                    readers.setdefault(block, []).append(number)
            before.discard(number)
            yield sorted(before)

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
        for item, runner in zip(self.items, self.runners, strict=True):
            ready = self.replaced(item, bufs)
            start = perf_counter_ns()
            taken = runner(ready, var_vals, wait or told is not None) or 0.0
            seconds += taken
            if told is not None:
                end = perf_counter_ns()
                name, args = runner.name, item.profile_args(var_vals)
                told.on_device(runner.queue, max(end - int(taken * 1e9), start), end, name=name, args=args)
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
