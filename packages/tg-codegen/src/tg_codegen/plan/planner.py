"""What planners have in common: they collect actions for one nest, applying each to see what the loops have become."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from math import prod

from tg_shape import Expr, Variable, coefficient, sint, upper

from ..machine.target import Target
from ..nest.nest import Axis, Nest, Node, Root, is_elementwise, is_float_reduce
from ..nest.scratch import stages_fit
from ..nest.spec import REORDERING, SERIAL, STATED, UNROLLED, Kind, NodeOp
from ..nest.trim import conditions, congruence
from .actions import LoopAction, Mark, Split, apply, loads_of, noting
from .work import worth_threads

UNROLL_MAX = 9
"""Iterations of a reduction, at the most, that are unrolled whole: a window of 3 by 3."""
UNEVEN = 1.15
"""Times an even share: if the busiest thread has more to do, a loop that divides better is looked for."""
EVENLY = 1.05
"""Times the most even share of any loop, up to which another loop's is as good."""
SHORT_RUN = 8
"""Elements beside one another, at the least, that are read as a vector and transposed."""


def power_below(n: int) -> int:
    """The greatest power of two that is at most ``n``."""
    return 1 << (n.bit_length() - 1)


def masked(node: Node, root: Variable) -> bool:
    """Whether a load is masked along ``root``."""
    valid = node.arg[2]
    return isinstance(valid, Expr) and root in valid.variables()


def busiest(extent: int, threads: int) -> float:
    """The share of a loop's iterations that the thread with most of them has.

    >>> busiest(6, 4), busiest(3, 4)
    (0.3333333333333333, 0.3333333333333333)
    """
    return -(-extent // threads) / extent


def most_even(loops: Sequence[Axis], threads: int) -> Axis | None:
    """The first of some loops whose iterations are divided among threads about as evenly as those of any; or None."""
    shares = [busiest(upper(a.extent), threads) for a in loops]
    return next((a for a, share in zip(loops, shares, strict=True) if share <= EVENLY * min(shares)), None)


class Planner(ABC):
    """Collects actions for one nest.

    Attributes:
      contracted: whether a matrix instruction takes several terms at a time.
      evenly: whether to divide among threads a loop that gives them nearly equal shares, if there is one.
      threaded: whether there is enough to do for several threads of a CPU to gain.
    """

    def __init__(self, nest: Nest, target: Target, matrices: bool = False, evenly: bool = False) -> None:
        self.nest, self.target, self.matrices, self.evenly = nest, target, matrices, evenly
        self.actions: list[LoopAction] = []
        self.contracted = False
        nodes = nest.nodes()
        self.loads = loads_of(nest)
        self.reductions = [n for n in nodes if n.op is NodeOp.REDUCE]
        self.threaded = worth_threads(nest, target)
        itemsize = max([n.dtype.itemsize for n in nodes if n.op is not NodeOp.INDEX] or [4])
        self.lanes = max(1, target.vector_bytes // max(itemsize, 1 if itemsize == 1 else 2))
        if itemsize < 4 and any(is_elementwise(n) for n in nodes):  # it may be computed in 32 bits
            self.lanes = min(self.lanes, target.vector_bytes // 4)
        needed: set[Variable] = set()
        for node in self.reductions:
            needed |= node.free
        self.rows = [r for r in nest.roots.values() if not r.reduce and (r.var in needed or not self.reductions)]
        self.columns = [r for r in nest.roots.values() if not r.reduce and r not in self.rows]

    @abstractmethod
    def plan(self) -> list[LoopAction]:
        """All actions for the nest."""

    def planned(self) -> list[LoopAction]:
        """:meth:`plan`; an error from it has a note of the actions so far."""
        with noting(self.actions):
            return self.plan()

    def do(self, action: LoopAction) -> None:
        """Takes an action."""
        self.nest = action.apply(self.nest)
        self.actions.append(action)

    def do_all(self, actions: Iterable[LoopAction]) -> None:
        """Takes actions in turn."""
        for action in actions:
            self.do(action)

    def keep(self, action: LoopAction) -> bool:
        """Takes an action that keeps something in scratch, if that fits. Returns whether it did."""
        return self.do_fitting([action])

    def do_fitting(self, actions: Sequence[LoopAction]) -> bool:
        """Takes actions in turn, if there are any and what they keep in scratch fits. Returns whether it did."""
        if not actions or not stages_fit(apply(self.nest, actions), self.target):
            return False
        self.do_all(actions)
        return True

    def enough(self, axis: Axis) -> bool:
        """Whether a loop has iterations for all threads; where shares are to be even, also about as many for each.

        A loop along which a load is masked is then not divided: a thread's share is not cut into rim and interior, so
        that every iteration of it would be masked.
        """
        count, threads = upper(axis.extent), self.target.threads
        if count < threads or not self.evenly:
            return count >= threads
        return busiest(count, threads) * threads <= UNEVEN and not any(masked(load, axis.root) for load in self.loads)

    def outer(self, root: Variable) -> Axis:
        """The outermost loop of a root."""
        return self.nest.of_root(root)[0]

    def serial(self, root: Variable) -> sint:
        """Iterations of the serial loop that is left of an output dimension; 1 where a tile takes all of it."""
        axis = self.outer(root)
        return axis.extent if axis.kind is Kind.LOOP else 1

    def cut(self, root: Variable, factor: int, kind: Kind) -> bool:
        """Gives the innermost ``factor`` iterations of a root's outer loop to ``kind``; False if there are too few."""
        axis = self.outer(root)
        extent = axis.extent
        if factor < 2 or axis.kind not in STATED or (kind in REORDERING and self.ordered(root)):
            return False
        if isinstance(extent, int) and extent <= factor:
            if extent < 2 or (kind in (Kind.VECTOR, Kind.LANES) and extent & (extent - 1)):
                return False
            self.do(Mark(axis.name, kind))
        else:
            self.do(Split(axis.name, factor, kind))
        return True

    def ordered(self, root: Variable) -> bool:
        """Whether the order of a reduced dimension must be kept."""
        return self.target.strict and any(is_float_reduce(n) and root in n.arg[1] for n in self.reductions)

    def width(self, root: Root) -> int:
        """How many lanes suit a root: a power of two, no more than it has iterations."""
        return min(self.lanes, power_below(max(upper(root.extent), 1)))

    def vectorize(self, root: Root, kind: Kind) -> bool:
        """Puts a root's innermost iterations into vector lanes."""
        width = self.width(root)
        return width >= 2 and self.cut(root.var, width, kind)

    def reuse(self, load: Node) -> int:
        """How often each element of a load is used by different outputs."""
        return prod(upper(r.extent) for r in self.rows if r.var not in load.free)

    def along(self, load: Node) -> Root | None:
        """The reduced dimension along which a load is contiguous for long enough to be read in vectors."""
        reduced = (r for r in self.nest.roots.values() if r.reduce and upper(r.extent) >= SHORT_RUN)
        return next((r for r in reduced if coefficient(load.arg[1], r.var) == 1), None)

    def near(self, root: Root) -> bool:
        """Whether neighbours along ``root`` are neighbours in the outputs."""
        return any(coefficient(s.index, root.var) == 1 for s in self.nest.stores)

    def gaps(self, load: Node) -> list[tuple[Expr, int]]:
        """Numbers and what each has to be a multiple of: elsewhere a load reads zeros between its elements."""
        found = (congruence(condition) for condition in conditions(load.arg[2]))
        return [gap for gap in found if gap is not None]

    def stepped(self, load: Node, root: Variable) -> bool:
        """Whether the counters of serial loops tell which iterations of ``root`` read zeros of :meth:`gaps`.

        Those iterations are then the same throughout the loops inside, and are left out by a step of the loop.
        """
        for number, _ in self.gaps(load):
            others = [v for v in number.variables() if v in self.nest.roots and v is not root]
            axes = [a for other in others for a in self.nest.of_root(other) if upper(a.extent) > 1]
            if root in number.variables() and axes and all(a.kind in SERIAL for a in axes):
                return True
        return False

    def unroll_small(self, copies: int, vectors: int = 0) -> None:
        """Unrolls short reduction loops, as a convolution's window.

        Args:
          copies: how many there are of a multiplication at the least; all that loops make already count.
          vectors: that a term of the reduction reads. A second loop is unrolled only if those of all terms stay in
            registers: compilers read early whatever they see, and spill it.
        """
        beside, terms = self.target.registers - copies - 1, 1
        copies = max(copies, prod(upper(a.extent) for a in self.nest.axes if a.kind in UNROLLED))
        for root in reversed([r for r in self.nest.roots.values() if r.reduce]):
            axis = self.outer(root.var)
            if any(root.var in n.free for n in self.reductions):
                continue  # another reduction would be copied with it
            if any(stage.axis == axis.name for stage in self.nest.stages):
                return  # what is kept for one iteration would be kept for all
            if any(self.stepped(load, root.var) for load in self.loads):
                return  # a loop takes steps from one element to the next, where copies would ask at each place
            if axis.kind is Kind.REDUCE and isinstance(axis.extent, int) and 2 <= axis.extent <= UNROLL_MAX:
                if copies * axis.extent > self.target.copies or (terms > 1 and vectors * terms * axis.extent > beside):
                    return
                copies *= axis.extent
                terms *= axis.extent
                self.do(Mark(axis.name, Kind.UNROLL))
            elif axis.kind is Kind.REDUCE and self.ordered(root.var):
                return  # what is around a loop that stays one would go inside of it
