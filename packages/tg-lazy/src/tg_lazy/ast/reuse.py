"""Kernels that work in place: an output in the memory of an input that nobody needs afterwards."""

from __future__ import annotations

from ..ops import Ops
from . import nodes as ast
from .nodes import BufferArg, LazyOp


def replaceable(sink: LazyOp) -> dict[int, tuple[int, ...]]:
    """Which inputs each output of a kernel could overwrite: those that are read only at the element being written.

    Returns:
      For each output slot the input slots, in order; outputs that could overwrite none are left out.
    """
    stores = {store.arg[0]: store for store in sink.src}
    if len({store.src[0].shape for store in sink.src}) != 1 or len(stores) != len(sink.src):
        return {}  # several loop nests: one might read what another has overwritten
    if any(arg.internal for arg in sink.arg) or any(store.op is Ops.UPDATE for store in sink.src):
        return {}
    read: dict[int, set[object]] = {}
    seen: set[tuple[LazyOp, bool]] = set()
    stack = [(store.src[0], True) for store in sink.src]
    while stack:
        node, one_by_one = stack.pop()
        if (node, one_by_one) in seen:
            continue
        seen.add((node, one_by_one))
        if node.op in (Ops.LOAD, Ops.GATHER):
            slot, st = node.arg
            read.setdefault(slot, set()).add(st if one_by_one and node.op is Ops.LOAD else None)
        inner = one_by_one and node.op not in (Ops.VIEW, Ops.REDUCE)
        stack.extend((src, inner) for src in node.src)
    found = {}
    for slot, store in stores.items():
        own = store.arg[1]
        if any(view.mask is not None for view in own.views):
            continue
        same = [n for n, places in read.items() if places == {own} and sink.arg[n] == sink.arg[slot]]
        fits = tuple(sorted(n for n in same if n not in stores))
        if fits and slot not in read:
            found[slot] = fits
    return found


def in_place(sink: LazyOp, taken: dict[int, int]) -> LazyOp:
    """The kernel with some outputs in the place of inputs.

    Args:
      sink: the kernel.
      taken: for an input slot the output slot that takes its place, as :func:`replaceable` allows it. The input's slot
        is gone, and later ones move up.
    """
    numbers: dict[int, int] = {}
    arguments: list[BufferArg] = []
    for slot, arg in enumerate(sink.arg):
        if slot not in taken:
            numbers[slot] = len(arguments)
            arguments.append(arg)
    for slot, output in taken.items():
        numbers[slot] = numbers[output]
    made: dict[LazyOp, LazyOp] = {}
    for node in sink.toposort():
        src = tuple(made[s] for s in node.src)
        arg = node.arg
        if node.op in (Ops.LOAD, Ops.GATHER, Ops.STORE):
            arg = (numbers[arg[0]], arg[1])
        if node is sink:
            return ast.sink(src, tuple(arguments))
        made[node] = LazyOp(node.op, node.dtype, node.shape, src, arg)
    raise AssertionError("a kernel ends in its SINK")
