"""Diagonals and triangles of matrices."""

from __future__ import annotations

from tg_shape import sint

from ..array.array import A
from ..array.axes import counter
from ..array.computing import copied
from ..array.ingest import value_of
from .creation import zeros_like


def diagonal(x: A, offset: int = 0, dim1: int = 0, dim2: int = 1) -> A:
    """The elements whose position along ``dim2`` is that along ``dim1`` plus ``offset``, as the last axis.

    Raises:
      ValueError: if there are not two axes.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).diagonal()
      Tensor([1, 4])
    """
    first, second = x._axis(dim1, "diagonal"), x._axis(dim2, "diagonal")
    if x.ndim < 2 or first == second:
        raise ValueError(f"diagonal: axes {dim1} and {dim2} of shape {x.shape}: two axes are wanted")
    moved = x.permute(*(i for i in range(x.ndim) if i not in (first, second)), first, second)
    *lead, rows, columns = moved.shape
    start = (-offset, 0) if offset < 0 else (0, offset)
    down, right = rows - start[0], columns - start[1]
    more = down - right
    n: sint = right if isinstance(more, int) and more > 0 else down
    if isinstance(n, int) or not isinstance(more, int) or n.vmin < 0:  # else, whatever the value of the side is
        high, wide = (value_of(dim, moved.shape) for dim in (rows, columns))
        n = max(0, min(high - start[0], wide - start[1]))
    if 0 in [dim for dim in (n, *lead) if isinstance(dim, int)]:
        return moved.shrink([(0, 0)] * moved.ndim).reshape((0,)).reshape((*lead, n))
    keep = [(0, dim) for dim in lead]
    moved = moved.shrink([*keep, *((begin, begin + n) for begin in start)]).reshape((*lead, n * n))
    moved = moved.pad([*((0, 0) for _ in lead), (0, n)]).reshape((*lead, n, n + 1))
    out = moved.shrink([*keep, (0, n), (0, 1)]).reshape((*lead, n))
    others = [i for i in range(x.ndim) if i not in (first, second)]
    return x._show_strided(
        out, lambda s: (*(s[i] for i in others), s[first] + s[second]),
        lambda s: start[0] * s[first] + start[1] * s[second],
    )  # fmt: skip


_diagonal = diagonal  # where an argument has that name


def diag(x: A, diagonal: int = 0) -> A:
    """A square matrix with this vector on a diagonal, or that diagonal of a matrix.

    Args:
      diagonal: how far above the main diagonal; below, if negative.

    Raises:
      ValueError: if it is neither a vector nor a matrix.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).diag()
      Tensor([[1, 0],
              [0, 2]])
    """
    if x.ndim == 2:
        return copied(_diagonal(x, diagonal))
    if x.ndim != 1:
        raise ValueError(f"diag: a vector or a matrix is wanted, got shape {x.shape}")
    above, left = max(0, -diagonal), max(0, diagonal)
    i = counter(x, 0)
    square = i.unsqueeze(1).eq(i).where(x.unsqueeze(1), zeros_like(x).unsqueeze(1))
    return square.pad(((above, left), (left, above)))


def diag_embed(x: A, offset: int = 0, dim1: int = -2, dim2: int = -1) -> A:
    """Matrices with the last axis on a diagonal and 0 elsewhere.

    Args:
      offset: how far above the main diagonal; below, if negative.
      dim1: which axis of the result the rows are.
      dim2: which axis the columns are.

    Raises:
      ValueError: if the tensor has no axis, or both are one axis.
      IndexError: if an axis of the result is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).diag_embed().tolist()
      [[[1, 0], [0, 2]]]
    """
    if x.ndim == 0:
        raise ValueError("diag_embed: a tensor of shape () has no last axis")
    n = x.ndim
    i = counter(x, n - 1)
    square = i.unsqueeze(-1).eq(i.unsqueeze(-2)).where(x.unsqueeze(-1), zeros_like(x).unsqueeze(-1))
    above, left = max(0, -offset), max(0, offset)
    wide = square.pad((*((0, 0) for _ in range(n - 1)), (above, left), (left, above)))
    row, column = wide._axis(dim1, "diag_embed"), wide._axis(dim2, "diag_embed")
    if row == column:
        raise ValueError(f"diag_embed: rows and columns are both axis {dim1}")
    others = iter(range(n - 1))
    return wide.permute(*(n - 1 if axis == row else n if axis == column else next(others) for axis in range(n + 1)))


def diagflat(x: A, offset: int = 0) -> A:
    """A square matrix with all elements on a diagonal and 0 elsewhere.

    Args:
      offset: how far above the main diagonal; below, if negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).diagflat().tolist()
      [[1, 0], [0, 2]]
    """
    return diag(x.reshape((-1,)), offset)


def _triangle(x: A, diagonal: int, lower: bool, what: str) -> A:
    if x.ndim < 2:
        raise ValueError(f"{what}: a tensor of shape {x.shape} has no rows and columns")
    if isinstance(diagonal, float):
        raise TypeError(f"{what}: the diagonal is an integer, got {diagonal!r}")
    row, column = counter(x, x.ndim - 2), counter(x, x.ndim - 1)
    above = column > row + diagonal if lower else column < row + diagonal
    return above.where(zeros_like(x), x)


def tril(x: A, diagonal: int = 0) -> A:
    """The lower triangle of the last two axes, the rest 0; ``diagonal`` is the last one kept.

    Raises:
      ValueError: if there are fewer than two axes.
      TypeError: if ``diagonal`` is no integer.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).tril()
      Tensor([[1, 0],
              [3, 4]])
    """
    return _triangle(x, diagonal, True, "tril")


def triu(x: A, diagonal: int = 0) -> A:
    """The upper triangle of the last two axes, the rest 0; ``diagonal`` is the first one kept.

    Raises:
      ValueError: if there are fewer than two axes.
      TypeError: if ``diagonal`` is no integer.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).triu()
      Tensor([[1, 2],
              [0, 4]])
    """
    return _triangle(x, diagonal, False, "triu")
