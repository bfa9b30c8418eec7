"""Tables of which rows are looked up, and their row-sparse gradients."""

from __future__ import annotations

from tg_dtype import DType, dtypes
from tg_lazy import Ops
from tg_lazy.cost import limits_of, update_sorts
from tg_shape import prod

from ..array.array import A, Array
from ..array.writing import update_rows
from ..autograd.functions import Lookup, RowSparse
from .creation import full, zeros
from .indexing import flat_index, getitem
from .row_order import ordered
from .scan import cumsum
from .updating import arrange, update


def embedding(x: A, index: A, padding_idx: int | None = None, sparse: bool = False) -> A:
    """Rows of this table. Negative indices count from the end; a row that is out of range reads as zeros.

    With ``sparse``, the gradient of the table holds the rows that were looked up and no others, where ``backward``
    leaves it in ``grad``. See :attr:`is_sparse`.

    Args:
      index: integers, of any shape.
      padding_idx: a row that gets no gradient.
      sparse: whether the gradient is row-sparse. If this is no leaf, or the gradient is to be differentiated again, a
        dense one is computed.

    Returns:
      Shape (*shape of the index, *shape of a row).

    Raises:
      TypeError: if the index holds no integers.
      ValueError: if this tensor has no rows, the index is on another device, or there is no row ``padding_idx``.

    Example:
      >>> from tg_frontend import Tensor
      >>> table = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
      >>> _ = table.embedding(Tensor([2, 0, 2]), sparse=True).sum().backward()
      >>> table.grad.coalesce()
      Tensor(indices=[0, 2],
             values=[[1., 1.],
                     [2., 2.]], shape=(3, 2))
    """
    if not isinstance(index, Array) or not dtypes.is_int(index.dtype):
        kind = f"tensor of {index.dtype.name}" if isinstance(index, Array) else type(index).__name__
        raise TypeError(f"embedding: indices are integers, got a {kind}")
    if x.ndim == 0:
        raise ValueError("embedding: a tensor of shape () has no rows")
    if x.shape[0] == 0 and index.numel() != 0:
        raise IndexError(f"embedding: an index of shape {index.shape} into a table of shape {x.shape}, which is empty")
    if index.device != x.device:
        raise ValueError(f"embedding: an index on {index.device} for a table on {x.device}; use .to()")
    if padding_idx is not None:
        padding_idx = padding_row(padding_idx, x.shape[0], "embedding")
    if padding_idx is None and not sparse:
        return getitem(x, index)
    at, _ = flat_index([index.detach()], [x.shape[0]])
    found = x._apply(Lookup(padding_idx, sparse), at.reshape((prod(index.shape),)))
    return found.reshape((*index.shape, *x.shape[1:]))


def padding_row(padding_idx: object, rows: object, what: str) -> int:
    """The number of a row, counted from the start.

    Raises:
      TypeError: if it is no integer.
      ValueError: if there is no such row.
    """
    if not isinstance(padding_idx, int) or isinstance(padding_idx, bool):
        raise TypeError(f"{what}: padding_idx is an integer, got {padding_idx!r}")
    if not isinstance(rows, int):
        if padding_idx >= 0:
            return padding_idx
        raise ValueError(f"{what}: padding_idx {padding_idx} of a table of symbolic size")
    if not -rows <= padding_idx < rows:
        raise ValueError(f"{what}: padding_idx {padding_idx} is no row of a table of {rows}")
    return padding_idx % rows


def indices(x: A) -> A:
    """Which rows a row-sparse tensor holds, shape (m,); -1 where a lookup was out of range.

    What is written to them does not show in the tensor.

    Raises:
      TypeError: if the tensor is dense.

    Example:
      >>> from tg_frontend import Tensor
      >>> table = Tensor.zeros(5, 2, requires_grad=True)
      >>> _ = table.embedding(Tensor([3, 1, 3]), sparse=True).sum().backward()
      >>> table.grad.indices()
      Tensor([3, 1, 3])
    """
    return x._value(_rows_of(x, "indices").index)


def values(x: A) -> A:
    """The rows that a row-sparse tensor holds, shape (m, *shape of a row), in the order of :meth:`indices`.

    What is written to them does not show in the tensor.

    Raises:
      TypeError: if the tensor is dense.

    Example:
      >>> from tg_frontend import Tensor
      >>> table = Tensor.zeros(5, 2, requires_grad=True)
      >>> _ = table.embedding(Tensor([3, 1]), sparse=True).sum().backward()
      >>> table.grad.values().tolist()
      [[1.0, 1.0], [1.0, 1.0]]
    """
    return x._value(_rows_of(x, "values").values)


def is_coalesced(x: A) -> bool:
    """Whether a row-sparse tensor is known to hold each row once, in order.

    Raises:
      TypeError: if the tensor is dense.

    Example:
      >>> from tg_frontend import Tensor
      >>> table = Tensor.zeros(5, 2, requires_grad=True)
      >>> _ = table.embedding(Tensor([3, 1]), sparse=True).sum().backward()
      >>> table.grad.is_coalesced(), table.grad.coalesce().is_coalesced()
      (False, True)
    """
    return _rows_of(x, "is_coalesced").coalesced


def coalesce(x: A) -> A:
    """The same row-sparse tensor with each row once, in order. Values for one row are added up in their order.

    The indices are computed at once, since how many there are depends on them.

    Raises:
      TypeError: if the tensor is dense.

    Example:
      >>> from tg_frontend import Tensor
      >>> table = Tensor.zeros(5, 2, requires_grad=True)
      >>> _ = table.embedding(Tensor([3, 1, 3]), sparse=True).sum().backward()
      >>> table.grad.coalesce().indices()
      Tensor([1, 3])
    """
    rows = _rows_of(x, "coalesce")
    if rows.coalesced:
        return x
    wide = rows.dtype if rows.dtype.itemsize >= 4 else dtypes.float32
    index, sums = merged(x, wide)
    count = int((index >= 0).sum().item()) if index.shape != (0,) else 0
    kept = sums.shrink(((0, count), *(None for _ in x.shape[1:]))).cast(rows.dtype)
    first = index.shrink(((0, count),)).contiguous()
    return x._value(RowSparse(first.lazydata, kept.contiguous().lazydata, x.shape, True))


def to_dense(x: A) -> A:
    """All rows of a row-sparse tensor, in memory of their own; a dense tensor itself.

    Example:
      >>> from tg_frontend import Tensor
      >>> table = Tensor.zeros(3, 2, requires_grad=True)
      >>> _ = table.embedding(Tensor([2, 2]), sparse=True).sum().backward()
      >>> table.grad.to_dense().tolist()
      [[0.0, 0.0], [0.0, 0.0], [2.0, 2.0]]
    """
    rows = x._row_sparse()
    return x if rows is None else x._value(rows.dense())


def add_scaled(x: A, gradient: A, scale: A) -> None:
    """Adds the rows of a row-sparse gradient, times a number, to those of a table, in its memory; touches no others.

    Args:
      gradient: of the table's shape.
      scale: shape (1,), of the table's dtype, and at least float32: each row is rounded once.
    """
    rows, dtype = _rows_of(gradient, "add_scaled"), scale.dtype
    m = rows.index.shape[0]
    in_order = dtype is x.dtype and not (isinstance(m, int) and _merges(x, m))
    index, parts = (x._value(rows.index), x._value(rows.values)) if in_order else merged(gradient, dtype)
    step = (parts * scale).cast(x.dtype)
    update_rows(x, index.lazydata, step.lazydata, Ops.ADD, distinct=not in_order)


def _merges(x: A, m: int) -> bool:
    """Whether so many rows are sooner merged, and added side by side, than added one by one."""
    n, width = x.shape[0], prod(x.shape[1:])
    return isinstance(n, int) and isinstance(width, int) and update_sorts(m, n, 1, width, 1, limits_of(x.device))


def merged(x: A, dtype: DType) -> tuple[A, A]:
    """The rows that a row-sparse tensor holds, each once, in as many places as it holds rows: no size is computed.

    Args:
      dtype: that of the sums.

    Returns:
      The indices, which rise; -1 in the places that are left over, which come last. And the rows: values for one row
      are added up in their order.

    Raises:
      ValueError: if the number of rows is symbolic.
    """
    rows = _rows_of(x, "coalesce")
    index, values = x._value(rows.index), x._value(rows.values).cast(dtype)
    m = index.shape[0]
    if not isinstance(m, int):
        raise ValueError(f"coalesce: a symbolic number of rows, {m}")
    if m == 0 or rows.coalesced:
        return index, values
    keys = index.cast(_key_dtype(x.shape[0])).reshape((1, m)).contiguous()  # of -1 the largest
    order = ordered(keys).reshape((m,)).contiguous()
    sorted_ = getitem(index, order).contiguous()
    before = sorted_.pad(((1, 0),)).shrink(((0, m),))
    first = sorted_.ne(before).cast(dtypes.int32)
    slot = (cumsum(first, 0, dtype=dtypes.int32) - first.shrink(((0, 1),))).contiguous()
    sums = update(zeros(type(x), m, *x.shape[1:], device=x.device, dtype=dtype), arrange(slot, order), values)
    return update(full(type(x), (m,), -1, device=x.device, dtype=index.dtype), slot, sorted_, "write"), sums


def _key_dtype(rows: object) -> DType:
    """The narrowest unsigned integers that tell rows from one another and from none."""
    for dtype in (dtypes.uint8, dtypes.uint16, dtypes.uint32):
        if isinstance(rows, int) and rows <= dtypes.max(dtype):
            return dtype
    return dtypes.uint64


def _rows_of(x: A, what: str) -> RowSparse:
    rows = x._row_sparse()
    if rows is None:
        raise TypeError(f"{what}: a row-sparse tensor is wanted, this one of shape {x.shape} is dense")
    return rows
