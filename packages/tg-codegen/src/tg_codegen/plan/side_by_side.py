"""Short dimensions whose iterations are computed side by side, because what they have in common is computed once.

Where an output is chosen, along a dimension, from sums and differences of the same operands, as in a butterfly of a
Fourier transform, each iteration asks for much that another one computes, too. Copies of the code for all of them share
it: values are remembered by the dimensions that they depend on. Conditions on such a dimension are known in each copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tg_lazy import Ops
from tg_shape import Variable

from ..nest.nest import Nest, Node, Root, is_elementwise

MOST_BESIDE = 64
"""Copies of the code of a kernel, at the most: of 16 complex numbers both parts, and as much again."""
SAVED = 1.5
"""Times that a kernel has less to compute, from which on short dimensions are side by side."""
NEEDED = 1.1
"""Times that it has less for one of these dimensions alone: others make only the code longer."""
LEAST_SAVED = 8
"""Operations for an element that are saved, at the least: fewer are hidden by what memory takes."""


def operation(node: Node) -> float:
    """One for each operation on values."""
    return float(is_elementwise(node))


def common_dimensions(
    nest: Nest, rows: Sequence[Root], lanes: Root | None = None, weigh: Callable[[Node], float] = operation
) -> list[Root]:
    """The dimensions of an output without reductions that are to be side by side, each of them whole; often none.

    On each of them a condition depends, so that its copies are of different code.

    Args:
      nest: its loops are not changed yet.
      rows: the dimensions of the output.
      lanes: that of the lanes, which is none of them; then only what differs from lane to lane is counted.
      weigh: how much work a node is.
    """
    tested = {var for node in nest.nodes() if node.op is Ops.WHERE for var in node.src[0].free}
    short, copies = list[Root](), 1
    for root in sorted(rows, key=lambda r: r.extent if isinstance(r.extent, int) else MOST_BESIDE):
        few = isinstance(root.extent, int) and 2 <= root.extent <= MOST_BESIDE // copies
        if few and root is not lanes and root.var in tested:
            short.append(root)
            copies *= _extent(root)
    nodes = [(n, weigh(n)) for n in nest.nodes() if n.free and (lanes is None or lanes.var in n.free)]

    def work(chosen: Sequence[Root]) -> float:
        """For an element, where those dimensions are side by side."""
        known = {r.var for r in chosen}
        return sum(
            weight / prod(_extent(r) for r in chosen if r.var not in node.free)
            for node, weight in nodes
            if node.op is not Ops.WHERE or not node.src[0].free <= known
        )

    chosen = short
    for root in short:
        without = [r for r in chosen if r is not root]
        if work(without) < NEEDED * work(chosen):
            chosen = without
    before, after = work([]), work(chosen)
    return chosen if before >= SAVED * after and before - after >= LEAST_SAVED else []


def are_common(nest: Nest, variables: Sequence[Variable]) -> bool:
    """Whether a planner is to put one of these dimensions side by side with itself."""
    rows = [root for root in nest.roots.values() if not root.reduce]
    return any(root.var in variables for root in common_dimensions(nest, rows))


def _extent(root: Root) -> int:
    assert isinstance(root.extent, int)
    return root.extent
