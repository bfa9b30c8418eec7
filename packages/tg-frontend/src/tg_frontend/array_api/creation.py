"""Tensors made of numbers, ranges and other arrays."""

from __future__ import annotations

from tg_dtype import dtypes

from ..host.coerce import dtype_of, to_dtype
from ..tensor import Tensor
from .operands import DEFAULT_INT, tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from tg_dtype import DType


def _default(value: Any) -> DType:
    """The namespace's dtype of a Python number."""
    if isinstance(value, complex):
        return dtypes.complex128 if dtypes.default_float is dtypes.float64 else dtypes.complex64
    kind = dtype_of(value)
    return DEFAULT_INT if kind.kind == "int" else kind


def asarray(obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A number, nested lists, a buffer or an array as a tensor; a tensor is taken as it is unless ``copy`` is True.

    Args:
      copy: True always copies, False never does.

    Raises:
      ValueError: if a copy is needed and ``copy`` is False.
    """
    kind = None if dtype is None else to_dtype(dtype)
    if isinstance(obj, Tensor):
        out = obj if device is None else obj.to(device)
        out = out if kind is None else out.cast(kind)
        if copy is False and out is not obj:
            raise ValueError(f"asarray: {obj.dtype.name} on {obj.device} must be copied, and copy=False")
        return out.clone() if copy else out
    if copy is False:
        if not hasattr(obj, "__dlpack__"):
            raise ValueError(f"asarray: a {type(obj).__name__} must be copied, and copy=False")
        return Tensor.from_dlpack(obj, device, False)
    out = Tensor(obj, device=device, dtype=kind)
    plain = isinstance(obj, (bool, int, float, complex, list, tuple, range))
    if kind is None and plain and out.dtype is dtypes.default_int and not _holds_arrays(obj):
        return out.cast(DEFAULT_INT)
    return out


def _holds_arrays(obj: Any) -> bool:
    """Whether nested lists begin with something that has a dtype of its own."""
    while isinstance(obj, (list, tuple)) and obj:
        obj = obj[0]
    return hasattr(obj, "dtype")


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: str | None = None
) -> Tensor:
    """Numbers from ``start`` (0 if it is the only one) to below ``stop``."""
    if dtype is None and all(isinstance(part, int) for part in (start, step, 0 if stop is None else stop)):
        dtype = DEFAULT_INT
    return Tensor.arange(start, stop, step, device=device, dtype=dtype)


def linspace(
    start: complex, stop: complex, /, num: int, *, dtype: Any = None, device: str | None = None, endpoint: bool = True
) -> Tensor:
    """``num`` numbers at equal distances, ``stop`` the last of them or the one after it."""
    kind = dtypes.default_float if dtype is None else to_dtype(dtype)
    if endpoint or num == 0:
        return Tensor.linspace(start, stop, num, device=device, dtype=kind)
    return Tensor.linspace(start, stop, num + 1, device=device, dtype=kind)[:-1]


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: str | None = None
) -> Tensor:
    """Ones on the diagonal ``k``, zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    kind = dtypes.default_float if dtype is None else to_dtype(dtype)
    rows = Tensor.arange(n_rows, device=device).reshape(n_rows, 1)
    k = max(-n_rows, min(k, columns))
    return (rows + k).eq(Tensor.arange(columns, device=device).reshape(1, columns)).cast(kind)


def empty(shape: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of no particular elements."""
    return Tensor.empty(shape, device=device, dtype=dtype)


def zeros(shape: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Zeros."""
    return Tensor.zeros(shape, device=device, dtype=dtype)


def ones(shape: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Ones."""
    return Tensor.ones(shape, device=device, dtype=dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """One number, everywhere."""
    return Tensor.full(shape, fill_value, device=device, dtype=_default(fill_value) if dtype is None else dtype)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """As :func:`empty`, of the shape, dtype and device of a tensor."""
    return empty(x.shape, dtype=x.dtype if dtype is None else dtype, device=device or x.device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """As :func:`zeros`, of the shape, dtype and device of a tensor."""
    return zeros(x.shape, dtype=x.dtype if dtype is None else dtype, device=device or x.device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """As :func:`ones`, of the shape, dtype and device of a tensor."""
    return ones(x.shape, dtype=x.dtype if dtype is None else dtype, device=device or x.device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """As :func:`full`, of the shape, dtype and device of a tensor."""
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device or x.device)


def from_dlpack(x: object, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """The elements of another library's array, in place where that can be: see :meth:`Tensor.from_dlpack`."""
    return Tensor.from_dlpack(x, device, copy)


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> list[Tensor]:
    """Coordinates of a grid of these axes.

    Raises:
      ValueError: if the dtypes differ.
    """
    if len({x.dtype for x in arrays}) > 1:
        raise ValueError(f"meshgrid: axes of one dtype are wanted, got {[x.dtype.name for x in arrays]}")
    return list(Tensor.meshgrid(*arrays, indexing=indexing)) if arrays else []


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements on and below the diagonal ``k``, zeros above."""
    return tensor(x, "tril").tril(k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements on and above the diagonal ``k``, zeros below."""
    return tensor(x, "triu").triu(k)
