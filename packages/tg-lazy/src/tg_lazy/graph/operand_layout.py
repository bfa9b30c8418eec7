"""How an operand of a product lies in memory: results side by side, as vectors read it, or the terms of one result."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tg_dtype import DType
from tg_shape import ShapeTracker

from .lazybuffer import LazyBuffer

LEAST_READS = 8
"""Results that read an element of an operand, at the least, for its layout to count: a register tile has that many."""
LEAST_ITEMSIZE = 4
"""Bytes of an element, at the least: of smaller ones, instructions for products take several terms of a result."""


@dataclass(frozen=True, slots=True)
class Walked:
    """The axes of a product that is summed, as one of its operands lies along them.

    Attributes:
      shape: the product's.
      terms: reduced axes along which it has several elements.
      results: the other axes along which it has several.
      rest: axes along which it has one.
      reads: results that read each element.
      nearest: the axes along which its elements are neighbours: one, or none, and two where windows overlap.
      plain: whether each element is read at one place: windows do not overlap.
    """

    shape: tuple[int, ...]
    terms: tuple[int, ...]
    results: tuple[int, ...]
    rest: tuple[int, ...]
    reads: int
    nearest: tuple[int, ...]
    plain: bool

    @property
    def beside(self) -> bool:
        """Whether results are side by side in memory."""
        return not set(self.nearest).isdisjoint(self.results)

    @property
    def once(self) -> tuple[tuple[int, int], ...]:
        """The part of each axis that the operand is without its repetitions, as ``shrink`` takes it."""
        return tuple((0, 1) if axis in self.rest else (0, dim) for axis, dim in enumerate(self.shape))


def walked(st: ShapeTracker, dtype: DType, axes: tuple[int, ...]) -> Walked | None:
    """How an operand of a product that is summed lies along its axes.

    Args:
      st: the operand, in the shape of the product.
      dtype: the operand's.
      axes: along which axes it is summed.

    Returns:
      None where that does not matter or is not known: of elements that are no floats of four bytes or more, of symbolic
      sizes, and of what is padded.
    """
    if dtype.kind != "float" or dtype.itemsize < LEAST_ITEMSIZE or len(st.views) != 1:
        return None
    (view,) = st.views
    shape = tuple(dim for dim in view.shape if isinstance(dim, int))
    strides = tuple(step for step in view.strides if isinstance(step, int))
    if view.mask is not None or len(shape) + len(strides) != 2 * len(view.shape):
        return None
    found = [a for a, stride in enumerate(strides) if stride != 0 and shape[a] != 1]
    terms, results = [a for a in found if a in axes], [a for a in found if a not in axes]
    reads = prod(shape[a] for a in range(len(shape)) if strides[a] == 0 and a not in axes)
    reach, plain = 1, True
    for axis in sorted(found, key=lambda a: strides[a]):
        plain &= strides[axis] >= reach
        reach = strides[axis] * shape[axis]
    nearest = tuple(a for a in found if strides[a] == 1)
    rest = tuple(a for a in range(len(shape)) if a not in found)
    return Walked(shape, tuple(terms), tuple(results), rest, reads, nearest, plain)


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
    st = operand.st
    found = walked(st, operand.dtype, axes) if operand.shape == product.shape else None
    if found is None or not found.results or found.reads < LEAST_READS or set(found.nearest).isdisjoint(found.terms):
        return None
    order = [*found.rest, *found.terms, *found.results]
    copy = operand.shrink(found.once).permute(tuple(order)).clone()
    return copy.permute(tuple(order.index(a) for a in range(len(order)))).expand(st.shape)
