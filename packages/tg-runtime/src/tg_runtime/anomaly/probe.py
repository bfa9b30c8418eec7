"""Questions about the values in a kernel, each answered by a kernel of its own on the same device."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tg_dtype import dtypes
from tg_dtype.limits import float_format
from tg_lazy import BufferArg, Context, LazyOp, Ops, ast
from tg_lazy.trackers import contiguous
from tg_shape import ShapeTracker, prod, sint

from ..device.registry import Device
from ..kernels.programs import get_runner
from ..memory.buffer import Buffer

_BITS = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}
MEMORY = (Ops.LOAD, Ops.GATHER)
"""Nodes that read a buffer."""


def unflat(position: int, shape: Sequence[sint]) -> tuple[int, ...]:
    """The index of a row-major position; all sizes are numbers."""
    out = []
    for dim in reversed(shape):
        position, index = divmod(position, int(dim))
        out.append(index)
    return tuple(reversed(out))


def only(node: LazyOp, index: Sequence[int]) -> LazyOp:
    """One element of a node."""
    return ast.view(node, contiguous(node.shape).shrink([(i, i + 1) for i in index]))


class Probe:
    """Questions about nodes whose loads name some buffers, each answered by a kernel on their device.

    Args:
      bufs: the buffers.
      arguments: what a kernel has to know of them.
      device: where.
      infinite: whether infinities are bad.
    """

    def __init__(self, bufs: Sequence[Buffer], arguments: Sequence[BufferArg], device: str, infinite: bool) -> None:
        self.bufs, self.arguments = list(bufs), list(arguments)
        self._device, self._infinite = device, infinite

    def keep(self, value: LazyOp, st: ShapeTracker | None = None, size: int | None = None) -> int:
        """Computes a node into memory of its own.

        Args:
          value: the node.
          st: how it lies there; row-major if not given.
          size: of the memory, in elements; those of the node if not given.

        Returns:
          The number of that memory among the buffers.
        """
        size = max(int(prod(value.shape)), 1) if size is None else size
        out = Buffer(self._device, size, value.dtype).allocate()
        slots: dict[int, int] = {}
        renamed: dict[LazyOp, LazyOp] = {}
        for node in value.toposort():
            src, arg = tuple(renamed[s] for s in node.src), node.arg
            if node.op in MEMORY:
                arg = slots.setdefault(arg[0], len(slots) + 1), arg[1]
            renamed[node] = LazyOp(node.op, node.dtype, node.shape, src, arg)
        arguments = (BufferArg(value.dtype, size), *(self.arguments[slot] for slot in slots))
        kernel = ast.sink((ast.store(0, st or contiguous(value.shape), renamed[value]),), arguments)
        with Context(BEAM=0):
            bufs = [out, *(self.bufs[slot] for slot in slots)]
            get_runner(Device[self._device], kernel)(bufs, {}, wait=True)
        self.bufs.append(out)
        self.arguments.append(arguments[0])
        return len(self.bufs) - 1

    def number(self, value: LazyOp) -> float:
        """The value of a node of one element."""
        content = self.bufs[self.keep(value)].tobytes()
        self.bufs.pop()
        self.arguments.pop()
        found: float = struct.unpack(f"={value.dtype.fmt}", content)[0]
        return found

    def shown(self, node: LazyOp, index: Sequence[int]) -> str:
        """An element of a node of floats, for a message."""
        wide = dtypes.float64 if node.dtype is dtypes.float64 else dtypes.float32
        found = self.number(ast.cast(only(node, index), wide))
        return "NaN" if found != found else f"{found:.7g}"

    def bad(self, node: LazyOp) -> LazyOp:
        """Where a node of floats is bad."""
        layout = float_format(node.dtype)
        limit = ((1 << layout.exponent) - 1) << layout.mantissa  # infinity; above it, NaN
        if not layout.has_inf:
            limit |= (1 << layout.mantissa) - 2  # the greatest number
        elif self._infinite:
            limit -= 1
        bits = ast.bitcast(node, _BITS[node.dtype.bits])
        size = ast.alu(Ops.AND, bits, ast.const((1 << (node.dtype.bits - 1)) - 1, bits.dtype, node.shape))
        return ast.alu(Ops.CMPLT, ast.const(limit, bits.dtype, node.shape), size)

    def first(self, where: LazyOp) -> int | None:
        """The row-major position of the first element of a node that is true; None if none is."""
        shape = where.shape
        size = int(prod(shape))
        dtype = dtypes.int32 if size < 1 << 31 else dtypes.int64
        left = ast.alu(Ops.SUB, ast.const(size, dtype, shape), ast.iota(contiguous(shape), dtype))
        left = ast.alu(Ops.WHERE, where, left, ast.const(0, dtype, shape))
        most = int(self.number(ast.reduce(left, Ops.MAX, tuple(range(len(shape))))))
        return size - most if most else None

    def count(self, where: LazyOp) -> int:
        """How many elements of a node are true."""
        dtype = dtypes.int32 if prod(where.shape) < 1 << 31 else dtypes.int64
        return int(self.number(ast.reduce(ast.cast(where, dtype), Ops.ADD, tuple(range(len(where.shape))))))


