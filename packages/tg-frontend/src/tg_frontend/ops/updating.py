"""Ordered updates: elements at computed positions are combined with values, one after the other.

What scatters, histograms, gradients of lookups, radix sorts and compactions are made of. No gradient flows.
"""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import Ops

from ..array.array import A
from ..array.movement import stretch
from ..array.positions import signed
from ..array.shapes import broadcast_shape
from ..array.writing import as_value
from ..autograd.functions.parallel_updates import updated
from ..autograd.functions.updating import arranged, fetched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OPS = {"add": Ops.ADD, "multiply": Ops.MUL, "maximum": Ops.MAX, "write": None}
"""What an element may be combined with a value by."""


def update(table: A, index: A, value: Any, op: str = "add", axis: int = 0) -> A:
    """A new tensor: ``for i in order: out[index[i]] = op(out[index[i]], value[i])``, along an axis.

    The work is that of one pass over the values, and a copy of the table. Values for one position are combined in
    row-major order, so that the result is the same every time; floats are rounded at each step, in the table's dtype.
    Positions outside of ``0 <= i < n`` are left out: negative ones do not count from the end.

    Args:
      table: shape (..., n, ...), n elements along ``axis``.
      index: integers, of as many axes as the table, not larger than it along the others; or one axis, each of whose
        positions is for all that the table has along the others.
      value: shape of the index, or what broadcasts to it.
      op: ``"add"``, ``"multiply"``, ``"maximum"``, or ``"write"``: of several values for one position the last stays.
      axis: along which the positions are.

    Returns:
      Shape and dtype of the table.

    Raises:
      TypeError: if the index holds no integers.
      ValueError: if the shapes do not fit, or there is no such op.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.ops.updating import update
      >>> update(Tensor([10, 20, 30]), Tensor([2, 0, 2, 7]), Tensor([1, 2, 3, 4])).tolist()
      [12, 20, 34]
      >>> update(Tensor.zeros(2, 3), Tensor([1, 1]), Tensor.ones(2, 3)).tolist()
      [[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]]
    """
    place, at, new = _operands(table, index, value, op, axis)
    return table._value(updated(table.lazydata, place, at.lazydata, new.lazydata, OPS[op]))


def fetch_update(table: A, index: A, value: Any, op: str = "add", axis: int = 0) -> tuple[A, A]:
    """:func:`update`, and what was at each position before its value came: ``old[i] = out[index[i]]`` at step i.

    With ``op="add"`` and values of 1, ``old`` numbers the elements that go to one position, in their order. Where the
    table holds for each position how many elements go to those before it, ``old`` is each element's place in an order
    by position: a stable counting sort, of which a radix sort is made.

    Args:
      table: as for :func:`update`.
      index: as there.
      value: as there.
      op: as there.
      axis: as there.

    Returns:
      The table afterwards, and what was found: shape of the index (of the table along other axes, if the index has one
      axis), dtype of the table, and 0 for positions out of range.

    Raises:
      TypeError: if the index holds no integers.
      ValueError: if the shapes do not fit, or there is no such op.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.ops.updating import fetch_update, update
      >>> digits = Tensor([2, 0, 2, 1, 0])
      >>> counts = update(Tensor([0, 0, 0]), digits, 1)
      >>> counts.tolist()
      [2, 1, 2]
      >>> first = counts.cumsum() - counts
      >>> ends, places = fetch_update(first, digits, 1)
      >>> places.tolist()
      [3, 0, 4, 2, 1]
      >>> update(Tensor([0, 0, 0, 0, 0]), places, digits, "write").tolist()
      [0, 0, 1, 2, 2]
    """
    place, at, new = _operands(table, index, value, op, axis)
    after, before = fetched(table.lazydata, place, at.lazydata, new.lazydata, OPS[op])
    return table._value(after), table._value(before)


def arrange(value: A, places: A, axis: int = 0) -> A:
    """Every element at its place along an axis: ``out[places[i]] = value[i]``.

    Args:
      value: the elements.
      places: shape of ``value``; along the axis they are a permutation, which is not checked.
      axis: along which the places are.

    Returns:
      Shape and dtype of ``value``.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.ops.updating import arrange
      >>> arrange(Tensor([5, 6, 7]), Tensor([2, 0, 1])).tolist()
      [6, 7, 5]
    """
    return value._value(arranged(axis, places.lazydata, value.lazydata))


def _operands(table: A, index: A, value: Any, op: str, axis: int) -> tuple[int, A, A]:
    """The axis, the positions in the shape that is written, and a value for each of them."""
    if op not in OPS:
        raise ValueError(f"update: op {op!r}; there are {', '.join(OPS)}")
    place = table._axis(axis, "update")
    if not dtypes.is_int(index.dtype):
        raise TypeError(f"update: indices are integers, got a tensor of {index.dtype.name}")
    if table.ndim == 0:
        raise ValueError("update: a table of one element has no positions")
    at = signed(table._wrap(index.lazydata), table.shape[place])
    if index.ndim == 1 and table.ndim > 1:
        shape = tuple(index.shape[0] if i == place else dim for i, dim in enumerate(table.shape))
        at = stretch(at.reshape(tuple(dim if i == place else 1 for i, dim in enumerate(shape))), shape)
    elif index.ndim != table.ndim or any(
        i != place and isinstance(a, int) and isinstance(b, int) and a > b
        for i, (a, b) in enumerate(zip(index.shape, table.shape, strict=True))):  # fmt: skip
        raise ValueError(f"update: an index of shape {index.shape} for shape {table.shape} along axis {axis}")
    new = as_value(table, value, "update")
    if broadcast_shape("update", new.shape, at.shape) != at.shape:
        raise ValueError(f"update: a value of shape {new.shape} for positions of shape {at.shape}")
    return place, at, stretch(new, at.shape)
