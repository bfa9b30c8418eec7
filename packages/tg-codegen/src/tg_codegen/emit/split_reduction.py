"""Reductions in pieces: partial results in scratch, so that a reduction's outermost loop runs outside of output loops.

A long reduction walks through more of its operands than the caches hold. Cut in pieces, each piece is done for all
outputs of a tile before the next one begins, and what the piece reads stays near.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tg_lazy import identity

from ..ir.errors import EmitError
from ..ir.uop import UOp, UOps, const
from ..nest.nest import SERIAL, Axis, Kind, Node, NodeOp
from .reduction import Reduction
from .scope import Context
from .staging import Staging, offset


class Partials(Staging):
    """The stages of one nest, those of reductions too."""

    def fill_scratch(
        self, node: Node, scratch: UOp, strides: dict[str, int], inner: Sequence[Axis], context: Context
    ) -> None:
        if node.op is not NodeOp.REDUCE:
            super().fill_scratch(node, scratch, strides, inner, context)
            return
        pieces = next((a for a in self.nest.axes if a.root in node.arg[1] and a.kind is Kind.REDUCE), None)
        if pieces is None:
            raise EmitError(f"{node!r}: a reduction without a serial loop has no partial results")
        before = len(context.block.effects)
        self.level(inner, context, lambda inside: self.clear(node, scratch, strides, inside))
        serial = [axis for axis in inner if axis.kind in SERIAL]
        for span in self.spans(pieces, context.env):
            # what this part of the loop finds in scratch is what all that came before has left there
            ready = UOp(UOps.AFTER, scratch.dtype, (scratch, *context.block.effects[before:]))
            add = partial(self.add, node, ready, strides)
            self.run(pieces, span, context, partial(self.parts, serial, body=add))

    def clear(self, node: Node, scratch: UOp, strides: dict[str, int], context: Context) -> None:
        """Stores the identity."""
        neutral = const(identity(node.arg[0], node.dtype), node.dtype)
        context.block.effects.extend(self.writes(scratch, offset(context.env, strides), 1, neutral))

    def parts(self, axes: Sequence[Axis], context: Context, body: Callable[[Context], None]) -> None:
        """Opens serial loops around ``body``, their full iterations apart from partial last ones."""
        if not axes:
            body(context)
            return
        axis, rest = axes[0], axes[1:]
        plain = Axis(axis.name, axis.root, axis.stride, axis.extent, Kind.LOOP)
        for span in self.spans(axis, context.env):
            self.run(plain, span, context, lambda inside: self.parts(rest, inside, body))

    def add(self, node: Node, scratch: UOp, strides: dict[str, int], context: Context) -> None:
        """One piece for one register tile: from scratch into registers, through the inner loops, and back."""
        places = list(self.replicas(context.env, sorted(node.free, key=lambda v: v.name)))
        place = Context(context.block, context.env, None, context)
        reduction = Reduction(self, [(node, env) for env in places], node.arg[1], context.env, place)
        if reduction.spread or reduction.vectors or reduction.group:
            raise EmitError(f"{node!r}: partial results of a reduction that is spread over registers, lanes or items")
        into = [offset(env, strides) for env in places]
        before = [self.load(scratch, node.dtype, index, 1) for index in into]
        for index, total in zip(into, reduction.run(before), strict=True):
            context.block.effects.extend(self.writes(scratch, index, 1, total))
