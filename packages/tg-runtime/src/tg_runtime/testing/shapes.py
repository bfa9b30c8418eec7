"""Shapes: views, odd sizes, symbolic sizes, and what the scheduler makes of several kernels."""

from __future__ import annotations

import math
from typing import ClassVar

from tg_dtype import ConstType, DType, dtypes, truncate
from tg_lazy import Context, Ops, ast
from tg_shape import ShapeTracker, Variable

from ..device.registry import Device
from ..execution.engine import realize
from ..execution.item import ExecItem
from ..kernels.programs import get_runner
from ..memory.buffer import Buffer
from .base import Group
from .kernels import buffer_with, kernel, matmul, matrix_product, positions, run, unpack


class Views(Group):
    """Loads and stores through views, gathers, indices as values."""

    group = "views"

    def test_views(self) -> None:
        """Loads through pad, flip, permute, stride, expand and their compositions."""
        base = ShapeTracker.from_shape((4, 6))
        views = {
            "flip": base.flip((1,)),
            "permute": base.permute((1, 0)),
            "pad": base.pad(((1, 2), (0, 3))),
            "stride": base.stride((2, -3)),
            "shrink": base.shrink(((1, 3), (2, 5))),
            "expand": base.reshape((4, 1, 6)).expand((4, 3, 6)),
            "pad then flatten": base.pad(((1, 1), (1, 1))).reshape((48,)),
            "permute then flatten": base.permute((1, 0)).reshape((24,)),
            "pad, permute, flatten, pad": base.pad(((0, 1), (2, 0))).permute((1, 0)).reshape((40,)).pad(((3, 3),)),
        }
        values = [float(i + 1) for i in range(24)]
        buffer = buffer_with(self.device, values, dtypes.float32)
        for name, st in views.items():
            size = math.prod(int(d) for d in st.shape)
            x = ast.load(1, dtypes.float32, st)
            (got,) = run(self.device, kernel([(x, size)], [(dtypes.float32, 24)]), [buffer])
            want = [values[int(i)] if ok else 0.0 for i, ok in (st.index(ix) for ix in positions(st.shape))]
            self.check(f"load through {name}", got, want)

    def test_store_through_a_view(self) -> None:
        """A store through a flip and a permutation; the rest of the buffer stays."""
        st = ShapeTracker.from_shape((5, 7)).shrink(((1, 4), (2, 6))).flip((0,)).permute((1, 0))
        old = [float(-i) for i in range(35)]
        target = buffer_with(self.device, old, dtypes.float32)
        source = buffer_with(self.device, [float(i + 100) for i in range(12)], dtypes.float32)
        x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((4, 3)))
        arguments = (ast.BufferArg(dtypes.float32, 35), ast.BufferArg(dtypes.float32, 12))
        sink = ast.sink((ast.store(0, st, x),), arguments)
        ExecItem(get_runner(Device[self.device], sink), [target, source]).run()
        want: list[ConstType] = list(old)
        for n, ix in enumerate(positions(st.shape)):
            want[int(st.index(ix)[0])] = float(n + 100)
        self.check("store through a view", unpack(target.as_buffer(), dtypes.float32), want)

    def test_gather(self) -> None:
        """Reads at computed indices; out of range gives 0."""
        table = [float(i * i) for i in range(10)]
        index: list[ConstType] = [0, 9, 3, -1, 10, 5, 2**31 - 1, -(2**31), 3]
        i = ast.load(2, dtypes.int32, ShapeTracker.from_shape((9,)))
        x = ast.gather(1, dtypes.float32, ShapeTracker.from_shape((10,)), i)
        sink = kernel([(x, 9)], [(dtypes.float32, 10), (dtypes.int32, 9)])
        inputs = [buffer_with(self.device, table, dtypes.float32), buffer_with(self.device, index, dtypes.int32)]
        want = [table[int(n)] if 0 <= n < 10 else 0.0 for n in index]
        self.check("gather", run(self.device, sink, inputs)[0], want)
        for dtype in dtypes.ints:
            if dtype in self.dtypes:
                self.gather_at_positions_that_wrap(dtype, inputs[0], table)

    def gather_at_positions_that_wrap(self, dtype: DType, inputs: Buffer, table: list[float]) -> None:
        """Reads at multiples of a counter that wrap around, with nothing loaded among them: they are no addresses."""
        shape, factor = (19,), 3 << (dtype.bits - 3)
        i = ast.alu(Ops.MUL, ast.iota(ShapeTracker.from_shape(shape), dtype), ast.const(factor, dtype, shape))
        i = ast.alu(Ops.ADD, i, ast.const(7, dtype, shape))
        sink = kernel([(ast.gather(1, dtypes.float32, ShapeTracker.from_shape((10,)), i), 19)], [(dtypes.float32, 10)])
        places = [int(truncate(n * factor + 7, dtype)) for n in range(19)]
        want = [table[place] if 0 <= place < 10 else 0.0 for place in places]
        for plain in (0, 1):
            with Context(NOOPT=plain):
                self.check(f"gather at {dtype.name} that wrap", run(self.device, sink, [inputs])[0], want)

    def test_iota(self) -> None:
        """Indices as values."""
        x = ast.iota(ShapeTracker.from_shape((3, 5)).flip((1,)), dtypes.int32)
        (got,) = run(self.device, kernel([(x, 15)], []), [])
        self.check("iota", got, [5 * i + 4 - j for i in range(3) for j in range(5)])


class OddShapes(Group):
    """Lengths and sides that no tile fits."""

    group = "odd shapes"
    products: ClassVar[tuple[tuple[int, int, int], ...]] = ((5, 7, 3), (33, 65, 17), (96, 128, 80))
    """Sides of the matrices that are multiplied: odd ones, and those of a product that is worth threads and tiles."""

    def test_sizes(self) -> None:
        """Lengths around every vector and tile width."""
        for size in (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 65, 100, 1000, 4099):
            x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((size,)))
            sink = kernel([(ast.alu(Ops.MUL, x, x), size)], [(dtypes.float32, size)])
            values = [float(i % 97) for i in range(size)]
            (got,) = run(self.device, sink, [buffer_with(self.device, values, dtypes.float32)])
            self.check(f"square of {size}", got, [v * v for v in values])

    def test_matmul(self) -> None:
        """Products of matrices."""
        for n, k, m in self.products:
            a = [float(self.random.randint(-4, 4)) for _ in range(n * k)]
            b = [float(self.random.randint(-4, 4)) for _ in range(k * m)]
            sink = matmul(n, k, m)
            inputs = [buffer_with(self.device, a, dtypes.float32), buffer_with(self.device, b, dtypes.float32)]
            want = matrix_product(a, b, n, k, m)
            self.check(f"matmul {n}x{k}x{m}", run(self.device, sink, inputs)[0], want)


class Symbolic(Group):
    """Sizes that are known at launch only."""

    group = "symbolic sizes"

    def test_variables(self) -> None:
        """One program for several values of a symbolic size."""
        n = Variable("n", 1, 40)
        x = ast.load(1, dtypes.int32, ShapeTracker.from_shape((n,)))
        value = ast.alu(Ops.ADD, x, ast.symbol(n, dtypes.int32, (n,)))
        total = ast.reduce(x, Ops.ADD, (0,))
        buffer = buffer_with(self.device, list(range(40)), dtypes.int32)
        for number in (1, 7, 40):
            (got,) = run(self.device, kernel([(value, n)], [(dtypes.int32, 40)], [40]), [buffer], {n: number})
            self.check(f"{number} elements", got[:number], [i + number for i in range(number)])
            (got,) = run(self.device, kernel([(total, 1)], [(dtypes.int32, 40)]), [buffer], {n: number})
            self.check(f"sum of {number}", got, [sum(range(number))])


class ManyBuffers(Group):
    """As many buffers as a kernel may have."""

    group = "31 buffers"

    def test_many_buffers(self) -> None:
        """A kernel with more buffers than there are registers for arguments."""
        count = 30
        st = ShapeTracker.from_shape((5,))
        total = ast.load(1, dtypes.int32, st)
        for slot in range(2, count + 1):
            total = ast.alu(Ops.ADD, total, ast.load(slot, dtypes.int32, st))
        inputs = [buffer_with(self.device, [10 * slot + i for i in range(5)], dtypes.int32) for slot in range(count)]
        (got,) = run(self.device, kernel([(total, 5)], [(dtypes.int32, 5)] * count), inputs)
        self.check("sum of 30 buffers", got, [sum(10 * slot + i for slot in range(count)) for i in range(5)])


class Schedules(Group):
    """Graphs of several kernels, realised."""

    group = "schedules"

    def test_softmax(self) -> None:
        """Several reductions of one input, realised through the scheduler."""
        rows, columns = 5, 13
        values: list[ConstType] = [truncate(self.random.uniform(-3, 3), dtypes.float32) for _ in range(rows * columns)]
        x = self.lazy(values, dtypes.float32, (rows, columns))
        top = x.reduce(Ops.MAX, (1,)).expand((rows, columns))
        powers = x.alu(Ops.SUB, top).alu(Ops.EXP2)
        out = powers.alu(Ops.FDIV, powers.reduce(Ops.ADD, (1,)).expand((rows, columns)))
        realize([out])
        want: list[ConstType] = []
        for row in range(rows):
            exact = [2.0 ** (v - max(values)) for v in values[row * columns : (row + 1) * columns]]
            want += [v / sum(exact) for v in exact]
        self.check("softmax", self.read(out), want, rtol=1e-5)

    def test_assign(self) -> None:
        """A buffer is overwritten in place, reading what it held."""
        x = self.lazy([1.0, 2.0, 3.0, 4.0], dtypes.float32, (4,))
        x = x.assign(x.alu(Ops.ADD, x))
        realize([x])
        self.check("assign", self.read(x), [2.0, 4.0, 6.0, 8.0])
