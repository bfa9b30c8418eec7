"""Tensors one after another, and taken apart."""

from __future__ import annotations

from tg_dtype import least_upper_dtype

from ..autograd.functions import Cat
from ..host.coerce import to_dtype
from .base import B, Base, DTypeLike
from .casts import cast
from .computing import copied
from .ingest import value_of
from .movement import reshape, shrink, unsqueeze
from .operands import as_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeVar

    D = TypeVar("D", int, int | None)


def _listed(tensors: Any, others: Any, dim: D, what: str) -> tuple[Any, D | int]:
    """The tensors of ``Tensor.cat([a, b])``, where the list came as ``self``, and the axis, which may follow it.

    Raises:
      ValueError: if it is empty, or more than the list and an axis was given.
      TypeError: if it holds something else.
    """
    if len(others) == 1 and (isinstance(others[0], int) or (others[0] is None and what == "cat")):
        others, dim = (), others[0]
    if not tensors or others:
        raise ValueError(f"{what}: one list of at least one tensor is wanted, and an axis")
    for tensor in tensors:
        if not isinstance(tensor, Base):
            raise TypeError(f"{what}: the list holds a {type(tensor).__name__}, which is no tensor")
    return tensors, dim


def cat(x: B, *others: Any, dim: int | None = 0, dtype: DTypeLike | None = None) -> B:
    """This tensor and ``others`` one after another along an axis. Also ``Tensor.cat(a, b, c, dim=0)``, or a list.

    Tensors of shape (0,) are left out beside those of other shapes, and alone join along any axis. With ``dim=None``
    all elements are put in one axis, as in numpy.

    After a list the axis may follow without its name: ``Tensor.cat([a, b], 1)``.

    Args:
      dtype: what the elements are cast to; where they all meet if None.

    Raises:
      ValueError: if sizes other than that of the axis, or devices, differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).cat(Tensor([3]), Tensor([4, 5]))
      Tensor([1, 2, 3, 4, 5])
    """
    if isinstance(x, (list, tuple)):
        tensors, dim = _listed(x, others, dim, "cat")
        out: B = cat(tensors[0], *tensors[1:], dim=dim, dtype=dtype)
        return out
    parts: list[B] = [x, *(as_tensor(x, other, "cat") for other in others)]
    if dim is None:
        dim, parts = 0, [reshape(part, (-1,)) for part in parts]
        x = parts[0]
    full = [part for part in parts if part.shape != (0,)] or parts[:1]
    if full[0].ndim != 1 and len(full) < len(parts):  # as PyTorch has it, nothing joins with tensors of any shape
        x, parts = full[0], [cast(part, least_upper_dtype(*(one.dtype for one in parts))) for part in full]
    nothing = all(part.shape == (0,) for part in parts)  # which joins along any axis there
    axis = 0 if nothing and isinstance(dim, int) else x._axis(dim, "cat")
    for part in parts:
        same = part.ndim == x.ndim and all(
            i == axis or a == b for i, (a, b) in enumerate(zip(part.shape, x.shape, strict=True))
        )
        if not same or x.ndim == 0:
            shapes = " and ".join(str(p.shape) for p in parts)
            raise ValueError(f"cat: the shapes {shapes} do not join along axis {dim}")
        if part.device != x.device:
            raise ValueError(f"cat: tensors on {x.device} and {part.device}; use .to()")
    kind = least_upper_dtype(*(part.dtype for part in parts)) if dtype is None else to_dtype(dtype)
    first, *rest = (cast(part, kind) for part in parts)
    return first._apply(Cat(axis), *rest) if rest else copied(first)


def stack(x: B, *others: Any, dim: int = 0, dtype: DTypeLike | None = None) -> B:
    """Tensors of one shape along a new axis. Also ``Tensor.stack(a, b, c, dim=0)``, or a list.

    After a list the axis may follow without its name: ``Tensor.stack([a, b], -1)``. ``dtype`` is as of :meth:`cat`.

    Raises:
      ValueError: if the shapes or devices differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.stack(Tensor([1, 2]), Tensor([3, 4]), dim=1)
      Tensor([[1, 3],
              [2, 4]])
    """
    if isinstance(x, (list, tuple)):
        tensors, dim = _listed(x, others, dim, "stack")
        out: B = stack(tensors[0], *tensors[1:], dim=dim, dtype=dtype)
        return out
    for other in others:
        if as_tensor(x, other, "stack").shape != x.shape:
            raise ValueError(f"stack: the shapes {x.shape} and {other.shape} differ")
    axis = x._axis(dim, "stack", extra=1)
    return cat(unsqueeze(x, axis), *(unsqueeze(other, axis) for other in others), dim=axis, dtype=dtype)


def split(x: B, sizes: int | Sequence[int], dim: int = 0) -> tuple[B, ...]:
    """Parts of the given sizes along an axis; an integer gives parts of that size, the last one perhaps smaller.

    Raises:
      ValueError: if the sizes do not add up to the axis.

    Example:
      >>> from tg_frontend import Tensor
      >>> [part.tolist() for part in Tensor([1, 2, 3, 4, 5]).split(2)]
      [[1, 2], [3, 4], [5]]
    """
    axis = x._axis(dim, "split")
    if x.ndim == 0:
        raise ValueError("split: a tensor of shape () has no axis to split")
    length = value_of(x.shape[axis], x.shape)
    if isinstance(sizes, int):
        if sizes <= 0:
            raise ValueError(f"split: parts of {sizes} elements")
        sizes = [min(sizes, length - start) for start in range(0, max(length, 1), sizes)]
    if sum(sizes) != length or any(s < 0 for s in sizes):
        raise ValueError(f"split: {tuple(sizes)} do not add up to axis {dim} of shape {x.shape}")
    parts, start = [], 0
    for size in sizes:
        parts.append(shrink(x, [(start, start + size) if i == axis else None for i in range(x.ndim)]))
        start += size
    return tuple(parts)


def chunk(x: B, chunks: int, dim: int = 0) -> list[B]:
    """At most ``chunks`` parts of equal size along an axis, the last one perhaps smaller; of an empty axis, so many.

    Example:
      >>> from tg_frontend import Tensor
      >>> [part.tolist() for part in Tensor([1, 2, 3, 4, 5]).chunk(2)]
      [[1, 2, 3], [4, 5]]
    """
    axis = x._axis(dim, "chunk")
    if x.ndim == 0:
        raise ValueError("chunk: a tensor of shape () has no axis to split")
    if not isinstance(chunks, int) or chunks <= 0:
        raise ValueError(f"chunk: {chunks!r} is not a number of parts")
    length = value_of(x.shape[axis], x.shape)
    return list(split(x, -(-length // chunks) if length else [0] * chunks, dim))


def unbind(x: B, dim: int = 0) -> tuple[B, ...]:
    """The parts along an axis, without it, as views: ``x, y = t.unbind(-1)``.

    Raises:
      ValueError: for a tensor of shape (), which has no axis.

    Example:
      >>> from tg_frontend import Tensor
      >>> x, y = Tensor([[1, 2], [3, 4]]).unbind(1)
      >>> x, y
      (Tensor([1, 3]), Tensor([2, 4]))
    """
    axis = x._axis(dim, "unbind")
    if x.ndim == 0:
        raise ValueError("unbind: a tensor of shape () has no axis to take apart")
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    length = value_of(x.shape[axis], x.shape)
    parts = [shrink(x, [(n, n + 1) if i == axis else None for i in range(x.ndim)]) for n in range(length)]
    return tuple(reshape(part, shape) for part in parts)
