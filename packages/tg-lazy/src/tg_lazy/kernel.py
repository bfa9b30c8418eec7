"""Kernel formation: the nodes that share a kernel become its AST, with every view pushed down to what it reads."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import DType, dtypes
from tg_shape import ShapeTracker

from . import ast, fold
from .ast import BufferArg, LazyOp
from .graph import Node
from .ops import ALU, Ops
from .storage import Storage

Seen = tuple[Node, ShapeTracker | None]


def over(lower: ShapeTracker | None, upper: ShapeTracker | None) -> ShapeTracker | None:
    """``upper`` on top of ``lower``; None is the identity."""
    if upper is None:
        return lower
    return upper if lower is None else lower + upper


def masked(st: ShapeTracker) -> bool:
    """Whether some index may be padding."""
    return any(view.mask is not None for view in st.views)


class Former:
    """Builds one kernel's AST.

    Attributes:
      bufs: the kernel's memory in slot order.
    """

    def __init__(self, roots: Sequence[Node]) -> None:
        self.roots = roots
        self.inside = frozenset(roots)
        self.slots: dict[Storage, int] = {}
        self.memo: dict[Seen, LazyOp] = {}

    def form(self) -> tuple[LazyOp, tuple[Storage, ...]]:
        """The SINK and the memory that its slots stand for."""
        for root in self.roots:
            self.slot(root)
        stores = [self.store(root) for root in self.roots]
        bufs = tuple(self.slots)
        return ast.sink(tuple(stores), tuple(BufferArg(s.dtype, s.size) for s in bufs)), bufs

    def slot(self, node: Node) -> int:
        """The slot of a realised node."""
        assert node.storage is not None, f"{node!r} is read before it has memory"
        return self.slots.setdefault(node.storage, len(self.slots))

    def store(self, root: Node) -> LazyOp:
        """The store that realises ``root``."""
        st = ShapeTracker.from_shape(root.shape)
        if root.op is Ops.ASSIGN:
            (_, target), (source, seen) = root.srcs
            st = st if target is None else target
            if seen is None and st.shape != source.shape:
                seen = ShapeTracker.from_shape(source.shape).reshape(st.shape)
            value = self.value(source, seen)
        elif root.op is Ops.CONTIGUOUS:
            value = self.value(*root.srcs[0])
        else:
            value = self.compute(root, None, root.shape)
        return ast.store(self.slot(root), st, value)

    def value(self, node: Node, st: ShapeTracker | None) -> LazyOp:
        """``node`` seen through ``st``."""
        found = self.memo.get((node, st))
        if found is not None:
            return found
        stack: list[Seen] = [(node, st)]
        memo = self.memo
        while stack:
            top = stack[-1]
            if top in memo:
                stack.pop()
                continue
            missing = [need for need in self.needs(*top) if need not in memo]
            if missing:
                missing.reverse()
                stack.extend(missing)
                continue
            memo[top] = self.build(*top)
            stack.pop()
        return memo[node, st]

    def needs(self, node: Node, st: ShapeTracker | None) -> list[Seen]:
        """The operands that ``node`` seen through ``st`` is built from."""
        if node.reason and not (st is None and node in self.inside):
            return []
        if node.op in ALU:
            return [(src, over(own, st)) for src, own in node.srcs]
        if node.op is Ops.GATHER:
            src, own = node.srcs[1]
            return [(src, over(own, st))]
        if node.op is Ops.REDUCE:
            return [node.srcs[0]]
        if node.op is Ops.CONTIGUOUS:
            return [node.srcs[0]]
        if node.op is Ops.ASSIGN:
            return [node.srcs[1]]
        return []

    def build(self, node: Node, st: ShapeTracker | None) -> LazyOp:
        """``node`` seen through ``st``, its operands being there."""
        shape = node.shape if st is None else st.shape
        if node.reason and not (st is None and node in self.inside):
            return ast.load(self.slot(node), node.dtype, st or ShapeTracker.from_shape(shape))
        return self.compute(node, st, shape)

    def compute(self, node: Node, st: ShapeTracker | None, shape: tuple[object, ...]) -> LazyOp:
        """The node's own op."""
        op = node.op
        if op is Ops.CONST:
            return fold.view(ast.const(node.arg, node.dtype), st)
        if op is Ops.IOTA:
            return ast.iota(st or ShapeTracker.from_shape(node.shape), node.dtype)
        if op is Ops.SYM:
            return self.select(ast.symbol(node.arg, node.dtype, node.shape if st is None else st.shape), st)
        if op is Ops.REDUCE:
            src = self.value(*node.srcs[0])
            return fold.view(fold.reduce(src, *node.arg), st)
        if op is Ops.CONTIGUOUS:
            return self.value(*node.srcs[0])
        if op is Ops.ASSIGN:
            return self.value(*node.srcs[1])
        if op is Ops.GATHER:
            source, own = node.srcs[0]
            tracker = own or ShapeTracker.from_shape(source.shape)
            index = self.value(*self.needs(node, st)[0])
            return self.select(ast.gather(self.slot(source), node.dtype, tracker, index), st)
        src = [self.value(*need) for need in self.needs(node, st)]
        if op is Ops.CAST:
            return self.select(fold.cast(src[0], node.dtype), st, fold.keeps_zero(op, node))
        if op is Ops.BITCAST:
            return fold.bitcast(src[0], node.dtype)
        if st is not None and op in (Ops.IDIV, Ops.MOD) and masked(st):
            src[1] = fold.alu(Ops.WHERE, valid(st), src[1], ast.const(1, src[1].dtype, src[1].shape))
        return self.select(fold.alu(op, *src), st, fold.keeps_zero(op, node))

    def select(self, x: LazyOp, st: ShapeTracker | None, keeps_zero: bool = False) -> LazyOp:
        """``x``, whose operands are seen through ``st``, with 0 where ``st`` is padding."""
        if st is None or keeps_zero or not masked(st):
            return x
        return fold.alu(Ops.WHERE, valid(st), x, ast.const(0, x.dtype, x.shape))


def valid(st: ShapeTracker) -> LazyOp:
    """True where ``st`` is not padding, over its shape."""
    return ast.view(ast.const(True, dtypes.bool, ()), _splat(st))


def _splat(st: ShapeTracker) -> ShapeTracker:
    """``st``'s mask over a single element."""
    from tg_shape import View

    if len(st.views) == 1:
        view = st.views[0]
        return ShapeTracker((View(view.shape, (0,) * len(view.shape), 0, view.mask),))
    scalar = ShapeTracker((View(st.views[0].shape, (0,) * len(st.views[0].shape), 0, st.views[0].mask),))
    return ShapeTracker((*scalar.views, *st.views[1:]))


def dtype_of(node: Node) -> DType:
    """The node's dtype."""
    return node.dtype
