"""Dimensions cut to fit the accesses.

A reduced dimension whose accesses divide it, as ``k // 32`` for a block's scale or ``k % 2`` for half of a byte, is cut
at the divisor; one whose masks change at half of it, as what was put together from two parts, is cut at the mask. In
the parts every index is linear, so that lanes are neighbours in memory, and unrolling the short part settles masks.
Where nothing is reduced, a dimension of the output is cut in the same way if the parts are long: rows that are repeated
are then read as rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tg_shape import Expr, linear_terms

from ..machine.target import Target
from ..nest.dimensions import cut, quotients
from ..nest.interior import masks
from ..nest.kernel import Kernel
from ..nest.nest import Nest, Root
from ..nest.parts import stated
from ..nest.spec import NodeOp
from .actions import ActionError, KernelAction, find

FEW_PARTS = 4
"""Equal parts, at the most, into which a dimension is cut where a mask changes: each is a copy of the code."""
SHORT_DIMENSION = 256
"""What is longer is not cut at masks: its loop runs through one part after the other."""
LONG_PART = 64
"""Iterations, at the least, in a part of the output: the last vector of each part is masked."""


@dataclass(frozen=True, slots=True)
class CutDimension(KernelAction):
    """Makes two dimensions of that of ``axis``: of ``width`` iterations, and of what counts these.

    A split cuts the loop alone: then each index is still in terms of the whole dimension.
    """

    axis: str
    width: int

    def on(self, kernel: Kernel) -> Kernel:
        if not kernel.as_stated:
            raise ActionError(f"{self}: comes before any change to the loops, and before the kernel is parted")
        root = kernel.whole.roots[find(kernel.whole, self.axis, self).root]
        if not root.reduce and reduces(kernel.whole):
            raise ActionError(f"{self}: {self.axis} is not a reduction, and there is one")
        if not isinstance(root.extent, int) or not [*inside(self.width, root)]:
            raise ActionError(f"{self}: {self.width} is not a part of the {root.extent} iterations that divides them")
        return stated(cut(kernel.whole, root, self.width))


def proposed(kernel: Kernel, target: Target) -> Iterator[CutDimension]:
    """The actions that make accesses simpler: each dimension is cut where it is divided, or where masks part it evenly.

    ``x[k] * scale[k//32]`` over k becomes ``x[a*32 + b] * scale[a]`` over a and b.
    """
    nest, known = kernel.whole, kernel.as_stated
    while known and (action := next(cuts(nest, outputs=target.walks_memory), None)) is not None:
        yield action
        nest = cut(nest, nest.roots[nest.axis(action.axis).root], action.width)


def cuts(nest: Nest, outputs: bool = True) -> Iterator[CutDimension]:
    """All cuts after which some access is simpler, of whichever dimension.

    Args:
      nest: its loops are those of whole dimensions.
      outputs: whether dimensions of the output may be cut.
    """
    divided, parted = quotients(nest), list(masks(nest))
    if outputs and divided and not reduces(nest):
        for root in output_roots(nest):
            mine = [e for e in divided if root.var in e.variables()]
            yield from (CutDimension(loop_of(nest, root), w) for w in widths(nest, root, mine, ()) if w >= LONG_PART)
    for root in reduced_roots(nest):
        for width in widths(nest, root, [e for e in divided if root.var in e.variables()], parted):
            yield CutDimension(loop_of(nest, root), width)


def loop_of(nest: Nest, root: Root) -> str:
    """The name of the loop over a whole dimension."""
    return next(axis.name for axis in nest.axes if axis.root is root.var)


def reduced_roots(nest: Nest) -> list[Root]:
    """The reduced dimensions of known extent."""
    return [root for root in nest.roots.values() if root.reduce and isinstance(root.extent, int)]


def output_roots(nest: Nest) -> list[Root]:
    """The dimensions of known extent that outputs have."""
    return [root for root in nest.roots.values() if not root.reduce and isinstance(root.extent, int)]


def reduces(nest: Nest) -> bool:
    """Whether the nest reduces anything."""
    return any(node.op is NodeOp.REDUCE for node in nest.nodes())


def widths(nest: Nest, root: Root, divided: Sequence[Expr], parted: Sequence[Expr]) -> Iterator[int]:
    """Where ``root`` can be cut so that accesses become simpler.

    Args:
      nest: its loops are those of whole dimensions.
      root: one of its dimensions.
      divided: the quotients and remainders that depend on it.
      parted: all masks.
    """
    for width in sorted({d for e in divided for d in divisors(e, root)}, reverse=True):
        parts = cut(nest, root, width)
        new = parts.roots.keys() - nest.roots.keys()
        if sum(not new.isdisjoint(e.variables()) for e in quotients(parts)) < len(divided):
            yield width
    yield from sorted({w for mask in parted for w in thresholds(mask, root)}, reverse=True)


def divisors(e: Expr, root: Root) -> Iterator[int]:
    """Where a quotient or a remainder wants ``root`` cut, if that is inside of it with nothing left over."""
    numerator, by = e.args
    if isinstance(numerator, Expr) and isinstance(by, int):
        step = dict(linear_terms(numerator)[0]).get(root.var, 0)
        if step > 0 and by % step == 0:
            yield from inside(by // step, root)


def thresholds(mask: Expr, root: Root) -> Iterator[int]:
    """Where a mask on ``root`` alone parts it into a few equal parts."""
    if mask.op == "lt" and isinstance(mask.args[0], Expr) and isinstance(mask.args[1], int):
        terms, const = linear_terms(mask.args[0])
        if len(terms) == 1 and terms[0][0] is root.var and abs(terms[0][1]) == 1:
            at = mask.args[1] - const if terms[0][1] > 0 else 1 + const - mask.args[1]
            if at <= SHORT_DIMENSION and at * FEW_PARTS >= int(root.extent):
                yield from inside(at, root)


def inside(width: int, root: Root) -> Iterator[int]:
    """``width``, if several of it make up the whole of ``root``."""
    if 1 < width < int(root.extent) and int(root.extent) % width == 0:
        yield width
