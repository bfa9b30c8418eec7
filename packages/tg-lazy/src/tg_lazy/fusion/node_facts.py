"""Facts about each node that no decision changes: arithmetic, bytes read, and which reduction it finishes."""

from __future__ import annotations

from collections.abc import Iterable

from tg_dtype import dtypes
from tg_shape import prod

from ..cost import FLOPS, limits_of
from ..ops import ALU, LEAVES, Ops
from ..subgraph.graph import Graph
from ..subgraph.node import Edge, Node, seen_shape
from ..trackers import masked, max_size
from .step import aligned


class NodeFacts:
    """Tables over a graph's nodes, by index; what has to be memory has its reason (:func:`.fusion.require`).

    Attributes:
      flops: arithmetic of one element, from memory and reductions up to here.
      reads: bytes read to compute the whole value once.
      largest: elements of the largest memory operand or reduction that the value is computed from.
      constant: whether the value is one number everywhere.
      consumers: how many nodes use it.
      finishes: the reduction that the value is an elementwise function of, element by element, where nothing else uses
        what lies between.
      rows: how many rows the value is computed in, if it is a function of a reduction of each row; else 0.
    """

    def __init__(self, graph: Graph) -> None:
        n = len(graph.nodes)
        self.flops = [0.0] * n
        self.reads = [0.0] * n
        self.largest = [0] * n
        self.constant = [False] * n
        self.consumers = [0] * n
        self.finishes: list[Node | None] = [None] * n
        self.rows = [0] * n
        for node in graph.nodes:
            for src in {src.index for src, _ in node.srcs}:
                self.consumers[src] += 1
        for node in graph.nodes:
            self._survey(node)

    def _survey(self, node: Node) -> None:
        i, op = node.index, node.op
        if op in LEAVES:
            self.constant[i] = op is not Ops.IOTA
            return
        if op is Ops.REDUCE:
            (source, st), = node.srcs
            self.constant[i] = self.constant[source.index] and not (st is not None and masked(st))
            self.finishes[i] = None if node.reason else node
        if node.reason or op is Ops.REDUCE:
            self.reads[i], self.largest[i] = float(node.nbytes), node.size
            return
        flops, reads, largest, constant, rows = FLOPS[op], 0.0, 0, True, 0
        finishes: Node | None = None
        for src, st in node.srcs if len(node.srcs) == 1 else dict.fromkeys(node.srcs):
            j = src.index
            flops += self.flops[j] if src.size >= node.size else self.flops[j] * src.size / node.size
            reads += self.reads[j]
            if self.largest[j] > largest:
                largest = self.largest[j]
            if src.size == node.size:
                rows = rows or self.rows[j]
            elif st is not None and src.size < node.size and self.finishes[j] is not None:
                if aligned(st.shape, range(len(st.shape)), st, prod(src.shape)):
                    rows = src.size
            constant = constant and self.constant[j] and not (st is not None and masked(st))
            if (
                finishes is None and self.finishes[j] is not None and self.consumers[j] == 1
                and src.size == node.size and not (st is not None and masked(st))
            ):  # fmt: skip
                finishes = self.finishes[j]
        if node.size > 2 * largest:  # an outer product: it is much larger than what it would save reading
            rows = 0
        self.finishes[i], self.rows[i], self.constant[i] = finishes, rows, constant
        if finishes is not None and self.consumers[i] > 1:  # likely to be realised, as the end of an epilogue
            flops, reads, largest = 0.0, float(node.nbytes), node.size
        self.flops[i], self.reads[i], self.largest[i] = min(flops, 1e15), reads, largest

    def contracts(self, node: Node) -> bool:
        """Whether a reduction uses its operands many times over, as a large matrix product does."""
        source, _ = node.srcs[0]
        largest = self.largest[source.index] if not source.reason else source.size
        count = max_size(seen_shape(node.srcs[0]))
        return count > 2 * largest > 0 and count > limits_of(node.device).serial_elements

    def gives_blocks(self, node: Node, axes: Iterable[int]) -> bool:
        """Whether a contraction of integers gives blocks of longer sums, which run over some axes of its results.

        Both factors differ along each of these: all blocks together read what one long contraction would. A factor that
        does not would be read anew for each block, as a matrix is whose products' columns are added up.
        """
        product, st = node.srcs[0]
        if not dtypes.is_int(node.dtype) or product.op is not Ops.MUL or product.reason or st is not None:
            return False
        walked = [self._walked(factor) for factor in product.srcs]
        return all(axis in axes_of for axis in axes for axes_of in walked)

    def _walked(self, edge: Edge) -> frozenset[int]:
        """Axes of what an operand shows along which its elements surely are others."""
        found = set[int]()
        stack, met = [edge], set[Edge]()
        while stack:
            edge = stack.pop()
            if edge in met:
                continue
            met.add(edge)
            node, st = edge
            if st is not None:
                if len(st.views) == 1:
                    found.update(axis for axis, stride in enumerate(st.views[0].strides) if stride != 0)
            elif node.op in ALU and not node.reason:
                stack += node.srcs
            else:
                found.update(axis for axis, dim in enumerate(node.shape) if not (isinstance(dim, int) and dim == 1))
        return frozenset(found)
