"""Elements by a mask."""

from __future__ import annotations

from tg_dtype import ConstType, dtypes

from ..array.array import A, Array
from ..array.axes import counter, iota
from ..array.ingest import sure_of
from ..array.movement import stretch
from ..array.shapes import broadcast_shape
from .creation import full, zeros
from .indexing import getitem, true_positions
from .scan import cumsum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _first_true(x: A, size: int, what: str) -> tuple[A, A]:
    """Where the first ``size`` true elements of these bools are, in the flat tensor, and which there are."""
    if not isinstance(size, int) or size < 0:
        raise ValueError(f"{what}: {size!r} is not a number of elements")
    flat = x.flatten()
    n = sure_of(flat.shape[0], 1, flat.shape)
    turn = iota(type(x), size, dtypes.int32, x.device).reshape((size, 1))
    if n == 0:
        return turn.flatten() * 0, turn.flatten() < 0
    rank = cumsum(flat.cast(dtypes.int32))
    at = (flat & rank.eq(turn + 1)).where(counter(flat, 0), 0).sum(1, dtype=dtypes.int32)
    return at, turn.flatten() < rank.shrink(((n - 1, n),))


def masked_select(x: A, mask: A, size: int | None = None, fill_value: ConstType = 0) -> A:
    """The elements where the mask is true, in order, flat.

    Args:
      size: how many; where there are fewer, ``fill_value`` follows. If it is not given, the mask is computed at
        once to find out.

    Raises:
      TypeError: if the mask is no tensor of bools.
      ValueError: if the shapes do not broadcast.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).masked_select(Tensor([True, False, True]))
      Tensor([1, 3])
    """
    if not isinstance(mask, Array) or mask.dtype.kind != "bool":
        kind = f"a tensor of {mask.dtype.name}" if isinstance(mask, Array) else f"a {type(mask).__name__}"
        raise TypeError(f"masked_select: a mask is a tensor of bools, got {kind}")
    shape = broadcast_shape("masked_select", x.shape, mask.shape)
    wide, chosen = stretch(x, shape), stretch(mask, shape)
    if size is None:
        return getitem(wide.flatten(), chosen.flatten())
    at, there = _first_true(chosen, size, "masked_select")
    fill = full(type(x), (1,), fill_value, x.device).cast(x.dtype)
    return there.where(getitem(wide.flatten(), at), fill)


def nonzero(x: A, size: int | None = None, fill_value: int = 0, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not 0: shape (count, ndim), int32.

    Args:
      size: how many; where there are fewer, rows of ``fill_value`` follow. If it is not given, the tensor is
        computed at once to find out.
      as_tuple: give one vector for each axis instead, as numpy does: what square brackets take.

    Returns:
      The tensor, or with ``as_tuple`` the vectors.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0, 1], [2, 0]]).nonzero()
      Tensor([[0, 1],
              [1, 0]])
    """
    if not isinstance(fill_value, int):
        raise TypeError(f"nonzero: fill_value is an integer, got {fill_value!r}")
    columns = _nonzero_columns(x, size, fill_value)
    if as_tuple and x.ndim == 0:  # as of a vector of one element
        return nonzero(x.reshape((1,)), size, fill_value, True)
    if as_tuple:
        return tuple(columns)
    if columns:
        return columns[0].stack(*columns[1:], dim=-1)
    count = int(x.ne(0).item()) if size is None else size
    return zeros(type(x), count, 0, device=x.device, dtype=dtypes.int32)


def nonzero_static(x: A, *, size: int, fill_value: int = -1) -> A:
    """The positions of the first elements that are not 0: shape (size, ndim), int32.

    Args:
      size: how many; where there are fewer, rows of ``fill_value`` follow.

    Raises:
      ValueError: if the size is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0, 3, 5]).nonzero_static(size=3)
      Tensor([[ 1],
              [ 2],
              [-1]])
    """
    if size < 0:
        raise ValueError(f"nonzero_static: {size} elements")
    found: A = nonzero(x, size, fill_value)
    return found


def _nonzero_columns(x: A, size: int | None, fill_value: int) -> list[A]:
    """The positions along each axis of the elements that are not 0."""
    if size is None:
        return true_positions(x.ne(0) if x.dtype.kind != "bool" else x)
    at, there = _first_true(x.ne(0), size, "nonzero")
    columns: list[A] = []
    inner = 1
    for dim in reversed(x._ints()):
        columns.insert(0, there.where(at // inner % max(dim, 1), int(fill_value)))
        inner *= max(dim, 1)
    return columns
