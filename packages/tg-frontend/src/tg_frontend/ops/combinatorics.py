"""Every choice of some, every pair, every power: tensors of which positions are known."""

from __future__ import annotations

from itertools import combinations as chosen
from itertools import combinations_with_replacement

from tg_dtype import dtypes

from ..array.array import A
from ..array.joining import stack
from .creation import meshgrid
from .indexing import __getitem__ as at_index
from .ranges import arange


def combinations(x: A, r: int = 2, with_replacement: bool = False) -> A:
    """Every choice of ``r`` elements of a vector, in order: shape (n, r).

    Raises:
      ValueError: if it is no vector, or ``r`` is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).combinations().tolist()
      [[1, 2], [1, 3], [2, 3]]
    """
    if x.ndim != 1 or r < 0 or not isinstance(x.shape[0], int):
        raise ValueError(f"combinations: choices of {r} of a tensor of shape {x.shape}; a vector is wanted")
    choose = combinations_with_replacement if with_replacement else chosen
    places = [place for one in choose(range(x.shape[0]), r) for place in one]
    if not places:
        return x.shrink([(0, 0)]).reshape((0, r) if r else (0,))
    index = type(x)(places, device=x.device, dtype=dtypes.int32)
    return at_index(x, index).reshape((-1, r))


def cartesian_prod(x: A, *others: A) -> A:
    """Every row of which each element is from one of the vectors, the last varying fastest; one vector is as it is.

    Raises:
      ValueError: if one is no vector.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).cartesian_prod(Tensor([5, 6])).tolist()
      [[1, 5], [1, 6], [2, 5], [2, 6]]
    """
    for one in (x, *others):
        if one.ndim != 1:
            raise ValueError(f"cartesian_prod: a tensor of shape {one.shape}; vectors are wanted")
    if not others:
        return x
    columns = [grid.reshape((-1,)) for grid in meshgrid(x, *others)]
    return stack(columns[0], *columns[1:], dim=1)


def vander(x: A, N: int | None = None, increasing: bool = False) -> A:
    """Powers of a vector's elements as columns, the highest first: shape (n, N).

    Args:
      N: how many; as many as elements, if it is not given.
      increasing: the lowest first.

    Raises:
      ValueError: if it is no vector, or ``N`` is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([2, 3]).vander(3).tolist()
      [[4, 2, 1], [9, 3, 1]]
    """
    if x.ndim != 1 or (N is not None and N < 0):
        raise ValueError(f"vander: {N} powers of a tensor of shape {x.shape}; a vector is wanted")
    count = x.shape[0] if N is None else N
    powers = arange(type(x), count, device=x.device)
    if not increasing:
        powers = powers.flip(0)
    kind = x.dtype if dtypes.is_float(x.dtype) else dtypes.int64
    return x.cast(kind).unsqueeze(1) ** powers.cast(kind)
