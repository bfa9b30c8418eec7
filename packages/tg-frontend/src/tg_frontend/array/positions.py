"""Positions of whatever integer type: none wraps on its way to the axis that it points into."""

from __future__ import annotations

from tg_dtype import DType, dtypes
from tg_shape import sint, upper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Protocol, Self, TypeVar

    class Index(Protocol):
        """A tensor of integers."""

        @property
        def dtype(self) -> DType: ...
        def cast(self, dtype: DType) -> Self: ...
        def minimum(self, x: Any) -> Self: ...

    T = TypeVar("T", bound=Index)


def counting_dtype(size: sint) -> DType:
    """int32, or int64 where positions along an axis of this size need it."""
    return dtypes.int32 if upper(size) <= dtypes.max(dtypes.int32) else dtypes.int64


def signed(index: T, size: sint) -> T:
    """Positions as int32 or int64; one beyond what a signed integer holds becomes ``size``, which is out of range."""
    if index.dtype.kind == "uint" and index.dtype.itemsize >= 4:
        return index.minimum(size).cast(counting_dtype(size))
    return index if index.dtype is dtypes.int64 else index.cast(counting_dtype(size))


def check_known(positions: Iterable[int], size: sint, what: str, where: str) -> None:
    """Positions that the host knows before anything is computed.

    Raises:
      IndexError: if one is out of range; negative ones count from the end.
    """
    if not isinstance(size, int):
        return
    for position in positions:
        if not -size <= position < size:
            raise IndexError(f"{what}: index {position} is out of bounds for {where}")
