"""Keys: unsigned integers in whose order the elements of any dtype are wanted.

The bits of a positive float rise with its value and those of a negative one fall; so does every comparison, counting
or radix of what follows work on plain integers. NaN is the greatest key, and the two zeros are one.
"""

from __future__ import annotations

from tg_dtype import DType, dtypes, float_format
from tg_lazy import Ops
from tg_shape import prod, sint

from ..array.array import A
from ..array.operands import alu

_UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
_INFINITY = {
    dtypes.fp8e4m3: 0x7E,  # the largest finite value: there is no infinity
    dtypes.fp8e5m2: 0x7C,
    dtypes.float16: 0x7C00,
    dtypes.bfloat16: 0x7F80,
    dtypes.float32: 0x7F80_0000,
    dtypes.float64: 0x7FF0_0000_0000_0000,
}
"""The bits of the greatest number; above them are those of NaN."""


def unsigned(dtype: DType) -> DType:
    """The dtype of the keys of elements of ``dtype``."""
    return _UNSIGNED[dtype.itemsize]


def order_keys(x: A, descending: bool = False) -> A:
    """Unsigned integers of the elements' width that compare as the elements are to be ordered.

    Args:
      descending: the greatest element gets the least key; NaN, which is above all numbers, before it.
    """
    kind, dtype = x.dtype.kind, unsigned(x.dtype)
    x = x.detach()
    if kind == "bool":
        keys = x.cast(dtype)
    elif kind == "uint":
        keys = x
    else:
        bits = x._wrap(x.lazydata.bitcast(dtype))
        sign = 1 << (dtype.bits - 1)
        if kind == "int":
            keys = bits ^ sign
        elif not float_format(x.dtype).signed_zero:  # -0.0 is NaN: 0 has its key, and NaN what is free then
            keys = (bits <= sign).where((bits ^ sign) - 1, alu(bits, Ops.NOT))
        else:
            size = bits & (sign - 1)
            keys = (bits < sign).where(bits | sign, alu(bits, Ops.NOT))
            keys = size.eq(0).where(sign, keys)
            keys = (size > _INFINITY[x.dtype]).where(dtypes.max(dtype), keys)
    return alu(keys, Ops.NOT) if descending else keys


def rows_along(x: A, axis: int) -> A:
    """A tensor as rows along one axis, which becomes the last one: shape (rows, n)."""
    order = [i for i in range(x.ndim) if i != axis]
    return x.permute(*order, axis).reshape((prod(x.shape[i] for i in order), x.shape[axis]))


def from_rows(rows: A, shape: tuple[sint, ...], axis: int) -> A:
    """What was computed of rows along ``axis`` of a tensor of this shape, with the axis where it was.

    Args:
      rows: shape (rows, m).
      shape: of the tensor of which :func:`rows_along` made rows.
      axis: which of its axes has m elements now.
    """
    lead = shape[:axis] + shape[axis + 1 :]
    back = list(range(len(lead)))
    back.insert(axis, len(lead))
    return rows.reshape((*lead, rows.shape[1])).permute(*back)


def key_rows(x: A, axis: int, descending: bool = False) -> A:
    """The keys along an axis as rows in memory: shape (rows, n).

    A symbolic axis gets as many keys as it can have, the greatest in those that are not there: behind all others.
    """
    rows = rows_along(order_keys(x, descending), axis)
    n = x.shape[axis]
    if not isinstance(n, int):
        rows = rows.pad(((0, 0), (0, n.vmax - n)), value=dtypes.max(rows.dtype))
    return rows.contiguous()


def elements(keys: A, dtype: DType) -> A:
    """The elements of ``dtype`` whose keys, in rising order, these are; of the two zeros the positive one."""
    if dtype.kind == "bool":
        return keys.cast(dtype)
    if dtype.kind == "uint":
        return keys
    sign = 1 << (dtype.bits - 1)
    if dtype.kind == "int":
        bits = keys ^ sign
    else:
        free = not float_format(dtype).signed_zero  # see order_keys
        bits = (keys < sign - free).where(alu(keys, Ops.NOT), (keys + 1 if free else keys) ^ sign)
    return bits._wrap(bits.lazydata.bitcast(dtype))
