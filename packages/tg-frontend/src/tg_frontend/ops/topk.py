"""The greatest or least elements, by selection."""

from __future__ import annotations

from tg_dtype import dtypes

from ..array.array import A
from ..array.ingest import sure_of
from .creation import zeros_like
from .found import Found
from .gather_scatter import gather
from .nth_element import least
from .order_keys import from_rows, key_rows


def topk(x: A, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> Found[A]:
    """The ``k`` largest (or smallest) elements along an axis, in order, and where they are (int32).

    NaN is larger than every number. Of equal elements the first come first.

    Args:
      sorted_: for those who come from elsewhere: the result is in order in either case.

    Raises:
      ValueError: if the axis has fewer than ``k`` elements.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([3, 1, 2]).topk(2)
      Found(values=Tensor([3, 2]), indices=Tensor([0, 2]))
    """
    axis = x._axis(dim, "topk")
    if isinstance(k, bool) or not isinstance(k, int):
        raise TypeError(f"topk: k is an integer, got {k!r}")
    n = sure_of(x.shape[axis], k, x.shape) if x.ndim else 1
    if k < 0 or (isinstance(n, int) and k > n):
        raise ValueError(f"topk: {k!r} of {n} elements along axis {dim} of shape {x.shape}")
    if x.ndim == 0 or k == 0 or x.numel() == 0:
        out = x if x.ndim == 0 else x.shrink([(0, k) if i == axis else None for i in range(x.ndim)])
        return Found(out, zeros_like(out, dtype=dtypes.int32))
    at = from_rows(least(key_rows(x, axis, largest), k), x.shape, axis)
    return Found(gather(x, axis, at), at)
