"""Bits of elements taken as narrower or wider elements along the last axis, the lowest first."""

from __future__ import annotations

from tg_dtype import DType, dtypes
from tg_lazy import LazyBuffer, Ops

from ..host.transfer import runs_nothing

_UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


def recut(x: LazyBuffer, dtype: DType) -> LazyBuffer:
    """The bits of ``x`` as ``dtype``, of another size; the last axis holds a whole number of them.

    A device that runs no kernels does not compute them: a range of its memory is taken as elements of the dtype.
    """
    if runs_nothing(x.device):
        return x.bitcast(dtype)
    old, new = _UNSIGNED[x.dtype.itemsize], _UNSIGNED[dtype.itemsize]
    if old.itemsize > new.itemsize:
        count = old.itemsize // new.itemsize
        parts = (*x.shape, count)
        bits = x.bitcast(old).reshape((*x.shape, 1)).expand(parts)
        low = bits.alu(Ops.SHR, _places(bits, new.bits))
        low = low.alu(Ops.AND, low.const_like((1 << new.bits) - 1))
        return low.cast(new).bitcast(dtype).reshape((*x.shape[:-1], x.shape[-1] * count))
    count = new.itemsize // old.itemsize
    parts = (*x.shape[:-1], x.shape[-1] // count, count)
    bits = x.bitcast(old).reshape(parts).cast(new)
    bits = bits.alu(Ops.SHL, _places(bits, old.bits)).reduce(Ops.ADD, (len(parts) - 1,))
    return bits.reshape(parts[:-1]).bitcast(dtype)


def _places(x: LazyBuffer, step: int) -> LazyBuffer:
    """0, ``step``, 2 * ``step``, … along the last axis of the shape of ``x``."""
    n = x.shape[-1]
    count = LazyBuffer.iota(n, x.dtype, x.device).reshape((*(1,) * (len(x.shape) - 1), n)).expand(x.shape)
    return count.alu(Ops.MUL, count.const_like(step))
