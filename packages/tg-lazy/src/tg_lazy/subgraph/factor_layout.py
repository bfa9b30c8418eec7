"""Factors of products that are copied first, with the terms of each result side by side.

Of ``A.T @ B`` both factors have *results* side by side: vectors lie along those of the one, and what a row of results
has of the other lies a row of memory apart for each term. Where a core's cache does not hold both, each thread would
pack it in pieces, and again for every group of vectors. All threads together copy it once in less time.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..cost import limits_of
from ..graph.operand_layout import Walked, walked
from ..ops import Ops
from ..trackers import contiguous
from .node import Edge, Node

SAVED = 1 / 16
"""Part of a product's time that a copy saves beside its own, at the least where this module makes one.

No probe measures it: it is set low, so that a copy is made only where an element is read by very many results.
"""


def lay_out_factors(nodes: list[Node]) -> list[Node]:
    """Copies the factors for which that pays.

    Args:
      nodes: operands before what uses them; products whose factors are copied change.

    Returns:
      All nodes, the copies before what uses them, numbered anew.
    """
    wanted: dict[Node, tuple[int, Walked]] = {}
    for node in nodes:
        found = _factor(node) if node.op is Ops.REDUCE else None
        if found is not None:
            wanted.setdefault(node.srcs[0][0], found)
    if not wanted:
        return nodes
    copies: dict[Edge, Node] = {}
    laid_out: list[Node] = []
    for node in nodes:
        if node in wanted:
            number, axes = wanted[node]
            source, st = node.srcs[number]
            assert st is not None
            order = [*axes.rest, *axes.results, *axes.terms]
            seen = st.shrink(axes.once).permute(tuple(order))
            copy = copies.get((source, seen))
            if copy is None:
                edges = ((source, seen),)
                copy = Node(Ops.CONTIGUOUS, source.device, source.dtype, seen.shape, edges, None, node.origin)
                copy.reason = "a factor of a product, copied with the terms of each result side by side"
                copies[source, seen] = copy
                laid_out.append(copy)
            back = tuple(order.index(axis) for axis in range(len(order)))
            edge = copy, contiguous(copy.shape).permute(back).expand(node.shape)
            node.srcs = (*node.srcs[:number], edge, *node.srcs[number + 1 :])
        laid_out.append(node)
    for index, node in enumerate(laid_out):
        node.index = index
    return laid_out


def _factor(node: Node) -> tuple[int, Walked] | None:
    """Which factor of a sum of products is to be copied, the one with fewer elements, and how it is walked."""
    (product, seen), (op, reduced) = node.srcs[0], node.arg
    limits = limits_of(node.device)
    if not limits.factor_bytes or op is not Ops.ADD or seen is not None or product.op is not Ops.MUL or product.reason:
        return None
    factors = list(_walks(product, reduced))
    if len(factors) != 2 or any(not axes.beside for axes in factors):
        return None
    common = set(factors[0].results) & set(factors[1].results)
    sizes = [prod(axes.shape[a] for a in (*axes.results, *axes.terms) if a not in common) for axes in factors]
    if sum(sizes) * product.dtype.itemsize <= limits.factor_bytes:
        return None
    number = sizes.index(min(sizes))
    axes = factors[number]
    if not axes.terms or common.issuperset(axes.results):  # vectors lie along its results as along the other's
        return None
    elements = prod(axes.shape[a] for a in (*axes.results, *axes.terms))
    saved = 2 * axes.reads * elements * SAVED
    moved = 2 * elements * product.dtype.itemsize + limits.launch_bytes
    return (number, axes) if saved > moved * limits.balance else None


def _walks(product: Node, reduced: tuple[int, ...]) -> Iterator[Walked]:
    """How a product's factors are walked, of those that are in memory as plain arrays."""
    for source, st in product.srcs:
        axes = None if st is None or source.op is Ops.CONST else walked(st, source.dtype, reduced)
        if axes is not None and axes.plain:
            yield axes
