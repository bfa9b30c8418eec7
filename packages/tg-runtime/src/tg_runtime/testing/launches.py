"""Launches: many of them, graphs of them, and those that must be refused."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import replace

from tg_dtype import AddrSpace, ConstType, dtypes
from tg_lazy import LazyOp, Ops, ast
from tg_shape import ShapeTracker, Variable

from ..errors import CompileError, DeviceError, OutOfMemory
from ..execution.item import ExecItem
from ..kernels.programs import get_runner
from ..kernels.runner import CompiledRunner
from ..memory.buffer import Buffer
from .base import Group
from .kernels import buffer_with, kernel, unpack

_SIZE = 40
_MOST_GROWTH = 2 << 20  # bytes


class Graphs(Group):
    """Sequences of launches that the device replays as one."""

    group = "graph replay"

    def numbers(self, first: int) -> list[ConstType]:
        """Values of an input."""
        return [first + i for i in range(_SIZE)]

    def step(self, out: Buffer, a: Buffer, b: Buffer, op: Ops = Ops.ADD) -> ExecItem:
        """A launch: ``out`` becomes ``a op b``."""
        st = ShapeTracker.from_shape((out.size,))
        value = ast.alu(op, ast.load(1, dtypes.int32, st), ast.load(2, dtypes.int32, st))
        sink = kernel([(value, out.size)], [(dtypes.int32, out.size)] * 2)
        return ExecItem(get_runner(self.opened, sink), [out, a, b])

    def empty(self, size: int = _SIZE) -> Buffer:
        """A buffer to be written."""
        return Buffer(self.device, size, dtypes.int32).allocate()

    def full(self, first: int) -> Buffer:
        """A buffer with numbers from ``first``."""
        return buffer_with(self.device, self.numbers(first), dtypes.int32)

    def test_replay_with_changed_inputs(self) -> None:
        """Each replay reads its own inputs and writes its own outputs; what is between them stays inside."""
        self.need(self.opened.graph, "graphs")
        assert self.opened.graph is not None
        x, y, one, inner, out = self.full(0), self.full(100), self.full(1), self.empty(), self.empty()
        items = [self.step(inner, x, y)]
        items += [self.step(inner, inner, one) for _ in range(20)]
        items.append(self.step(out, inner, x, Ops.MUL))
        for item in items:
            item.run()
        graph = self.opened.graph(items, [x, y, out], {})
        assert graph.num_kernels == len(items)
        for first, second in ((0, 100), (7, -3), (-50, 1000), (7, -3)):
            now = [self.full(first), self.full(second), self.empty()]
            ExecItem(graph, now).run(jit=True)
            want = [(2 * i + first + second + 20 * (1 + i)) * (first + i) for i in range(_SIZE)]
            self.check(f"replay with {first}, {second}", unpack(now[2].as_buffer(), dtypes.int32), want)
        ExecItem(graph, [x, x, out]).run(jit=True)
        want = [(2 * i + 20 * (1 + i)) * i for i in range(_SIZE)]
        self.check("replay with one buffer for two inputs", unpack(out.as_buffer(), dtypes.int32), want)

    def test_replay_without_waiting(self) -> None:
        """Replays are in order: each one counts on from the last."""
        self.need(self.opened.graph, "graphs")
        assert self.opened.graph is not None
        x, one = self.full(0), buffer_with(self.device, [1] * _SIZE, dtypes.int32)
        graph = self.opened.graph([self.step(x, x, one)] * 3, [], {})
        for _ in range(self.replays):
            graph([], {})
        steps = 3 * self.replays
        self.check(f"{steps} steps", unpack(x.as_buffer(), dtypes.int32), [i + steps for i in range(_SIZE)])

    def test_replay_with_other_values(self) -> None:
        """The values of variables are those of the replay."""
        self.need(self.opened.graph, "graphs")
        assert self.opened.graph is not None
        n = Variable("n", 1, _SIZE)
        x, total, twice = self.full(3), self.empty(1), self.empty(1)
        value = ast.reduce(ast.load(1, dtypes.int32, ShapeTracker.from_shape((n,))), Ops.ADD, (0,))
        sink = kernel([(value, 1)], [(dtypes.int32, _SIZE)])
        items = [ExecItem(get_runner(self.opened, sink), [total, x]), self.step(twice, total, total)]
        graph = self.opened.graph(items, [x], {n: 1})
        for number in (5, _SIZE, 1):
            graph([x], {n: number})
            self.check(f"{number} of {_SIZE}", unpack(twice.as_buffer(), dtypes.int32), [2 * sum(range(3, 3 + number))])

    def test_views_follow_their_inputs(self) -> None:
        """A part of an input is the same part of the input of the replay."""
        self.need(self.opened.graph, "graphs")
        self.need(self.opened.allocator.supports_offset, "sub-buffers")
        assert self.opened.graph is not None
        whole, out = buffer_with(self.device, list(range(2048)), dtypes.int32), self.empty(64)
        low, high = whole.view(64, dtypes.int32, 0), whole.view(64, dtypes.int32, 4096)
        graph = self.opened.graph([self.step(out, low, high), self.step(out, out, high)], [whole], {})
        for first in (0, 5000):
            graph([buffer_with(self.device, list(range(first, first + 2048)), dtypes.int32)], {})
            want = [3 * first + 3 * i + 2048 for i in range(64)]
            self.check("parts of an input", unpack(out.as_buffer(), dtypes.int32), want)


class Launches(Group):
    """Launches by the thousand."""

    group = "10,000 launches"

    def item(self) -> ExecItem:
        """A small launch."""
        x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((_SIZE,)))
        sink = kernel([(ast.alu(Ops.ADD, x, x), _SIZE)], [(dtypes.float32, _SIZE)])
        source = buffer_with(self.device, [float(i) for i in range(_SIZE)], dtypes.float32)
        return ExecItem(get_runner(self.opened, sink), [Buffer(self.device, _SIZE, dtypes.float32).allocate(), source])

    def test_launches_leave_nothing_behind(self) -> None:
        """Neither memory of the process, nor memory of the device, nor objects."""
        item = self.item()
        self._grows_not(item.run)
        out = item.bufs[0]
        assert out is not None
        self.check("after all launches", unpack(out.as_buffer(), dtypes.float32), [2.0 * i for i in range(_SIZE)])

    def test_copies_leave_nothing_behind(self) -> None:
        """The same with a copy to the device, a launch on new memory, and a copy back."""
        item = self.item()
        source, data = item.bufs[1], memoryview(bytearray(4 * _SIZE))
        assert source is not None

        def step() -> None:
            source.copyin(data)
            item.bufs[0] = out = Buffer(self.device, _SIZE, dtypes.float32).allocate()
            item.run()
            out.copyout(data)

        self._grows_not(step, self.launches // 10)

    def _grows_not(self, step: Callable[[], object], count: int | None = None) -> None:
        """Fails if repeating a step grows memory each time again; what is made once is no leak."""
        count = self.launches if count is None else count
        allocator = self.opened.allocator
        for _ in range(max(count // 10, 50)):
            step()
        before, grown = self._held(), [0, 0]
        used, blocks = allocator.used, allocator.blocks
        for _ in range(3):
            for _ in range(count):
                step()
            now = self._held()
            assert (allocator.used, allocator.blocks) == (used, blocks), f"{self.device} holds more after {count} steps"
            grown = [now[0] - before[0], now[1] - before[1]]
            if grown[0] < _MOST_GROWTH and grown[1] < 100:
                return
            before = now
        raise AssertionError(f"{count} launches on {self.device} left {grown[0]} bytes, {grown[1]} objects behind")

    def _held(self) -> tuple[int, int]:
        """Bytes that are resident, and objects, once the device is idle."""
        self.opened.synchronize()
        gc.collect()
        try:
            with open("/proc/self/statm", encoding="ascii") as file:
                resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            resident = 0
        return resident, len(gc.get_objects())

    def test_times(self) -> None:
        """A launch that is waited for tells how long it took."""
        seconds = self.item().run(wait=True)
        assert seconds is not None
        assert 0 <= seconds < 10


class Faults(Group):
    """What must be refused, in words, and leave the device usable."""

    group = "refusals"

    def still_works(self) -> None:
        """A launch after what failed."""
        out = Buffer(self.device, 8, dtypes.int32).allocate()
        iota = kernel([(ast.iota(ShapeTracker.from_shape((8,)), dtypes.int32), 8)], [])
        ExecItem(get_runner(self.opened, iota), [out]).run(wait=True)
        self.check("after a failure", unpack(out.as_buffer(), dtypes.int32), list(range(8)))

    def test_out_of_memory(self) -> None:
        """Too large an allocation is refused with the numbers and with who holds what."""
        self.need(self.opened.executes, "memory")
        keeping = Buffer(self.device, 1 << 20, dtypes.uint8).allocate()
        try:
            Buffer(self.device, 1 << 60, dtypes.uint8).allocate()
        except OutOfMemory as error:
            text = str(error)
            assert "1152921504606846976 bytes" in text, text
            assert repr(keeping) in text, text
        else:
            raise AssertionError(f"{self.device} gave 2^60 bytes")
        self.still_works()

    def test_a_rejected_source(self) -> None:
        """The message tells where the source is kept; where the driver is who compiles, loading fails."""
        compiler = self.opened.compiler
        self.need(compiler is not None and self.opened.executes, "compiler")
        assert compiler is not None
        source = "this is no program of any language;\n"
        try:
            binary = compiler.compile(source)
            assert self.opened.runtime is not None
            self.opened.runtime("absent", binary)
        except CompileError as error:
            assert error.source == source
            assert error.path is not None
            assert error.path in str(error)
            with open(error.path, encoding="utf-8") as file:
                assert file.read() == source
        except DeviceError as error:
            assert "absent" in str(error), str(error)
        else:
            raise AssertionError(f"{self.device} compiled what is no program")
        self.still_works()

    def any_kernel(self) -> LazyOp:
        """A kernel."""
        return kernel([(ast.iota(ShapeTracker.from_shape((64,)), dtypes.int32), 64)], [])

    def test_sizes_that_are_none(self) -> None:
        """A launch of no work-groups leaves memory as it is; negative sizes and groups of nothing are refused."""
        self.need(self.opened.runtime is not None and self.opened.executes, "compiler")
        assert self.opened.runtime is not None
        runner = get_runner(self.opened, self.any_kernel())
        assert isinstance(runner, CompiledRunner)
        out = buffer_with(self.device, [7] * 64, dtypes.int32)
        runner.program(out.opaque, global_size=(0, 1, 1), local_size=runner.local_size, wait=True)
        self.check("no work-groups", unpack(out.copyout(memoryview(bytearray(256))), dtypes.int32), [7] * 64)
        for groups, items in (((-1, 1, 1), (1, 1, 1)), ((1, 1, -(2**31)), (1, 1, 1)), ((1, 1, 1), (0, 1, 1))):
            try:
                runner.program(out.opaque, global_size=groups, local_size=items, wait=True)
            except DeviceError:
                continue
            raise AssertionError(f"{self.device} launched {groups} groups of {items}")
        self.still_works()

    def test_too_large_a_group(self) -> None:
        """A work-group of more items than the device has is refused before it is launched."""
        renderer = self.opened.renderer
        self.need(renderer is not None and renderer.target.local_max, "work-groups")
        assert renderer is not None
        from tg_codegen import compile_ast

        spec = compile_ast(self.any_kernel(), renderer, actions=())
        self.refused(replace(spec, local_size=(renderer.target.local_max, 2, 1)), "work-items")
        self.still_works()

    def test_too_much_local_memory(self) -> None:
        """A kernel whose groups share more memory than there is is refused before it is launched."""
        renderer = self.opened.renderer
        self.need(renderer is not None and renderer.target.shared_bytes, "memory that work-items share")
        assert renderer is not None
        from tg_codegen import compile_ast
        from tg_codegen.ir.uop import UOp, UOps

        spec = compile_ast(self.any_kernel(), renderer, actions=())
        size = renderer.target.shared_bytes // 4 + 1
        scratch = UOp(UOps.SCRATCH, dtypes.float32.ptr(size, AddrSpace.LOCAL), (), ("shared", size))
        self.refused(replace(spec, uops=(scratch, *spec.uops)), f"{4 * size} bytes")
        self.still_works()

    def refused(self, spec: object, words: str) -> None:
        """Checks that a kernel cannot be loaded, and that the error says why."""
        try:
            CompiledRunner(spec, self.opened)  # type: ignore[arg-type]
        except DeviceError as error:
            assert words in str(error), str(error)
        else:
            raise AssertionError(f"{self.device} took a kernel beyond its limits ({words})")
