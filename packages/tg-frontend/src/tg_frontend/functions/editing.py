"""Elements put in, taken out and repeated along an axis, as numpy has it: what comes out is another tensor."""

from __future__ import annotations

from math import prod

from ..array.axes import axes_of
from ..array.operands import beside
from ..array.writing import fitting
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..array.reduction import Axes


def _along(x: Tensor, axis: int | None, what: str) -> tuple[Tensor, int, int]:
    """The tensor, flat if no axis is given; the axis, and its size."""
    flat, along = (x.flatten(), 0) if axis is None else (x, axis)
    if not -flat.ndim <= along < flat.ndim:
        raise IndexError(f"{what}: axis {axis} of a tensor of shape {x.shape}")
    along %= flat.ndim
    return flat, along, flat._ints()[along]


def _value(values: Any, x: Tensor) -> Tensor:
    return values if isinstance(values, Tensor) else beside(Tensor, values, (x,))


def append(x: Any, values: Any, axis: int | None = None) -> Tensor:
    """Elements behind the last along an axis.

    Args:
      x: a tensor, or what becomes one.
      values: of the shape of ``x`` but along the axis.
      axis: along which one; both are flattened if None.

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import append
      >>> append(Tensor([1.0, 2.0]), [[3.0], [4.0]])
      Tensor([1., 2., 3., 4.])
    """
    first = x if isinstance(x, Tensor) else beside(Tensor, x, (values,))
    second = _value(values, first)
    if axis is None:
        first, second = first.flatten(), second.flatten()
    kind = first.result_type(second)
    return first.cast(kind).cat(second.cast(kind), dim=axis or 0)


def _places(obj: Any, size: int, most: int, what: str) -> list[int]:
    """Places along an axis, from 0, in the order in which they are given."""
    if isinstance(obj, slice):
        return list(range(*obj.indices(size)))
    flat = obj.reshape(-1) if hasattr(obj, "reshape") and obj.ndim else obj
    listed = flat.tolist() if hasattr(flat, "tolist") else flat
    listed = [listed] if isinstance(listed, (int, float)) else list(listed)
    if listed and all(isinstance(one, bool) for one in listed):
        if len(listed) != size:
            raise ValueError(f"{what}: {len(listed)} bools for {size} places")
        return [place for place, held in enumerate(listed) if held]
    for one in listed:
        if isinstance(one, bool) or not isinstance(one, int):
            raise TypeError(f"{what}: places are integers, got {one!r}")
        if not -size <= one < most:
            raise IndexError(f"{what}: place {one} of {size}")
    return [one % size if one < 0 else one for one in listed]


def delete(x: Tensor, obj: Any, axis: int | None = None) -> Tensor:
    """Without some places along an axis.

    Args:
      x: the elements.
      obj: a place, a list or tensor of them, a slice, or bools that say which places go.
      axis: along which one; of all elements, row by row, if None.

    Raises:
      IndexError: if a place is out of range.
      TypeError: if one is no integer.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import delete
      >>> delete(Tensor([[1, 2, 3], [4, 5, 6]]), [0, -1], axis=1)
      Tensor([[2],
              [5]])
    """
    flat, along, size = _along(x, axis, "delete")
    gone = set(_places(obj, size, size, "delete"))
    kept = [place for place in range(size) if place not in gone]
    return flat.index_select(along, Tensor(kept, dtype="int32", device=x.device))


def insert(x: Tensor, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """With more elements before some places along an axis.

    Args:
      x: the elements.
      obj: a place, a list or tensor of them, or a slice; of ``x``, before anything is put in.
      values: a number, or what broadcasts: they take the dtype of ``x``. Before a single place any number of them goes,
        which the first axis of ``values`` counts.
      axis: along which one; of all elements, row by row, if None.

    Raises:
      IndexError: if a place is out of range.
      ValueError: if the values do not broadcast.
      TypeError: if a place is no integer.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import insert
      >>> insert(Tensor([1, 2, 3]), 1, [10, 20])
      Tensor([ 1, 10, 20,  2,  3])
      >>> insert(Tensor([[1, 2], [3, 4]]), [0, 2], 9, axis=1)
      Tensor([[9, 1, 2, 9],
              [9, 3, 4, 9]])
    """
    flat, along, size = _along(x, axis, "insert")
    places = _places(obj, size, size + 1, "insert")
    new = fitting(x, values, "insert")
    new = new.reshape((1,) * (flat.ndim - new.ndim) + new.shape)
    shape = list(flat.shape)
    if len(places) == 1:
        if isinstance(obj, int) or getattr(obj, "ndim", 1) == 0:
            new = new.movedim(0, along)
        shape[along] = new.shape[along]
        before, behind = flat.split([places[0], size - places[0]], along)
        return before.cat(new.expand(*shape), behind, dim=along)
    shape[along] = len(places)
    order = sorted(range(len(places)), key=lambda i: places[i])  # before one place, in the order that was given
    source, taken = [], 0
    for i in order:
        source += [*range(taken, places[i]), size + i]
        taken = places[i]
    source += range(taken, size)
    both = flat.cat(new.expand(*shape), dim=along)
    return both.index_select(along, Tensor(source, dtype="int32", device=x.device))


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """One number around the elements: ``nn.functional.pad`` with ``mode="constant"``.

    Args:
      input: the elements.
      pad: how many before and behind, from the last axis on; negative ones take elements away.
      value: the number.

    Raises:
      ValueError: if there are more pairs than axes, or single amounts.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import constant_pad_nd
      >>> constant_pad_nd(Tensor([1.0, 2.0]), (1, 2), 9.0)
      Tensor([9., 1., 2., 9., 9.])
    """
    return input.pad(tuple(pad), value=value)


def resize(x: Tensor, new_shape: int | Sequence[int]) -> Tensor:
    """Another shape, of which the elements fill as much as there is, again and again, row by row.

    Args:
      x: the elements.
      new_shape: of any size.

    Raises:
      ValueError: if a size is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import resize
      >>> resize(Tensor([1, 2, 3]), (2, 4))
      Tensor([[1, 2, 3, 1],
              [2, 3, 1, 2]])
    """
    shape = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    if min(shape, default=0) < 0:
        raise ValueError(f"resize: a size in {shape} is negative")
    wanted, there = prod(shape), prod(x._ints())
    if not there or not wanted:
        return Tensor.zeros(*shape, dtype=x.dtype, device=x.device)
    return x.flatten().repeat(-(-wanted // there))[:wanted].reshape(shape)


def trim_zeros(x: Tensor, trim: str = "fb", axis: Axes = None) -> Tensor:
    """Without zeros at the ends, along all axes or some: the elements are computed now.

    Args:
      x: the elements.
      trim: ``"f"`` for those in front, ``"b"`` for those behind, ``"fb"`` for both.
      axis: one, several, or all if None.

    Raises:
      ValueError: if it is something else.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import trim_zeros
      >>> trim_zeros(Tensor([0.0, 0.0, 1.0, 0.0, 2.0, 0.0]))
      Tensor([1., 0., 2.])
    """
    ends = trim.lower()
    if ends not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim_zeros: 'f', 'b' or 'fb' is wanted, got {trim!r}")
    some = x.ne(0)
    parts = []
    trimmed = axes_of(x, axis, "trim_zeros")
    for place, size in enumerate(x._ints()):
        if place not in trimmed:
            parts.append((0, size))
            continue
        others = [other for other in range(x.ndim) if other != place]
        there = [at for at, held in enumerate((some.any(others) if others else some).tolist()) if held]
        first, last = (there[0], there[-1] + 1) if there else (size, size) if "f" in ends else (0, 0)
        parts.append((first if "f" in ends else 0, last if "b" in ends else size))
    return x.shrink(parts)
