"""HCQArgsState: the argument block of a launch: addresses of buffers, scalars, what the kernel's compiler added, and
descriptors of images, each where the layout says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from tg_dtype import DType, to_bits
from tg_shape import Expr, sint

from .buffer import HCQBuffer


class ArgsLayout:
    """Where each argument of a kernel lies.

    Without explicit offsets, addresses of 8 bytes follow the prefix, and scalars follow them, each aligned to its size.

    Attributes:
      buffers: number of buffers.
      scalars: dtypes of the scalars.
      prefix: 32-bit words that come before everything.
      places: byte offset of each buffer's address; -1 for one that is an image, whose descriptor has its place in
        ``images``.
      offsets: byte offset of each scalar.
      hidden: what the compiler added: byte offset and size, by name. A launch gives the values; what it does not know
        is zero.
      images: byte offset and number of 32-bit words of the descriptor of each buffer that is an image, by its index.
      nbytes: size of the block, a multiple of 8.
      alignment: of the block, a power of two.

    Example:
      >>> from tg_dtype import dtypes
      >>> layout = ArgsLayout(2, (dtypes.uint8, dtypes.int32, dtypes.float64))
      >>> layout.offsets, layout.nbytes
      ((16, 20, 24), 32)
    """

    __slots__ = ("alignment", "buffers", "hidden", "images", "nbytes", "offsets", "places", "prefix", "scalars")

    def __init__(
        self, buffers: int, scalars: Sequence[DType] = (), prefix: Sequence[int] = (), *,
        places: Sequence[int] | None = None, offsets: Sequence[int] | None = None,
        hidden: Mapping[str, tuple[int, int]] | None = None, images: Mapping[int, tuple[int, int]] | None = None,
        nbytes: int = 0, alignment: int = 64,
    ) -> None:  # fmt: skip
        """Lays the block out.

        Args:
          buffers: number of buffers.
          scalars: dtypes of the scalars.
          prefix: 32-bit words that come before everything.
          places: byte offset of each buffer's address; None for one after the other.
          offsets: byte offset of each scalar; None for behind the addresses.
          hidden: byte offset and size of what the compiler added, by name.
          images: byte offset and number of words of the descriptors of buffers that are images, by their index.
          nbytes: the least size.
          alignment: of the block.

        Raises:
          ValueError: if a scalar's dtype is a vector or has no values, an offset is missing or not aligned, two
            arguments overlap, or the alignment is no power of two.
        """
        self.buffers, self.scalars, self.prefix = buffers, tuple(scalars), tuple(prefix)
        self.hidden, self.images, self.alignment = dict(hidden or {}), dict(images or {}), alignment
        if alignment < 8 or alignment & (alignment - 1):
            raise ValueError(f"kernel arguments: an alignment of {alignment} bytes is no power of two from 8 on")
        at = -(-4 * len(self.prefix) // 8) * 8
        self.places = tuple(range(at, at + 8 * buffers, 8)) if places is None else tuple(places)
        at = max([at, *(place + 8 for place in self.places)])
        counted: list[int] = []
        for dtype in self.scalars:
            if dtype.count != 1 or dtype.kind == "void":
                raise ValueError(f"kernel argument of dtype {dtype.name}: a scalar is needed")
            at = -(-at // dtype.itemsize) * dtype.itemsize
            counted.append(at)
            at += dtype.itemsize
        self.offsets = tuple(counted) if offsets is None else tuple(offsets)
        self.nbytes = -(-max([nbytes, *(end for _, end, *_ in self._check())]) // 8) * 8

    def _check(self) -> list[tuple[int, int, str, int]]:
        """Beginning, end, name and alignment of every argument, in the order in which they lie."""
        if len(self.places) != self.buffers or len(self.offsets) != len(self.scalars):
            raise ValueError(
                f"kernel arguments: {len(self.places)} and {len(self.offsets)} offsets for {self.buffers} buffers and "
                f"{len(self.scalars)} scalars"
            )
        parts = [(0, 4 * len(self.prefix), "the prefix", 4)]
        for index, place in enumerate(self.places):
            if index not in self.images:
                parts.append((place, place + 8, f"buffer {index}", 8))
        for index, (offset, dtype) in enumerate(zip(self.offsets, self.scalars, strict=True)):
            parts.append((offset, offset + dtype.itemsize, f"scalar {index}", dtype.itemsize))
        parts += [(offset, offset + size, name, size) for name, (offset, size) in self.hidden.items()]
        parts += [(offset, offset + 4 * words, f"image {i}", 4) for i, (offset, words) in self.images.items()]
        parts = sorted(part for part in parts if part[1] > part[0])
        for begin, _, name, unit in parts:
            if unit not in (1, 2, 4, 8) or begin < 0 or begin % unit:
                raise ValueError(f"kernel arguments: {name} at byte {begin} is not aligned to its {unit} bytes")
        for (_, end, first, _), (begin, _, second, _) in pairwise(parts):
            if begin < end:
                raise ValueError(f"kernel arguments: {first} and {second} overlap at byte {begin}")
        return parts


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
        outs: Sequence[int] | None = None, hidden: Mapping[str, sint] | None = None,
        descriptor: Callable[[int, HCQBuffer], Sequence[sint]] | None = None,
    ) -> None:  # fmt: skip
        """Fills ``memory``.

        Args:
          memory: the block.
          layout: where each argument lies in it.
          bufs: the buffers.
          vals: the scalars.
          outs: which of the buffers the kernel writes; None if nobody knows, and it may write any.
          hidden: values of what the compiler added, by name; names that the layout has not are passed over.
          descriptor: the words of an image's descriptor, given its index and the buffer that it lies in.

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
        for index, (place, buf) in enumerate(zip(layout.places, self.bufs, strict=True)):
            if index not in layout.images:
                self._put(block, place, 8, buf.address)
            else:
                self._describe(block, index, () if descriptor is None else descriptor(index, buf))
        self._hide(block, dict.fromkeys(layout.hidden, 0) | dict(hidden or {}))
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

    def tell(self, hidden: Mapping[str, sint]) -> None:
        """Sets what the compiler added and only a launch knows: before the block is submitted.

        Args:
          hidden: values by name; names that the layout has not are passed over.

        Raises:
          ValueError: if a value does not always fit.
        """
        if not self.layout.hidden:
            return
        view = self.memory.host_view("B")
        block = bytearray(view.read(0, self.layout.nbytes))
        self._hide(block, hidden)
        view.write(0, block)

    def _hide(self, block: bytearray, hidden: Mapping[str, sint]) -> None:
        for name, known in hidden.items():
            if name not in self.layout.hidden:
                continue
            offset, size = self.layout.hidden[name]
            low, high = (known.vmin, known.vmax) if isinstance(known, Expr) else (known, known)
            if low < 0 or high >> 8 * size:
                raise ValueError(f"kernel argument {name}: {known} does not always fit in {size} bytes")
            self._put(block, offset, size, known)

    def _describe(self, block: bytearray, index: int, words: Sequence[sint]) -> None:
        offset, count = self.layout.images[index]
        if len(words) != count:
            raise ValueError(f"kernel arguments: image {index} takes {count} words, and is described by {len(words)}")
        for at, word in enumerate(words):
            self._put(block, offset + 4 * at, 4, word)

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
