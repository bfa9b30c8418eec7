"""How an operand of a product lies in memory: results side by side, as vectors read it, or the terms of one result."""

from __future__ import annotations

from math import prod

from .lazybuffer import LazyBuffer

LEAST_READS = 8
"""Results that read an element of an operand, at the least, for its layout to count: a register tile has that many."""
LEAST_ITEMSIZE = 4
"""Bytes of an element, at the least: of smaller ones, instructions for products take several terms of a result."""


def results_side_by_side(product: LazyBuffer, axes: tuple[int, ...], operand: LazyBuffer) -> LazyBuffer | None:
    """An operand of a product that is summed, copied so that what neighbouring results read are neighbours.

    Args:
      product: what is summed; a base.
      axes: along which axes.
      operand: one of its operands.

    Returns:
      The same values, seen in the copy; None where it lies so already, or is not read again and again.

    Example:
      >>> from tg_dtype import dtypes
      >>> from tg_lazy import LazyBuffer, Ops
      >>> w = LazyBuffer.empty((16, 8), dtypes.float32, "CPU").reshape((1, 16, 8)).expand((32, 16, 8))
      >>> results_side_by_side(w.alu(Ops.MUL, w), (2,), w).st.views[0].strides
      (0, 1, 16)
    """
    st, dtype = operand.st, operand.dtype
    if dtype.kind != "float" or dtype.itemsize < LEAST_ITEMSIZE or len(st.views) != 1 or operand.shape != product.shape:
        return None
    (view,) = st.views
    shape, strides = view.shape, view.strides
    if view.mask is not None or any(not isinstance(dim, int) for dim in shape):
        return None
    walked = [a for a, stride in enumerate(strides) if stride != 0 and shape[a] != 1]
    terms, results = [a for a in walked if a in axes], [a for a in walked if a not in axes]
    reads = prod(shape[a] for a in range(len(shape)) if strides[a] == 0 and a not in axes)
    if not results or 1 not in [strides[a] for a in terms] or reads < LEAST_READS:
        return None
    once = operand.shrink(tuple((0, dim) if a in walked else (0, 1) for a, dim in enumerate(shape)))
    rest = [a for a in range(len(shape)) if a not in walked]
    order = [*rest, *terms, *results]
    copy = once.permute(tuple(order)).clone()
    return copy.permute(tuple(order.index(a) for a in range(len(shape)))).expand(shape)
