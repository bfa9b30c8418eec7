"""Tensors made from nothing: constants, ranges, patterns."""

from __future__ import annotations

import math

from tg_dtype import ConstType, DType, dtypes, sum_acc_dtype
from tg_lazy import LazyBuffer
from tg_shape import Expr, ceildiv, prod, sint

from ..array.array import A, Array
from ..array.axes import iota
from ..array.base import DTypeLike
from ..array.ingest import placed
from ..array.movement import stretch
from ..array.shapes import args_to_tuple
from ..host import coerce, transfer
from ..host.coerce import to_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


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
    sizes = checked_shape(shape, "empty")
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    return cls(LazyBuffer.empty(sizes, kind, placed(device)), requires_grad=requires_grad)


def full(
    cls: type[A],
    shape: Any,
    fill_value: ConstType | Expr,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """One value everywhere; it takes no memory until it is assigned to or made contiguous.

    Raises:
      ValueError: if a size is negative.
      TypeError: if the value is no number.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.full((2, 2), 7)
      Tensor([[7, 7],
              [7, 7]])
    """
    sizes = checked_shape(tuple(shape) if isinstance(shape, (tuple, list)) else (shape,), "full")
    if isinstance(fill_value, Expr):
        value = cls(fill_value, device=device, dtype=dtype)
        out = stretch(value.reshape((1,) * len(sizes)), sizes)
        return _as_leaf(out, requires_grad)
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
    return _filled(cls, checked_shape(shape, "ones"), 1, device, dtype, requires_grad)


def _as_leaf(x: A, requires_grad: bool | None) -> A:
    """This tensor, made by this module, as if it had been given: what it was computed from does not matter."""
    out = x._wrap(x.lazydata, None)
    return out if requires_grad is None else out.requires_grad_(requires_grad)


_EXACT_IN_FLOAT32 = 1 << 24


def arange(
    cls: type[A],
    start: Any,
    stop: Any = None,
    step: Any = 1,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """``start``, ``start + step``, … below ``stop`` (above it for a negative step). One bound means 0 to it.

    It takes no memory. Integers beyond ``dtypes.default_int`` are int64.

    Raises:
      ValueError: if the step is 0, or something is not finite.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.arange(5, 0, -2).tolist()
      [5, 3, 1]
    """
    first, last = (0, start) if stop is None else (start, stop)
    for value in (first, last, step):
        if not isinstance(value, (int, float, Expr)) or isinstance(value, bool):
            raise TypeError(f"arange: bounds and step are numbers, got {value!r} of type {type(value).__name__}")
    if step == 0:
        raise ValueError("arange: the step is 0")
    if any(isinstance(value, float) and not math.isfinite(value) for value in (first, last, step)):
        raise ValueError(f"arange: bounds and step are finite, got {first}, {last} and {step}")
    floats = any(isinstance(value, float) for value in (first, last, step))
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float if floats else dtypes.default_int
    if floats:
        count: sint = max(0, math.ceil((last - first) / step))
    else:
        count = ceildiv(last - first, step)
        count = max(0, count) if isinstance(count, int) else count
    name = placed(device)
    if not floats and isinstance(first, int) and kind.kind != "float":
        ends = (first, first + (count - 1) * step) if isinstance(count, int) and count else ()
        if dtype is None and any(not dtypes.min(kind) <= value <= dtypes.max(kind) for value in ends):
            kind = dtypes.int64
        for value in ends:
            if kind.kind != "bool" and not dtypes.min(kind) <= value <= dtypes.max(kind):
                raise OverflowError(f"arange: {value} is no {kind.name}")
    counting = dtypes.int64 if floats or kind.itemsize > 4 else dtypes.int32
    out = iota(cls, count, counting, name)
    if kind.kind == "float":
        # Computed in at least 32 bits, rounded once.
        wide = sum_acc_dtype(kind)
        out = out.cast(wide)
    if step != 1:
        out = out.mul(step)
    if not (isinstance(first, (int, float)) and first == 0):
        out = out.add(first)
    out = out.cast(kind)
    return _as_leaf(out, requires_grad)


def linspace(
    cls: type[A],
    start: Any,
    stop: Any,
    steps: int,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """``steps`` values in equal distances from ``start`` to ``stop``, both included.

    Args:
      start: a number, or a tensor, and so is ``stop``: the result has the axis of steps, and then those of the bounds.

    Raises:
      TypeError: if a bound is no number.
      ValueError: if ``steps`` is negative, or the dtype is bool.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.linspace(0, 1, 5)
      Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if not isinstance(steps, int) or steps < 0:
        raise ValueError(f"linspace: {steps!r} is not a number of steps")
    if isinstance(start, Array) or isinstance(stop, Array):
        return _between(cls, start, stop, steps, device, dtype, requires_grad)
    for value in (start, stop):
        if not isinstance(value, (int, float)):
            raise TypeError(f"linspace: bounds are numbers, got {value!r} of type {type(value).__name__}")
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    if kind.kind == "bool":
        raise ValueError("linspace: steps between two bools are not bools; give another dtype")
    wide = sum_acc_dtype(kind) if kind.kind == "float" else dtypes.default_float
    if kind.kind != "float" and max(abs(start), abs(stop)) >= _EXACT_IN_FLOAT32:
        wide = dtypes.float64
    i = iota(cls, steps, dtypes.int32, placed(device)).cast(wide)
    step = (stop - start) / max(steps - 1, 1)
    # From the nearer end, so that either is exact.
    out = i * step + start if steps < 2 else (i < steps // 2).where(i * step + start, (i - (steps - 1)) * step + stop)
    return _as_leaf(out.cast(kind), requires_grad)


def _between(
    cls: type[A], start: Any, stop: Any, steps: int, device: str | None, dtype: DTypeLike | None,
    requires_grad: bool | None,
) -> A:  # fmt: skip
    """As :func:`linspace`, where a bound is a tensor: one new axis in front of the bounds' own."""
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    for bound in (start, stop):
        if isinstance(bound, complex) or (isinstance(bound, Array) and bound.dtype.kind == "complex"):
            raise TypeError(f"linspace: complex bounds of {kind.name}")
    given = next(bound for bound in (start, stop) if isinstance(bound, Array))
    name = placed(device) if device is not None else given.device
    wide = sum_acc_dtype(kind) if kind.kind == "float" else dtypes.float64
    low, high = (
        (bound.detach().to(name) if isinstance(bound, Array) else cls(bound, device=name)).cast(wide)
        for bound in (start, stop)
    )
    step = (high - low) / max(steps - 1, 1)
    i = iota(cls, steps, dtypes.int32, name).cast(wide).reshape((steps, *(1 for _ in step.shape)))
    out = i * step + low if steps < 2 else (i < steps // 2).where(i * step + low, (i - (steps - 1)) * step + high)
    return _as_leaf(out.cast(kind), requires_grad)


def logspace(
    cls: type[A],
    start: Any,
    stop: Any,
    steps: int,
    base: float = 10.0,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """Powers of ``base``, with exponents in equal distances from ``start`` to ``stop``, both included.

    Raises:
      TypeError: if a bound is no number.
      ValueError: if ``steps`` is negative, or the base is.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.logspace(0, 2, 3)
      Tensor([  1.,  10., 100.])
    """
    if base < 0:
        raise ValueError(f"logspace: powers of {base!r} with broken exponents")
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    exponents = linspace(cls, start, stop, steps, device, dtypes.float64 if kind == dtypes.float64 else dtypes.float32)
    powers = full(cls, (), base, exponents.device, exponents.dtype) ** exponents
    return _as_leaf(powers.cast(kind), requires_grad)


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
) -> A:
    """Ones on the diagonal of an n x m (n x n) matrix of zeros.

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
    out = i.unsqueeze(1).eq(j).cast(kind)
    return _as_leaf(out, requires_grad)


def placed_like(x: A, device: str | None, dtype: DTypeLike | None) -> tuple[str, DType]:
    """The device and the dtype of a tensor, unless others are given."""
    return x.device if device is None else device, x.dtype if dtype is None else to_dtype(dtype)


def full_like(
    x: A, fill_value: ConstType, device: str | None = None, dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:  # fmt: skip
    """One value in this tensor's shape, dtype and device, unless others are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).full_like(7)
      Tensor([7, 7])
    """
    name, kind = placed_like(x, device, dtype)
    return full(type(x), x.shape, fill_value, name, kind, requires_grad)


def const_like(x: A, value: ConstType) -> A:
    """One value in this tensor's shape, dtype and device.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).const_like(7)
      Tensor([7., 7.])
    """
    return full_like(x, value)


def zeros_like(
    x: A, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
) -> A:
    """Zeros in this tensor's shape, dtype and device, unless others are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).zeros_like()
      Tensor([0, 0])
    """
    return full_like(x, 0, device, dtype, requires_grad)


def ones_like(
    x: A, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
) -> A:
    """Ones in this tensor's shape, dtype and device, unless others are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).ones_like()
      Tensor([1, 1])
    """
    return full_like(x, 1, device, dtype, requires_grad)


def empty_like(
    x: A, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
) -> A:
    """Undefined content in this tensor's shape, dtype and device, unless others are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).empty_like().shape
      (1, 2)
    """
    name, kind = placed_like(x, device, dtype)
    return empty(type(x), *x.shape, device=name, dtype=kind, requires_grad=requires_grad)


def meshgrid(x: A, *others: A, indexing: str = "ij") -> tuple[A, ...]:
    """The grid of vectors: one tensor a vector, of shape (len a, len b, …), constant along the other axes.

    Also ``Tensor.meshgrid([a, b])``.

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
    return tuple(
        vector.reshape(tuple(-1 if axis == place else 1 for axis in range(len(vectors)))).expand(shape)
        for vector, place in zip(vectors, places, strict=True)
    )
