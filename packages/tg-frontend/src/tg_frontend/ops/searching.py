"""Searching in what is in order: positions of values, bins, membership."""

from __future__ import annotations

from tg_dtype import dtypes, least_upper_dtype

from ..array.array import A, Array
from ..array.axes import iota
from ..array.operands import beside, weak_dtype
from ..array.positions import counting_dtype
from .creation import full
from .gather_scatter import gather
from .order_keys import key_rows, order_keys
from .predicates import isnan
from .row_order import ordered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

_FEW = 16  # elements to which each of others is compared sooner than they are sorted


def lower_bound(rows: A, values: A, right: bool = False) -> A:
    """Where values belong in rows that are in order: how many elements are less (``right``: or equal).

    Every step halves what is left of the row, for all values at once and without a branch, in one kernel.

    Args:
      rows: in memory, shape (rows, n) with n a number.
      values: of the dtype of ``rows``, shape (rows, m).

    Returns:
      int32 (int64 where there are more elements than that counts), shape (rows, m).
    """
    count, n = rows.shape
    assert isinstance(n, int)
    dtype = counting_dtype(rows.numel())
    start = iota(type(rows), count, dtype, rows.device).reshape((count, 1)) * n
    if n == 0:
        return start.expand(values.shape) * 0
    flat = rows.lazydata

    def step(at: A, by: int) -> A:
        found = rows._wrap(flat.gather((at + (by - 1)).lazydata))
        return (found <= values if right else found < values).where(at + by, at)

    at, left = start.expand(values.shape), n
    while left > 1:
        at = step(at, left // 2)
        left -= left // 2
    return step(at, 1) - start


def _operand(x: A, other: Any, what: str) -> A:
    """A number, a list or a tensor as a tensor beside ``x``."""
    if isinstance(other, Array):
        if other.device != x.device:
            raise ValueError(f"{what}: operands on {x.device} and {other.device}; use .to()")
        return x._wrap(other.lazydata)
    if isinstance(other, (bool, int, float)):
        kind = weak_dtype(x.dtype, other)
        beyond = kind.kind in ("int", "uint") and not dtypes.min(kind) <= other <= dtypes.max(kind)
        return full(type(x), (), other, x.device, None if beyond else kind)
    if other is None:
        raise TypeError(f"{what}: numbers or a tensor are wanted, got None")
    return beside(type(x), other, (x,))


def searchsorted(x: A, values: Any, right: bool = False, side: Literal["left", "right"] | None = None,
                 sorter: A | None = None, *, out_int32: bool = True) -> A:  # fmt: skip
    """Where values belong in this tensor, which is in order along its last axis: before equal ones (int32).

    NaN is above all numbers, as :meth:`sort` has it. Whether the tensor is in order is not checked.

    Args:
      values: a number, or a tensor of any shape where this one is a vector, else with its shape but for the last axis.
      right: behind equal ones.
      side: ``"right"`` says the same in numpy's words.
      sorter: positions that put the tensor in order, as :meth:`argsort` gives them.
      out_int32: int32; else int64.

    Returns:
      Shape of the values.

    Raises:
      ValueError: if the shapes do not fit, ``side`` is neither, or is contradicted by ``right``.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 3, 5]).searchsorted(Tensor([3, 6])).tolist()
      [1, 3]
    """
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted: side {side!r}; there are 'left' and 'right'")
    if right and side == "left":
        raise ValueError("searchsorted: side is 'left', but right is True")
    if x.ndim == 0:
        raise ValueError("searchsorted: one number is no sequence")
    wanted = _operand(x, values, "searchsorted")
    if x.ndim > 1 and (wanted.ndim != x.ndim or wanted.shape[:-1] != x.shape[:-1]):
        raise ValueError(f"searchsorted: values of shape {wanted.shape} in rows of shape {x.shape}")
    if sorter is not None:
        if sorter.shape != x.shape:
            raise ValueError(f"searchsorted: a sorter of shape {sorter.shape} for a tensor of shape {x.shape}")
        x = gather(x, -1, sorter)
    dtype = least_upper_dtype(x.dtype, wanted.dtype)
    rows = key_rows(x.cast(dtype), x.ndim - 1)
    keys = order_keys(wanted.cast(dtype))
    keys = keys.reshape((1, wanted.numel())) if x.ndim == 1 else keys.reshape((rows.shape[0], wanted.shape[-1]))
    at = lower_bound(rows, keys, right or side == "right").cast(dtypes.int32)
    n = x.shape[-1]
    at = (at if isinstance(n, int) else at.minimum(n)).reshape(wanted.shape)
    return at if out_int32 else at.cast(dtypes.int64)


def bucketize(x: A, boundaries: Any, right: bool = False, *, out_int32: bool = True) -> A:
    """Between which boundaries, a vector in rising order, the elements are: 0 before the first one (int32).

    Args:
      boundaries: the first that is not less than the element bounds it from above.
      right: the first that is greater does.
      out_int32: int32; else int64.

    Raises:
      ValueError: if the boundaries are no vector.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.5, 1.0], [2.5, 9.0]]).bucketize(Tensor([1.0, 2.0, 3.0])).tolist()
      [[0, 0], [2, 3]]
    """
    edges = _operand(x, boundaries, "bucketize")
    if edges.ndim != 1:
        raise ValueError(f"bucketize: boundaries are a vector, got shape {edges.shape}")
    return searchsorted(edges, x, right, out_int32=out_int32)


def isin(x: A, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> A:
    """Which elements are among others; NaN is among none.

    Args:
      test_elements: a number, a list or a tensor of any shape.
      assume_unique: for those who come from elsewhere: it changes nothing.
      invert: which are not.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).isin([3, 1]).tolist()
      [True, False, True]
    """
    others = _operand(x, test_elements, "isin").flatten()
    dtype = least_upper_dtype(x.dtype, others.dtype)
    shared: A | None = None
    if {x.dtype.kind, others.dtype.kind} == {"int", "uint"} and dtype.kind == "float":  # which has not all of them
        dtype, shared = dtypes.uint64, x >= 0 if x.dtype.kind == "int" else x <= dtypes.max(dtypes.int64)
    mine, others = x.detach().cast(dtype), others.detach().cast(dtype)
    count = others.numel()
    if count == 0:
        found = mine.ne(mine) & False
    elif isinstance(count, int) and count <= _FEW:
        found = mine.unsqueeze(-1).eq(others).any(-1)
    else:
        keys = key_rows(others, 0)
        keys = gather(keys, 1, ordered(keys)).contiguous()
        own = order_keys(mine).reshape((1, mine.numel()))
        at = lower_bound(keys, own).minimum(count - 1)
        found = x._wrap(keys.lazydata.gather(at.lazydata)).eq(own).reshape(x.shape)
        if dtype.kind == "float":
            found = found & ~isnan(mine)
    found = found if shared is None else found & shared
    return found.logical_not() if invert else found
