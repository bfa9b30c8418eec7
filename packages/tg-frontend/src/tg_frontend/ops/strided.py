"""Elements at places that strides give, as in memory: row-major order is meant, whatever a tensor is a view of."""

from __future__ import annotations

from tg_shape import prod

from ..array.array import A
from .lookup import take
from .ranges import arange
from .slice_update import positions, put_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def _numbers(values: Any, what: str) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or not all(isinstance(value, int) for value in values):
        raise TypeError(f"as_strided: {what} are integers, got {values!r}")
    return tuple(values)


def as_strided(x: A, size: Sequence[int], stride: Sequence[int], storage_offset: int = 0) -> A:
    """The elements at offset + sum(index * stride) of this tensor in row-major order: a copy; they may repeat.

    Args:
      size: the shape of the result.
      stride: for each axis, how far its elements are apart.
      storage_offset: where the first is.

    Raises:
      ValueError: if there are not as many strides as sizes, one is negative, or elements would be outside.
      TypeError: if they are no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3, 4]).as_strided((3, 2), (1, 1))
      Tensor([[1, 2],
              [2, 3],
              [3, 4]])
    """
    sizes, strides = _numbers(size, "sizes"), _numbers(stride, "strides")
    if len(sizes) != len(strides):
        raise ValueError(f"as_strided: {len(strides)} strides for {len(sizes)} sizes")
    if min((*sizes, *strides, storage_offset), default=0) < 0:
        raise ValueError(f"as_strided: sizes {sizes}, strides {strides} and offset {storage_offset} are 0 or more")
    count = prod(x.shape)
    last = storage_offset + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
    if 0 not in sizes and last >= count:
        raise ValueError(f"as_strided: element {last} of a tensor of {count}")
    places = arange(type(x), 1, device=x.device).reshape((1,) * len(sizes)) + storage_offset
    for axis, (n, step) in enumerate(zip(sizes, strides, strict=True)):
        shape = [1] * len(sizes)
        shape[axis] = n
        places = places + arange(type(x), n, device=x.device).reshape(tuple(shape)) * step
    if 0 in sizes:
        return x.reshape((-1,)).shrink(((0, 0),)).reshape(sizes)
    return take(x, places)


def as_strided_scatter(x: A, src: A, size: Sequence[int], stride: Sequence[int], storage_offset: int = 0) -> A:
    """This tensor with ``src`` for what :meth:`as_strided` gives; of several for one place the last stays.

    Raises:
      ValueError: if the source has another shape than that, or elements would be outside.
      TypeError: if sizes or strides are no integers, or the source has another dtype.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3, 4]).as_strided_scatter(Tensor([7, 8]), (2,), (2,), 1)
      Tensor([1, 7, 3, 8])
    """
    return put_at(x, as_strided(positions(x), size, stride, storage_offset), src, "as_strided_scatter")
