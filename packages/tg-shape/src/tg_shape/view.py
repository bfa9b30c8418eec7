"""One affine map from the indexes of a shape to positions in a flat buffer, with a mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from weakref import WeakValueDictionary

from ._lock import LOCK
from .expr import ENGINE, Expr, Variable, as_sint, sint
from .helpers import prod, resolve, smax, smin
from .rules.sums import combine

Mask = tuple[tuple[sint, sint], ...]
Shape = tuple[sint, ...]

_views: WeakValueDictionary[tuple[object, ...], View] = WeakValueDictionary()


class View:
    """``position = offset + sum(index[i] * strides[i])``, valid where all ``mask[i][0] <= index[i] < mask[i][1]``.

    Views are immutable and interned in a normal form, so two views with equal maps are the same object:

    - a dimension of size 1, or with one valid index, has stride 0 (its share is in the offset);
    - the mask is None if it hides nothing; its ranges are within the dimensions;
    - a view with no valid index has strides 0, offset 0, and an empty mask in every dimension;
    - a view with no elements has strides 0, offset 0, and no mask.

    Args:
      shape: sizes, ``int`` or symbolic, each at least 0.
      strides: positions a step moves, one a dimension; contiguous if None.
      offset: position of index ``(0, ..., 0)``.
      mask: valid half-open range of each dimension, or None.

    Raises:
      ValueError: if a size is negative, or the lengths differ.

    Example:
      >>> v = View((2, 3))
      >>> v.strides, v.contiguous
      ((3, 1), True)
      >>> View((1, 3), (7, 1)) is View((1, 3))
      True
    """

    __slots__ = ("shape", "strides", "offset", "mask", "contiguous", "size", "__weakref__")
    shape: Shape
    strides: tuple[sint, ...]
    offset: sint
    mask: Mask | None
    contiguous: bool
    size: sint

    def __new__(
        cls,
        shape: Sequence[sint],
        strides: Sequence[sint] | None = None,
        offset: sint = 0,
        mask: Sequence[tuple[sint, sint]] | None = None,
    ) -> View:
        dims = tuple([s if type(s) is int else as_sint(s) for s in shape])
        for s in dims:
            if (s if isinstance(s, int) else s.vmax) < 0:
                raise ValueError(f"view: shape {dims} has the negative size {s!r}")
        steps = contiguous_strides(dims) if strides is None else tuple(as_sint(s) for s in strides)
        if len(steps) != len(dims) or (mask is not None and len(mask) != len(dims)):
            raise ValueError(f"view: shape {dims} has {len(dims)} dimensions, strides {steps}, mask {mask}")
        limits = None if mask is None else tuple((as_sint(a), as_sint(b)) for a, b in mask)
        return _interned(dims, *_normal(dims, steps, as_sint(offset), limits))

    def __reduce__(self) -> tuple[type[View], tuple[object, ...]]:
        return View, (self.shape, self.strides, self.offset, self.mask)

    @property
    def key(self) -> tuple[object, ...]:
        """Shape, strides, offset and mask as nested tuples of integers and of keys of expressions."""
        return (
            _key(self.shape),
            _key(self.strides),
            _key((self.offset,)),
            None if self.mask is None else tuple(map(_key, self.mask)),
        )

    def index(self, idxs: Sequence[sint]) -> tuple[sint, sint]:
        """Position and validity (0/1) of an index.

        Args:
          idxs: one index a dimension, each within the dimension.
        """
        return _index(self, tuple([x if type(x) is int else as_sint(x) for x in idxs]))

    def variables(self) -> frozenset[Variable]:
        """The variables in the shape, the strides, the offset and the mask."""
        out: frozenset[Variable] = frozenset()
        ends = [x for pair in self.mask for x in pair] if self.mask is not None else []
        for x in (*self.shape, *self.strides, self.offset, *ends):
            if isinstance(x, Expr):
                out |= x.variables()
        return out

    def reach(self, values: Mapping[Variable, int] | None = None) -> tuple[int, int] | None:
        """The least and the greatest position of a valid index, None if there is no valid index.

        Args:
          values: of the variables, all of them.

        >>> View((4, 4), (4, -1), 3).reach(), View((4,), (1,), -1, ((1, 3),)).reach()
        ((0, 15), (0, 1))
        """
        given = values or {}

        def known(x: sint) -> int:
            found = x.substitute(given) if isinstance(x, Expr) else x
            return found if isinstance(found, int) else found.vmax

        low = high = known(self.offset)
        valid = self.mask or [(0, dim) for dim in self.shape]
        for dim, stride, (first, end) in zip(self.shape, self.strides, valid, strict=True):
            begin, last, step = known(first), min(known(end), known(dim)) - 1, known(stride)
            if last < begin:
                return None
            low, high = low + min(begin * step, last * step), high + max(begin * step, last * step)
        return low, high

    def __repr__(self) -> str:
        extra = ("" if self.offset == 0 else f", offset={self.offset}") + (
            "" if self.mask is None else f", mask={self.mask}"
        )
        return f"View({self.shape}, {self.strides}{extra})"


@lru_cache(maxsize=1 << 12)
def _index(view: View, idxs: tuple[sint, ...]) -> tuple[sint, sint]:
    """See `View.index`."""
    # Integer strides are summed at once; each + would build the sum before it.
    parts: list[tuple[sint, int]] = [(view.offset, 1)]
    conditions: list[sint] = []
    for i, (x, stride) in enumerate(zip(idxs, view.strides, strict=True)):
        if isinstance(stride, Expr):
            parts.append((x * stride, 1))
        elif stride:
            parts.append((x, stride))
        if view.mask is not None:
            low, high = view.mask[i]
            if low != 0:
                conditions.append(_le(low, x))
            if high is not view.shape[i] and high != view.shape[i]:
                conditions.append(_lt(x, high))
    return combine(parts, 0), ENGINE.conj(tuple(conditions)) if conditions else 1


def contiguous_strides(shape: Sequence[sint]) -> tuple[sint, ...]:
    """Strides of a row-major layout: ``(12, 4, 1)`` for ``(2, 3, 4)``."""
    out: list[sint] = []
    step: sint = 1
    for s in reversed(shape):
        out.append(step)
        step = step * s
    return tuple(reversed(out))


def _normal(
    shape: Shape, strides: tuple[sint, ...], offset: sint, mask: Mask | None
) -> tuple[tuple[sint, ...], sint, Mask | None]:
    zeros = (0,) * len(shape)
    if any(s == 0 for s in shape):
        return zeros, 0, None
    steps = list(strides)
    if mask is not None:
        limits: list[tuple[sint, sint]] = []
        for (low, high), s in zip(mask, shape, strict=True):
            if not resolve(_le(0, low), False):
                low = 0 if resolve(_le(low, 0), False) else smax(low, 0)
            if not resolve(_le(high, s), False):
                high = s if resolve(_le(s, high), False) else smin(high, s)
            if resolve(_le(high, low), False):
                return zeros, 0, ((0, 0),) * len(shape)
            limits.append((low, high))
        for i, (low, high) in enumerate(limits):
            if high - low == 1 and steps[i] != 0:
                offset = offset + low * steps[i]
                steps[i] = 0
        full = all(
            (low == 0 and high is s) or (low == 0 and high == s) for (low, high), s in zip(limits, shape, strict=True)
        )
        mask = None if full else tuple(limits)
    return tuple(0 if s == 1 else step for s, step in zip(shape, steps, strict=True)), offset, mask


def _interned(shape: Shape, strides: tuple[sint, ...], offset: sint, mask: Mask | None) -> View:
    key = (shape, strides, offset, mask)
    found = _views.get(key)
    if found is not None:
        return found
    with LOCK:
        found = _views.get(key)
        if found is None:
            found = object.__new__(View)
            found.shape, found.strides, found.offset, found.mask = shape, strides, offset, mask
            found.size = prod(shape)
            flat = tuple(0 if s == 1 else step for s, step in zip(shape, contiguous_strides(shape), strict=True))
            found.contiguous = mask is None and offset == 0 and (strides == flat or found.size == 0)
            _views[key] = found
    return found


def _key(xs: Sequence[sint]) -> tuple[int | str, ...]:
    return tuple(x if isinstance(x, int) else x.key for x in xs)


def _le(a: sint, b: sint) -> sint:
    return int(a <= b) if isinstance(a, int) and isinstance(b, int) else a <= b


def _lt(a: sint, b: sint) -> sint:
    return int(a < b) if isinstance(a, int) and isinstance(b, int) else a < b
