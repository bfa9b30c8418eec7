"""Questions about ShapeTrackers that the graph, the scheduler and kernel ASTs all ask."""

from __future__ import annotations

from functools import lru_cache

from tg_dtype import DType
from tg_shape import ShapeTracker, View, resolve, sint, upper

Shape = tuple[sint, ...]


@lru_cache(maxsize=4096)
def contiguous(shape: Shape) -> ShapeTracker:
    """The tracker of a row-major buffer of ``shape``."""
    return ShapeTracker.from_shape(shape)


@lru_cache(maxsize=4096)
def repeated(shape: Shape) -> ShapeTracker:
    """The tracker that shows one element at every index of ``shape``."""
    return ShapeTracker((View(shape, (0,) * len(shape)),)) if shape else contiguous(())


@lru_cache(maxsize=4096)
def max_size(shape: Shape) -> int:
    """The greatest number of elements of a shape.

    >>> max_size((2, 3))
    6
    """
    size = 1
    for dim in shape:
        size *= upper(dim)
    return size


def over(lower: ShapeTracker | None, upper: ShapeTracker | None) -> ShapeTracker | None:
    """``upper`` on top of ``lower``; None is the identity."""
    if upper is None:
        return lower
    return upper if lower is None else lower + upper


def seen_in_rows(st: ShapeTracker, shape: Shape) -> int:
    """How many outer dimensions ``st`` walks as ``shape`` does: what it shows then lies in the row that they name."""
    if len(st.views) != 1:
        return 0
    view, plain = st.views[0], ShapeTracker.from_shape(tuple(shape)).views[0]
    depth = 0
    for dim, stride, own, step in zip(view.shape, view.strides, shape, plain.strides, strict=False):
        if dim != own or (dim != 1 and stride != step):
            break
        if view.mask is not None and view.mask[depth] != (0, dim):
            break
        depth += 1
    return depth


def masked(st: ShapeTracker) -> bool:
    """Whether some index may be padding."""
    return any(view.mask is not None for view in st.views)


def unmasked(st: ShapeTracker) -> ShapeTracker:
    """``st`` without padding: what it shows there is any number, which may be the position of no element.

    >>> unmasked(ShapeTracker.from_shape((2,)).pad(((1, 1),))).index((3,))
    (2, 1)
    """
    if not masked(st):
        return st
    return ShapeTracker(tuple(View(view.shape, view.strides, view.offset) for view in st.views))


def hidden(st: ShapeTracker) -> bool:
    """Whether every index is padding."""
    return any(view.mask is not None and any(a == b for a, b in view.mask) for view in st.views)


def repeats(st: ShapeTracker, size: sint) -> bool:
    """Whether ``st`` shows more than ``size`` elements, none of them padding."""
    return not masked(st) and resolve(st.size > size, False)


def most_shown(st: ShapeTracker) -> int:
    """How many different elements ``st`` shows at the most.

    >>> most_shown(ShapeTracker.from_shape((4, 6)).shrink(((1, 3), (0, 6))).reshape((2, 1, 6)).expand((2, 5, 6)))
    12
    """
    return min(
        max_size(tuple(dim for dim, stride in zip(view.shape, view.strides, strict=True) if stride != 0))
        for view in st.views
    )


def injective(st: ShapeTracker) -> bool:
    """Whether ``st`` surely shows no element twice and no padding: a permutation, a part, a reversal."""
    if len(st.views) != 1 or masked(st):
        return False
    view = st.views[0]
    return all(stride != 0 or dim == 1 for dim, stride in zip(view.shape, view.strides, strict=True))


@lru_cache(maxsize=4096)
def writes_once(st: ShapeTracker) -> bool:
    """Whether a store through ``st`` surely writes each position at most once and only real ones."""
    if isinstance(st.size, int) and st.size == 0:
        return True
    if len(st.views) != 1 or st.views[0].mask is not None:
        return False
    # each axis steps over all that the axes with smaller steps reach
    reach: sint = 1
    steps = [(abs(stride) if isinstance(stride, int) else stride, dim)
             for dim, stride in zip(st.views[0].shape, st.views[0].strides, strict=True)
             if not (isinstance(dim, int) and dim <= 1)]  # fmt: skip
    if any(not isinstance(step, int) for step, _ in steps):
        return all(not isinstance(step, int) or step != 0 for step, _ in steps)
    for step, dim in sorted(steps, key=lambda pair: int(pair[0])):
        if step < reach:
            return False
        reach = reach + (dim - 1) * step if isinstance(dim, int) else reach + (dim.vmax - 1) * step
    return True


@lru_cache(maxsize=4096)
def is_row_major(view: View) -> bool:
    """Whether the elements of a view without a mask are contiguous from its offset on."""
    return View(view.shape, view.strides) is View(view.shape)


def row_major_offset(st: ShapeTracker, dtype: DType) -> int | None:
    """The offset in bytes of the row-major range of memory that ``st`` shows; None if it shows no such range."""
    if len(st.views) != 1 or any(not isinstance(dim, int) for dim in st.shape):
        return None
    view = st.views[0]
    if view.mask is not None or not isinstance(view.offset, int):
        return None
    if not is_row_major(view):
        return None
    return view.offset * dtype.itemsize
