"""Flat arrays seen through ShapeTrackers. What a tracker says is put into numbers once, where no variable is in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tg_shape import ShapeTracker, Variable, View, sint, sym_eval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

Env = Mapping[Variable, int]


class Affine(NamedTuple):
    """A view in numbers.

    Attributes:
      shape: of the view.
      strides: elements from one index to the next along each axis.
      offset: the element at index 0.
      mask: the valid range of each axis; None if all are valid.
      inner: the shape of what is valid.
      first: the element at the first valid index.
      window: the indices of what is valid; None if all are.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    mask: tuple[tuple[int, int], ...] | None
    inner: tuple[int, ...]
    first: int
    window: tuple[slice, ...] | None

    def leaves(self, size: int) -> bool:
        """Whether it shows places outside of ``size`` elements."""
        ends = [(dim - 1) * stride for dim, stride in zip(self.inner, self.strides, strict=True)]
        return 0 not in self.inner and (
            self.first + sum(e for e in ends if e < 0) < 0 or self.first + sum(e for e in ends if e > 0) >= size
        )


Layout = tuple[Affine, ...]
"""A tracker in numbers, the view of the flat array first."""


def ints(values: Sequence[sint], env: Env) -> tuple[int, ...]:
    """Symbolic integers with the values of the variables put in."""
    return tuple([v if isinstance(v, int) else sym_eval(v, env) for v in values])


def _affine(view: View, env: Env) -> Affine:
    shape, strides, (offset,) = ints(view.shape, env), ints(view.strides, env), ints((view.offset,), env)
    if view.mask is None:
        return Affine(shape, strides, offset, None, shape, offset, None)
    mask = []
    for limits, dim in zip(view.mask, shape, strict=True):
        low, high = ints(limits, env)
        mask.append((max(low, 0), max(min(high, dim), max(low, 0))))
    first = offset + sum(low * stride for (low, _), stride in zip(mask, strides, strict=True))
    inner = tuple(high - low for low, high in mask)
    return Affine(shape, strides, offset, tuple(mask), inner, first, tuple(slice(low, high) for low, high in mask))


def layout(st: ShapeTracker, env: Env) -> Layout:
    """A tracker with the values of the variables put in."""
    return tuple([_affine(view, env) for view in st.views])


def layouts(st: ShapeTracker) -> Callable[[Env], Layout]:
    """What makes a layout of the values of the variables; the same one each time where there are none."""
    if not st.numeric:
        return lambda env: layout(st, env)
    known = layout(st, {})
    return lambda env: known


def _through(flat: Array, view: Affine, fill: Any) -> Array:
    """One view over a flat array; ``fill`` where masked."""
    if 0 in view.inner:
        return np.full(view.shape, fill, flat.dtype)
    nbytes = flat.itemsize
    # the constructor checks that every element lies inside, as_strided would not
    part: Array = np.ndarray(view.inner, flat.dtype, flat, view.first * nbytes, [s * nbytes for s in view.strides])
    if view.window is None:
        return part
    out = np.full(view.shape, fill, flat.dtype)
    out[view.window] = part
    return out


def load(flat: Array, views: Layout, fill: Any = 0) -> Array:
    """A flat array seen through views, of the shape of the last; ``fill`` where masked.

    Raises:
      ValueError: if an element lies outside of the array.
    """
    if len(views) == 1:
        return _through(flat, views[0], fill)
    sizes = [flat.size, *(math.prod(view.shape) for view in views)]
    # the lower of several may show what lies outside, where none of that is looked at
    if any(view.leaves(size) for view, size in zip(views, sizes, strict=False)):
        place, keep = places(views)
        if place.size and keep.any() and not 0 <= place[keep].min() <= place[keep].max() < flat.size:
            raise ValueError(f"{views} show what lies outside of {flat.size} elements")
        out = np.full(place.shape, fill, flat.dtype)
        out[keep] = flat[place[keep]]
        return out
    value = flat
    for number, view in enumerate(views):
        value = _through(value if number == 0 else np.ascontiguousarray(value).reshape(-1), view, fill)
    return value


def _axes(shape: tuple[int, ...]) -> list[Array]:
    """The index along each axis of ``shape``, to be broadcast to it."""
    return [np.arange(dim).reshape((-1,) + (1,) * (len(shape) - 1 - axis)) for axis, dim in enumerate(shape)]


def places(views: Layout, along: Array | None = None) -> tuple[Array, Array]:
    """The flat index, int64, that each index of the last view maps to, and where it does: elsewhere it is masked.

    Args:
      views: the views.
      along: the index along the last axis, of the shape that the others have; None for all of them.
    """
    shape = views[-1].shape if along is None else views[-1].shape[:-1]
    keep = np.ones(shape, np.bool_)
    axes = _axes(shape) + ([] if along is None else [along])
    place = np.zeros(shape, np.int64)
    for number, view in enumerate(reversed(views)):
        if number:  # an element of the view above is an index into this one
            rest, axes = np.where(keep, place, 0), []
            for dim in reversed(view.shape):
                rest, axis = np.divmod(rest, max(dim, 1))
                axes.insert(0, axis)
        start = np.full(shape, view.offset, np.int64)
        place = sum((x * stride for x, stride in zip(axes, view.strides, strict=True)), start)
        for x, (low, high) in zip(axes, view.mask or (), strict=False):
            keep = keep & (low <= x) & (x < high)
    return place, keep


def store(flat: Array, views: Layout, value: Array) -> None:
    """Writes ``value``, of the shape of the last view, to a flat array through views; nothing where masked."""
    if len(views) == 1 and views[0].mask is None:
        _through(flat, views[0], 0)[...] = value
        return
    place, keep = places(views)
    flat[place[keep]] = value[keep]
