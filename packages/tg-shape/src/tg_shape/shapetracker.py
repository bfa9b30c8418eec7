"""A stack of views: what movement operations make of a contiguous buffer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

from . import movement
from ._lock import LOCK
from .expr import Expr, Variable, as_sint, sint
from .merge import Function, affine, function_of, loop_variables, merged, slope
from .view import Mask, Shape, View
from .walk import unbind

_trackers: WeakValueDictionary[tuple[View, ...], ShapeTracker] = WeakValueDictionary()
_stacks: WeakValueDictionary[tuple[Shape, Function, View], ShapeTracker] = WeakValueDictionary()


class ShapeTracker:
    """A map from the indexes of ``shape`` to positions of a flat buffer, or to nothing where padding is.

    The top view, ``views[-1]``, takes an index to a flat position in the shape of the view below it, and so on down to
    the buffer. Views that can be one view are merged, but the meaning never depends on it. Trackers are immutable, and
    interned by their map: chains of movements that are found to do the same to a buffer give the same object.

    Args:
      views: the lowest first; at least one.

    Raises:
      ValueError: if there is no view.

    Example:
      >>> st = ShapeTracker.from_shape((2, 3)).permute((1, 0)).reshape((6,))
      >>> len(st.views), [st.index([i])[0] for i in range(6)]
      (2, [0, 3, 1, 4, 2, 5])
    """

    __slots__ = ("__weakref__", "_function", "numeric", "shape", "views")
    views: tuple[View, ...]
    shape: Shape
    numeric: bool
    """Whether it is made of numbers alone, without symbols."""
    _function: Function | None

    def __new__(cls, views: Sequence[View]) -> ShapeTracker:
        stack = tuple(views)
        found = _trackers.get(stack)
        if found is None:
            if not stack:
                raise ValueError("shapetracker: at least one view is needed")
            found = _normal(cls, stack)
            with LOCK:
                found = _trackers.setdefault(stack, found)
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
    def size(self) -> sint:
        """Number of elements."""
        return self.views[-1].size

    @property
    def contiguous(self) -> bool:
        """Whether the map is the identity on the flat buffer's first ``size`` positions."""
        return len(self.views) == 1 and self.views[0].contiguous

    @property
    def key(self) -> tuple[object, ...]:
        """The map as nested tuples of integers and text; the same in every process, however the tracker was made."""
        if len(self.views) == 1:
            return self.views[0].key
        return tuple(tuple(x if isinstance(x, int) else x.key for x in xs) for xs in (self.shape, self.function))

    # -- movement ------------------------------------------------------------------------------------------------------
    def reshape(self, shape: Sequence[sint]) -> ShapeTracker:
        """The same elements, in row-major order, in another shape.

        Raises:
          ValueError: if the numbers of elements differ or a size is negative.
        """
        return _moved(self, "reshape", tuple(shape))

    def permute(self, order: Sequence[int]) -> ShapeTracker:
        """Dimension ``i`` of the result is dimension ``order[i]``.

        Raises:
          ValueError: if ``order`` is not a permutation of the dimensions.
        """
        return _moved(self, "permute", tuple(order))

    def expand(self, shape: Sequence[sint]) -> ShapeTracker:
        """Dimensions of size 1 repeated to the sizes of ``shape``; the others must agree.

        Raises:
          ValueError: if a size other than 1 would change, or the number of dimensions differs.
        """
        return _moved(self, "expand", tuple(shape))

    def pad(self, widths: Sequence[tuple[sint, sint]]) -> ShapeTracker:
        """``widths[i] = (before, after)`` invalid indexes added to each dimension.

        Raises:
          ValueError: if a width is negative or their number is not the number of dimensions.
        """
        return _moved(self, "pad", tuple(map(tuple, widths)))

    def shrink(self, bounds: Sequence[tuple[sint, sint]]) -> ShapeTracker:
        """The part ``bounds[i] = (begin, end)`` of each dimension.

        Raises:
          ValueError: if a range is not within its dimension, or their number is not the number of dimensions.
        """
        return _moved(self, "shrink", tuple(map(tuple, bounds)))

    def flip(self, axes: Sequence[int]) -> ShapeTracker:
        """The given dimensions reversed. Negative axes count from the end.

        Raises:
          ValueError: if an axis is out of range or given twice.
        """
        return _moved(self, "flip", tuple(axes))

    def stride(self, steps: Sequence[int]) -> ShapeTracker:
        """Every ``steps[i]``-th index of each dimension; a negative step begins at the end, as in a Python slice.

        Raises:
          ValueError: if a step is 0 or their number is not the number of dimensions.
        """
        return _moved(self, "stride", tuple(steps))

    # -- algebra -------------------------------------------------------------------------------------------------------
    def __add__(self, other: ShapeTracker) -> ShapeTracker:
        """``other`` viewed on top of this: its buffer is this tracker's elements in row-major order."""
        return ShapeTracker(self.views + other.views)

    def simplify(self) -> ShapeTracker:
        """The same map with as few views as are found: the tracker itself, as construction merges already."""
        return self

    def invert(self, out_shape: Sequence[sint]) -> ShapeTracker | None:
        """The tracker that undoes this one on a buffer of ``out_shape``.

        If ``t`` is what this tracker shows of a buffer of ``out_shape``, the result shows that buffer when it is
        applied to ``t``. It exists where every element of the buffer is seen at exactly one valid index.

        Returns:
          The inverse, of shape ``out_shape``, or None: the map is expanded, cut or overlapping, or no chain of
          movements is found that undoes it.

        Example:
          >>> st = ShapeTracker.from_shape((2, 3)).permute((1, 0)).pad(((0, 1), (0, 0)))
          >>> st.shape, (st + st.invert((2, 3))).contiguous
          ((4, 2), True)
        """
        return _inverted(self, tuple(as_sint(s) for s in out_shape))

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
        if len(self.views) == 1:
            return self.views[0].index(idxs)
        # By way of the function, which does not depend on how the stack was found.
        position, valid = self.function
        at = {x: y for x, y in zip(loop_variables(self.shape), idxs, strict=True) if isinstance(x, Expr)}
        return (
            position if isinstance(position, int) else position.substitute(at),
            valid if isinstance(valid, int) else valid.substitute(at),
        )

    def real_strides(self, ignore_valid: bool = False) -> tuple[sint | None, ...]:
        """The distance in the buffer of a step along each dimension; None where it is not one number.

        Args:
          ignore_valid: give the distance also for dimensions on which the validity depends.
        """
        return _real_strides(self, ignore_valid)

    def axis_is_masked(self, axis: int) -> bool:
        """Whether the validity depends on the index of a dimension.

        Raises:
          IndexError: if there is no such dimension.
        """
        valid = self.function[1]
        x = loop_variables(self.shape)[axis]
        return isinstance(valid, Expr) and isinstance(x, Variable) and x in valid.variables()

    @property
    def function(self) -> Function:
        """Position and validity over `loop_variables` of the shape. Trackers with equal functions are equal maps."""
        if self._function is None:
            self._function = function_of(self.views)
        return self._function

    # -- symbols -------------------------------------------------------------------------------------------------------
    def vars(self) -> frozenset[Variable]:
        """The variables in the views."""
        if self.numeric:
            return frozenset()
        return frozenset().union(*[v.variables() for v in self.views])

    def unbind(self) -> tuple[ShapeTracker, dict[Variable, int]]:
        """The tracker with bound variables replaced by the variables, and their values.

        Raises:
          ValueError: if one variable is bound to two values.
        """
        values: dict[Variable, int] = {}
        if self.numeric:
            return self, values
        return ShapeTracker([_unbound(v, values) for v in self.views]), values

    def bind(self, values: Mapping[Variable, int]) -> ShapeTracker:
        """The tracker with variables bound to values, those that are bound already to new ones.

        Variables without a value stay as they are.

        Example:
          >>> n = Variable("n", 1, 8)
          >>> st = ShapeTracker.from_shape((n.bind(3), 2)).bind({n: 5})
          >>> st.unbind()[1][n]
          5
        """
        if self.numeric:
            return self
        free, found = self.unbind()
        both = {**found, **values}
        bound = {var: var.bind(both[var]) for var in free.vars() if var in both}
        return ShapeTracker([_substituted(v, bound) for v in free.views]) if bound else self

    def at(self, values: Mapping[Variable, int]) -> ShapeTracker:
        """The tracker with variables replaced by numbers. Variables without a value stay as they are.

        Example:
          >>> n = Variable("n", 1, 8)
          >>> ShapeTracker.from_shape((n, 2)).at({n: 5}).shape
          (5, 2)
        """
        return self if self.numeric else ShapeTracker([_substituted(view, values) for view in self.views])

    def __repr__(self) -> str:
        return f"ShapeTracker({list(self.views)})"


def _substituted(view: View, new: Mapping[Variable, sint]) -> View:
    def replaced(x: sint) -> sint:
        return x if isinstance(x, int) else x.substitute(new)

    mask: Mask | None = None if view.mask is None else tuple((replaced(a), replaced(b)) for a, b in view.mask)
    return View([replaced(s) for s in view.shape], [replaced(s) for s in view.strides], replaced(view.offset), mask)


def _plain(view: View) -> bool:
    """Whether a view is made of numbers alone."""
    for x in (*view.shape, *view.strides, view.offset):
        if not isinstance(x, int):
            return False
    return view.mask is None or all(isinstance(a, int) and isinstance(b, int) for a, b in view.mask)


def _unbound(view: View, values: dict[Variable, int]) -> View:
    def free(x: sint) -> sint:
        out, found = unbind(x)
        for var, value in found.items():
            if values.setdefault(var, value) != value:
                raise ValueError(f"unbind: variable {var.name!r} is bound to {values[var]} and to {value}")
        return out

    mask: Mask | None = None if view.mask is None else tuple((free(a), free(b)) for a, b in view.mask)
    return View([free(s) for s in view.shape], [free(s) for s in view.strides], free(view.offset), mask)


def _normal(cls: type[ShapeTracker], views: tuple[View, ...]) -> ShapeTracker:
    """The one tracker for a stack: merged where that is exact, else the first with the same lowest view and map."""
    stack: list[View] = []
    for view in views:
        stack.append(view)
        while len(stack) > 1 and (one := merged(stack[-2], stack[-1])) is not None:
            stack[-2:] = [one]
    for length in range(len(stack), 2, -1):  # a run may be affine where no pair of it is
        for at in range(len(stack) - length, -1, -1):
            run = stack[at : at + length]
            one = affine(run[-1].shape, function_of(run)) if len(run) == length else None
            if one is not None:
                stack[at : at + length] = [one]
    shape = stack[-1].shape
    function = function_of(stack) if len(stack) > 1 else None
    made = object.__new__(cls)
    made.views, made.shape, made._function = tuple(stack), shape, function
    made.numeric = all(_plain(view) for view in stack)
    with LOCK:
        if function is None:
            return _trackers.setdefault(made.views, made)
        # The lowest view is part of the key: an equal map of a larger buffer is another tracker.
        return _stacks.setdefault((shape, function, stack[0]), made)


@lru_cache(maxsize=1 << 14)
def _moved(st: ShapeTracker, op: str, arg: tuple[Any, ...]) -> ShapeTracker:
    """A movement operation. Cached here since a graph repeats few movements many times."""
    if op == "reshape":
        top = movement.reshape(st.shape, arg)
        return st if top.shape == st.shape else ShapeTracker((*st.views, top))
    return ShapeTracker((*st.views[:-1], _MOVES[op](st.views[-1], arg)))


_MOVES: dict[str, Callable[[View, Any], View]] = {
    "permute": movement.permute,
    "expand": movement.expand,
    "pad": movement.pad,
    "shrink": movement.shrink,
    "flip": movement.flip,
    "stride": movement.stride,
}


@lru_cache(maxsize=1 << 12)
def _real_strides(st: ShapeTracker, ignore_valid: bool) -> tuple[sint | None, ...]:
    idxs = loop_variables(st.shape)
    loops = frozenset(x for x in idxs if isinstance(x, Variable))
    position, valid = st.function
    out: list[sint | None] = []
    for x in idxs:
        step = 0 if isinstance(x, int) else slope(position, x)
        masked = not ignore_valid and isinstance(valid, Expr) and x in valid.variables()
        # A coefficient that holds another index is not a distance.
        out.append(None if masked or (isinstance(step, Expr) and step.variables() & loops) else step)
    return tuple(out)


@lru_cache(maxsize=1 << 12)
def _inverted(st: ShapeTracker, out_shape: Shape) -> ShapeTracker | None:
    inverse = ShapeTracker.from_shape(st.shape)
    targets = [out_shape, *(v.shape for v in st.views[:-1])]
    for view, target in zip(reversed(st.views), reversed(targets), strict=True):
        moves = movement.undone(view, target)
        if moves is None:
            return None
        for op, arg in moves:
            inverse = _moved(inverse, op, arg)
    return inverse
