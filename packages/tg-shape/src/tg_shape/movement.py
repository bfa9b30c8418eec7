"""The movement operations on one view, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from .bounds import bounds_of
from .expr import as_sint, sint
from .helpers import bound_value, ceildiv, prod, resolve, smax, smin
from .view import Mask, Shape, View, contiguous_strides

Pairs = tuple[tuple[sint, sint], ...]


def _check_length(op: str, shape: Shape, given: Sequence[object], what: str) -> None:
    if len(given) != len(shape):
        raise ValueError(
            f"{op}: shape {shape} has {len(shape)} dimensions, but {len(given)} {what} were given: {tuple(given)}"
        )


def reshape(shape: Shape, new: Shape) -> View:
    """The contiguous view to push for a reshape."""
    new = tuple(as_sint(s) for s in new)
    for s in new:
        if bounds_of(s)[1] < 0:
            raise ValueError(f"reshape: cannot reshape {shape} to {new}: the size {s!r} is negative")
    have, want = prod(shape), prod(new)
    if have != want:
        raise ValueError(f"reshape: cannot reshape {shape} ({have} elements) to {new} ({want} elements)")
    return View(new)


def permute(view: View, order: tuple[int, ...]) -> View:
    """See `ShapeTracker.permute`."""
    if sorted(order) != list(range(len(view.shape))):
        raise ValueError(
            f"permute: {order} is not a permutation of the {len(view.shape)} dimensions of shape {view.shape}"
        )
    mask = None if view.mask is None else [view.mask[i] for i in order]
    return View([view.shape[i] for i in order], [view.strides[i] for i in order], view.offset, mask)


def expand(view: View, new: tuple[sint, ...]) -> View:
    """See `ShapeTracker.expand`."""
    new = tuple(as_sint(s) for s in new)
    _check_length("expand", view.shape, new, "sizes")
    for i, (s, n) in enumerate(zip(view.shape, new, strict=True)):
        if s != n and s != 1:
            raise ValueError(
                f"expand: cannot expand {view.shape} to {new}: dimension {i} has size {s}, only 1 can become {n}"
            )
        if bounds_of(n)[1] < 0:
            raise ValueError(f"expand: cannot expand {view.shape} to {new}: the size {n!r} is negative")
    if any(s == 0 for s in view.shape):
        return View(new)
    mask = (
        None
        if view.mask is None
        else [
            m if s == n else _expanded(m, n)
            for m, s, n in zip(view.mask, view.shape, new, strict=True)
        ]
    )
    return View(new, view.strides, view.offset, mask)


def _expanded(limits: tuple[sint, sint], size: sint) -> tuple[sint, sint]:
    """The mask of a dimension of size 1 that has another size: all of it is valid or nothing, as a variable may say."""
    low, high = (smax(smin(end, 1), 0) for end in limits)
    return low * size, high * size


def pad(view: View, widths: Pairs) -> View:
    """See `ShapeTracker.pad`."""
    _check_length("pad", view.shape, widths, "pairs")
    widths = tuple((as_sint(a), as_sint(b)) for a, b in widths)
    for i, (a, b) in enumerate(widths):
        if not (resolve(_at_least(a, 0), False) and resolve(_at_least(b, 0), False)):
            raise ValueError(f"pad: widths must not be negative, got {(a, b)} for dimension {i} of shape {view.shape}")
    if all(a == 0 and b == 0 for a, b in widths):
        return view
    return _window(view, tuple((-a, s + b) for s, (a, b) in zip(view.shape, widths, strict=True)))


def shrink(view: View, bounds: Pairs) -> View:
    """See `ShapeTracker.shrink`."""
    _check_length("shrink", view.shape, bounds, "ranges")
    bounds = tuple((as_sint(a), as_sint(b)) for a, b in bounds)
    for i, ((a, b), s) in enumerate(zip(bounds, view.shape, strict=True)):
        if not (_holds(_at_least(a, 0)) and _holds(_at_least(b, a)) and _holds(_at_least(s, b))):
            raise ValueError(f"shrink: range {(a, b)} is not within dimension {i} of shape {view.shape}")
    if all(a == 0 and b == s for (a, b), s in zip(bounds, view.shape, strict=True)):
        return view
    return _window(view, bounds, hides=False)


def _holds(condition: sint) -> bool:
    """Whether a condition can hold, and does with the values that its variables are bound to."""
    return resolve(condition) and bound_value(condition) != 0


def _window(view: View, bounds: Pairs, hides: bool = True) -> View:
    """The indexes from ``begin`` to ``end`` of each dimension; if it ``hides``, some are outside the shape."""
    shape = [b - a for a, b in bounds]
    offset = view.offset
    for (a, _), step in zip(bounds, view.strides, strict=True):
        offset = offset + a * step
    if any(s == 0 for s in view.shape):
        return View(shape, (0,) * len(shape), 0, ((0, 0),) * len(shape))
    if view.mask is None and not hides:
        return View(shape, view.strides, offset)
    old: Mask = view.mask if view.mask is not None else tuple((0, s) for s in view.shape)
    mask = [
        (smin(smax(lo - a, 0), n), smax(smin(hi - a, n), 0))
        for (lo, hi), (a, _), n in zip(old, bounds, shape, strict=True)
    ]
    return View(shape, view.strides, offset, mask)


def flip(view: View, axes: tuple[int, ...]) -> View:
    """See `ShapeTracker.flip`."""
    rank = len(view.shape)
    for a in axes:
        if not -rank <= a < rank:
            raise ValueError(f"flip: axis {a} is out of range for shape {view.shape} of {rank} dimensions")
    chosen = {a % rank for a in axes} if axes else set()
    if len(chosen) != len(axes):
        raise ValueError(f"flip: axes {axes} of shape {view.shape} name a dimension twice")
    return stride(view, tuple(-1 if i in chosen else 1 for i in range(rank)))


def stride(view: View, steps: tuple[int, ...]) -> View:
    """See `ShapeTracker.stride`."""
    _check_length("stride", view.shape, steps, "steps")
    if any(m == 0 for m in steps):
        raise ValueError(f"stride: steps must not be 0, got {steps} for shape {view.shape}")
    if all(m == 1 for m in steps):
        return view
    shape = [ceildiv(s, abs(m)) for s, m in zip(view.shape, steps, strict=True)]
    strides = [st * m for st, m in zip(view.strides, steps, strict=True)]
    offset = view.offset
    for s, st, m in zip(view.shape, view.strides, steps, strict=True):
        if m < 0:
            offset = offset + (s - 1) * st
    if view.mask is None:
        return View(shape, strides, offset)
    mask = [
        (ceildiv(lo if m > 0 else s - hi, abs(m)), ceildiv(hi if m > 0 else s - lo, abs(m)))
        for (lo, hi), s, m in zip(view.mask, view.shape, steps, strict=True)
    ]
    return View(shape, strides, offset, mask)


def undone(view: View, target: Shape) -> list[tuple[str, tuple[Any, ...]]] | None:
    """The movements that restore a buffer of ``target`` from what ``view`` shows of it; None if none are found."""
    if view.size == 0 or any(s == 0 for s in target):
        return [("reshape", target)] if view.size == prod(target) else None
    moves: list[tuple[str, tuple[Any, ...]]] = []
    shape, start = view.shape, view.offset
    if view.mask is not None:
        moves.append(("shrink", view.mask))
        shape = tuple(hi - lo for lo, hi in view.mask)
        for (lo, _), step in zip(view.mask, view.strides, strict=True):
            start = start + lo * step
    axes = [i for i, s in enumerate(shape) if s != 1]
    if any(bounds_of(view.strides[i])[0] <= 0 <= bounds_of(view.strides[i])[1] for i in axes):
        return None
    reverse = tuple(i for i in axes if bounds_of(view.strides[i])[1] < 0)
    for i in reverse:
        start = start + (shape[i] - 1) * view.strides[i]
    steps = [-s if i in reverse else s for i, s in enumerate(view.strides)]
    # Larger steps are outer dimensions; the check below finds a wrong guess about symbolic ones.
    order = sorted(range(len(shape)), key=lambda i: -bounds_of(steps[i])[0] if i in axes else -inf)
    inner = [i for i in order if i in axes]
    flat = contiguous_strides([shape[i] for i in inner])
    if start != 0 or tuple(steps[i] for i in inner) != flat or prod(shape) != prod(target):
        return None
    return [*moves, ("flip", reverse), ("permute", tuple(order)), ("reshape", target)]


def _at_least(a: sint, b: sint) -> sint:
    return int(a >= b) if isinstance(a, int) and isinstance(b, int) else a >= b
