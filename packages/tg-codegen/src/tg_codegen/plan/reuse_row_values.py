"""Row values reused: what several loops over a row compute alike is computed by the first of them only.

A softmax wants the exponential of each element twice: for the sum of the row, and for the result. Loops of their own
compute it in each of them, from the element, which is near by then. Where that costs more than a store and a load, the
value goes to an *internal* buffer, of which the kernel, then one in parts (:mod:`tg_codegen.nest.parts`), keeps a row
at a time in fast memory. There is room for the longest row that its length, which may be symbolic, allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count

from tg_dtype import DType, dtypes
from tg_lazy import ALU, BufferArg
from tg_lazy.cost import FLOPS
from tg_shape import Expr, Variable, coefficient, sint, substitute, toposort, upper

from ..machine.target import Target
from ..nest.kernel import Kernel
from ..nest.nest import GATHERED, Nest, Node, NodeTable, Store, with_expressions
from ..nest.parts import BLOCK_ROWS, stated
from ..nest.spec import NodeOp
from .actions import ActionError, KernelAction


@dataclass(frozen=True, slots=True)
class Reuse:
    """Values that an output and reductions along its rows compute alike.

    Attributes:
      walk: the dimension along which the output's rows lie.
      value: the value, as the output has it.
      alike: the same value in reductions, by the dimension that each reduces.
      cost: operations that one element takes.
    """

    walk: Variable
    value: Node
    alike: Mapping[Variable, Node]
    cost: float

    def row_bytes(self, nest: Nest) -> int:
        """Bytes of the values of a row, of the longest one if its length is symbolic."""
        return upper(nest.roots[self.walk].extent) * self.value.dtype.itemsize


class ReuseFinder:
    """Looks for what an output and a reduction compute alike."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.numbers = count()
        self.names: dict[tuple[object, ...], int] = {}

    def signatures(self, value: Node, walk: Variable) -> dict[Node, int]:
        """A number for each node under ``value``, the same for nodes that differ only in what ``walk`` is called."""
        swap: dict[Expr, sint] = {walk: GATHERED}
        found: dict[Node, int] = {}
        for node in self.within(value, walk):
            if walk not in node.free:
                key: tuple[object, ...] = (node,)
            else:
                arg = with_expressions(node.op, node.arg, lambda expr: substitute(expr, swap))
                key = (node.op, node.dtype, arg, *(found[s] for s in node.src))
            number = self.names.get(key)
            if number is None:
                number = self.names[key] = next(self.numbers)
            found[node] = number
        return found

    @staticmethod
    def within(value: Node, walk: Variable) -> list[Node]:
        """The nodes that a loop over ``walk`` computes for ``value``, operands first, and what it finds there."""
        return toposort([value], lambda node: node.src if walk in node.free else ())

    def cost(self, node: Node, walk: Variable) -> float:
        """Operations for one element; 0 where something in it cannot be computed elsewhere."""
        mine = [n for n in self.within(node, walk) if walk in n.free]
        if any(n.op in (NodeOp.REDUCE, NodeOp.GATHER) for n in mine):
            return 0.0
        return sum(FLOPS[n.op] for n in mine if n.op in ALU)

    def found(self, store: Store) -> Reuse | None:
        """The dearest value that an output has in common with reductions along its rows."""
        nest = self.nest
        for walk in store.roots:
            extent = nest.roots[walk].extent
            if coefficient(store.index, walk) != 1:
                continue
            mine = self.signatures(store.value, walk)
            alike: dict[int, dict[Variable, Node]] = {}
            for node in store.value.toposort():
                if node.op is not NodeOp.REDUCE or len(node.arg[1]) != 1:
                    continue
                root = node.arg[1][0]
                if nest.roots[root].extent == extent and node.free <= set(store.roots) - {walk}:
                    for inner, number in self.signatures(node.src[0], root).items():
                        if root in inner.free:
                            alike.setdefault(number, {}).setdefault(root, inner)
            shared = [n for n, number in mine.items() if number in alike and walk in n.free]
            best = max(shared, key=lambda n: self.cost(n, walk), default=None)
            if best is not None and (cost := self.cost(best, walk)):
                return Reuse(walk, best, alike[mine[best]], cost)
        return None


def reusable(nest: Nest) -> tuple[Store, Reuse] | None:
    """The first output of a nest that may reuse something, and what; None where there is none.

    Of several outputs only those of a kernel in parts: it keeps rows of its internal buffers as it is.
    """
    parts = any(buffer.internal for buffer in nest.buffers)
    if (len(nest.stores) != 1 and not parts) or any(store.update for store in nest.stores):
        return None
    for store in nest.stores:
        found = ReuseFinder(nest).found(store) if isinstance(store.valid, int) else None
        outer = [] if found is None else [root for root in store.roots if root is not found.walk]
        known = all(isinstance(nest.roots[root].extent, int) for root in outer)
        if found is not None and outer and known and all(root in found.value.free for root in outer):
            return store, found
    return None


@dataclass(frozen=True, slots=True)
class ReuseRowValues(KernelAction):
    """Computes what an output and reductions along its rows have in common once, into scratch for a row.

    The kernel then has a part more, and the rows' dimensions are loops around all parts.
    """

    def on(self, kernel: Kernel) -> Kernel:
        found = reusable(kernel.whole) if kernel.single or (kernel.scratch and kernel.block == 1) else None
        if found is None:
            raise ActionError(f"{self}: no output computes along its rows what a reduction along them computes")
        if not kernel.untouched:
            raise ActionError(f"{self}: comes before any change to the loops")
        return stated(with_reuse(kernel.whole, *found))


def with_reuse(nest: Nest, store: Store, found: Reuse) -> Nest:
    """The nest with an internal buffer for what an output reuses."""
    roots = [*(root for root in store.roots if root is not found.walk), found.walk]
    slot, size = len(nest.buffers), 1
    place: sint = 0
    for root in reversed(roots):
        place, size = place + root * size, size * upper(nest.roots[root].extent)
    table = NodeTable()
    table.roots = dict(nest.roots)
    held = {found.value: place, **{node: substitute(place, {found.walk: root}) for root, node in found.alike.items()}}
    new: dict[Node, Node] = {}
    for node in store.value.toposort():
        if node in held:
            new[node] = table.make(NodeOp.LOAD, node.dtype, (), (slot, held[node], 1))
        else:
            new[node] = table.make(node.op, node.dtype, tuple(new[s] for s in node.src), node.arg)
    first = Store(slot, place, 1, found.value, store.roots)
    buffers = (*nest.buffers, BufferArg(found.value.dtype, size, internal=True))
    last = replace(store, value=new[store.value])
    stores = [part for each in nest.stores for part in ((first, last) if each is store else (each,))]
    return replace(nest, stores=tuple(stores), buffers=buffers)


def narrowing(dtype: DType, target: Target) -> float:
    """Operations that it takes to store a value that is narrower than what computes it, and to load it again."""
    narrow = dtypes.is_float(dtype) and dtype.itemsize < dtypes.float32.itemsize
    return 2 * target.cpu.conversion * target.cpu.units if narrow else 0.0


def proposed(kernel: Kernel, target: Target) -> list[ReuseRowValues]:
    """The action, where long rows of dear values fit into fast memory beside their operands.

    Where a block has many rows of other buffers, it is to have as many.
    """
    found = reusable(kernel.whole) if (kernel.single or kernel.scratch) and target.keeps_rows else None
    if found is None:
        return []
    nest, (_, reuse) = kernel.whole, found
    if reuse.cost < target.cpu.kept_value + narrowing(reuse.value.dtype, target):
        return []
    if upper(nest.roots[reuse.walk].extent) < target.cpu.kept_row:
        return []
    others = sum(width * nest.buffers[slot].dtype.itemsize for slot, width in kernel.scratch.items())
    if others and BLOCK_ROWS * (others + reuse.row_bytes(nest)) > target.block_bytes:
        return []
    return [ReuseRowValues()] if reuse.row_bytes(nest) <= target.resident_bytes else []
