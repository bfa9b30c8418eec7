"""Small kernels for tests: built from ASTs, run on a device, their outputs read back as Python values."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence

from tg_dtype import ConstType, DType, dtypes, from_bits, to_bits
from tg_lazy import LazyOp, Ops, ast
from tg_shape import ShapeTracker, Variable, sint

from ..device.registry import Device
from ..execution.item import ExecItem
from ..kernels.programs import get_runner
from ..memory.buffer import Buffer


def pack(values: Sequence[ConstType], dtype: DType) -> memoryview:
    """Values as they lie in memory."""
    if dtype.fmt is not None and not dtypes.is_float(dtype):
        return memoryview(struct.pack(f"<{len(values)}{dtype.fmt}", *values))
    return memoryview(b"".join(to_bits(v, dtype).to_bytes(dtype.itemsize, "little") for v in values))


def unpack(data: memoryview, dtype: DType) -> list[ConstType]:
    """The values of what lies in memory."""
    count = data.nbytes // dtype.itemsize
    if dtype.fmt is not None:
        return list(struct.unpack(f"<{count}{dtype.fmt}", data))
    raw, size = bytes(data), dtype.itemsize
    return [from_bits(int.from_bytes(raw[i * size : (i + 1) * size], "little"), dtype) for i in range(count)]


def buffer_with(device: str, values: Sequence[ConstType], dtype: DType) -> Buffer:
    """A buffer on a device that holds these values."""
    return Buffer(device, len(values), dtype).copyin(pack(values, dtype))


def kernel(
    stores: Sequence[tuple[LazyOp, sint]], inputs: Sequence[tuple[DType, int]], sizes: Sequence[int] = ()
) -> LazyOp:
    """A SINK that stores each value to a buffer of its own, row-major.

    Args:
      stores: value, and size of its buffer in elements.
      inputs: dtype and size of each input; their slots follow the outputs'.
      sizes: sizes of the output buffers, where a value's is symbolic.
    """
    numbers = [size if isinstance(size, int) else sizes[i] for i, (_, size) in enumerate(stores)]
    arguments = [ast.BufferArg(value.dtype, n) for (value, _), n in zip(stores, numbers, strict=True)]
    arguments += [ast.BufferArg(dtype, size) for dtype, size in inputs]
    sinks = tuple(
        ast.store(slot, ShapeTracker.from_shape(value.shape), value) for slot, (value, _) in enumerate(stores)
    )
    return ast.sink(sinks, tuple(arguments))


def run(
    device: str, sink: LazyOp, inputs: Sequence[Buffer], var_vals: Mapping[Variable, int] | None = None
) -> list[list[ConstType]]:
    """Runs a kernel; its outputs as lists."""
    ast.verify(sink)
    arguments: tuple[ast.BufferArg, ...] = sink.arg
    outputs = [Buffer(device, a.size, a.dtype).allocate() for a in arguments[: len(arguments) - len(inputs)]]
    ExecItem(get_runner(Device[device], sink), [*outputs, *inputs]).run(var_vals, wait=True)
    return [unpack(out.copyout(memoryview(bytearray(out.nbytes))), out.dtype) for out in outputs]


def same(got: ConstType, want: ConstType, rtol: float = 0.0, atol: float = 0.0) -> bool:
    """Whether two values agree: NaN with NaN, and otherwise within the tolerance."""
    if got == want or (got != got and want != want):
        return True
    return math.isfinite(got) and math.isfinite(want) and abs(got - want) <= atol + rtol * abs(want)


def positions(shape: tuple[object, ...]) -> list[tuple[int, ...]]:
    """Every index of a shape, row-major."""
    found: list[tuple[int, ...]] = [()]
    for dim in shape:
        assert isinstance(dim, int)
        found = [(*ix, i) for ix in found for i in range(dim)]
    return found


def matmul(n: int, k: int, m: int) -> LazyOp:
    """A product of float32 matrices: buffer 1, shape (n, k), times buffer 2, shape (k, m), gives buffer 0, (n, m)."""
    x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((n, 1, k)).expand((n, m, k)))
    y = ast.load(2, dtypes.float32, ShapeTracker.from_shape((1, k, m)).permute((0, 2, 1)).expand((n, m, k)))
    product = ast.reduce(ast.alu(Ops.MUL, x, y), Ops.ADD, (2,))
    return kernel([(product, n * m)], [(dtypes.float32, n * k), (dtypes.float32, k * m)])


def matrix_product(a: Sequence[float], b: Sequence[float], n: int, k: int, m: int) -> list[float]:
    """What :func:`matmul` computes, in Python."""
    return [sum(a[i * k + q] * b[q * m + j] for q in range(k)) for i in range(n) for j in range(m)]
