"""A stack of views: what movement operations make of a contiguous buffer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from weakref import WeakValueDictionary

from . import movement
from .expr import Bind, Expr, Variable, as_sint, sint
from .merge import affine, index_views, loop_variables, merged, slope
from .view import Mask, Shape, View

_trackers: WeakValueDictionary[tuple[View, ...], ShapeTracker] = WeakValueDictionary()
_lock = Lock()


class ShapeTracker:
    """A map from the indexes of ``shape`` to positions of a flat buffer, or to nothing where padding is.

    The top view, ``views[-1]``, takes an index to a flat position in the shape of the view below it, and so on down to the
    buffer. Views that can be one view are merged, but the meaning never depends on it. Trackers are immutable and interned.

    Args:
        views: the lowest first; at least one.

    Raises:
        ValueError: if there is no view.

    Example:
        >>> st = ShapeTracker.from_shape((2, 3)).permute((1, 0)).reshape((6,))
        >>> len(st.views), [st.index([i])[0] for i in range(6)]
        (2, [0, 3, 1, 4, 2, 5])
    """

    __slots__ = ("views", "__weakref__")
    views: tuple[View, ...]

    def __new__(cls, views: Sequence[View]) -> ShapeTracker:
        key = tuple(views)
        found = _trackers.get(key)
        if found is not None:
            return found
        if not key:
            raise ValueError("shapetracker: at least one view is needed")
        with _lock:
            found = _trackers.get(key)
            if found is None:
                found = object.__new__(cls)
                found.views = key
                _trackers[key] = found
        return found

    @staticmethod
    def from_shape(shape: Sequence[sint]) -> ShapeTracker:
        """The contiguous tracker of a shape.

        Raises:
            ValueError: if a size is negative.
        """
        return ShapeTracker((View(shape),))

    def __reduce__(self) -> tuple[type[ShapeTracker], tuple[object, ...]]:
        return ShapeTracker, (self.views,)

    @property
    def shape(self) -> Shape:
        """Sizes of the dimensions."""
        return self.views[-1].shape

    @property
    def size(self) -> sint:
        """Number of elements."""
        return self.views[-1].size

    @property
    def contiguous(self) -> bool:
        """Whether the map is the identity on the flat buffer's first ``size`` positions."""
        return len(self.views) == 1 and self.views[0].contiguous

    @property
    def key(self) -> tuple[object, ...]:
        """The views as nested tuples; the same in every process."""
        return tuple(v.key for v in self.views)

    # -- movement -----------------------------------------------------------------------------------------------------
    def reshape(self, shape: Sequence[sint]) -> ShapeTracker:
        """The same elements, in row-major order, in another shape.

        Raises:
            ValueError: if the numbers of elements differ or a size is negative.
        """
        new = tuple(as_sint(s) for s in shape)
        return self if new == self.shape else _pushed(self, movement.reshape(self.shape, new))

    def permute(self, order: Sequence[int]) -> ShapeTracker:
        """Dimension ``i`` of the result is dimension ``order[i]``.

        Raises:
            ValueError: if ``order`` is not a permutation of the dimensions.
        """
        return self._replaced(movement.permute(self.views[-1], tuple(order)))

    def expand(self, shape: Sequence[sint]) -> ShapeTracker:
        """Dimensions of size 1 repeated to the sizes of ``shape``; the others must agree.

        Raises:
            ValueError: if a size other than 1 would change, or the number of dimensions differs.
        """
        return self._replaced(movement.expand(self.views[-1], tuple(shape)))

    def pad(self, widths: Sequence[tuple[sint, sint]]) -> ShapeTracker:
        """``widths[i] = (before, after)`` invalid indexes added to each dimension.

        Raises:
            ValueError: if a width is negative or their number is not the number of dimensions.
        """
        return self._replaced(movement.pad(self.views[-1], tuple(tuple(w) for w in widths)))  # type: ignore[misc]

    def shrink(self, bounds: Sequence[tuple[sint, sint]]) -> ShapeTracker:
        """The part ``bounds[i] = (begin, end)`` of each dimension.

        Raises:
            ValueError: if a range is not within its dimension, or their number is not the number of dimensions.
        """
        return self._replaced(movement.shrink(self.views[-1], tuple(tuple(b) for b in bounds)))  # type: ignore[misc]

    def flip(self, axes: Sequence[int]) -> ShapeTracker:
        """The given dimensions reversed. Negative axes count from the end.

        Raises:
            ValueError: if an axis is out of range or given twice.
        """
        return self._replaced(movement.flip(self.views[-1], tuple(axes)))

    def stride(self, steps: Sequence[int]) -> ShapeTracker:
        """Every ``steps[i]``-th index of each dimension; a negative step begins at the end, as in a Python slice.

        Raises:
            ValueError: if a step is 0 or their number is not the number of dimensions.
        """
        return self._replaced(movement.stride(self.views[-1], tuple(steps)))

    def _replaced(self, top: View) -> ShapeTracker:
        if len(self.views) == 1:
            return ShapeTracker((top,))
        return ShapeTracker(_settled((*self.views[:-1], top)))

    # -- algebra --------------------------------------------------------------------------------------------------------
    def __add__(self, other: ShapeTracker) -> ShapeTracker:
        """``other`` viewed on top of this: its buffer is this tracker's elements in row-major order."""
        return _composed(self, other)

    def simplify(self) -> ShapeTracker:
        """The same map with as few views as are found."""
        return _simplified(self)

    def invert(self, out_shape: Sequence[sint]) -> ShapeTracker | None:
        """The tracker that undoes this one on a buffer of ``out_shape``.

        If ``t = self`` applied to a buffer of ``out_shape``, then the result applied to ``t`` is that buffer. Exists where
        every element of the buffer is seen at exactly one valid index.

        Returns:
            The inverse, of shape ``out_shape``, or None if there is none (an expanded, cut or overlapping map).
        """
        return movement_inverse(self, tuple(as_sint(s) for s in out_shape))

    def index(self, idxs: Sequence[sint]) -> tuple[sint, sint]:
        """Position in the buffer and validity (1, 0, or a 0/1 expression) of an index.

        Where the validity is 0 the position means nothing and may be out of range.

        Args:
            idxs: one integer or expression a dimension, each within the dimension.

        Raises:
            ValueError: if their number is not the number of dimensions.
        """
        if len(idxs) != len(self.shape):
            raise ValueError(f"index: shape {self.shape} needs {len(self.shape)} indexes, got {len(idxs)}")
        return index_views(self.views, idxs)

    def real_strides(self, ignore_valid: bool = False) -> tuple[sint | None, ...]:
        """The distance in the buffer of a step along each dimension; None where it is not one number.

        Args:
            ignore_valid: give the distance also for dimensions on which the validity depends.
        """
        return _real_strides(self, ignore_valid)

    def axis_is_masked(self, axis: int) -> bool:
        """Whether the validity depends on the index of a dimension."""
        return _masked_axes(self)[axis]

    # -- symbols ----------------------------------------------------------------------------------------------------------
    def vars(self) -> frozenset[Variable]:
        """The variables in the views."""
        out: frozenset[Variable] = frozenset()
        for v in self.views:
            out |= v.variables()
        return out

    def unbind(self) -> tuple[ShapeTracker, dict[Variable, int]]:
        """The tracker with bound variables replaced by the variables, and their values.

        Raises:
            ValueError: if one variable is bound to two values.
        """
        values: dict[Variable, int] = {}
        return ShapeTracker([_unbound(v, values) for v in self.views]), values

    def __repr__(self) -> str:
        return f"ShapeTracker({list(self.views)})"


def _unbound(view: View, values: dict[Variable, int]) -> View:
    def free(x: sint) -> sint:
        if isinstance(x, int):
            return x
        out, found = unbind(x)
        for var, value in found.items():
            if values.setdefault(var, value) != value:
                raise ValueError(f"unbind: variable {var.name!r} is bound to {values[var]} and to {value}")
        return out

    mask: Mask | None = None if view.mask is None else tuple((free(a), free(b)) for a, b in view.mask)
    return View([free(s) for s in view.shape], [free(s) for s in view.strides], free(view.offset), mask)


def unbind(x: sint) -> tuple[sint, dict[Variable, int]]:
    """``x`` with bound variables replaced by the variables, and their values.

    Raises:
        ValueError: if one variable is bound to two values.
    """
    from .expr import topological

    if isinstance(x, int):
        return x, {}
    binds = [n for n in topological(x) if isinstance(n, Bind)]
    values: dict[Variable, int] = {}
    for b in binds:
        if values.setdefault(b.var, b.value) != b.value:
            raise ValueError(f"unbind: variable {b.var.name!r} is bound to {values[b.var]} and to {b.value}")
    return x.substitute({b: b.var for b in binds}), values


def _settled(views: tuple[View, ...]) -> tuple[View, ...]:
    """Merges the top views while it goes."""
    while len(views) > 1:
        one = merged(views[-2], views[-1])
        if one is None:
            break
        views = (*views[:-2], one)
    return views


@lru_cache(maxsize=1 << 12)
def _pushed(st: ShapeTracker, top: View) -> ShapeTracker:
    return ShapeTracker(_settled((*st.views, top)))


@lru_cache(maxsize=1 << 12)
def _composed(lower: ShapeTracker, upper: ShapeTracker) -> ShapeTracker:
    views = lower.views
    for v in upper.views:
        views = _settled((*views, v))
    return ShapeTracker(views)


@lru_cache(maxsize=1 << 12)
def _simplified(st: ShapeTracker) -> ShapeTracker:
    views = list(st.views)
    for length in range(len(views), 1, -1):  # the longest run first: a whole may be affine where no pair is
        at = 0
        while at + length <= len(views):
            one = affine(views[at : at + length])
            if one is None:
                at += 1
            else:
                views[at : at + length] = [one]
    return ShapeTracker(views)


@lru_cache(maxsize=1 << 12)
def _real_strides(st: ShapeTracker, ignore_valid: bool) -> tuple[sint | None, ...]:
    idxs = loop_variables(st.shape)
    position, valid = st.index(idxs)
    out: list[sint | None] = []
    for x in idxs:
        if isinstance(x, int):
            out.append(0)
        elif not ignore_valid and isinstance(valid, Expr) and x in valid.variables():
            out.append(None)
        else:
            out.append(slope(position, x))
    # A coefficient that holds another index is not a distance.
    loops = frozenset(x for x in idxs if isinstance(x, Variable))
    return tuple(None if isinstance(s, Expr) and s.variables() & loops else s for s in out)


@lru_cache(maxsize=1 << 12)
def _masked_axes(st: ShapeTracker) -> tuple[bool, ...]:
    idxs = loop_variables(st.shape)
    _, valid = st.index(idxs)
    return tuple(isinstance(valid, Expr) and isinstance(x, Variable) and x in valid.variables() for x in idxs)


@lru_cache(maxsize=1 << 12)
def movement_inverse(st: ShapeTracker, out_shape: Shape) -> ShapeTracker | None:
    """See `ShapeTracker.invert`."""
    below = [*(v.shape for v in st.views[:-1]), out_shape]
    below = [out_shape, *(v.shape for v in st.views[:-1])]
    inverse = ShapeTracker.from_shape(st.shape)
    for view, target in zip(reversed(st.views), reversed(below), strict=True):
        found = movement.inverted(inverse, view, target)
        if found is None:
            return None
        inverse = found
    return inverse
