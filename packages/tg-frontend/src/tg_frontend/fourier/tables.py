"""Roots of unity, right to a unit in the last place: of angles that were reduced exactly, in float64 on the host.

Each table is computed once for a size, a dtype and a device, and kept; the least recently used go.
"""

from __future__ import annotations

import math
from typing import Any

from tg_dtype import DType, dtypes
from tg_runtime import capturing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_TABLES = 64
HOST = "CPU"


def roots(kind: type[Any], turns: Any, n: int) -> tuple[Any, Any]:
    """cos and sin of ``-2 pi turns / n``, in float64 on the host.

    Args:
      kind: the class of tensors.
      turns: int64 in 0 to n - 1.
      n: how many make a whole turn.
    """
    # in quarters of 1/n of a turn: to the half, the quarter and the eighth of a turn by reflection
    fours = turns * 4
    half = fours.minimum(4 * n - fours)
    quarter = half.minimum(2 * n - half)
    eighth = quarter.minimum(n - quarter)
    angle = eighth.cast(dtypes.float64) * (math.pi / (2 * n))
    near, far = angle.cos(), angle.sin()
    steep = quarter * 2 > n
    cos, sin = steep.where(far, near), steep.where(near, far)
    return (half > n).where(-cos, cos), (fours > 2 * n).where(sin, -sin)


class _Kept(dict[tuple[object, ...], tuple[Any, Any]]):
    """Tables by what they are of, those last that were used last."""

    def get_or_make(self, key: tuple[Any, ...], make: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
        """Both parts of a table on the device and in the dtype with which its key ends."""
        found = self.pop(key, None)
        if found is None:
            *_, dtype, device = key
            cos, sin = (part.cast(dtype).to(device).contiguous().detach() for part in make())
            if capturing():  # what a record computes belongs to it
                return cos, sin
            cos.realize(sin)
            found = cos, sin
        self[key] = found
        while len(self) > _MOST_TABLES:
            self.pop(next(iter(self)), None)
        return found


TABLES = _Kept()


def _numbers(kind: type[Any], n: int) -> Any:
    return kind.arange(n, dtype=dtypes.int64, device=HOST)


def twiddles(kind: type[Any], r: int, span: int, dtype: DType, device: str) -> tuple[Any, Any]:
    """The factors between two passes: root number q * k of r * span, shape (r, span)."""

    def make() -> tuple[Any, Any]:
        return roots(kind, _numbers(kind, r).reshape((r, 1)) * _numbers(kind, span).reshape((1, span)), r * span)

    return TABLES.get_or_make(("twiddles", kind, r, span, dtype, device), make)


def matrix(kind: type[Any], n: int, dtype: DType, device: str) -> tuple[Any, Any]:
    """The matrix of the transform of n numbers, which is symmetric."""

    def make() -> tuple[Any, Any]:
        return roots(kind, _numbers(kind, n).reshape((n, 1)) * _numbers(kind, n).reshape((1, n)) % n, n)

    return TABLES.get_or_make(("matrix", kind, n, dtype, device), make)


def chirp(kind: type[Any], n: int, dtype: DType, device: str) -> tuple[Any, Any]:
    """Root number k * k of 2 n, for k below n: what Bluestein's method multiplies with."""

    def make() -> tuple[Any, Any]:
        k = _numbers(kind, n)
        return roots(kind, k * k % (2 * n), 2 * n)

    return TABLES.get_or_make(("chirp", kind, n, dtype, device), make)


def half_turns(kind: type[Any], n: int, dtype: DType, device: str) -> tuple[Any, Any]:
    """Root number k of n, for k from 0 to n // 2."""

    def make() -> tuple[Any, Any]:
        return roots(kind, _numbers(kind, n // 2 + 1), n)

    return TABLES.get_or_make(("half turns", kind, n, dtype, device), make)
