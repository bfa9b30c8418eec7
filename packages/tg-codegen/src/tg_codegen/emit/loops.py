"""Opening loops: counters, partial last iterations, register copies and vector lanes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, product

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_shape import Variable, sint, smin

from ..ir.errors import EmitError
from ..ir.matrix import MatrixInstruction
from ..ir.uop import UOp, UOps, const
from ..machine.target import Target
from ..nest.env import Env
from ..nest.interior import LEAST_INTERIOR, interior, settled
from ..nest.nest import FRAGMENT, LANE, UNROLLED, Axis, Kind, Nest, Node
from .access import Access
from .scope import Block, Context

CORE = "core_id"
RIM = 4  # iterations, in which masks are known if each is by itself


@dataclass(frozen=True, slots=True)
class Span:
    """One emitted copy of a loop: ``count`` iterations from ``at`` on.

    Attributes:
      exact: whether all that is inside lies in the root's extent (None: what is known of the root stays as it is).
      condition: whether to run it at all.
    """

    at: sint
    count: sint
    exact: bool | None
    condition: sint = 1


def below(a: sint, b: sint) -> sint:
    """``a < b`` as a symbolic truth value."""
    difference = a - b
    return int(difference < 0) if isinstance(difference, int) else difference.lt(0)


class Loops(Access):
    """The loops of one nest.

    Attributes:
      owner: the block that each open counter belongs to.
      by_root: the loops of each root, outermost first.
      group: the counter of each GROUP loop.
      items: the indices of a work-item in its group, and how many there are of each.
      implied: conditions that hold where their counters are open.
      warp: the number of a thread in its warp, where matrix instructions are done by warps.
      memo: values emitted so far, by node and by all that they depend on.
      numbers: makes names and registers unique.
      top: the kernel's own block.
    """

    def __init__(self, nest: Nest, target: Target) -> None:
        super().__init__(target)
        self.nest = nest
        self.owner: dict[Variable, Block] = {}
        self.by_root = {root: nest.of_root(root) for root in nest.roots}
        self.group: dict[str, sint] = {}
        self.items: list[tuple[Variable, int]] = []
        self.interiors: dict[Variable, tuple[tuple[int, int] | None, bool]] = {}
        self.parted: Variable | None = None
        self.implied: set[sint] = set()
        self.warp: sint = 0
        self.memo: dict[tuple[object, ...], UOp] = {}
        self.free: dict[Node, tuple[Variable, ...]] = {}
        self.numbers = count()
        self.top = Block()

    @abstractmethod
    def value(self, node: Node, env: Env, context: Context) -> UOp:
        """The value of ``node`` with roots as in ``env``."""

    @abstractmethod
    def leave(self, block: Block) -> None:
        """Forgets what can be used only inside a block, which is complete."""

    def key(self, node: Node, env: Env) -> tuple[object, ...]:
        """Under what a value is remembered: the node and all that it depends on here."""
        free = self.free.get(node)
        if free is None:
            free = self.free[node] = tuple(sorted(node.free, key=lambda v: v.name))
        return (node, *[env.root[root] for root in free])

    def special(self, name: str, extent: sint) -> Variable:
        """A parallel index, as a variable."""
        bound = extent if isinstance(extent, int) else extent.vmax
        variable = Variable(name, 0, max(bound - 1, 0))
        self.leaves[variable] = UOp(UOps.SPECIAL, dtypes.int32, (), (name, extent))
        self.owner[variable] = self.top
        return variable

    def divides(self, root: Variable) -> bool:
        """Whether the loops of a root cover its extent with nothing over."""
        axes = self.by_root[root]
        if not axes:
            return True
        if len(axes) == 1 and axes[0].stride == 1:
            return True
        whole = axes[0].extent * axes[0].stride
        return isinstance(whole, int) and whole == self.nest.roots[root].extent

    def spans(self, axis: Axis, env: Env) -> list[Span]:
        """The copies in which a loop is emitted."""
        if axis.root in env.exact:
            return self.partition(axis, axis.extent)
        base = env.root[axis.root]
        wider = any(a.stride >= axis.stride and a.name not in {axis.name, *env.axis} for a in self.by_root[axis.root])
        if not isinstance(base, int) or wider:
            return [Span(0, axis.extent, False)]
        left = self.nest.roots[axis.root].extent - base
        full = left // axis.stride
        rest = left - full * axis.stride
        spans: list[Span] = []
        if not (isinstance(full, int) and full == 0):
            spans.extend(replace(span, exact=True) for span in self.partition(axis, full))
        if not (isinstance(rest, int) and rest == 0):
            spans.append(Span(full, 1, False, 1 if isinstance(rest, int) else below(0, rest)))
        return spans

    def partition(self, axis: Axis, count: sint) -> list[Span]:
        """The first ``count`` iterations of a loop, none of them partial, in the parts that masks cut them into."""
        whole = [Span(0, count, None)]
        if self.by_root[axis.root][0] is not axis or not isinstance(count, int):
            return whole
        if self.parted not in (None, axis.root):
            return whole  # one dimension in three parts is enough: copies multiply
        if axis.root not in self.interiors:
            known = axis.kind is not Kind.THREAD and settled(self.nest, axis.root)  # one copy is one thread's
            self.interiors[axis.root] = interior(self.nest, axis.root, 0 if known else LEAST_INTERIOR), known
        inner, known = self.interiors[axis.root]
        if inner is None:
            return whole
        first = min(-(-inner[0] // axis.stride), count)
        end = max(first, min(inner[1] // axis.stride, count))
        if not known and end - first < LEAST_INTERIOR:
            return whole
        self.parted = axis.root
        parts = [(0, first), (first, end - first), (end, count - end)]
        if known and first + count - end <= RIM:
            parts = [*((at, 1) for at in range(first)), parts[1], *((at, 1) for at in range(end, count))]
        return [Span(at, size, None) for at, size in parts if size]

    def run(self, axis: Axis, span: Span, context: Context, body: Callable[[Context], None]) -> None:
        """Emits one copy of a loop whose effects ``body`` fills in."""
        threaded = axis.kind is Kind.THREAD
        if isinstance(span.count, int) and span.count == 1:
            env = context.env.open(axis.name, axis.root, axis.stride, span.at, span.exact)
            condition = self.build.truth(span.condition)
            if threaded:
                core = self.build.value(self.core(), dtypes.int32)
                mine = core.alu(Ops.CMPEQ, const(self.thread_of(axis, span.at), dtypes.int32))
                condition = mine if condition.is_const else condition.alu(Ops.AND, mine)
            if condition.is_const:
                body(Context(context.block, env, axis.name, context))
                return
            block = Block(context.block, len(self.memo))
            body(Context(block, env, axis.name, context))
            self.leave(block)
            context.block.effects.append(UOp(UOps.IF, dtypes.void, (condition, *block.effects)))
            return
        block = Block(context.block, len(self.memo))
        variable = self.counter(axis, span.count, block)
        env = context.env.open(axis.name, axis.root, axis.stride, variable + span.at, span.exact)
        body(Context(block, env, axis.name, context))
        self.leave(block)
        if block.effects:
            context.block.effects.append(UOp(UOps.LOOP, dtypes.void, (self.leaves[variable], *block.effects)))

    def repeat(self, name: str, count: int, context: Context, body: Callable[[Block, sint], None]) -> None:
        """Emits a loop of numbers alone, whose effects ``body`` fills in; none where there is but one."""
        if count == 1:
            body(context.block, 0)
            return
        block = Block(context.block, len(self.memo))
        variable = self.counter(Axis(name, next(iter(self.nest.roots)), 1, count, Kind.LOOP), count, block)
        body(block, variable)
        self.leave(block)
        context.block.effects.append(UOp(UOps.LOOP, dtypes.void, (self.leaves[variable], *block.effects)))

    def core(self) -> Variable:
        """The CPU thread's number."""
        return self.special(CORE, self.target.threads)

    def thread_of(self, axis: Axis, at: sint) -> int:
        """The thread that has an iteration, of as many as the loop has in all; the last one where that is not known."""
        threads = self.target.threads
        if not isinstance(axis.extent, int) or not isinstance(at, int):
            return threads - 1
        return -(-(at + 1) * threads // axis.extent) - 1

    def counter(self, axis: Axis, extent: sint, block: Block) -> Variable:
        """A loop counter with its RANGE, divided among threads where the axis says so.

        All but the last iteration of a loop are divided as if that one, which stands by itself, were one of them.
        """
        bound = extent if isinstance(extent, int) else extent.vmax
        name = f"{axis.name}_{next(self.numbers)}"
        variable = Variable(name, 0, max(bound - 1, 0))
        start: sint = 0
        end = extent
        if axis.kind is Kind.THREAD:
            core, threads = self.core(), self.target.threads
            total = axis.extent if extent == axis.extent - 1 else extent
            start, end = core * total // threads, smin((core + 1) * total // threads, extent)
        ends = (self.build.value(start, self.index), self.build.value(end, self.index))
        self.leaves[variable] = UOp(UOps.RANGE, self.index, ends, name)
        self.owner[variable] = block
        return variable

    def open_counters(self, context: Context) -> list[Variable]:
        """Counters of the loops around the block that is being filled."""
        blocks = set()
        block: Block | None = context.block
        while block is not None:
            blocks.add(block)
            block = block.parent
        return [v for v, owner in self.owner.items() if owner in blocks and v in self.leaves]

    def replicas(self, env: Env, roots: Sequence[Variable]) -> Iterator[Env]:
        """``env`` with every unrolled loop of ``roots`` at each of its values, and vector loops at all lanes.

        The loops of roots with lanes turn fastest: so a tile has its few vectors at hand, and its scalars one by one.
        """
        roots = sorted(roots, key=lambda root: any(a.kind in LANE for a in self.by_root[root]))
        axes = [a for root in roots for a in self.by_root[root] if a.kind in UNROLLED and a.name not in env.axis]
        vectors = [a for root in roots for a in self.by_root[root] if a.kind in LANE and a.name not in env.axis]
        for values in product(*(range(self.fixed(a)) for a in axes)):
            here = env
            for axis, value in zip(axes, values, strict=True):
                here = here.open(axis.name, axis.root, axis.stride, value)
            for axis in vectors:
                here = here.open(axis.name, axis.root, axis.stride, self.lane(axis))
            if not any(self.beyond(here, root) for root in roots):
                yield here

    @staticmethod
    def fixed(axis: Axis) -> int:
        """The extent of an unrolled loop, which is a number."""
        if not isinstance(axis.extent, int):
            raise EmitError(f"the loop {axis.name} of symbolic extent {axis.extent} cannot be unrolled")
        return axis.extent

    def lane(self, axis: Axis) -> sint:
        """A vector loop's counter, which stands for all lanes at once; for fragments, where their elements are."""
        if axis.kind not in FRAGMENT:
            return self.several(f"{axis.name}_lane", self.fixed(axis))
        total = self.warp_instruction().fragments[2]
        row, column = total.place(self.several("fragment", total.count), self.warp)
        return row if axis.kind is Kind.FRAGMENT_ROWS else column

    def warp_instruction(self) -> MatrixInstruction:
        """The matrix instruction that a warp does.

        Raises:
          EmitError: the target has none of that shape.
        """
        extents = {a.kind: a.extent for a in self.nest.axes}
        kinds = (Kind.FRAGMENT_ROWS, Kind.FRAGMENT_COLUMNS, Kind.CONTRACT)
        shape = tuple(extents.get(kind, 0) for kind in kinds)
        found = next((m for m in self.target.matrices if m.threads > 1 and m.shape == shape), None)
        if found is None:
            raise EmitError(f"no matrix instruction of this target has rows, columns and depth {shape}")
        return found

    def beyond(self, env: Env, root: Variable) -> bool:
        """Whether a root's value is certainly outside its extent."""
        guard = self.guard(env, (root,))
        return isinstance(guard, int) and not guard

    def guard(self, env: Env, roots: Sequence[Variable]) -> sint:
        """Whether the values of ``roots`` lie inside their extents."""
        result: sint = 1
        for root in roots:
            if root not in env.exact:
                value, extent = env.root[root], self.nest.roots[root].extent
                inside = below(value, extent)
                result = result & inside
        return result

    def counter_of(self, axis: Axis, env: Env) -> sint:
        """The number of the thread, work-group or work-item that ``axis`` runs across."""
        if axis.kind is Kind.THREAD:
            return self.core()
        return self.group[axis.name] if axis.kind is Kind.GROUP else env.axis[axis.name]
