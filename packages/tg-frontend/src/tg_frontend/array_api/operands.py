"""Operands of the functions of the namespace: tensors, and Python numbers beside them."""

from __future__ import annotations

from tg_dtype import DType, dtypes, least_upper_dtype

from ..host.coerce import to_dtype
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Axis = int | Sequence[int] | None
    """An axis, several, or all of them."""

DEFAULT_INT = dtypes.int64
"""Of integers that are given no dtype, of positions and of sums: as numpy and PyTorch have it."""


def tensor(x: Any, what: str) -> Tensor:
    """An argument that has to be a tensor.

    Raises:
      TypeError: if it is none; the message names the function.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{what}: a tensor is wanted, got {x!r} of type {type(x).__name__}; use asarray()")
    return x


def both(x1: Any, x2: Any, what: str) -> tuple[Tensor, Any]:
    """Two operands of which one at least is a tensor: a number on the left takes the dtype that it has on the right.

    A tensor of no axes has as much to say about the dtype as any other, which is not so with the methods of Tensor.

    Raises:
      TypeError: if neither is a tensor.
    """
    if isinstance(x1, Tensor):
        if isinstance(x2, Tensor) and x1.dtype is not x2.dtype:
            met = least_upper_dtype(x1.dtype, x2.dtype)
            return x1.cast(met), x2.cast(met)
        return x1, x2
    other = tensor(x2, what)
    if isinstance(x1, (bool, int, float, complex)):
        kind = other.dtype if isinstance(x1, bool) or not _higher(x1, other.dtype) else None
        return Tensor(x1, device=other.device, dtype=kind or dtypes.from_py(x1)), x2
    raise TypeError(f"{what}: a {type(x1).__name__} beside a tensor of {other.dtype.name}")


def _higher(number: complex, dtype: DType) -> bool:
    """Whether a Python number is of a higher kind than a dtype."""
    if isinstance(number, int):
        return dtype.kind == "bool"
    return isinstance(number, float) and dtype.kind in ("bool", "int", "uint")


def whole(x: Tensor) -> Tensor:
    """Positions and counts in the namespace's default integers."""
    return x.cast(DEFAULT_INT)


def summed(x: Tensor, dtype: Any) -> DType:
    """The dtype of sums and products of these elements."""
    if dtype is not None:
        return to_dtype(dtype)
    if x.dtype.kind == "uint":
        return dtypes.uint64
    return DEFAULT_INT if x.dtype.kind in ("int", "bool") else x.dtype
