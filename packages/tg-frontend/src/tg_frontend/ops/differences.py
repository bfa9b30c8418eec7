"""Differences of neighbours, and sums under a curve."""

from __future__ import annotations

from tg_dtype import dtypes

from ..array.array import A
from ..array.casts import floating, wide
from ..array.computing import copied
from ..array.joining import cat
from ..array.movement import stretch
from ..array.operands import NUMBERS, as_tensor, beside, common_dtype, weak_dtype
from .creation import full_like
from .indexing import __getitem__ as at_index
from .scan import cumsum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _sliced(x: A, axis: int, start: int | None, end: int | None) -> A:
    return at_index(x, (*(slice(None) for _ in range(axis)), slice(start, end)))


def diff(x: A, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> A:
    """Each element less the one before it along an axis, ``n`` times; of bools, whether they differ.

    Args:
      prepend: elements to put before, along the axis; or a number, which is put before each line.
      append: elements to put behind.

    Raises:
      ValueError: if ``n`` is negative, the tensor has no axis, or what is put there does not fit.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 4, 9, 16]).diff()
      Tensor([3, 5, 7])
    """
    if n < 0 or x.ndim == 0:
        raise ValueError(f"diff: {n} times of a tensor of shape {x.shape}")
    place = x._axis(axis, "diff")
    if n == 0:
        return copied(x)  # without the edges, as in PyTorch and numpy
    edge = tuple(1 if i == place else size for i, size in enumerate(x.shape))
    parts = [_edge(x, part, edge) for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = cat(parts[0], *parts[1:], dim=place)
    for _ in range(min(n, _length(x, place))):
        late, early = _sliced(x, place, 1, None), _sliced(x, place, None, -1)
        x = late.ne(early) if x.dtype.kind == "bool" else late - early
    return x


def _edge(x: A, part: Any, shape: tuple[Any, ...]) -> A:
    """What is put beside a tensor: itself, or a number in the shape of one place along the axis."""
    if isinstance(part, NUMBERS):
        number: Any = part
        return full_like(x, number, dtype=weak_dtype(x.dtype, number), shape=shape)
    made: A = beside(type(x), part, (x,)) if isinstance(part, list) else as_tensor(x, part, "diff")
    return made if made.ndim else stretch(made, shape)


def _length(x: A, axis: int) -> int:
    size = x.shape[axis]
    return size if isinstance(size, int) else size.vmin


def _strips(y: A, x: A | None, dx: Any, axis: int, what: str) -> A:
    """The area of each strip between two neighbours."""
    if y.ndim == 0:
        raise ValueError(f"{what}: a tensor of shape () has no axis")
    if x is not None and dx is not None:
        raise ValueError(f"{what}: either positions x or a distance dx, not both")
    y = floating(y)
    width: Any = 1 if dx is None else dx
    if x is not None:
        if x.dtype.kind in ("bool", "int", "uint"):
            x = x.cast(dtypes.int64)  # distances of narrower integers may not fit in them
        if x.ndim == 1 and x.shape[0] == y.shape[axis]:
            width = diff(x).reshape((-1, *(1 for _ in y.shape[axis + 1 :])))
        elif x.ndim == y.ndim and x.shape[axis] == y.shape[axis]:
            width = diff(x, 1, axis)
        else:
            raise ValueError(f"{what}: positions of shape {x.shape} for values of shape {y.shape} along axis {axis}")
    found: A = (_sliced(y, axis, 1, None) + _sliced(y, axis, None, -1)) * width * 0.5
    return found


def _wide(y: A, x: A | None, compute: Callable[[A, A | None], A]) -> A:
    """What is computed of values and positions, in the dtype of the result, or in 32 bits where that is narrower."""
    y = floating(y)
    if x is None or x.dtype.kind != "float":  # distances of integers are exact
        return wide(y, compute, x)
    kind = common_dtype(y, x)
    return wide(y.cast(kind), compute, x.cast(kind))


def trapezoid(y: A, x: A | None = None, dx: float | None = None, axis: int = -1) -> A:
    """The area under straight lines between neighbours along an axis.

    Args:
      x: where the values are, as many as there are along the axis; evenly spaced without it.
      dx: the distance of neighbours, 1 if it is not given.

    Raises:
      ValueError: if the positions do not fit, or both are given.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0, 4.0]).trapezoid()
      Tensor(4.5)
    """
    place = y._axis(axis, "trapezoid")
    return _wide(y, x, lambda y, x: _strips(y, x, dx, place, "trapezoid").sum(place))


def cumulative_trapezoid(y: A, x: A | None = None, dx: float | None = None, axis: int = -1) -> A:
    """:meth:`trapezoid` up to each element but the first.

    Raises:
      ValueError: if the positions do not fit, or both are given.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0, 4.0]).cumulative_trapezoid()
      Tensor([1.5, 4.5])
    """
    place = y._axis(axis, "cumulative_trapezoid")
    return _wide(y, x, lambda y, x: cumsum(_strips(y, x, dx, place, "cumulative_trapezoid"), place))
