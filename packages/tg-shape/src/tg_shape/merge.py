"""One view for a stack of views, where the composed map is affine with an interval mask.

A stack is composed symbolically: the index of the top view, over loop variables, becomes the position in the buffer. If
the simplified position is linear in the variables, and its validity is one interval a variable, that is the merged
view. The test is exact; where it fails the stack stays, and means the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .expr import Expr, Variable, sint
from .helpers import smax, smin
from .linear import coefficient, terms_of
from .view import View

Function = tuple[sint, sint]
"""Position in the buffer and validity, over `loop_variables`; the position is 0 where nothing is valid."""


@lru_cache(maxsize=1 << 12)
def merged(lower: View, upper: View) -> View | None:
    """``upper`` on top of ``lower`` as one view, or None."""
    if lower.contiguous:
        return upper
    if upper.contiguous and upper.shape == lower.shape:
        return lower
    return affine(upper.shape, function_of((lower, upper)))


def function_of(views: Sequence[View]) -> Function:
    """The map of a stack of views, the lowest first."""
    if views[-1].size == 0:
        return 0, 0
    position, valid = index_views(views, loop_variables(views[-1].shape))
    return (0, 0) if valid == 0 else (position, valid)


def affine(shape: tuple[sint, ...], function: Function) -> View | None:
    """The view of ``shape`` with a map, or None if no view has it."""
    position, valid = function
    if valid == 0:
        # A mask needs a dimension to stand in.
        return View(shape, (0,) * len(shape), 0, ((0, 0),) * len(shape)) if shape else None
    idxs = loop_variables(shape)
    mask = intervals(valid, idxs, shape)
    if mask is None:
        return None
    loops = frozenset(x for x in idxs if isinstance(x, Variable))
    strides: list[sint] = []
    rest = position
    for x in idxs:
        step = 0 if isinstance(x, int) else slope(rest, x)
        if step is None or (isinstance(step, Expr) and step.variables() & loops):
            return None
        strides.append(step)
        rest = rest - x * step
    return View(shape, strides, rest, mask)


def loop_variables(shape: Sequence[sint]) -> list[sint]:
    """One variable over each dimension, or 0 where the size is 1. No user's variable has their names."""
    return [
        0 if (s if isinstance(s, int) else s.vmax) <= 1 else Variable(f"#{i}", 0, s - 1) for i, s in enumerate(shape)
    ]


def slope(e: sint, x: sint) -> sint | None:
    """The factor of the variable ``x`` in ``e``, symbolic or not; None if ``e`` is not linear in it."""
    assert isinstance(x, Expr)
    if isinstance(e, int):
        return 0
    plain = coefficient(e, x)
    if plain is not None:
        return plain
    step: sint = 0
    for atom, c in terms_of(e)[0]:
        if x not in atom.variables():
            continue
        part: sint = c
        found = 0
        for f in atom.args if atom.op == "mul" else (atom,):
            if f is x:
                found += 1
            else:
                part = part * f
        if found != 1 or (isinstance(part, Expr) and x in part.variables()):
            return None
        step = step + part
    return step


def intervals(valid: sint, idxs: Sequence[sint], shape: Sequence[sint]) -> tuple[tuple[sint, sint], ...] | None:
    """A condition as one half-open interval a variable, or None if it is not of that form."""
    if isinstance(valid, int):
        return tuple((0, s) for s in shape) if valid else None
    lows: dict[int, sint] = {}
    highs: dict[int, sint] = {}
    number = {x: i for i, x in enumerate(idxs) if isinstance(x, Expr)}
    for part in valid.args if valid.op == "and" else (valid,):
        if not isinstance(part, Expr) or part.op not in ("lt", "eq"):
            return None
        e, c = part.args
        assert isinstance(e, Expr) and isinstance(c, int)
        here = [(a, k) for a, k in terms_of(e)[0] if a in number]
        if len(here) != 1 or abs(here[0][1]) != 1:
            return None
        x, k = here[0]
        others = e - x * k
        if isinstance(others, Expr) and any(y in others.variables() for y in number):
            return None
        i = number[x]
        point = (c - others) * k
        if part.op == "eq" or k == -1:
            low = point if part.op == "eq" else point + 1
            lows[i] = smax(lows[i], low) if i in lows else low
        if part.op == "eq" or k == 1:
            high = point + 1 if part.op == "eq" else point
            highs[i] = smin(highs[i], high) if i in highs else high
    return tuple((lows.get(i, 0), highs.get(i, s)) for i, s in enumerate(shape))


def index_views(views: Sequence[View], idxs: Sequence[sint]) -> tuple[sint, sint]:
    """Position and validity of an index through a stack of views, the lowest first."""
    position, valid = views[-1].index(idxs)
    for view in reversed(views[:-1]):
        if view.size == 0:  # only padding is seen
            return 0, 0
        position, here = view.index(unravelled(position, view.shape))
        valid = here if isinstance(valid, int) and valid else valid if isinstance(here, int) and here else valid & here
    return position, valid


def unravelled(position: sint, shape: Sequence[sint]) -> list[sint]:
    """The row-major index of a flat position: the inverse of contiguous strides."""
    out: list[sint] = []
    step: sint = 1
    first = next((i for i, s in enumerate(shape) if s != 1), len(shape))
    for i in range(len(shape) - 1, -1, -1):
        s = shape[i]
        if isinstance(s, int) and s == 1:
            out.append(0)
            continue
        x = position // step
        out.append(x if i == first else x % s)
        step = step * s
    return out[::-1]
