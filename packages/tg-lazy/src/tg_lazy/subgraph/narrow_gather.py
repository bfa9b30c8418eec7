"""Lookups in computed tables: few elements are looked up in the operands, and only those are computed.

``gather(f(a, b), i)`` is ``f(gather(a, i), gather(b, i))`` where ``f`` works element by element. A table that is read
at computed places has to be in memory, so an embedding that is kept in another form (in half precision, in blocks of
integers) would be converted as a whole for a row that is wanted, and be kept so.
"""

from __future__ import annotations

from tg_dtype import dtypes
from tg_shape import Expr, ShapeTracker

from ..ops import ALU, LEAVES, Ops
from ..trackers import contiguous, masked, over, repeated
from .node import Edge, Node

MARGIN = 8
"""A table is computed as a whole unless all lookups together read fewer than an eighth as many elements as it has.

Looking up at a computed place takes some times as long as reading the next element.
"""

MOST_OPERANDS = 64
"""Operands of the longest function that is computed for each lookup in it: many lookups repeat it many times."""


def narrow_gathers(nodes: list[Node]) -> list[Node]:
    """Rewrites the lookups among some nodes for which that is less work.

    Args:
      nodes: operands before what uses them; lookups that are rewritten change.

    Returns:
      All nodes, the new ones before what uses them, numbered anew.
    """
    wanted: dict[Node, int] = {}
    for node in nodes:
        if node.op is Ops.GATHER:
            source = node.srcs[0][0]
            wanted[source] = wanted.get(source, 0) + node.size
    if not any(_computed(source) for source in wanted):
        return nodes
    found: list[Node] = []
    for node in nodes:
        if node.op is Ops.GATHER:
            source, st = node.srcs[0]
            leaves = _leaves(source, st or contiguous(source.shape)) if _computed(source) else None
            if leaves and wanted[source] * len(leaves) * MARGIN <= source.size:
                found += _rewritten(node)
        found.append(node)
    for index, node in enumerate(found):
        node.index = index
    return found


def _computed(node: Node) -> bool:
    """Whether a node is a function of others, element by element, that need not be in memory."""
    return node.op in ALU and not node.reason


def _leaves(source: Node, st: ShapeTracker) -> dict[Edge, None] | None:
    """What has to be looked up for an element of ``source`` seen through ``st``; None if that cannot be."""
    leaves: dict[Edge, None] = {}
    stack: list[tuple[Node, ShapeTracker]] = [(source, st)]
    met = set(stack)
    while stack:
        node, seen = stack.pop()
        if len(met) > MOST_OPERANDS or masked(seen) or any(isinstance(dim, Expr) for dim in (*node.shape, *seen.shape)):
            return None
        if _computed(node):
            for src, own in node.srcs:
                edge = src, over(own, seen) or seen
                if edge not in met:
                    met.add(edge)
                    stack.append(edge)
        elif node.op not in LEAVES or node.reason:
            leaves[node, seen] = None
        elif node.op is not Ops.CONST:
            return None
    return leaves


def _rewritten(gather: Node) -> list[Node]:
    """Makes a lookup the function of lookups, 0 where the index is outside; returns the nodes that come before it."""
    (source, st), index = gather.srcs
    shape = gather.shape
    made: dict[tuple[Node, ShapeTracker], Edge] = {}
    added: list[Node] = []

    def new(op: Ops, like: Node, srcs: tuple[Edge, ...]) -> Edge:
        added.append(Node(op, like.device, like.dtype, shape, srcs, like.arg, gather.origin))
        return added[-1], None

    def constant(value: int, like: Node) -> Edge:
        arg = dtypes.as_const(value, like.dtype)
        added.append(Node(Ops.CONST, like.device, like.dtype, (), (), arg, gather.origin))
        return added[-1], repeated(shape)

    def compare(a: Edge, b: Edge) -> Edge:
        added.append(Node(Ops.CMPLT, gather.device, dtypes.bool, shape, (a, b), None, gather.origin))
        return added[-1], None

    top = source, st or contiguous(source.shape)
    stack = [top]
    while stack:
        node, seen = stack[-1]
        if (node, seen) in made:
            stack.pop()
            continue
        if _computed(node):
            operands = [(src, over(own, seen) or seen) for src, own in node.srcs]
            missing = [operand for operand in operands if operand not in made]
            if missing:
                stack += missing
                continue
            made[node, seen] = new(node.op, node, tuple(made[operand] for operand in operands))
        elif node.op is Ops.CONST:
            made[node, seen] = node, repeated(shape)
        else:
            made[node, seen] = new(Ops.GATHER, node, ((node, seen), index))
        stack.pop()
    value, zero, counter = made[top], constant(0, gather), index[0]
    size = top[1].size
    assert isinstance(size, int)
    if size <= dtypes.max(counter.dtype):
        value = new(Ops.WHERE, gather, (compare(index, constant(size, counter)), value, zero))
    gather.op, gather.arg, gather.srcs = Ops.WHERE, None, (compare(index, constant(0, counter)), zero, value)
    return added
