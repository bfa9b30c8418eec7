"""Axes moved, named and added; shapes taken from other tensors."""

from __future__ import annotations

from ..array.array import A
from ..array.axes import axes_of
from ..array.movement import stretch
from ..array.operands import as_tensor
from ..array.shapes import args_to_tuple, broadcast_shape
from .repetition import repeat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Ints = int | Sequence[int]


def _listed(dims: Ints) -> tuple[int, ...]:
    return (dims,) if isinstance(dims, int) else tuple(dims)


def movedim(x: A, source: Ints, destination: Ints) -> A:
    """A view with axes at other positions; the others keep their order.

    Raises:
      ValueError: if the numbers of axes differ, or one is named twice.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(2, 3, 5).movedim(0, -1).shape
      (3, 5, 2)
    """
    start, end = _listed(source), _listed(destination)
    if len(start) != len(end):
        raise ValueError(f"movedim: {len(start)} axes to {len(end)} places")
    for named in (start, end):
        axes_of(x, named, "movedim")  # each at most once
    places = {x._axis(b, "movedim"): x._axis(a, "movedim") for a, b in zip(start, end, strict=True)}
    rest = iter(axis for axis in range(x.ndim) if axis not in places.values())
    return x.permute(*(places[axis] if axis in places else next(rest) for axis in range(x.ndim)))


def ravel(x: A) -> A:
    """All elements in one axis.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).ravel()
      Tensor([1, 2, 3, 4])
    """
    return x.flatten()


def narrow(x: A, dim: int, start: int, length: int) -> A:
    """A view of ``length`` positions along an axis, from ``start`` on; a negative start counts from the end.

    Raises:
      IndexError: if the axis is out of range.
      ValueError: if the axis has not so many positions there.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3, 4]).narrow(0, 1, 2)
      Tensor([2, 3])
    """
    axis = x._axis(dim, "narrow")
    if x.ndim == 0:
        raise ValueError("narrow: a tensor of shape () has no axis")
    size = x.shape[axis]
    begin = start + size if start < 0 else start
    if length < 0 or (isinstance(size, int) and not 0 <= begin <= begin + length <= size):
        raise ValueError(f"narrow: {length} positions from {start} along axis {dim} of shape {x.shape}")
    return x.shrink([(begin, begin + length) if i == axis else None for i in range(x.ndim)])


def select(x: A, dim: int, index: int) -> A:
    """A view of one position along an axis, without that axis.

    Raises:
      IndexError: if the axis or the position is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).select(1, 0)
      Tensor([1, 3])
    """
    axis = x._axis(dim, "select")
    if x.ndim == 0:
        raise IndexError("select: a tensor of shape () has no axis")
    size = x.shape[axis]
    if isinstance(size, int) and not -size <= index < size:
        raise IndexError(f"select: position {index} along axis {dim} of shape {x.shape}")
    return narrow(x, axis, index, 1).reshape(x.shape[:axis] + x.shape[axis + 1 :])


def expand_as(x: A, other: A) -> A:
    """A view of the shape of ``other``: axes of size 1 repeated.

    Raises:
      ValueError: if the shapes do not broadcast.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1], [2]]).expand_as(Tensor.zeros(2, 3)).tolist()
      [[1, 1, 1], [2, 2, 2]]
    """
    return x.expand(as_tensor(x, other, "expand_as").shape)


def view_as(x: A, other: A) -> A:
    """A view with the shape of ``other``.

    Raises:
      ValueError: if the numbers of elements differ, or there is no such view.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3, 4]).view_as(Tensor.zeros(2, 2)).shape
      (2, 2)
    """
    return x.view(as_tensor(x, other, "view_as").shape)


def reshape_as(x: A, other: A) -> A:
    """The elements in the shape of ``other``.

    Raises:
      ValueError: if the numbers of elements differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3, 4]).reshape_as(Tensor.zeros(2, 2)).shape
      (2, 2)
    """
    return x.reshape(as_tensor(x, other, "reshape_as").shape)


def type_as(x: A, other: A) -> A:
    """The elements in the dtype of ``other``.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.5, 2.5]).type_as(Tensor([1]))
      Tensor([1, 2])
    """
    return x.cast(as_tensor(x, other, "type_as").dtype)


def broadcast_to(x: A, *shape: Any) -> A:
    """A view of the given shape: axes of size 1 repeated, new ones in front.

    Raises:
      ValueError: if the shape of x does not broadcast to it.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).broadcast_to(2, 2).tolist()
      [[1, 2], [1, 2]]
    """
    return x.expand(*shape)


def tile(x: A, *dims: Any) -> A:
    """The whole tensor repeated along each axis; fewer counts than axes are for the last ones.

    Raises:
      ValueError: if a count is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).tile(2).tolist()
      [[1, 2, 1, 2], [3, 4, 3, 4]]
    """
    counts = args_to_tuple(dims, "tile")
    return repeat(x, *(1,) * (x.ndim - len(counts)), *counts)


def _sides(x: A, least: int, what: str) -> None:
    if x.ndim < least:
        raise ValueError(f"{what}: a tensor of at least {least} axes is wanted, got shape {x.shape}")


def flipud(x: A) -> A:
    """The rows in reverse order.

    Raises:
      ValueError: if there is no axis.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).flipud().tolist()
      [[3, 4], [1, 2]]
    """
    _sides(x, 1, "flipud")
    return x.flip(0)


def fliplr(x: A) -> A:
    """The columns in reverse order.

    Raises:
      ValueError: if there are fewer than two axes.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).fliplr().tolist()
      [[2, 1], [4, 3]]
    """
    _sides(x, 2, "fliplr")
    return x.flip(1)


def rot90(x: A, k: int = 1, dims: Sequence[int] = (0, 1)) -> A:
    """The plane of two axes turned by ``k`` quarters, from the first axis towards the second.

    Raises:
      ValueError: if there are not two different axes.
      IndexError: if an axis is out of range.
      TypeError: if ``k`` is no integer.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).rot90().tolist()
      [[2, 4], [1, 3]]
    """
    if isinstance(k, float):
        raise TypeError(f"rot90: k is an integer, got {k!r}")
    axes = [x._axis(dim, "rot90") for dim in dims]
    if len(axes) != 2 or axes[0] == axes[1] or x.ndim < 2:
        raise ValueError(f"rot90: two axes are wanted, got {tuple(dims)} of shape {x.shape}")
    turns, (first, second) = k % 4, axes
    out = x.transpose(first, second) if turns % 2 else x
    flipped = {1: (first,), 2: (first, second), 3: (second,)}.get(turns, ())
    return out.flip(*flipped) if flipped else out


def atleast_1d(x: A) -> A:
    """The tensor, of shape (1,) instead of ().

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor(5).atleast_1d()
      Tensor([5])
    """
    return x.reshape((1,)) if x.ndim == 0 else x


def atleast_2d(x: A) -> A:
    """The tensor with axes of size 1 in front, until there are two.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([5, 6]).atleast_2d()
      Tensor([[5, 6]])
    """
    return x if x.ndim >= 2 else x.reshape((1,) * (2 - x.ndim) + x.shape)


def atleast_3d(x: A) -> A:
    """The tensor with three axes: a vector of n becomes (1, n, 1), a matrix of m x n (m, n, 1).

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([5, 6]).atleast_3d().shape
      (1, 2, 1)
    """
    flat = atleast_2d(x)
    return flat if x.ndim >= 3 else flat.reshape((*flat.shape, 1))


def t(x: A) -> A:
    """A view of a matrix with its axes exchanged; of what has fewer axes, the tensor itself.

    Raises:
      ValueError: if there are more than two axes.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).t().tolist()
      [[1, 3], [2, 4]]
    """
    if x.ndim > 2:
        raise ValueError(f"t: a matrix is wanted, got shape {x.shape}; see transpose() and mT")
    return x.permute(*reversed(range(x.ndim)))


def broadcast_tensors(x: A, *others: A) -> tuple[A, ...]:
    """This tensor and others as views of the one shape that they broadcast to.

    Raises:
      ValueError: if they do not.

    Example:
      >>> from tg_frontend import Tensor
      >>> [t.shape for t in Tensor([1, 2]).broadcast_tensors(Tensor([[3], [4]]))]
      [(2, 2), (2, 2)]
    """
    shape = broadcast_shape("broadcast_tensors", *(one.shape for one in (x, *others)))
    return tuple(stretch(one, shape) for one in (x, *others))
