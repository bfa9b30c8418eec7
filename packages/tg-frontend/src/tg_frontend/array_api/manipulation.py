"""Shapes: axes moved, repeated, joined and taken apart."""

from __future__ import annotations

from tg_dtype import least_upper_dtype

from ..tensor import Tensor
from .operands import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .operands import Axis


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The tensors in the shape in which they meet."""
    return list(Tensor.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """The elements repeated to fill a shape."""
    return tensor(x, "broadcast_to").broadcast_to(shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors one after the other along an axis; flattened if that is None."""
    kind = least_upper_dtype(*(tensor(x, "concat").dtype for x in arrays))
    parts = [x.cast(kind) if axis is not None else x.cast(kind).flatten() for x in arrays]
    return parts[0].cat(*parts[1:], dim=axis or 0)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors side by side along a new axis."""
    kind = least_upper_dtype(*(tensor(x, "stack").dtype for x in arrays))
    parts = [x.cast(kind) for x in arrays]
    return parts[0].stack(*parts[1:], dim=axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """What is side by side along an axis."""
    return tensor(x, "unstack").unbind(axis)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """A new axis of size 1, or several, at these places of the result.

    Raises:
      IndexError: if there is no such place.
      ValueError: if one is given twice.
    """
    out = tensor(x, "expand_dims")
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    count = out.ndim + len(axes)
    if any(not -count <= one < count for one in axes):
        raise IndexError(f"expand_dims: axis {axis} is out of range for a result of {count} axes")
    places = sorted(one % count for one in axes)
    if len(set(places)) != len(places):
        raise ValueError(f"expand_dims: an axis is given twice in {axis}")
    for place in places:
        out = out.unsqueeze(place)
    return out


def squeeze(x: Tensor, /, axis: Axis) -> Tensor:
    """Without these axes, which are of size 1.

    Raises:
      ValueError: if one is not.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis or ())
    for one in axes:
        if -x.ndim <= one < x.ndim and x.shape[one] != 1:
            raise ValueError(f"squeeze: axis {one} of shape {x.shape} is not of size 1")
    return tensor(x, "squeeze").squeeze(axes)


def flip(x: Tensor, /, *, axis: Axis = None) -> Tensor:
    """The elements in reverse order along these axes."""
    axes = tuple(range(x.ndim)) if axis is None else axis
    return tensor(x, "flip").flip(axes)


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Axes moved to other places."""
    return tensor(x, "moveaxis").movedim(source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """The axes in another order."""
    return tensor(x, "permute_dims").permute(axes)


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Every element, or slice along an axis, so many times."""
    return tensor(x, "repeat").repeat_interleave(repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape.

    Args:
      copy: True always copies; False never does.
    """
    out = tensor(x, "reshape").reshape(shape)
    return out.clone() if copy else out


def roll(x: Tensor, /, shift: Any, *, axis: Axis = None) -> Tensor:
    """The elements shifted along axes, those that leave at one end entering at the other."""
    axes = None if axis is None else axis if isinstance(axis, int) else tuple(axis)
    if isinstance(shift, int) and isinstance(axes, tuple):
        shift = (shift,) * len(axes)
    return tensor(x, "roll").roll(shift, axes)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The whole so many times along each axis."""
    return tensor(x, "tile").tile(repetitions)
