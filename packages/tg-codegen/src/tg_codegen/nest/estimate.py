"""What a kernel costs: operations and bytes, from its nodes."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import CONVERSIONS, Ops
from tg_shape import prod, sint, smin

from ..ir.program import Estimates
from .nest import Nest, Node, is_elementwise
from .spec import READS, NodeOp


def points(nest: Nest, node: Node) -> sint:
    """At how many points of the iteration space a node has a value of its own."""
    return prod([nest.roots[root].extent for root in node.free])


def flops_of(nest: Nest, node: Node) -> sint:
    """Operations that one node takes in all."""
    if node.op is NodeOp.REDUCE:
        return points(nest, node.src[0]) if node.src[0].free >= frozenset(node.arg[1]) else points(nest, node) * prod(
            [nest.roots[root].extent for root in node.arg[1]])
    if is_elementwise(node) and node.op not in CONVERSIONS and not dtypes.is_bool(node.dtype):
        return points(nest, node) * (2 if node.op is Ops.MULACC else 1)
    return 0


def estimate(nest: Nest) -> Estimates:
    """The cost of a kernel; index arithmetic is not counted."""
    flops: sint = 0
    lds: sint = 0
    touched: dict[int, sint] = {}
    for node in nest.nodes():
        flops = flops + flops_of(nest, node)
        if node.op in READS:
            count = points(nest, node)
            lds = lds + count * node.dtype.itemsize
            slot = node.arg[0]
            touched[slot] = smin(touched.get(slot, 0) + count, nest.buffers[slot].size)
    mem: sint = 0
    for slot, count in touched.items():
        if nest.buffers[slot].internal:
            continue
        mem = mem + count * nest.buffers[slot].dtype.itemsize
    for store in nest.stores:
        nbytes = prod([nest.roots[root].extent for root in store.roots]) * nest.buffers[store.slot].dtype.itemsize
        lds = lds + nbytes
        if not nest.buffers[store.slot].internal:
            mem = mem + nbytes
        if store.update is not None:
            lds, mem = lds + nbytes, mem + nbytes
    return Estimates(flops, lds, mem)
