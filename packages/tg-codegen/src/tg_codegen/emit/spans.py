"""Spans: the copies in which one loop is emitted.

The last iteration of a loop may be partial: what is inside of it leaves the dimension. It is a copy by itself, so that
in all others nothing has to be tested. A loop whose middle part needs no masks is cut there, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tg_shape import Variable, sint

from ..nest.env import Env
from ..nest.interior import LEAST_INTERIOR, interior, settled
from ..nest.nest import Axis
from ..nest.spec import Kind
from .domain import IterationDomain
from .index import below

RIM = 4
"""Iterations outside of an interior, at the most, that are copies of the code, in each of which masks are known.

More copies make a kernel long and not faster: the interior does most of the work on any machine.
"""


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

    def __init__(self, domain: IterationDomain) -> None:
        self.domain = domain
        self._interiors: dict[Variable, tuple[tuple[int, int] | None, bool]] = {}
        self._parted: Variable | None = None

    def of(self, axis: Axis, env: Env) -> list[Span]:
        """The copies in which a loop is emitted at ``env``."""
        if axis.root in env.exact:
            return self.partition(axis, axis.extent)
        base = env.root[axis.root]
        opened = {axis.name, *env.axis}
        wider = any(a.stride >= axis.stride and a.name not in opened for a in self.domain.by_root[axis.root])
        if not isinstance(base, int) or wider:
            return [Span(0, axis.extent, False)]
        left = self.domain.nest.roots[axis.root].extent - base
        full = left // axis.stride
        rest = left - full * axis.stride
        spans: list[Span] = []
        if not (isinstance(full, int) and full == 0):
            spans.extend(replace(span, exact=True) for span in self.partition(axis, full))
        if not (isinstance(rest, int) and rest == 0):
            spans.append(Span(full, 1, False, 1 if isinstance(rest, int) else below(0, rest)))
        return spans

    def partition(self, axis: Axis, count: sint) -> list[Span]:
        """The first ``count`` iterations of a loop, none of them partial, in the parts that masks cut them into."""
        whole = [Span(0, count, None)]
        if self.domain.by_root[axis.root][0] is not axis or not isinstance(count, int):
            return whole
        if self._parted not in (None, axis.root):
            return whole  # one dimension in three parts is enough: copies multiply
        if axis.root not in self._interiors:
            nest = self.domain.nest
            known = axis.kind is not Kind.THREAD and settled(nest, axis.root)  # one copy is one thread's
            self._interiors[axis.root] = interior(nest, axis.root, 0 if known else LEAST_INTERIOR), known
        inner, known = self._interiors[axis.root]
        if inner is None:
            return whole
        first = min(-(-inner[0] // axis.stride), count)
        end = max(first, min(inner[1] // axis.stride, count))
        if not known and (end - first) * axis.stride < LEAST_INTERIOR:
            return whole
        self._parted = axis.root
        parts = [(0, first), (first, end - first), (end, count - end)]
        if known and first + count - end <= RIM:
            parts = [*((at, 1) for at in range(first)), parts[1], *((at, 1) for at in range(end, count))]
        return [Span(at, size, None) for at, size in parts if size]
