"""Windows: staged loads whose dimensions overlap in memory are kept by coordinate, each element once.

A convolution reads its input at ``h + kh``: as loops, ``h`` and ``kh`` are two dimensions, and a copy with a place for
each pair holds most elements several times. Where a load depends on some dimensions by a sum of multiples alone, the
copy has one dimension for the sum, its coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tg_shape import Expr, Variable, coefficient, substitute, upper

from .nest import Axis, Nest, Node, Root
from .spec import SERIAL, Kind, NodeOp


@dataclass(frozen=True, slots=True)
class Window:
    """Dimensions that a load's index contains only as one weighted sum.

    Attributes:
      root: stands for the sum.
      terms: the dimensions, each with its factor.
    """

    root: Variable
    terms: tuple[tuple[Variable, int], ...]

    def reach(self, axes: Sequence[Axis]) -> int:
        """How many values the sum has over some loops, all others standing still."""
        factors = dict(self.terms)
        return 1 + sum(factors[a.root] * a.stride * (_fixed(a) - 1) for a in axes if a.root in factors)


@dataclass(frozen=True, slots=True)
class Windowed:
    """A load in terms of coordinates.

    Attributes:
      load: it depends on the windows' roots in place of their dimensions.
      windows: the coordinates.
    """

    load: Node
    windows: tuple[Window, ...]

    @property
    def factors(self) -> dict[Variable, tuple[Variable, int]]:
        """For each dimension that became part of a coordinate, that and its factor."""
        return {root: (window.root, factor) for window in self.windows for root, factor in window.terms}

    def roots(self, nest: Nest) -> dict[Variable, Root]:
        """The coordinates as dimensions of a nest."""
        return {w.root: Root(w.root, w.root.vmax + 1, False) for w in self.windows}


def windowed(load: Node, nest: Nest) -> Windowed:
    """A load by coordinates; as it is, where its dimensions do not overlap."""
    windows: list[Window] = []
    node = load
    for near, far, factor in overlapping(load, nest):
        if any(near in dict(w.terms) or far in dict(w.terms) for w in windows):
            continue
        last = upper(nest.roots[near].extent) - 1 + factor * (upper(nest.roots[far].extent) - 1)
        both = Variable(f"{near.name}_{far.name}", 0, last)
        slot, *parts = node.arg
        swap: dict[Expr, Expr | int] = {near: both - far * factor}
        index, valid = (substitute(p, swap) for p in parts)
        if any(isinstance(p, Expr) and far in p.variables() for p in (index, valid)):
            continue
        free = (node.free - {near, far}) | {both}
        node = Node(NodeOp.LOAD, node.dtype, (), (slot, index, valid), free, node.level)
        windows.append(Window(both, ((near, 1), (far, factor))))
    return Windowed(node, tuple(windows))


def held(axes: Sequence[Axis], found: Windowed) -> int:
    """How many elements a copy of a load has over some loops of fixed extents."""
    factors = found.factors
    return prod(w.reach(axes) for w in found.windows) * prod(_fixed(a) for a in axes if a.root not in factors)


def overlapping(load: Node, nest: Nest) -> list[tuple[Variable, Variable, int]]:
    """Pairs of dimensions that reach the same elements: one step of the second is ``factor`` steps of the first."""
    index = load.arg[1]
    steps: list[tuple[int, Variable]] = []
    for root in sorted(load.free, key=lambda v: v.name):
        step = coefficient(index, root)
        if step and step > 0 and isinstance(nest.roots[root].extent, int) and _serial(nest, root):
            steps.append((step, root))
    return [
        (near, far, far_step // step)
        for step, near in steps for far_step, far in steps
        if near is not far and far_step % step == 0 and far_step // step < upper(nest.roots[near].extent)
        and (far_step > step or near.name > far.name)
    ]  # fmt: skip


def _serial(nest: Nest, root: Variable) -> bool:
    return all(a.kind in SERIAL | {Kind.UNROLL, Kind.UPCAST} for a in nest.of_root(root))


def _fixed(axis: Axis) -> int:
    assert isinstance(axis.extent, int)
    return axis.extent
