"""Trimming: a sum leaves out the terms that masks make 0.

A padded operand is 0 where its mask does not hold, and so is every product with it. Where a mask bounds the counter of
a serial reduction loop by what is open around the loop, the loop runs over the iterations in which the mask holds, and
the mask is not asked for inside. A mask may also say that the counter leaves a remainder, as the zeros between the
elements of a transposed convolution do: the loop then takes steps of the divisor. Where the loop is unrolled, its
copies whose mask is known not to hold are left out; a loop of tiles has its first and its last ones by themselves for
that (:func:`tg_codegen.nest.interior.settled`). That 0 times infinity would be NaN is not kept: padding adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from tg_lazy import Ops
from tg_shape import Expr, ceildiv, coefficient, sint, smax, smin

from .env import Env
from .nest import Axis, Nest, Node
from .spec import SERIAL, Kind, NodeOp


def conditions(mask: sint) -> Iterator[Expr]:
    """The conditions of which a mask is the conjunction."""
    stack = [mask]
    while stack:
        here = stack.pop()
        if isinstance(here, Expr):
            if here.op == "and":
                stack.extend(here.args)
            else:
                yield here


def nonzero(term: Node) -> frozenset[Expr]:
    """Conditions that all have to hold for a term not to be 0."""
    if term.op is Ops.MUL:
        return nonzero(term.src[0]) | nonzero(term.src[1])
    if term.op in (Ops.CAST, Ops.NEG):
        return nonzero(term.src[0])
    if term.op is NodeOp.LOAD:
        return frozenset(conditions(term.arg[2]))
    if term.op is NodeOp.SELECT:
        return frozenset(conditions(term.arg)) | nonzero(term.src[0])
    return frozenset()


def needed(reduction: Node) -> frozenset[Expr]:
    """Conditions that all have to hold for a term of a reduction to change the result."""
    return nonzero(reduction.src[0]) if reduction.arg[0] is Ops.ADD else frozenset()


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What masks leave of a loop: ``first`` and every ``step``-th iteration from there on, up to ``end``."""

    first: sint
    end: sint
    step: int = 1

    @property
    def count(self) -> sint:
        """How many iterations; 0 or less where none is left."""
        left = self.end - self.first
        return left if self.step == 1 else ceildiv(left, self.step)


def congruence(condition: Expr) -> tuple[Expr, int] | None:
    """A number and what it has to be a multiple of, if a condition says so: ``(a + b)%2 < 1`` gives ``a + b``, 2."""
    left, room = condition.args
    if condition.op != "lt" or room != 1 or not isinstance(left, Expr) or left.op != "mod":
        return None
    number, period = left.args
    return (number, period) if isinstance(number, Expr) and isinstance(period, int) else None


def bounding(nest: Nest, reduction: Node) -> dict[Expr, Axis]:
    """Conditions that trim a loop of a reduction, and the loop."""
    found: dict[Expr, Axis] = {}
    stepped: set[Axis] = set()
    for condition in sorted(needed(reduction), key=Expr.render):
        if condition.op != "lt" or not isinstance(condition.args[0], Expr) or not isinstance(condition.args[1], int):
            continue
        roots = [v for v in condition.variables() if v in nest.roots]
        loops = [a for root in roots for a in nest.of_root(root)]
        inner = [a for a in loops if a.kind is Kind.REDUCE and a.root in reduction.arg[1]]
        if len(inner) != 1 or any(a.kind not in SERIAL for a in loops) or inner[0].stride != 1:
            continue
        if any(nest.roots[root].reduce and root is not inner[0].root for root in roots):
            continue
        multiple = congruence(condition)
        if multiple is None:
            if coefficient(condition.args[0], inner[0].root):
                found[condition] = inner[0]
        elif inner[0] not in stepped and gcd(coefficient(multiple[0], inner[0].root) or 0, multiple[1]) == 1:
            stepped.add(inner[0])
            found[condition] = inner[0]
    return found


def trimmed(axis: Axis, masks: list[Expr], env: Env) -> Trimmed:
    """What the masks of a loop leave of it."""
    first: sint = 0
    end = axis.extent
    remainder: tuple[sint, int] | None = None
    for condition in masks:
        left, room = condition.args
        assert isinstance(left, Expr) and isinstance(room, int)
        multiple = congruence(condition)
        if multiple is not None:
            left, period = multiple
        by = coefficient(left, axis.root)
        assert by
        rest = left - axis.root * by
        here = env.of(rest)
        if multiple is not None:
            remainder = -here * pow(by, -1, period), period  # by * counter + here is a multiple of the period
        elif by > 0:
            end = smin(end, ceildiv(room - here, by))  # by * counter < room - here
        else:
            first = smax(first, -(room - here) // -by + 1)
    if remainder is None:
        return Trimmed(first, end)
    return Trimmed(first + (remainder[0] - first) % remainder[1], end, remainder[1])


def masks_of(axis: Axis, found: dict[Expr, Axis]) -> list[Expr]:
    """The conditions that trim one loop, in an order that does not change."""
    return sorted((e for e, a in found.items() if a is axis), key=Expr.render)


def trimming(nest: Nest) -> frozenset[Expr]:
    """All conditions of a nest that trim loops."""
    return frozenset(e for n in nest.nodes() if n.op is NodeOp.REDUCE for e in bounding(nest, n))

