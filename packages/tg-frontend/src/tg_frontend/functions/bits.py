"""Bits of integers, as numpy counts and packs them."""

from __future__ import annotations

from tg_dtype import dtypes

from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


def bitwise_count(x: Tensor) -> Tensor:
    """How many bits of the absolute value are 1 (uint8).

    Args:
      x: integers.

    Raises:
      TypeError: if they are none.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import bitwise_count
      >>> bitwise_count(Tensor([1023, -6, 0]))
      Tensor([10,  2,  0], dtype=uint8)
    """
    if x.dtype.kind == "bool":
        return x.cast(dtypes.uint8)
    if not dtypes.is_int(x.dtype):
        raise TypeError(f"bitwise_count: integers are wanted, got {x.dtype.name}")
    kind = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}[x.dtype.itemsize]
    # the absolute value of the least integer wraps to itself, which as an unsigned one is that value
    left, bits = (x if dtypes.is_unsigned(x.dtype) else x.abs()).bitcast(kind), 8 * kind.itemsize
    whole, width = (1 << bits) - 1, 1
    while width < bits:  # counts of neighbours are added: of 1, 2, 4, … bits
        mask = whole // ((1 << width) + 1)
        left = (left & mask) + ((left >> width) & mask)
        width *= 2
    return left.cast(dtypes.uint8)


def packbits(a: Tensor, axis: int | None = None, bitorder: Literal["big", "little"] = "big") -> Tensor:
    """Eight elements as the bits of one byte (uint8): which of them are not 0. The last byte ends with zeros.

    Args:
      a: integers or bools.
      axis: along which; of the flat tensor if None.
      bitorder: ``"big"`` if the first element is the highest bit, ``"little"`` if it is the lowest.

    Raises:
      ValueError: for another order.
      TypeError: for floats.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import packbits
      >>> packbits(Tensor([1, 0, 1, 0, 0, 0, 0, 1, 1]))
      Tensor([161, 128], dtype=uint8)
    """
    if dtypes.is_float(a.dtype):
        raise TypeError(f"packbits: integers or bools are wanted, got {a.dtype.name}")
    row, place = (a.flatten(), 0) if axis is None else (a, a._axis(axis, "packbits"))
    bits = row.ne(0).movedim(place, -1)
    n = bits._ints()[-1]
    bits = bits.pad((*((0, 0) for _ in range(bits.ndim - 1)), (0, -n % 8)))
    bits = bits.reshape(*bits._ints()[:-1], -(-n // 8), 8).cast(dtypes.int32)
    packed = (bits << _shifts(a.device, bitorder, "packbits")).sum(-1).cast(dtypes.uint8)
    return packed.movedim(-1, place)


def unpackbits(
    a: Tensor, axis: int | None = None, count: int | None = None, bitorder: Literal["big", "little"] = "big"
) -> Tensor:
    """The bits of bytes, one after another (uint8): the inverse of :func:`packbits`.

    Args:
      a: bytes (uint8).
      axis: along which; of the flat tensor if None.
      count: how many there are: zeros follow where there are fewer; of a negative number, so many are left out at the
        end. All if None.
      bitorder: see :func:`packbits`.

    Raises:
      ValueError: for another order, or if more are to be left out than there are.
      TypeError: if there are no bytes.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import unpackbits
      >>> unpackbits(Tensor([161], dtype="uint8"), count=4)
      Tensor([1, 0, 1, 0], dtype=uint8)
    """
    if a.dtype is not dtypes.uint8:
        raise TypeError(f"unpackbits: uint8 is wanted, got {a.dtype.name}")
    row, place = (a.flatten(), 0) if axis is None else (a, a._axis(axis, "unpackbits"))
    row = row.movedim(place, -1)
    bits = (row.unsqueeze(-1) >> _shifts(a.device, bitorder, "unpackbits").cast(dtypes.uint8)) & 1
    bits = bits.reshape(*row._ints()[:-1], 8 * row._ints()[-1])
    n = bits._ints()[-1]
    if count is not None:
        if count < -n:
            raise ValueError(f"unpackbits: {-count} bits less than {n}")
        end = count if count >= 0 else n + count
        bits = bits[..., : min(n, end)]
        bits = bits.pad((*((0, 0) for _ in range(bits.ndim - 1)), (0, max(0, end - n))))
    return bits.movedim(-1, place)


def _shifts(device: str, bitorder: str, what: str) -> Tensor:
    if bitorder not in ("big", "little"):
        raise ValueError(f"{what}: the order of bits is 'big' or 'little', got {bitorder!r}")
    return Tensor.arange(7, -1, -1, device=device) if bitorder == "big" else Tensor.arange(8, device=device)
