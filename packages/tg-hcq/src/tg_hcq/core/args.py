"""HCQArgsState: the argument block of a launch: addresses of the buffers, then scalars at natural alignment."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import DType, to_bits
from tg_shape import Expr, sint

from .buffer import HCQBuffer


class ArgsLayout:
    """Where each argument of a kernel lies.

    Attributes:
      buffers: number of buffers; each is an address of 8 bytes, the first one after the prefix.
      scalars: dtypes of the scalars that follow, each aligned to its own size.
      prefix: 32-bit words that come before everything.
      offsets: byte offset of each scalar.
      nbytes: size of the block, a multiple of 8.

    Example:
      >>> from tg_dtype import dtypes
      >>> layout = ArgsLayout(2, (dtypes.uint8, dtypes.int32, dtypes.float64))
      >>> layout.offsets, layout.nbytes
      ((16, 20, 24), 32)
    """

    __slots__ = ("buffers", "nbytes", "offsets", "prefix", "scalars")

    def __init__(self, buffers: int, scalars: Sequence[DType] = (), prefix: Sequence[int] = ()) -> None:
        """Lays the block out.

        Raises:
          ValueError: if a scalar's dtype is a vector or has no values.
        """
        self.buffers, self.scalars, self.prefix = buffers, tuple(scalars), tuple(prefix)
        at = self.buffers_at + 8 * buffers
        offsets: list[int] = []
        for dtype in self.scalars:
            if dtype.count != 1 or dtype.kind == "void":
                raise ValueError(f"kernel argument of dtype {dtype.name}: a scalar is needed")
            at = -(-at // dtype.itemsize) * dtype.itemsize
            offsets.append(at)
            at += dtype.itemsize
        self.offsets = tuple(offsets)
        self.nbytes = -(-at // 8) * 8

    @property
    def buffers_at(self) -> int:
        """Byte offset of the first address."""
        return -(-4 * len(self.prefix) // 8) * 8


class HCQArgsState:
    """One launch's arguments, written to memory that the device reads.

    What is known is written at once. What is symbolic is listed, and the queue that executes the launch patches it at
    every submission.

    Attributes:
      memory: the block.
      layout: where each argument lies in it.
      bufs: the buffers, kept alive with the block.
      symbolic: (byte offset, size in bytes, value) of what is to be patched.
      written: the buffers that the kernel writes.
    """

    __slots__ = ("bufs", "layout", "memory", "symbolic", "written")

    def __init__(
        self, memory: HCQBuffer, layout: ArgsLayout, bufs: Sequence[HCQBuffer], vals: Sequence[sint | float] = (),
        outs: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """Fills ``memory``.

        Args:
          memory: the block.
          layout: where each argument lies in it.
          bufs: the buffers.
          vals: the scalars.
          outs: which of the buffers the kernel writes; None if nobody knows, and it may write any.

        Raises:
          ValueError: if the number of buffers or scalars is not the layout's, the block is too small, or an
              integer does not fit its dtype.
        """
        if len(bufs) != layout.buffers or len(vals) != len(layout.scalars):
            raise ValueError(
                f"kernel arguments: {len(bufs)} buffers and {len(vals)} scalars given, "
                f"{layout.buffers} and {len(layout.scalars)} taken"
            )
        if memory.nbytes < layout.nbytes:
            raise ValueError(f"kernel arguments: {layout.nbytes} bytes do not fit in {memory!r}")
        self.memory, self.layout, self.bufs = memory, layout, tuple(bufs)
        self.written = self.bufs if outs is None else tuple(self.bufs[index] for index in outs)
        self.symbolic: list[tuple[int, int, Expr]] = []
        block = bytearray(layout.nbytes)
        for index, word in enumerate(layout.prefix):
            block[4 * index : 4 * index + 4] = word.to_bytes(4, "little")
        for index, buf in enumerate(self.bufs):
            self._put(block, layout.buffers_at + 8 * index, 8, buf.address)
        for index, (offset, dtype, value) in enumerate(zip(layout.offsets, layout.scalars, vals, strict=True)):
            if isinstance(value, Expr):
                if not _fits(value.vmin, value.vmax, dtype):
                    raise ValueError(f"kernel scalar {index}: {value.render()} does not always fit {dtype.name}")
                self._put(block, offset, dtype.itemsize, value)
            else:
                if isinstance(value, int) and not _fits(value, value, dtype):
                    raise ValueError(f"kernel scalar {index}: {value} does not fit {dtype.name}")
                self._put(block, offset, dtype.itemsize, to_bits(value, dtype))
        memory.host_view("B").write(0, block)

    def _put(self, block: bytearray, offset: int, nbytes: int, value: sint) -> None:
        if isinstance(value, Expr):
            self.symbolic.append((offset, nbytes, value))
        else:
            block[offset : offset + nbytes] = value.to_bytes(nbytes, "little")


def _fits(low: int, high: int, dtype: DType) -> bool:
    if dtype.kind == "float":
        return low == high  # a known integer is converted; a patch copies bits and cannot
    if dtype.kind == "bool":
        return 0 <= low and high <= 1
    least = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    return least <= low and high < least + (1 << dtype.bits)
