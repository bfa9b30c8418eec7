"""Products of groups of factors, and their slopes: right where factors are 0, however often they are differentiated."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops

from .base import held, splat
from .lookup import TakeAlong
from .radix import order_of
from .updating import arranged


def slopes_of_products(factors: LazyBuffer, keys: LazyBuffer, grad: LazyBuffer) -> LazyBuffer:
    """The gradient at each factor: that of its group's product, times all other factors of the group.

    Groups are brought together by a stable sort. The product of what stands before a factor in its group, and that of
    what stands behind it, are made by doubling, in log2(n) steps: nothing is divided by.

    Args:
      factors: shape (rows, n), values that record what is done with them.
      keys: likewise, of int32 from 1; what has the same key in a row is a group.
      grad: likewise; the gradient of the product of each factor's group.
    """
    rows, n = keys.shape
    assert isinstance(n, int)
    order = order_of(held(keys).cast(dtypes.uint32).contiguous(), dtypes.uint32.bits)
    at = LazyBuffer.iota(n, dtypes.int32, order.device).reshape((1, n)).expand((rows, n))
    keys, factors, grad = (_along(part, order) for part in (keys, factors, grad))
    one = splat(factors, 1)

    def moved(part: LazyBuffer, by: int) -> LazyBuffer:
        front, back = max(by, 0), max(-by, 0)
        return part.pad(((0, 0), (front, back))).shrink(((0, rows), (back, back + n)))

    for way in (1, -1):
        product, by = factors, way
        while abs(by) < n:
            near = moved(keys, by).alu(Ops.CMPEQ, keys)
            product = near.alu(Ops.WHERE, product.alu(Ops.MUL, moved(product, by)), product)
            by *= 2
        near = moved(keys, way).alu(Ops.CMPEQ, keys)
        grad = grad.alu(Ops.MUL, near.alu(Ops.WHERE, moved(product, way), one))
    return _along(grad, arranged(1, order, at))


def _along(values: LazyBuffer, places: LazyBuffer) -> LazyBuffer:
    shape = (*places.shape, 1)
    taken = values.reshape(shape).applied(TakeAlong(), places.reshape(shape))  # type: ignore[attr-defined]
    return taken.reshape(places.shape)  # type: ignore[no-any-return]
