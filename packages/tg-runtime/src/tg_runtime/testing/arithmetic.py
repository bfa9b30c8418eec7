"""Arithmetic: every op on every dtype, every conversion, reductions, against the op table's own Python functions."""

from __future__ import annotations

import math
from collections.abc import Callable

from tg_dtype import ConstType, DType, bitcast_scalar, cast_scalar, dtypes, truncate
from tg_lazy import ALU, COMPARISONS, CONVERSIONS, SHIFTS, SPEC, TRANSCENDENTAL, Ops, ast, result_dtype
from tg_shape import ShapeTracker

from ..execution.item import ExecItem
from ..kernels.programs import get_runner
from ..memory.buffer import Buffer
from .base import Group
from .kernels import buffer_with, kernel, positions, run

_TOGETHER = 24
"""Ops in one kernel: each has an output, and some devices take no more than 31 buffers."""


RANGES: dict[Ops, tuple[float, float]] = {
    Ops.EXP: (-87.0, 88.7), Ops.EXP2: (-125.0, 127.9), Ops.EXPM1: (-20.0, 88.7), Ops.SINH: (-89.0, 89.0),
    Ops.COSH: (-89.0, 89.0), Ops.TANH: (-10.0, 10.0), Ops.ERF: (-4.0, 4.0), Ops.ERFC: (-4.0, 9.0),
    Ops.SIN: (-1e3, 1e3), Ops.COS: (-1e3, 1e3), Ops.TAN: (-1e3, 1e3), Ops.LOG: (1e-30, 3.0), Ops.LOG2: (1e-30, 3.0),
    Ops.LOG1P: (-0.999, 1e4),
}  # fmt: skip
"""Where functions of a float32 are compared, all along."""


class Elementwise(Group):
    """Elementwise ops."""

    group = "all ops"

    def test_elementwise(self) -> None:
        """Every elementwise op on every dtype, against the op table's own Python function."""
        for dtype in self.dtypes:
            count = max(48, dtype.bits)  # enough for every shift amount
            operands = [self.values(dtype, count) for _ in range(3)]
            every = (op for op in Ops if op in ALU and op not in CONVERSIONS)
            ops: list[Ops] = [op for op in every if self._takes(op, dtype)]
            for start in range(0, len(ops), _TOGETHER):
                self._check_elementwise(dtype, operands, ops[start : start + _TOGETHER])

    def _check_elementwise(self, dtype: DType, operands: list[list[ConstType]], ops: list[Ops]) -> None:
        count = len(operands[0])
        flags = [bool(i % 3) for i in range(count)]
        amounts = [i % dtype.bits for i in range(count)]
        st = ShapeTracker.from_shape((count,))
        first = len(ops)
        loads = [ast.load(first + i, dtype, st) for i in range(3)]
        select = ast.load(first + 3, dtypes.bool, st)
        shift = ast.load(first + 4, dtype, st) if dtypes.is_int(dtype) else None
        values = []
        for op in ops:
            if op is Ops.WHERE:
                values.append(ast.alu(op, select, loads[0], loads[1]))
            elif op in SHIFTS and shift is not None:
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
            elif op in SHIFTS:
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

    def test_functions_over_their_range(self) -> None:
        """Where a function is a sum of parts that cancel, a compiler may not reorder them."""
        count = 1009
        st = ShapeTracker.from_shape((count,))
        for op, (low, high) in RANGES.items():
            function = SPEC[op].python
            if function is None or not self._takes(op, dtypes.float32):
                continue
            x = [truncate(low + (high - low) * k / count, dtypes.float32) for k in range(count)]
            sink = kernel([(ast.alu(op, ast.load(1, dtypes.float32, st)), count)], [(dtypes.float32, count)])
            (got,) = run(self.device, sink, [buffer_with(self.device, x, dtypes.float32)])
            rtol = self.ulps * self.precision(dtypes.float32)
            self.check(f"{op.name} from {low} to {high}", got, [function(v) for v in x], rtol, rtol * 1e-3)

    def test_one_operand_twice(self) -> None:
        """Comparisons of a buffer with itself, and of nothing else: some are decided before a kernel is written."""
        for dtype in self.dtypes:
            values = self.values(dtype)
            st = ShapeTracker.from_shape((len(values),))
            for ops in (COMPARISONS, (Ops.CMPLT,)):
                x = ast.load(len(ops), dtype, st)
                results = [ast.alu(op, x, x) for op in ops]
                sink = kernel([(result, len(values)) for result in results], [(dtype, len(values))])
                outputs = run(self.device, sink, [buffer_with(self.device, values, dtype)])
                for op, result, got in zip(ops, results, outputs, strict=True):
                    function = SPEC[op].python
                    assert function is not None, f"{op.name} has no Python function"
                    want = [truncate(_wrapped(function, (v, v)), result.dtype) for v in values]
                    self.check(f"{op.name} of one {dtype.name} with itself", got, want)

    def _takes(self, op: Ops, dtype: DType) -> bool:
        operands = (dtypes.bool, dtype, dtype) if op is Ops.WHERE else (dtype,) * SPEC[op].arity
        try:
            result_dtype(op, *operands)
        except TypeError:
            return False
        return True


class Casts(Group):
    """Conversions of values and of bits."""

    group = "casts"

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


    def test_bytes_of_bools(self) -> None:
        """A bool is true where its byte is not 0, and what a kernel makes of it has the byte 1."""
        self.need(self.opened.executes, "memory")
        raw = [0, 1, 2, 255, 128, 64, 0]
        st = ShapeTracker.from_shape((len(raw),))
        x, byte = ast.load(4, dtypes.bool, st), ast.load(5, dtypes.uint8, st)
        results = [ast.bitcast(x, dtypes.uint8), ast.cast(x, dtypes.uint8), x,
                   ast.bitcast(ast.bitcast(byte, dtypes.bool), dtypes.uint8)]  # fmt: skip
        sink = kernel([(v, len(raw)) for v in results], [(dtypes.bool, len(raw)), (dtypes.uint8, len(raw))])
        data = memoryview(bytearray(raw))
        inputs = [Buffer(self.device, len(raw), dtype).copyin(data) for dtype in (dtypes.bool, dtypes.uint8)]
        outputs = [Buffer(self.device, len(raw), v.dtype).allocate() for v in results]
        ExecItem(get_runner(self.opened, sink), [*outputs, *inputs]).run(wait=True)
        for what, out in zip(("bitcast", "cast", "copy", "bitcast there and back"), outputs, strict=True):
            got = list(out.copyout(memoryview(bytearray(len(raw)))).cast("B"))
            self.check(f"{what} of bools of any byte", got, [min(b, 1) for b in raw])


class Reductions(Group):
    """Sums, products and maxima."""

    group = "reductions"

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
        self.check("sum of 10,007", got[0], [count * (count - 1) // 2])

    def test_long_sums(self) -> None:
        """Sums of many floats, in a row and down columns, are as exact as sums of blocks, not as one of all terms."""
        tenth = float(truncate(0.1, dtypes.float32))
        for shape, axis in (((20_011,), 0), ((20_011, 3), 0), ((2, 4_099, 3), 1)):
            count = math.prod(shape)
            size = count // shape[axis]
            x = ast.load(1, dtypes.float32, ShapeTracker.from_shape(shape))
            sink = kernel([(ast.reduce(x, Ops.ADD, (axis,)), size)], [(dtypes.float32, count)])
            got = run(self.device, sink, [buffer_with(self.device, [tenth] * count, dtypes.float32)])
            self.check(f"sum of {shape[axis]:,} tenths", got[0], [tenth * shape[axis]] * size, 2e-5)


def _wrapped(function: Callable[..., ConstType], args: tuple[ConstType, ...]) -> ConstType:
    try:
        return function(*args)
    except OverflowError:
        return math.inf


def _reduced(
    op: Ops, values: list[ConstType], dtype: DType, shape: tuple[int, ...], axes: tuple[int, ...]
) -> list[ConstType]:
    groups: dict[tuple[int, ...], ConstType] = {}
    function = SPEC[op].python
    assert function is not None
    for value, ix in zip(values, positions(shape), strict=True):
        key = tuple(0 if axis in axes else i for axis, i in enumerate(ix))
        groups[key] = truncate(function(groups[key], value), dtype) if key in groups else value
    return [groups[key] for key in sorted(groups)]
