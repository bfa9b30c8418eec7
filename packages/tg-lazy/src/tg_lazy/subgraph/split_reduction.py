"""Parts of a dimension that is reduced: a large reduction to few outputs is done in parts first, side by side.

Where no number of parts divides the dimension evenly, a sum has zeros beyond its end, and the parts of a reduction that
may meet an element twice overlap. A product of numbers is cut evenly or not at all.
"""

from __future__ import annotations

from math import isqrt

from tg_dtype import DType, dtypes
from tg_shape import Expr, ShapeTracker, View

from ..cost import Limits, limits_of
from ..ops import SPEC, Ops, Trait
from ..settings.context import STRICT
from ..trackers import contiguous, max_size
from .node import Node, seen_shape

VECTORS = 16
"""Long parts that may be padded are a multiple of so many elements, so that each begins with a whole vector."""


def in_parts(st: ShapeTracker, axis: int, op: Ops, dtype: DType, most: int) -> ShapeTracker:
    """A dimension as two, the number of a part and the place in it, for a reduction ``op`` of values of ``dtype``.

    There are ``most`` parts or fewer, but more than half as many: only a product of numbers may have no more than one.

    Args:
      st: what is reduced; the dimension's size is a number, and at least ``most``.
      axis: the dimension.
      op: what reduces it.
      dtype: of what is reduced.
      most: greatest number of parts.

    Example:
      >>> for op in (Ops.ADD, Ops.MAX, Ops.MUL):
      ...     found = in_parts(ShapeTracker.from_shape((1889,)), 0, op, dtypes.float32, 256)
      ...     print(found.shape)
      (237, 8)
      (236, 9)
      (1, 1889)
    """
    shape = st.shape
    size = shape[axis]
    assert isinstance(size, int)
    parts = next((p for p in range(most, 1, -1) if size % p == 0), 1)
    length, overlap = size // parts, 0
    if 2 * parts <= most:
        if op is Ops.ADD:
            length = -(-size // most)
            length = -(-length // VECTORS) * VECTORS if length >= VECTORS**2 else length
            parts = -(-size // length)
            st = st.pad([(0, parts * length - size if a == axis else 0) for a in range(len(shape))])
        elif Trait.IDEMPOTENT in SPEC[op].traits or (op is Ops.MUL and dtype is dtypes.bool):
            parts = min(range(most, most // 2, -1), key=lambda p: size // p + size % p)
            overlap = size % parts
            length = size // parts + overlap
    cut = (*shape[:axis], parts, length, *shape[axis + 1 :])
    if not overlap:
        return st.reshape(cut)
    along = list(View(shape).strides)
    return ShapeTracker((*st.views, View(cut, (*along[:axis], (length - overlap) * along[axis], *along[axis:]))))


def most_parts(count: int, limits: Limits) -> int:
    """Into how many parts it is best to split a reduction of ``count`` elements, if every part has a unit of its own.

    ``p`` parts take as long as ``count / p`` elements of one part, and ``p`` more for the results of the parts: least
    for the square root of ``count``. More parts than there are units gain nothing.

    >>> most_parts(1000, Limits()), most_parts(1_000_000, Limits())
    (31, 256)
    """
    return min(isqrt(count), limits.split_parts)


def split_pays(count: int, parts: int, limits: Limits) -> bool:
    """Whether it is faster to reduce ``count`` elements in parts first.

    The second kernel costs a launch, and the first one wakes units that would have slept: as long as one unit takes for
    ``serial_elements`` each. What is saved must be once more than that, as other kernels may keep the units busy.

    >>> split_pays(40_000, 200, Limits()), split_pays(65_536, 256, Limits()), split_pays(65_536, 2, Limits())
    (False, True, False)
    """
    saved = count - count // parts - parts
    return saved >= 3 * limits.serial_elements


def split(node: Node) -> Node | None:
    """Makes a large reduction to few outputs one of the results of its parts, which can be computed side by side.

    It is split along the outermost axis that has parts enough to fill the machine, or else along the one with most.

    Args:
      node: a REDUCE, which changes if it is split.

    Returns:
      The reduction of the parts, which has to stand before ``node``; None where a split does not pay.
    """
    source, st = node.srcs[0]
    shape = seen_shape(node.srcs[0])
    op, axes = node.arg
    limits = limits_of(node.device)
    count = max_size(shape) // max(node.size, 1)
    if STRICT.value and dtypes.is_float(node.dtype) and op is not Ops.MAX:
        return None
    if node.size > limits.tile_outputs or not split_pays(count, max(most_parts(count, limits), 1), limits):
        return None
    if any(isinstance(dim, Expr) for dim in shape):
        return None
    best: tuple[int, int, ShapeTracker] | None = None
    for axis in axes:
        size = shape[axis]
        assert isinstance(size, int)
        cut = in_parts(st or contiguous(shape), axis, op, node.dtype, max(1, min(most_parts(count, limits), size)))
        parts = cut.shape[axis]
        assert isinstance(parts, int)
        if split_pays(count, parts, limits) and (best is None or parts > best[0]):
            best = parts, axis, cut
            if parts >= limits.rows:
                break
    if best is None:
        return None
    parts, axis, cut = best
    inner = tuple(a + (a >= axis) for a in axes)
    kept = tuple(1 if a in inner else dim for a, dim in enumerate(cut.shape))
    part = Node(Ops.REDUCE, node.device, node.dtype, kept, ((source, cut),), (op, inner), node.origin)
    part.reason = f"{count} elements to each of {node.size} outputs: reduced in {parts} parts first"
    whole = tuple(parts if a == axis else dim for a, dim in enumerate(node.shape))
    node.srcs, node.arg = ((part, contiguous(whole)),), (op, (axis,))
    return part
