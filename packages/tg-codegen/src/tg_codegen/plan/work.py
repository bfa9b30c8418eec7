"""How long one core of a CPU takes for what a kernel computes, whether several are worth waking for it.

It is told from what is computed alone, before there is a plan, and as if vectors were filled: a plan may take longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from tg_lazy import BY_DIVIDER, INTEGER_DIVISIONS, TRANSCENDENTAL, Ops
from tg_shape import Variable, coefficient, sint, upper

from ..machine.target import Target
from ..nest.nest import Nest, Node, is_elementwise
from ..nest.spec import READS, NodeOp


def worth_threads(nest: Nest, target: Target) -> bool:
    """Whether what a nest computes takes one core longer than waking others for it, if they are not awake anyway."""
    return target.threads > 1 and (target.awake or core_cycles(nest, target) >= target.cpu.thread_cycles)


def core_cycles(nest: Nest, target: Target) -> float:
    """About how many cycles one core takes for what a nest computes."""
    costs, takes, touched = target.cpu, 0.0, dict[tuple[int, sint], int]()
    for node in nest.nodes():
        points = _points(nest, node.free | set(node.arg[1]) if node.op is NodeOp.REDUCE else node.free)
        takes += points * _cycles(node, target)
        if node.op is NodeOp.LOAD:
            slot, index, _ = node.arg
            touched[slot, index] = points * node.dtype.itemsize
    for store in nest.stores:
        points = _points(nest, store.roots)
        near = _contiguous(store.index, store.roots, store.update is not None)
        takes += points * (costs.store / _width(store.value, target) if near else costs.scattered)
        touched[store.slot, store.index] = points * store.value.dtype.itemsize
    line = costs.line(sum(touched.values()), target.l2_bytes, target.last_bytes)
    return takes + sum(touched.values()) / target.line_bytes * line


def _points(nest: Nest, roots: Iterable[Variable]) -> int:
    return prod(upper(nest.roots[root].extent) for root in roots)


def _width(node: Node, target: Target) -> int:
    return max(1, target.vector_bytes // max(1, node.dtype.itemsize))


def _contiguous(index: sint, roots: Iterable[Variable], computed: bool) -> bool:
    """Whether elements are neighbours along some dimension; or there is but one, as where no place is computed."""
    steps = [coefficient(index, root) for root in roots]
    return 1 in steps or -1 in steps or not (computed or any(step != 0 for step in steps))


def _cycles(node: Node, target: Target) -> float:
    """Cycles of one element of a node's value."""
    costs, width = target.cpu, _width(node, target)
    if node.op in READS:
        near = _contiguous(node.arg[1], node.free, node.op is not NodeOp.LOAD)
        return costs.load / width if near else costs.scattered
    if node.op is NodeOp.REDUCE:
        term = node.src[0]
        fused = term.op is Ops.MUL and target.fused_multiply_add and node.arg[0] is Ops.ADD
        return 0.0 if fused else 1 / costs.units / width
    if not is_elementwise(node):
        return 0.0
    if node.op in TRANSCENDENTAL:
        return costs.function / width
    if node.op in BY_DIVIDER:
        return costs.division / width
    return costs.integer_division if node.op in INTEGER_DIVISIONS else 1 / costs.units / width
