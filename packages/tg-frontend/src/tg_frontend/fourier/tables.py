"""Roots of unity, rounded once: computed in float64 on the host, of angles that were reduced exactly.

Each table is computed once for a size, a dtype and a device, and kept; the least recently used go.
"""

from __future__ import annotations

import math
from functools import lru_cache

from tg_dtype import DType, dtypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_TABLES = 64
_HOST = "CPU"


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


def _placed(pair: tuple[Any, Any], dtype: DType, device: str) -> tuple[Any, Any]:
    found = [part.cast(dtype).to(device).contiguous().detach() for part in pair]
    found[0].realize(found[1])
    return found[0], found[1]


def _numbers(kind: type[Any], n: int) -> Any:
    return kind.arange(n, dtype=dtypes.int64, device=_HOST)


@lru_cache(maxsize=_MOST_TABLES)
def twiddles(kind: type[Any], r: int, span: int, dtype: DType, device: str) -> tuple[Any, Any]:
    """The factors between two passes: root number q * k of r * span, shape (r, span)."""
    turns = _numbers(kind, r).reshape((r, 1)) * _numbers(kind, span).reshape((1, span))
    return _placed(roots(kind, turns, r * span), dtype, device)


@lru_cache(maxsize=_MOST_TABLES)
def matrix(kind: type[Any], n: int, dtype: DType, device: str) -> tuple[Any, Any]:
    """The matrix of the transform of n numbers, which is symmetric."""
    turns = _numbers(kind, n).reshape((n, 1)) * _numbers(kind, n).reshape((1, n)) % n
    return _placed(roots(kind, turns, n), dtype, device)


@lru_cache(maxsize=_MOST_TABLES)
def chirp(kind: type[Any], n: int, dtype: DType, device: str) -> tuple[Any, Any]:
    """Root number k * k of 2 n, for k below n: what Bluestein's method multiplies with."""
    k = _numbers(kind, n)
    return _placed(roots(kind, k * k % (2 * n), 2 * n), dtype, device)


@lru_cache(maxsize=_MOST_TABLES)
def half_turns(kind: type[Any], n: int, dtype: DType, device: str) -> tuple[Any, Any]:
    """Root number k of n, for k from 0 to n // 2."""
    return _placed(roots(kind, _numbers(kind, n // 2 + 1), n), dtype, device)
