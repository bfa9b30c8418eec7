"""Pairs of floats as complex numbers."""

from __future__ import annotations

from tg_dtype import dtypes

from .base import B
from .movement import reshape, shrink


def view_as_complex(x: B) -> B:
    """Pairs of floats, along the last axis, as complex numbers, in the same memory.

    Raises:
      TypeError: if the elements are no float32 or float64.
      ValueError: if the last axis is not of size 2.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).view_as_complex()
      Tensor([1.+2.j, 3.+4.j])
    """
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"view_as_complex: pairs of float32 or float64 are wanted, got {x.dtype.name}")
    if not x.ndim or x.shape[-1] != 2:
        raise ValueError(f"view_as_complex: the last axis is of size 2, got shape {x.shape}")
    re, im = (reshape(shrink(x, [*[None] * (x.ndim - 1), (n, n + 1)]), x.shape[:-1]) for n in (0, 1))
    return x._composed(re, im)
