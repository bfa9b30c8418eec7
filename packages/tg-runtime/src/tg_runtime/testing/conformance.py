"""The conformance class: what a device must do for the layers above to be right on it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable

from tg_dtype import ConstType, DType, bitcast_scalar, cast_scalar, dtypes, truncate
from tg_lazy import ALU, SPEC, TRANSCENDENTAL, Context, LazyBuffer, Ops, Storage, ast, result_dtype
from tg_shape import ShapeTracker, Variable

from ..buffer import Buffer, buffer_of
from ..engine import ExecItem, realize
from ..kernels import get_runner
from ..registry import Device
from .kernels import buffer_with, kernel, pack, run, same, unpack

_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 127.0, 1000.0, -65504.0, math.inf, -math.inf, math.nan)
_SHIFTS = frozenset({Ops.SHL, Ops.SHR})


class DeviceConformance:
    """Subclass it, set ``device`` (and ``dev``), and let pytest collect the subclass.

    Attributes:
      device: the device's name.
      dev: the ``DEV`` setting under which it is opened, ``CPU:CLANG``; empty for the device's own choice.
      dtypes: the dtypes to test with.
      subnormals: whether subnormal floats are kept.
      ulps: how far a transcendental function may be off, in units of the dtype's precision.

    Example:
        >>> from tg_runtime.testing import DeviceConformance
        >>> class TestNumpy(DeviceConformance):
        ...     device = "NUMPY"
    """

    device = "NUMPY"
    dev = ""
    dtypes: tuple[DType, ...] = dtypes.all
    subnormals = True
    ulps = 8.0

    def setup_method(self) -> None:
        """Puts ``DEV`` in force."""
        self._context = Context(DEV=self.dev or self.device)
        self._context.__enter__()
        self.random = random.Random(0)

    def teardown_method(self) -> None:
        """Takes ``DEV`` back."""
        self._context.__exit__(None, None, None)

    # helpers

    def values(self, dtype: DType, count: int = 48) -> list[ConstType]:
        """Values that ``dtype`` holds: special ones first, then random ones."""
        r = self.random
        if dtypes.is_bool(dtype):
            return [r.random() < 0.5 for _ in range(count)]
        if dtypes.is_int(dtype):
            low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
            edge: list[ConstType] = [0, 1, low, high, high - 1, low + 1, 2, 7]
            return edge + [r.randint(low, high) if i % 2 else r.randint(0, 20) for i in range(count - len(edge))]
        edge = [truncate(v, dtype) for v in _SPECIAL]
        if self.subnormals:
            edge.append(truncate(2.0 ** -(1 << (dtypes.finfo(dtype)[0] - 1)), dtype))
        return edge + [truncate(r.uniform(-1, 1) * 2.0 ** r.randint(-6, 6), dtype) for _ in range(count - len(edge))]

    def check(
        self, what: str, got: Iterable[ConstType], want: Iterable[ConstType], rtol: float = 0.0, atol: float = 0.0
    ) -> None:
        """Fails with the first element that differs."""
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            assert same(g, w, rtol, atol), f"{self.device} {what}: element {i} is {g!r}, {w!r} was expected"

    def precision(self, dtype: DType) -> float:
        """The relative spacing of a float type's values."""
        return 2.0 ** -dtypes.finfo(dtype)[1]

    # memory

    def test_copies(self) -> None:
        """What goes in comes out, for every odd size, also through a view."""
        for size in (0, 1, 3, 64, 1027, 100_003):
            data = self.random.randbytes(size)
            buffer = Buffer(self.device, size, dtypes.uint8).allocate()
            buffer.copyin(memoryview(data))
            assert buffer.tobytes() == data
            assert bytes(buffer.as_buffer()) == data

    def test_sub_buffers(self) -> None:
        """A view shares the memory of its base, and keeps it alive."""
        if not Device[self.device].allocator.supports_offset:
            return
        base = Buffer(self.device, 4096, dtypes.uint8).allocate()
        base.copyin(memoryview(bytes(4096)))
        part = base.view(256, dtypes.float32, 1024)
        part.copyin(pack([float(i) for i in range(256)], dtypes.float32))
        whole = base.tobytes()
        assert unpack(memoryview(whole)[1024:2048], dtypes.float32) == [float(i) for i in range(256)]
        assert whole[:1024] == bytes(1024)
        assert whole[2048:] == bytes(2048)
        del base
        again = part.view(1, dtypes.float32, 4 * 17)
        assert unpack(again.copyout(memoryview(bytearray(4))), dtypes.float32) == [17.0]

    def test_kernels_on_sub_buffers(self) -> None:
        """A kernel reads and writes views of one buffer."""
        if not Device[self.device].allocator.supports_offset:
            return
        base = buffer_with(self.device, [float(i) for i in range(2048)], dtypes.float32)
        source, target = base.view(64, dtypes.float32, 4096), base.view(64, dtypes.float32, 0)
        x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((64,)))
        sink = kernel([(ast.alu(Ops.ADD, x, x), 64)], [(dtypes.float32, 64)])
        ExecItem(get_runner(Device[self.device], sink), [target, source]).run()
        out = unpack(base.copyout(memoryview(bytearray(base.nbytes))), dtypes.float32)
        self.check("kernel on views", out[:64], [2.0 * (1024 + i) for i in range(64)])
        self.check("kernel on views, the rest", out[64:], [float(i) for i in range(64, 2048)])

    def test_copies_between_devices(self) -> None:
        """Data goes to another device and back through the graph."""
        values = [float(i) for i in range(33)]
        there = self.lazy(values, dtypes.float32, (33,)).copy_to("NUMPY")
        back = there.copy_to(self.device) if self.device != "NUMPY" else there
        doubled = back.alu(Ops.ADD, back)
        realize([doubled])
        self.check("copy there and back", self.read(doubled), [2 * v for v in values])

    # elementwise

    def test_elementwise(self) -> None:
        """Every elementwise op on every dtype, against the op table's own Python function."""
        for dtype in self.dtypes:
            operands = [self.values(dtype) for _ in range(3)]
            self._check_elementwise(dtype, operands)

    def _check_elementwise(self, dtype: DType, operands: list[list[ConstType]]) -> None:
        count = len(operands[0])
        flags = [bool(i % 3) for i in range(count)]
        amounts = [i % dtype.bits for i in range(count)]
        ops = [op for op in Ops if op in ALU and op not in (Ops.CAST, Ops.BITCAST) and self._takes(op, dtype)]
        st = ShapeTracker.from_shape((count,))
        first = len(ops)
        loads = [ast.load(first + i, dtype, st) for i in range(3)]
        select = ast.load(first + 3, dtypes.bool, st)
        shift = ast.load(first + 4, dtype, st) if dtypes.is_int(dtype) else None
        values = []
        for op in ops:
            if op is Ops.WHERE:
                values.append(ast.alu(op, select, loads[0], loads[1]))
            elif op in _SHIFTS and shift is not None:
                values.append(ast.alu(op, loads[0], shift))
            else:
                values.append(ast.alu(op, *loads[: SPEC[op].arity]))
        inputs = [buffer_with(self.device, o, dtype) for o in operands]
        inputs.append(buffer_with(self.device, flags, dtypes.bool))
        if shift is not None:
            inputs.append(buffer_with(self.device, amounts, dtype))
        sink = kernel([(v, count) for v in values], [(b.dtype, count) for b in inputs])
        for op, got in zip(ops, run(self.device, sink, inputs), strict=True):
            a, b, c = operands
            columns: list[list[ConstType]] = [a, b, c][: SPEC[op].arity]
            if op is Ops.WHERE:
                columns = [list(flags), a, b]
            elif op in _SHIFTS:
                columns = [a, list(amounts)]
            function = SPEC[op].python
            assert function is not None, f"{op.name} has no Python function"
            out = dtypes.bool if dtypes.is_bool(values[ops.index(op)].dtype) else dtype
            want = [truncate(_wrapped(function, args), out) for args in zip(*columns, strict=True)]
            rtol = atol = 0.0
            if op in TRANSCENDENTAL:
                rtol = self.ulps * self.precision(dtype)
                atol = rtol if op in (Ops.SIN, Ops.LOG2) else 0.0
            elif op is Ops.MULACC and dtypes.is_float(dtype):
                rtol = 4 * self.precision(dtype)
                atol = rtol * max((abs(v) for v in (*a, *b) if math.isfinite(v)), default=1.0)
            self.check(f"{op.name} of {dtype.name}", got, want, rtol, atol)

    def _takes(self, op: Ops, dtype: DType) -> bool:
        operands = (dtypes.bool, dtype, dtype) if op is Ops.WHERE else (dtype,) * SPEC[op].arity
        try:
            result_dtype(op, *operands)
        except TypeError:
            return False
        return True

    def test_casts(self) -> None:
        """Every dtype to every other, with the semantics of ``tg_dtype.cast_scalar``."""
        for src in self.dtypes:
            values = self.values(src)
            st = ShapeTracker.from_shape((len(values),))
            targets = [d for d in self.dtypes if d is not src]
            x = ast.load(len(targets), src, st)
            sink = kernel([(ast.cast(x, d), len(values)) for d in targets], [(src, len(values))])
            for dst, got in zip(targets, run(self.device, sink, [buffer_with(self.device, values, src)]), strict=True):
                self.check(f"cast {src.name} -> {dst.name}", got, [cast_scalar(v, src, dst) for v in values])

    def test_bitcasts(self) -> None:
        """The bits of every dtype taken as another of its size."""
        for src in self.dtypes:
            values = self.values(src)
            st = ShapeTracker.from_shape((len(values),))
            targets = [d for d in self.dtypes if d is not src and d.itemsize == src.itemsize and d is not dtypes.bool]
            if not targets:
                continue
            x = ast.load(len(targets), src, st)
            sink = kernel([(ast.bitcast(x, d), len(values)) for d in targets], [(src, len(values))])
            for dst, got in zip(targets, run(self.device, sink, [buffer_with(self.device, values, src)]), strict=True):
                self.check(f"bitcast {src.name} -> {dst.name}", got, [bitcast_scalar(v, src, dst) for v in values])

    # reductions

    def test_reductions(self) -> None:
        """Sums, products and maxima of every dtype over every choice of axes of odd shapes."""
        for dtype in self.dtypes:
            for shape, axes in (((7,), (0,)), ((3, 5), (0,)), ((5, 33), (1,)), ((2, 3, 5), (0, 2)), ((1, 4), (0,))):
                # sums of 8-bit floats depend on their order from the fourth term on
                if not (dtypes.is_float(dtype) and dtype.bits == 8) or math.prod(shape[a] for a in axes) <= 3:
                    self._check_reduction(dtype, shape, axes)

    def _check_reduction(self, dtype: DType, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
        count = math.prod(shape)
        r = self.random
        values: list[ConstType]
        if dtypes.is_float(dtype):
            # few mantissa bits: sums and products stay exact in any order wherever the dtype can hold them
            values = [truncate(r.choice((0.5, 1.0, -1.0, 2.0)), dtype) for _ in range(count)]
        else:
            values = [truncate(r.randint(-3, 3), dtype) for _ in range(count)]
        ops = (Ops.ADD, Ops.MUL, Ops.MAX)
        x = ast.load(len(ops), dtype, ShapeTracker.from_shape(shape))
        reduced = [ast.reduce(x, op, axes) for op in ops]
        size = math.prod(int(d) for d in reduced[0].shape)
        sink = kernel([(v, size) for v in reduced], [(dtype, count)])
        outputs = run(self.device, sink, [buffer_with(self.device, values, dtype)])
        for op, got in zip(ops, outputs, strict=True):
            want = _reduced(op, values, dtype, shape, axes)
            rtol = 0.0 if not dtypes.is_float(dtype) else 2 * self.precision(dtype)
            self.check(f"reduce {op.name} of {dtype.name}{shape} over {axes}", got, want, rtol, rtol)

    def test_large_reduction(self) -> None:
        """A reduction over more elements than any tile holds, and one over an empty axis."""
        count = 10_007
        x = ast.load(1, dtypes.int32, ShapeTracker.from_shape((count,)))
        sink = kernel([(ast.reduce(x, Ops.ADD, (0,)), 1)], [(dtypes.int32, count)])
        got = run(self.device, sink, [buffer_with(self.device, list(range(count)), dtypes.int32)])
        assert got == [[count * (count - 1) // 2]]

    # views

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
            want = [values[int(i)] if ok else 0.0 for i, ok in (st.index(ix) for ix in _indices(st.shape))]
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
        for n, ix in enumerate(_indices(st.shape)):
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

    def test_iota(self) -> None:
        """Indices as values."""
        x = ast.iota(ShapeTracker.from_shape((3, 5)).flip((1,)), dtypes.int32)
        (got,) = run(self.device, kernel([(x, 15)], []), [])
        assert got == [5 * i + 4 - j for i in range(3) for j in range(5)]

    # launches

    def test_sizes(self) -> None:
        """Lengths around every vector and tile width."""
        for size in (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 65, 100, 1000, 4099):
            x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((size,)))
            sink = kernel([(ast.alu(Ops.MUL, x, x), size)], [(dtypes.float32, size)])
            values = [float(i % 97) for i in range(size)]
            (got,) = run(self.device, sink, [buffer_with(self.device, values, dtypes.float32)])
            self.check(f"square of {size}", got, [v * v for v in values])

    def test_matmul(self) -> None:
        """A product of matrices with odd sides, and one that is worth threads and tiles."""
        for n, k, m in ((5, 7, 3), (33, 65, 17), (96, 128, 80)):
            a = [float(self.random.randint(-4, 4)) for _ in range(n * k)]
            b = [float(self.random.randint(-4, 4)) for _ in range(k * m)]
            x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((n, 1, k)).expand((n, m, k)))
            y = ast.load(2, dtypes.float32, ShapeTracker.from_shape((1, k, m)).permute((0, 2, 1)).expand((n, m, k)))
            product = ast.reduce(ast.alu(Ops.MUL, x, y), Ops.ADD, (2,))
            sink = kernel([(product, n * m)], [(dtypes.float32, n * k), (dtypes.float32, k * m)])
            inputs = [buffer_with(self.device, a, dtypes.float32), buffer_with(self.device, b, dtypes.float32)]
            want = [sum(a[i * k + q] * b[q * m + j] for q in range(k)) for i in range(n) for j in range(m)]
            self.check(f"matmul {n}x{k}x{m}", run(self.device, sink, inputs)[0], want)

    def test_variables(self) -> None:
        """One program for several values of a symbolic size."""
        n = Variable("n", 1, 40)
        x = ast.load(1, dtypes.int32, ShapeTracker.from_shape((n,)))
        value = ast.alu(Ops.ADD, x, ast.symbol(n, dtypes.int32, (n,)))
        total = ast.reduce(x, Ops.ADD, (0,))
        buffer = buffer_with(self.device, list(range(40)), dtypes.int32)
        for number in (1, 7, 40):
            (got,) = run(self.device, kernel([(value, n)], [(dtypes.int32, 40)], [40]), [buffer], {n: number})
            assert got[:number] == [i + number for i in range(number)]
            (got,) = run(self.device, kernel([(total, 1)], [(dtypes.int32, 40)]), [buffer], {n: number})
            assert got == [sum(range(number))]

    def test_many_buffers(self) -> None:
        """A kernel with more buffers than there are registers for arguments."""
        count = 30
        st = ShapeTracker.from_shape((5,))
        total = ast.load(1, dtypes.int32, st)
        for slot in range(2, count + 1):
            total = ast.alu(Ops.ADD, total, ast.load(slot, dtypes.int32, st))
        inputs = [buffer_with(self.device, [10 * slot + i for i in range(5)], dtypes.int32) for slot in range(count)]
        (got,) = run(self.device, kernel([(total, 5)], [(dtypes.int32, 5)] * count), inputs)
        assert got == [sum(10 * slot + i for slot in range(count)) for i in range(5)]

    # graphs

    def lazy(self, values: list[ConstType], dtype: DType, shape: tuple[int, ...]) -> LazyBuffer:
        """A LazyBuffer on the device that holds these values."""
        buffer = buffer_with(self.device, values, dtype)
        return LazyBuffer.from_storage(Storage(self.device, len(values), dtype, buffer), shape)

    def read(self, x: LazyBuffer) -> list[ConstType]:
        """The values of a realised LazyBuffer."""
        assert x.storage is not None
        return unpack(buffer_of(x.storage).as_buffer(), x.dtype)

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


def _wrapped(function: Callable[..., ConstType], args: tuple[ConstType, ...]) -> ConstType:
    try:
        return function(*args)
    except OverflowError:
        return math.inf


def _indices(shape: tuple[object, ...]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for dim in shape:
        assert isinstance(dim, int)
        found = [(*ix, i) for ix in found for i in range(dim)]
    return found


def _reduced(
    op: Ops, values: list[ConstType], dtype: DType, shape: tuple[int, ...], axes: tuple[int, ...]
) -> list[ConstType]:
    groups: dict[tuple[int, ...], ConstType] = {}
    function = SPEC[op].python
    assert function is not None
    for value, ix in zip(values, _indices(shape), strict=True):
        key = tuple(0 if axis in axes else i for axis, i in enumerate(ix))
        groups[key] = truncate(function(groups[key], value), dtype) if key in groups else value
    return [groups[key] for key in sorted(groups)]
