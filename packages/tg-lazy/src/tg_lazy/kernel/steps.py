"""The kernel of a step, and the one kernel of several steps that hand rows to one another."""

from __future__ import annotations

from collections.abc import Sequence

from ..ast.nodes import BufferArg, LazyOp
from ..ast.nodes import sink as sink_of
from ..fusion.step import Step
from ..graph.storage import Storage
from ..ops import Ops
from .builder import KernelBuilder
from .frames import frames_of


def build_kernel(step: Step) -> tuple[LazyOp, KernelBuilder]:
    """A kernel's AST and memory: over the loops of the reduction that it finishes, if that keeps reads simple."""
    builder = KernelBuilder(step.roots, step.swaps)
    sink = builder.build(frames_of(step.roots, step.space.shape, step.finished))
    if step.finished is not None and _views(sink) > len(builder.slots):
        plain = KernelBuilder(step.roots, step.swaps)
        other = plain.build(frames_of(step.roots, step.space.shape, None))
        if _views(other) < _views(sink):
            return other, plain
    return sink, builder


def _views(sink: LazyOp) -> int:
    return sum(len(n.arg[1].views) for n in sink.toposort() if n.op in (Ops.LOAD, Ops.STORE))


def build_row_kernel(run: Sequence[Step]) -> tuple[LazyOp, tuple[Storage, ...], list[KernelBuilder]]:
    """The kernel of steps that share a kernel in blocks of rows: what one hands to the next is internal."""
    inside = [root.storage for step in run[:-1] for root in step.roots]
    inputs = [step.swaps.get(node, node).storage for step in run for node in step.inputs]
    storages = dict.fromkeys([root.storage for root in run[-1].roots] + [s for s in inputs if s not in inside] + inside)
    slots = {storage: slot for slot, storage in enumerate(s for s in storages if s is not None)}
    stores: list[LazyOp] = []
    builders = [KernelBuilder(step.roots, step.swaps) for step in run]
    for step, builder in zip(run, builders, strict=True):
        builder.slots = slots
        order = step.finished or (step.rearranged if step is run[-1] else None)
        stores += builder.build(frames_of(step.roots, step.space.shape, order)).src
    arguments = tuple(BufferArg(s.dtype, s.size, s in inside) for s in slots)
    return sink_of(tuple(stores), arguments), tuple(s for s in slots if s not in inside), builders
