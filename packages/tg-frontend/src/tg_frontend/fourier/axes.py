"""Axes, sizes and factors of transforms as they are given."""

from __future__ import annotations

import math

from ..array.array import Array

_MOST = 1 << 40  # numbers along an axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

NORMS = ("backward", "ortho", "forward")


def operand(x: Any, what: str, real: bool = False) -> Any:
    """The tensor that is transformed: of float32 or float64, or complex.

    Raises:
      TypeError: if it is no tensor, or complex where real numbers are wanted.
    """
    if not isinstance(x, Array):
        raise TypeError(f"{what}: a tensor is wanted, got a {type(x).__name__}")
    if x.dtype.kind == "complex":
        if real:
            raise TypeError(f"{what}: real numbers are transformed, got a tensor of {x.dtype.name}")
        return x
    if x.dtype.kind != "float":
        x = x.cast("float32")
    return x if x.dtype.itemsize >= 4 else x.cast("float32")


def factor(norm: str | None, count: int, forward: bool, what: str) -> float:
    """What a transform of ``count`` numbers is multiplied with.

    Raises:
      ValueError: if there is no such norm.
    """
    if norm is not None and norm not in NORMS:
        raise ValueError(f"{what}: norm {norm!r}; there are {', '.join(map(repr, NORMS))}")
    if norm == "ortho":
        return 1 / math.sqrt(count)
    divided = norm == "forward" if forward else norm in (None, "backward")
    return 1 / count if divided else 1.0


def axis_of(x: Any, axis: Any, what: str) -> int:
    """One axis.

    Raises:
      ValueError: if the tensor has none.
      IndexError: if it is out of range.
    """
    if x.ndim == 0:
        raise ValueError(f"{what}: a tensor of shape () has no axis to transform")
    return x._axis(axis, what)  # type: ignore[no-any-return]


def length_of(n: Any, size: int, what: str) -> int:
    """How many numbers are transformed.

    Raises:
      ValueError: if there are none.
      TypeError: if it is no integer.
    """
    if n is None:
        n = size
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"{what}: n is an integer, got {n!r}")
    if n < 1:
        raise ValueError(f"{what}: {n} numbers cannot be transformed; n is at least 1")
    if n > _MOST:
        raise ValueError(f"{what}: {n} numbers are more than any memory holds")
    return n


def axes_and_lengths(
    x: Any, s: Sequence[int] | int | None, dim: Sequence[int] | int | None, what: str
) -> tuple[list[int], list[int | None]]:
    """Several axes, and how many numbers are transformed along each.

    Raises:
      ValueError: if an axis is given twice, or their number is not that of the lengths.
      IndexError: if one is out of range, or there are more lengths than axes.
    """
    lengths = None if s is None else [s] if isinstance(s, int) else list(s)
    if dim is None:
        if lengths is not None and len(lengths) > x.ndim:
            raise ValueError(f"{what}: {len(lengths)} lengths for a tensor of shape {x.shape}")
        axes = list(range(x.ndim if lengths is None else len(lengths)))
        axes = [axis + x.ndim - len(axes) for axis in axes]
    else:
        axes = [axis_of(x, axis, what) for axis in ([dim] if isinstance(dim, int) else dim)]
    if len(set(axes)) != len(axes):
        raise ValueError(f"{what}: an axis is given twice in {dim}")
    if lengths is not None and len(lengths) != len(axes):
        raise ValueError(f"{what}: {len(lengths)} lengths for {len(axes)} axes")
    found: list[int | None] = [None] * len(axes) if lengths is None else [None if n == -1 else n for n in lengths]
    return axes, found


def resized(x: Any, axis: int, n: int) -> Any:
    """The first n numbers along an axis, zeros behind where there are fewer."""
    size = x._ints()[axis]
    if size == n:
        return x
    bounds: list[Any] = [None] * x.ndim
    if n < size:
        bounds[axis] = (0, n)
        return x.shrink(bounds)
    amounts = [(0, n - size) if i == axis else (0, 0) for i in range(x.ndim)]
    return x.pad(amounts)
