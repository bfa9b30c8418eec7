"""The movement operations on one view, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from .expr import Expr, as_sint, sint
from .helpers import ceildiv, prod, resolve, smax, smin
from .view import Mask, Shape, View, contiguous_strides

Pairs = tuple[tuple[sint, sint], ...]


def _check_length(op: str, shape: Shape, given: Sequence[object], what: str) -> None:
    if len(given) != len(shape):
        raise ValueError(
            f"{op}: shape {shape} has {len(shape)} dimensions, but {len(given)} {what} were given: {tuple(given)}"
        )


def reshape(shape: Shape, new: Shape) -> View:
    """The contiguous view to push for a reshape."""
    for s in new:
        if (s if isinstance(s, int) else s.vmin) < 0:
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
        if (n if isinstance(n, int) else n.vmin) < 0:
            raise ValueError(f"expand: cannot expand {view.shape} to {new}: the size {n!r} is negative")
    if any(s == 0 for s in view.shape):
        return View(new)
    mask = (
        None
        if view.mask is None
        else [
            m if s == n else (0, n) if m == (0, 1) else (0, 0)
            for m, s, n in zip(view.mask, view.shape, new, strict=True)
        ]
    )
    return View(new, view.strides, view.offset, mask)


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
        if not (resolve(_at_least(a, 0)) and resolve(_at_least(b, a)) and resolve(_at_least(s, b))):
            raise ValueError(f"shrink: range {(a, b)} is not within dimension {i} of shape {view.shape}")
    return _window(view, bounds)


def _window(view: View, bounds: Pairs) -> View:
    """The indexes from ``begin`` to ``end`` of each dimension; those outside the shape are masked."""
    shape = [b - a for a, b in bounds]
    offset = view.offset
    for (a, _), step in zip(bounds, view.strides, strict=True):
        offset = offset + a * step
    if any(s == 0 for s in view.shape):
        return View(shape, (0,) * len(shape), 0, ((0, 0),) * len(shape))
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


class _Tracker(Protocol):
    """What `inverted` needs of a `ShapeTracker`."""

    def shrink(self: T, bounds: Sequence[tuple[sint, sint]]) -> T: ...
    def flip(self: T, axes: Sequence[int]) -> T: ...
    def permute(self: T, order: Sequence[int]) -> T: ...
    def reshape(self: T, shape: Sequence[sint]) -> T: ...
    @property
    def shape(self) -> Shape: ...


T = TypeVar("T", bound=_Tracker)


def inverted(source: T, view: View, target: Shape) -> T | None:
    """Undoes ``view`` on ``source``, which holds the view's elements, to give a buffer of ``target``; None if it cannot."""
    out = source.reshape(view.shape)
    if view.size == 0 or prod(target) == 0:
        return out.reshape(target) if view.size == prod(target) else None
    if view.mask is not None:
        out = out.shrink(view.mask)
    if prod(out.shape) != prod(target):
        return None
    axes = [i for i, s in enumerate(out.shape) if s != 1]
    steps = [view.strides[i] for i in axes]
    if any((s if isinstance(s, int) else s.vmin) <= 0 <= (s if isinstance(s, int) else s.vmax) for s in steps):
        return None
    start = (
        view.offset
        if view.mask is None
        else view.offset + sum_of(lo * st for (lo, _), st in zip(view.mask, view.strides, strict=True))
    )
    reverse = [i for i in axes if not resolve(_at_least(view.strides[i], 0), False)]
    for i in reverse:
        start = start + (out.shape[i] - 1) * view.strides[i]
    if start != 0:
        return None
    out = out.flip(reverse)
    low = {i: abs(s) if isinstance(s, int) else min(abs(s.vmin), abs(s.vmax)) for i, s in zip(axes, steps, strict=True)}
    ranked = sorted(axes, key=lambda i: -low[i])
    order = [i for i in range(len(out.shape)) if i not in low] + ranked
    out = out.permute(order)
    positive = tuple(-view.strides[i] if i in reverse else view.strides[i] for i in ranked)
    if positive != contiguous_strides(out.shape)[len(out.shape) - len(ranked) :]:
        return None
    return out.reshape(target)


def sum_of(xs: object) -> sint:
    """The sum; 0 of nothing."""
    out: sint = 0
    for x in xs:  # type: ignore[attr-defined]
        out = out + x
    return out


def _at_least(a: sint, b: sint) -> sint:
    return int(a >= b) if isinstance(a, int) and isinstance(b, int) else a >= b


__all__ = ["Expr", "expand", "flip", "inverted", "pad", "permute", "reshape", "shrink", "stride"]
