"""Linear recurrences along an axis, and running products, of which they are the gradient."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_shape import upper

from .base import Function, Grads, splat

_BLOCK = 8  # elements that one after the other become the next one's term: a vector of most machines


def neighbours(x: LazyBuffer, axis: int, back: bool) -> LazyBuffer:
    """At each place along an axis the element before it, or ``back`` the one behind; 0 where there is none."""
    n = x.shape[axis]
    inner = [(0, dim) for dim in x.shape]
    around: list[tuple[int, int]] = [(0, 0)] * len(x.shape)
    inner[axis], around[axis] = ((1, n), (0, 1)) if back else ((0, n - 1), (1, 0))
    return x.shrink(tuple(inner)).pad(tuple(around))


def recurrence(
    terms: LazyBuffer, factors: LazyBuffer, axis: int, back: bool, times: LazyBuffer | None = None
) -> LazyBuffer:
    """Along an axis: ``h[i] = terms[i] + factors[i] * h[i - 1]``, or ``back`` with ``h[i + 1]``.

    Nothing is divided, so that factors may be 0. Blocks of elements are made one step each, which has the same form,
    and so on; with what comes before a block known, its elements are computed one from the other (Blelloch, "Prefix
    Sums and Their Applications", 1990).

    Args:
      terms: what is added.
      factors: of the same shape; what the first one multiplies is 0.
      axis: along which.
      back: from the last element to the first.
      times: with what the result is multiplied, where this is wanted; of the same shape.
    """
    if type(terms) is not LazyBuffer:
        h = terms.applied(Recurrence(axis, back), factors)  # type: ignore[attr-defined]
        return h if times is None else h.alu(Ops.MUL, times)  # type: ignore[no-any-return]
    dtype = terms.dtype
    if dtype.itemsize < 4:
        wide = [x.cast(dtypes.float32) for x in (terms, factors, *(() if times is None else (times,)))]
        return recurrence(wide[0], wide[1], axis, back, *wide[2:]).cast(dtype)
    pre, n, post = terms.shape[:axis], terms.shape[axis], terms.shape[axis + 1 :]
    most = upper(n)  # of a symbolic size as many as there can be
    size = min(most, _BLOCK)
    blocks = -(-most // size)
    around, whole = [(0, 0)] * len(pre), [(0, dim) for dim in pre]
    behind, rest = [(0, 0)] * len(post), [(0, dim) for dim in post]

    def parted(x: LazyBuffer) -> LazyBuffer:
        return x.pad((*around, (0, blocks * size - n), *behind)).reshape((*pre, blocks, size, *post))

    def at(x: LazyBuffer, j: int) -> LazyBuffer:
        return x.shrink((*whole, (0, blocks), (j, j + 1), *rest))

    order = range(size - 1, -1, -1) if back else range(size)
    added, taken = parted(terms), parted(factors)
    h = splat(at(added, 0), 0)
    if blocks > 1:  # of each block what it adds to the one before it, and by what it multiplies that
        total, by = at(added, order[0]), at(taken, order[0])
        for j in order[1:]:
            total = at(added, j).alu(Ops.ADD, at(taken, j).alu(Ops.MUL, total))
            by = at(taken, j).alu(Ops.MUL, by)
        flat = (*pre, blocks, *post)
        totals = recurrence(total.reshape(flat).contiguous(), by.reshape(flat).contiguous(), axis, back)
        h = neighbours(totals.contiguous(), axis, back).reshape((*pre, blocks, 1, *post))
    full = added.shape
    place = LazyBuffer.iota(size, dtypes.int32, terms.device).reshape((*(1,) * (len(pre) + 1), size, *(1,) * len(post)))
    place, h = place.expand(full), h.expand(full)
    for j in order:  # an element takes the steps as far as its place, and those behind it leave it as it is
        step = at(added, j).expand(full).alu(Ops.ADD, at(taken, j).expand(full).alu(Ops.MUL, h))
        mine, other = (place, splat(place, j + 1)) if back else (splat(place, j - 1), place)
        h = mine.alu(Ops.CMPLT, other).alu(Ops.WHERE, step, h)
    if times is not None:
        h = h.alu(Ops.MUL, parted(times))
    return h.reshape((*pre, blocks * size, *post)).shrink((*whole, (0, n), *rest))


class Recurrence(Function):
    """``h[i] = terms[i] + factors[i] * h[i - 1]`` along an axis, or ``back`` with ``h[i + 1]``."""

    __slots__ = ("axis", "back", "factors", "out")

    def __init__(self, axis: int, back: bool) -> None:
        self.axis, self.back = axis, back

    def forward(self, terms: LazyBuffer, factors: LazyBuffer) -> LazyBuffer:
        self.factors, self.out = factors, recurrence(terms, factors, self.axis, self.back)
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        # what flows to a term is what its result is asked for, and what the next result is, by its factor
        share = recurrence(grad, neighbours(self.factors, self.axis, not self.back), self.axis, not self.back)
        return share, share.alu(Ops.MUL, neighbours(self.out, self.axis, self.back))


class RunningProduct(Function):
    """The products of the elements up to each along an axis, where they are known already.

    The gradient is right where factors are 0, or products too small to divide by.
    """

    __slots__ = ("axis", "out", "x")

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, x: LazyBuffer, products: LazyBuffer) -> LazyBuffer:
        self.x, self.out = x, products
        return products

    def backward(self, grad: LazyBuffer) -> Grads:
        axis, shape = self.axis, grad.shape
        place = LazyBuffer.iota(shape[axis], dtypes.int32, grad.device)
        place = place.reshape(tuple(dim if i == axis else 1 for i, dim in enumerate(shape))).expand(shape)
        first = place.alu(Ops.CMPEQ, splat(place, 0)).cast(grad.dtype)
        before = neighbours(self.out.contiguous(), axis, back=False).alu(Ops.ADD, first)
        return recurrence(grad, neighbours(self.x, axis, back=True), axis, True, before), None
