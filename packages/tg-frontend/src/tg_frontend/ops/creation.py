"""Tensors made from nothing: constants, ranges, patterns."""

from __future__ import annotations

from tg_dtype import ConstType, DType, can_safe_cast, dtypes
from tg_lazy import LazyBuffer
from tg_shape import Expr, prod, sint

from ..array.array import A, Array
from ..array.axes import iota
from ..array.base import DTypeLike
from ..array.casts import cast, to
from ..array.ingest import placed
from ..array.movement import stretch
from ..array.shapes import args_to_tuple
from ..host import coerce, transfer
from ..host.coerce import to_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def dtype_behind(sizes: tuple[Any, ...], dtype: DTypeLike | None) -> tuple[tuple[Any, ...], DTypeLike | None]:
    """Sizes and a dtype, which may stand behind them as numpy has it: ``zeros((2, 3), int)``."""
    if dtype is None and len(sizes) > 1 and coerce.is_dtype(sizes[-1]):
        return sizes[:-1], sizes[-1]
    return sizes, dtype


def device_or_dtype(device: Any, dtype: DTypeLike | None) -> tuple[str | None, DTypeLike | None]:
    """A device and a dtype, which may stand in its place as numpy has it: ``full((2, 3), 1, int)``."""
    return (None, device) if dtype is None and coerce.is_dtype(device) else (device, dtype)


def checked_shape(shape: tuple[Any, ...], what: str) -> tuple[sint, ...]:
    """Sizes given one by one or as a tuple.

    Raises:
      ValueError: if one is negative.
      TypeError: if one is no integer.
    """
    sizes = args_to_tuple(shape, what)
    if any((size if isinstance(size, int) else size.vmin) < 0 for size in sizes):
        raise ValueError(f"{what}: a size cannot be negative, in {sizes}")
    return sizes


def empty(
    cls: type[A],
    *shape: Any,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """Memory with undefined content.

    Raises:
      ValueError: if a size is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.empty(2, 3).shape
      (2, 3)
    """
    shape, dtype = dtype_behind(shape, dtype)
    sizes = checked_shape(shape, "empty")
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    return cls(LazyBuffer.empty(sizes, kind, placed(device)), requires_grad=requires_grad)


def full(
    cls: type[A],
    shape: Any,
    fill_value: ConstType | Expr | Array,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """One value everywhere; a number takes no memory until it is assigned to or made contiguous.

    Args:
      fill_value: a number, or a tensor of shape (), from which no gradient flows. It is computed where an integer
        dtype may not have it.

    Raises:
      ValueError: if a size is negative, the value has axes, or a NaN is to become an integer.
      OverflowError: if the dtype has no such integer.
      TypeError: if the value is no number.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.full((2, 2), 7)
      Tensor([[7, 7],
              [7, 7]])
    """
    device, dtype = device_or_dtype(device, dtype)
    sizes = checked_shape(tuple(shape) if isinstance(shape, (tuple, list)) else (shape,), "full")
    if isinstance(fill_value, Expr):
        value = cls(fill_value, device=device, dtype=dtype)
        out = stretch(value.reshape((1,) * len(sizes)), sizes)
        return as_leaf(out, requires_grad)
    if isinstance(fill_value, Array):
        if fill_value.shape != ():
            raise ValueError(f"full: the value is one number, got a tensor of shape {fill_value.shape}")
        wanted = fill_value.dtype if dtype is None else to_dtype(dtype)
        if wanted.kind in ("int", "uint") and not can_safe_cast(fill_value.dtype, wanted):
            return full(cls, sizes, fill_value.item(), device, wanted, requires_grad)
        one: A = cast(fill_value, wanted)  # type: ignore[assignment]
        copies = stretch(to(one, placed(device)).reshape((1,) * len(sizes)), sizes).contiguous()
        return as_leaf(copies, requires_grad)
    if transfer.is_array(fill_value) and getattr(fill_value, "ndim", 1) == 0:
        fill_value = fill_value.item()  # type: ignore[union-attr]
    if not isinstance(fill_value, (bool, int, float)):
        raise TypeError(f"full: the value is a {type(fill_value).__name__}; it must be bool, int or float")
    kind = to_dtype(dtype) if dtype is not None else coerce.dtype_of(fill_value)
    coerce.check_fits(fill_value, kind, "full")
    return cls(LazyBuffer.const(fill_value, kind, sizes, placed(device)), requires_grad=requires_grad)


def _filled(
    cls: type[A],
    shape: tuple[sint, ...],
    value: int,
    device: str | None,
    dtype: DTypeLike | None,
    requires_grad: bool | None,
) -> A:
    """As :meth:`full`, of a number that every dtype has."""
    kind = to_dtype(dtypes.default_float if dtype is None else dtype)
    return cls(LazyBuffer.const(value, kind, shape, placed(device)), requires_grad=requires_grad)


def scalar_tensor(
    cls: type[A], s: ConstType, *, dtype: DTypeLike | None = None, device: str | None = None,
    requires_grad: bool | None = None,
) -> A:  # fmt: skip
    """One number, shape (): ``dtypes.default_float`` unless another dtype is given, whatever kind of number it is.

    Raises:
      OverflowError: if the dtype has no such integer.
      TypeError: if it is no number.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.scalar_tensor(3), Tensor.scalar_tensor(3, dtype="int32")
      (Tensor(3.), Tensor(3))
    """
    return full(cls, (), s, device, dtype if dtype is not None else dtypes.default_float, requires_grad)


def zeros(
    cls: type[A],
    *shape: Any,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """Zeros.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(2, 2)
      Tensor([[0., 0.],
              [0., 0.]])
    """
    shape, dtype = dtype_behind(shape, dtype)
    return _filled(cls, checked_shape(shape, "zeros"), 0, device, dtype, requires_grad)


def ones(
    cls: type[A],
    *shape: Any,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """Ones.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.ones(3, dtype="int32")
      Tensor([1, 1, 1])
    """
    shape, dtype = dtype_behind(shape, dtype)
    return _filled(cls, checked_shape(shape, "ones"), 1, device, dtype, requires_grad)


def as_leaf(x: A, requires_grad: bool | None) -> A:
    """This tensor, made by this module, as if it had been given: what it was computed from does not matter."""
    out = x._wrap(x.lazydata, None)
    return out if requires_grad is None else out.requires_grad_(requires_grad)


def _triangle_indices(
    cls: type[A], row: int, col: int | None, inside: Callable[[int, int], bool], device: str | None, what: str
) -> A:
    rows, columns = checked_shape((row, row if col is None else col), what)
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise TypeError(f"{what}: sizes are numbers, got {rows} and {columns}")
    places = [(i, j) for i in range(rows) for j in range(columns) if inside(i, j)]
    if not places:
        return zeros(cls, 2, 0, device=device, dtype=dtypes.int32)
    return cls([list(one) for one in zip(*places, strict=True)], device=device, dtype=dtypes.int32)


def tril_indices(
    cls: type[A], row: int, col: int | None = None, offset: int = 0, device: str | None = None,
    dtype: DTypeLike | None = None,
) -> A:  # fmt: skip
    """The rows and columns of the elements of a matrix's lower triangle, row by row: shape (2, n), int32 by default.

    Args:
      row: how many rows the matrix has.
      col: how many columns; as many, if it is not given.
      offset: the last diagonal of the triangle.

    Raises:
      ValueError: if a size is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.tril_indices(2).tolist()
      [[0, 1, 1], [0, 0, 1]]
    """
    return _triangle_indices(cls, row, col, lambda i, j: j <= i + offset, device, "tril_indices").cast(
        dtypes.int32 if dtype is None else to_dtype(dtype)
    )


def triu_indices(
    cls: type[A], row: int, col: int | None = None, offset: int = 0, device: str | None = None,
    dtype: DTypeLike | None = None,
) -> A:  # fmt: skip
    """The rows and columns of the elements of a matrix's upper triangle, row by row: shape (2, n), int32 by default.

    Args:
      row: how many rows the matrix has.
      col: how many columns; as many, if it is not given.
      offset: the first diagonal of the triangle.

    Raises:
      ValueError: if a size is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.triu_indices(2).tolist()
      [[0, 0, 1], [0, 1, 1]]
    """
    return _triangle_indices(cls, row, col, lambda i, j: j >= i + offset, device, "triu_indices").cast(
        dtypes.int32 if dtype is None else to_dtype(dtype)
    )


def eye(
    cls: type[A],
    n: int,
    m: int | None = None,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
    *,
    k: int = 0,
) -> A:
    """Ones on a diagonal of an n x m (n x n) matrix of zeros.

    Args:
      k: how far the diagonal is above the main one; below it if negative.

    Raises:
      ValueError: if a size is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.eye(2, 3)
      Tensor([[1., 0., 0.],
              [0., 1., 0.]])
    """
    rows, columns = checked_shape((n, n if m is None else m), "eye")
    name = placed(device)
    i, j = iota(cls, rows, dtypes.int32, name), iota(cls, columns, dtypes.int32, name)
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    out = (i.unsqueeze(1) + k).eq(j).cast(kind)
    return as_leaf(out, requires_grad)


def placed_like(x: A, device: str | None, dtype: DTypeLike | None) -> tuple[str, DType]:
    """The device and the dtype of a tensor, unless others are given."""
    device, dtype = device_or_dtype(device, dtype)
    return x.device if device is None else device, x.dtype if dtype is None else to_dtype(dtype)


def full_like(
    x: A, fill_value: ConstType, device: str | None = None, dtype: DTypeLike | None = None,
    requires_grad: bool | None = None, *, shape: Any = None,
) -> A:  # fmt: skip
    """One value in this tensor's shape, dtype and device, unless others are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).full_like(7)
      Tensor([7, 7])
    """
    name, kind = placed_like(x, device, dtype)
    return full(type(x), x.shape if shape is None else shape, fill_value, name, kind, requires_grad)


def const_like(x: A, value: ConstType) -> A:
    """One value in this tensor's shape, dtype and device.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).const_like(7)
      Tensor([7., 7.])
    """
    return full_like(x, value)


def zeros_like(
    x: A, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None, *,
    shape: Any = None,
) -> A:  # fmt: skip
    """Zeros in this tensor's shape, dtype and device, unless others are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).zeros_like()
      Tensor([0, 0])
    """
    return full_like(x, 0, device, dtype, requires_grad, shape=shape)


def ones_like(
    x: A, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None, *,
    shape: Any = None,
) -> A:  # fmt: skip
    """Ones in this tensor's shape, dtype and device, unless others are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).ones_like()
      Tensor([1, 1])
    """
    return full_like(x, 1, device, dtype, requires_grad, shape=shape)


def empty_like(
    x: A, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None, *,
    shape: Any = None,
) -> A:  # fmt: skip
    """Undefined content in this tensor's shape, dtype and device, unless others are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).empty_like().shape
      (1, 2)
    """
    name, kind = placed_like(x, device, dtype)
    sizes = x.shape if shape is None else checked_shape((shape,), "empty_like")
    return empty(type(x), *sizes, device=name, dtype=kind, requires_grad=requires_grad)


def meshgrid(x: A, *others: A, indexing: str = "ij", sparse: bool = False) -> tuple[A, ...]:
    """The grid of vectors: one tensor a vector, of shape (len a, len b, …), constant along the other axes.

    Also ``Tensor.meshgrid([a, b])``.

    Args:
      sparse: leave the other axes at the size 1.

    Raises:
      ValueError: if ``indexing`` is neither "ij" nor "xy", or an operand is no vector.

    Example:
      >>> from tg_frontend import Tensor
      >>> rows, columns = Tensor([1, 2]).meshgrid(Tensor([3, 4, 5]))
      >>> rows
      Tensor([[1, 1, 1],
              [2, 2, 2]])
      >>> columns
      Tensor([[3, 4, 5],
              [3, 4, 5]])
    """
    if indexing not in ("ij", "xy"):
        raise ValueError(f"meshgrid: indexing {indexing!r}; there are 'ij' and 'xy'")
    vectors: list[A] = [*x, *others] if isinstance(x, (list, tuple)) else [x, *others]
    if any(vector.ndim > 1 for vector in vectors):
        raise ValueError(f"meshgrid: vectors are wanted, got shapes {[v.shape for v in vectors]}")
    sizes = tuple(prod(vector.shape) for vector in vectors)
    places = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        places[:2] = [1, 0]
    shape = tuple(sizes[places.index(axis)] for axis in range(len(vectors)))
    grid = tuple(
        vector.reshape(tuple(-1 if axis == place else 1 for axis in range(len(vectors))))
        for vector, place in zip(vectors, places, strict=True)
    )
    return grid if sparse else tuple(one.expand(shape) for one in grid)
