"""Kernel formation: the nodes that share a kernel become its AST, with every view pushed down to what it reads."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import dtypes
from tg_shape import ShapeTracker

from .. import ast
from ..ast import fold
from ..ast.nodes import BufferArg, LazyOp
from ..graph.storage import Storage
from ..ops import ALU, DIVISIONS, LEAVES, Ops
from ..subgraph.node import Edge, Node, seen_shape, target_of, update_of
from ..trackers import contiguous, masked, over, unmasked

Seen = tuple[Node, ShapeTracker | None, bool]
"""A node, how it is seen, and whether it has to be 0 in padding: where nobody looks at that, it may be anything."""


class KernelBuilder:
    """Builds one kernel's AST.

    Masked views are pushed through ops, too. Where an op of zeros is not 0, a select restores the padding's 0. A gather
    has one around it: its index may be anything in padding, and steps from lane to lane as it does elsewhere.

    Attributes:
      slots: the kernel's memory, in slot order: outputs first.
    """

    def __init__(self, roots: Sequence[Node], swaps: dict[Node, Node]) -> None:
        self.roots, self.swaps = roots, swaps
        self.inside = frozenset(roots)
        self.slots: dict[Storage, int] = {}
        self.memo: dict[Seen, LazyOp] = {}

    def build(self, frames: Sequence[ShapeTracker | None]) -> LazyOp:
        """The kernel: its SINK.

        Args:
          frames: for each root how the kernel's loops map to its elements; None: as they are.
        """
        for root in self.roots:
            self.slot(root)
        stores = [self.store(root, frame) for root, frame in zip(self.roots, frames, strict=True)]
        return ast.sink(tuple(stores), tuple(BufferArg(s.dtype, s.size) for s in self.slots))

    def slot(self, node: Node) -> int:
        """The slot of a realised node."""
        storage = self.swaps.get(node, node).storage
        assert storage is not None, f"{node!r} is read before it has memory"
        return self.slots.setdefault(storage, len(self.slots))

    def store(self, root: Node, frame: ShapeTracker | None) -> LazyOp:
        """The store that realises ``root``."""
        update = update_of(root)
        if update is not None:
            op, where, found, distinct = update.arg
            operands = [self.value(*edge) for edge in update.srcs]
            return ast.update(self.slot(root), where, operands[0], operands[1], op, found, distinct)
        st = over(target_of(root)[1], frame) or contiguous(root.shape)
        if root.op is Ops.ASSIGN:  # the loops are those of the part that it writes
            value, own = root.srcs[1]
            return ast.store(self.slot(root), st, self.value(value, over(own, frame)))
        return ast.store(self.slot(root), st, self.value(root, frame))

    def value(self, node: Node, st: ShapeTracker | None) -> LazyOp:
        """``node`` seen through ``st``."""
        memo = self.memo
        stack: list[tuple[Seen, list[Seen] | None]] = [((node, st, True), None)]
        while stack:
            top, needs = stack[-1]
            if top in memo:
                stack.pop()
                continue
            if needs is None:
                needs = self.needs(*top)
                stack[-1] = top, needs
            ready = len(stack)
            for need in reversed(needs):
                if need not in memo:
                    stack.append((need, None))
            if len(stack) == ready:
                memo[top] = self.build_node(*top, [memo[need] for need in needs])
                stack.pop()
        return memo[node, st, True]

    def computed(self, node: Node) -> bool:
        """Whether ``node`` is computed in this kernel, not read from memory."""
        return not node.reason or node in self.inside

    def needs(self, node: Node, st: ShapeTracker | None, padded: bool) -> list[Seen]:
        """The operands of ``node`` seen through ``st``, each with how it is seen."""
        if not self.computed(node):
            return []
        if node.op is Ops.REDUCE:
            return [(*node.srcs[0], True)]
        if node.op is Ops.ASSIGN:  # the whole memory, which may have another shape than what was assigned
            value, own = node.srcs[1]
            if seen_shape(node.srcs[1]) != node.shape:
                own = (own or contiguous(value.shape)).reshape(node.shape)
            return [(value, over(own, st), padded or _pads(own))]
        # an operand that has padding of its own is 0 there, which is seen
        if node.op is Ops.GATHER:
            return [(src, over(own, st), _pads(own)) for src, own in node.srcs[1:]]
        return [(src, over(own, st), padded or _pads(own)) for src, own in node.srcs]

    def build_node(self, node: Node, st: ShapeTracker | None, padded: bool, src: list[LazyOp]) -> LazyOp:
        """``node`` seen through ``st``, its operands being there."""
        op, shape = node.op, node.shape if st is None else st.shape
        if not self.computed(node):
            return fold.load(self.slot(node), node.dtype, st or contiguous(shape))
        if op is Ops.REDUCE:
            return fold.view(fold.reduce(src[0], *node.arg), st)
        if op in (Ops.CONTIGUOUS, Ops.ASSIGN):
            return src[0]
        if st is not None and not padded and op in LEAVES:
            st = unmasked(st)
        if op is Ops.IOTA:
            return ast.iota(st or contiguous(shape), node.dtype)
        if op in (Ops.CONST, Ops.SYM):
            value = LazyOp(op, node.dtype, (), (), node.arg)
            return fold.splat(value, st or contiguous(shape))
        if op is Ops.GATHER:
            source, own = node.srcs[0]
            tracker = own or contiguous(source.shape)
            found = ast.gather(self.slot(source), node.dtype, tracker, src[0])
            return self.select(found, st) if padded else found
        if op is Ops.CAST:
            return fold.cast(src[0], node.dtype)
        if op is Ops.BITCAST:
            return fold.bitcast(src[0], node.dtype)
        assert op in ALU, node
        if st is None or not masked(st) or not (padded or op in DIVISIONS):
            return fold.alu(op, *src)
        plain = [plain_constant(edge) for edge in node.srcs]
        if None not in plain:
            value = fold.alu(op, *[x for x in plain if x is not None])
            if value.op is Ops.CONST:
                return fold.splat(value, st)
        if fold.zero_of(op, [None if x is None else x.arg for x in plain]):
            at = [s if x is None else ast.const(x.arg, x.dtype, shape) for s, x in zip(src, plain, strict=True)]
            return fold.alu(op, *at)
        if op in DIVISIONS:  # padding must not divide by its 0: it is divided by 1
            src[1] = fold.alu(Ops.WHERE, valid(st), src[1], ast.const(1, src[1].dtype, shape))
            return fold.alu(op, *src)
        return fold.alu(op, *src) if fold.keeps_zero(op, node.dtype) else self.select(fold.alu(op, *src), st)

    def select(self, x: LazyOp, st: ShapeTracker | None) -> LazyOp:
        """``x``, whose operands are seen through ``st``, with 0 where ``st`` shows padding."""
        if st is None or not masked(st):
            return x
        return fold.alu(Ops.WHERE, valid(st), x, ast.const(0, x.dtype, x.shape))


def valid(st: ShapeTracker) -> LazyOp:
    """True where ``st`` shows no padding, over its shape."""
    return fold.splat(ast.const(True, dtypes.bool), st)


def _pads(st: ShapeTracker | None) -> bool:
    return st is not None and masked(st)


def plain_constant(edge: Edge) -> LazyOp | None:
    """The CONST of one element that an operand is everywhere; None if it is no constant, or a padded one."""
    node, own = edge
    if node.op is not Ops.CONST or (own is not None and masked(own)):
        return None
    return ast.const(node.arg, node.dtype)
