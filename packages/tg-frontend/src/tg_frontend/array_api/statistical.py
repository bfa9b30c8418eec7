"""Sums and statistics along axes, and whether all or any elements are true."""

from __future__ import annotations

from ..tensor import Tensor
from .operands import summed, tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .operands import Axis


def sum(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum; of integers, in int64 or uint64."""
    return tensor(x, "sum").sum(axis, keepdims, summed(x, dtype))


def prod(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product; of integers, in int64 or uint64."""
    return tensor(x, "prod").prod(axis, keepdims, summed(x, dtype))


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The maximum."""
    return tensor(x, "max").max(axis, keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The minimum."""
    return tensor(x, "min").min(axis, keepdims)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean."""
    return tensor(x, "mean").mean(axis, keepdims)


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation."""
    return var(tensor(x, "std"), axis=axis, correction=correction, keepdims=keepdims).sqrt()


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance: ``correction`` is subtracted from the number of elements."""
    return tensor(x, "var").var(axis, keepdim=keepdims, correction=correction)


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are true."""
    return tensor(x, "all").all(axis, keepdims)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether an element is true."""
    return tensor(x, "any").any(axis, keepdims)


def _running(x: Tensor, axis: int | None, what: str) -> int:
    if axis is None and x.ndim != 1:
        raise ValueError(f"{what}: an axis is wanted for shape {x.shape}")
    return 0 if axis is None else axis


def _after(initial: int, x: Tensor, out: Tensor, axis: int) -> Tensor:
    """Running values after one more, which is that of no elements."""
    shape = [1 if n == axis % x.ndim else size for n, size in enumerate(x.shape)]
    return Tensor.full(shape, initial, dtype=out.dtype, device=x.device).cat(out, dim=axis)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Running sums along an axis, after a 0 if ``include_initial``.

    Raises:
      ValueError: if no axis is given, and there is more than one.
    """
    along = _running(tensor(x, "cumulative_sum"), axis, "cumulative_sum")
    out = x.cumsum(along, summed(x, dtype))
    return _after(0, x, out, along) if include_initial else out


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Running products along an axis, after a 1 if ``include_initial``.

    Raises:
      ValueError: if no axis is given, and there is more than one.
    """
    along = _running(tensor(x, "cumulative_prod"), axis, "cumulative_prod")
    out = x.cumprod(along, summed(x, dtype))
    return _after(1, x, out, along) if include_initial else out


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Differences of neighbours along an axis, ``n`` times."""
    return tensor(x, "diff").diff(n, axis, prepend, append)
