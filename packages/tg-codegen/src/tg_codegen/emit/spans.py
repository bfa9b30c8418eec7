"""Spans: the copies in which one loop is emitted.

The last iteration of a loop may be partial: what is inside of it leaves the dimension. It is a copy by itself, so that
in all others nothing has to be tested. A loop that is partitioned is cut where its interior begins and ends, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tg_shape import sint, smin

from ..nest.env import Env
from ..nest.interior import interior
from ..nest.nest import Axis
from ..nest.spec import SERIAL
from .index import below
from .space import IterationSpace


@dataclass(frozen=True, slots=True)
class Span:
    """One emitted copy of a loop: ``count`` iterations from ``at`` on, every ``step``-th one.

    Attributes:
      exact: whether all that is inside lies in the root's extent (None: what is known of the root stays as it is).
      condition: whether to run it at all.
    """

    at: sint
    count: sint
    exact: bool | None
    condition: sint = 1
    step: int = 1


class Spans:
    """The spans of one nest's loops."""

    def __init__(self, space: IterationSpace) -> None:
        self.space = space
        self._copies = dict(space.nest.partitions)
        self._interiors = {name: interior(space.nest, space.by_name[name].root) for name in self._copies}

    def of(self, axis: Axis, env: Env) -> list[Span]:
        """The copies in which a loop is emitted at ``env``."""
        if axis.root in env.exact:
            return self.partition(axis, axis.extent)
        base = env.root[axis.root]
        opened = {axis.name, *env.axis}
        wider = any(a.stride >= axis.stride and a.name not in opened for a in self.space.by_root[axis.root])
        if wider:
            return [Span(0, axis.extent, False)]
        left = self.space.nest.roots[axis.root].extent - base
        if not isinstance(base, int):
            # not across work-items or lanes, which would have different numbers of iterations
            serial = all(a.kind in SERIAL for a in self.space.by_root[axis.root] if a.name in env.axis)
            return [self.whole_iterations(axis, left) if serial else Span(0, axis.extent, False)]
        full = left // axis.stride
        rest = left - full * axis.stride
        spans: list[Span] = []
        if not (isinstance(full, int) and full == 0):
            spans.extend(replace(span, exact=True) for span in self.partition(axis, full))
        if not (isinstance(rest, int) and rest == 0):
            spans.append(Span(full, 1, False, 1 if isinstance(rest, int) else below(0, rest)))
        return spans

    @staticmethod
    def whole_iterations(axis: Axis, left: sint) -> Span:
        """A loop inside of a partial iteration, where ``left`` values remain: if those are whole iterations, these."""
        full = left // axis.stride
        exact = left - full * axis.stride == 0
        return Span(0, smin(axis.extent, full), True) if exact else Span(0, axis.extent, False)

    def partition(self, axis: Axis, count: sint) -> list[Span]:
        """The first ``count`` iterations of a loop, none of them partial, in the parts that it is to have."""
        bounds = self._interiors.get(axis.name)
        if bounds is None or self.space.by_root[axis.root][0] is not axis or not isinstance(count, int):
            return [Span(0, count, None)]
        first = min(-(-bounds[0] // axis.stride), count)
        end = max(first, min(bounds[1] // axis.stride, count))
        parts = [(0, first), (first, end - first), (end, count - end)]
        if first + count - end <= self._copies[axis.name]:
            parts = [*((at, 1) for at in range(first)), parts[1], *((at, 1) for at in range(end, count))]
        return [Span(at, size, None) for at, size in parts if size]
