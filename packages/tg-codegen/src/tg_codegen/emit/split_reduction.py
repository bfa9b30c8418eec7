"""Reductions in pieces: partial results in scratch, so that a reduction's outermost loop runs outside of output loops.

A long reduction walks through more of its operands than the caches hold. Cut in pieces, each piece is done for all
outputs of a tile before the next one begins, and what the piece reads stays near.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tg_lazy import identity

from ..ir.errors import EmitError
from ..ir.uop import const
from ..nest.nest import Axis, Node
from ..nest.spec import SERIAL, Kind
from .known import StageMemory
from .reduction_loops import ReductionLoops
from .site import Site
from .whole import Whole


class SplitReductions:
    """The reductions of one nest whose partial results are kept in scratch."""

    def __init__(self, whole: Whole) -> None:
        self.whole = whole

    def fill(self, node: Node, memory: StageMemory, inner: Sequence[Axis], site: Site) -> None:
        """Fills a stage with a reduction's results, piece by piece."""
        pieces = next(
            (a for a in self.whole.nest.axes if a.root in node.arg[1] and a.kind is Kind.REDUCE), None)
        if pieces is None:
            raise EmitError(f"{node!r}: a reduction without a serial loop has no partial results")
        before = len(site.region.effects)
        self.whole.loops.nested(inner, site, lambda inside: self.clear(node, memory, inside))
        serial = [axis for axis in inner if axis.kind in SERIAL]
        for span in self.whole.spans.of(pieces, site.env):
            # what this part of the loop finds in scratch is what all that came before has left there
            add = partial(self.add, node, memory.after(site.region.effects[before:]))
            self.whole.loops.run(pieces, span, site, partial(self.each, serial, body=add))

    def clear(self, node: Node, memory: StageMemory, site: Site) -> None:
        """Stores the identity."""
        neutral = const(identity(node.arg[0], node.dtype), node.dtype)
        site.region.effects.extend(
            self.whole.access.writes(memory.pointer, memory.offset(site.env), 1, neutral))

    def each(self, axes: Sequence[Axis], site: Site, body: Callable[[Site], None]) -> None:
        """Opens serial loops around ``body``, their full iterations apart from partial last ones."""
        if not axes:
            body(site)
            return
        axis, rest = axes[0], axes[1:]
        for span in self.whole.spans.of(axis, site.env):
            self.whole.loops.run(
                replace(axis, kind=Kind.LOOP), span, site, lambda inside: self.each(rest, inside, body))

    def add(self, node: Node, memory: StageMemory, site: Site) -> None:
        """One piece for one register tile: its terms by themselves, then added to what scratch has of those before."""
        access, pointer = self.whole.access, memory.pointer
        places = list(self.whole.loops.replicas(site.env, sorted(node.free, key=lambda v: v.name)))
        place = Site(site.region, site.env, None, site)
        reduction = ReductionLoops(self.whole, [(node, env) for env in places], node.arg[1], site.env, place)
        if reduction.spread or reduction.vectors or reduction.group:
            raise EmitError(f"{node!r}: partial results of a reduction that is spread over registers, lanes or items")
        into = [memory.offset(env) for env in places]
        found = reduction.run([reduction.initial(acc) for acc in reduction.accumulators])
        for index, more in zip(into, found, strict=True):
            total = access.load(pointer, node.dtype, index, 1).alu(node.arg[0], more)
            site.region.effects.extend(access.writes(pointer, index, 1, total))
