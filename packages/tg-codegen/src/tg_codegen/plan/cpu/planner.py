"""The hand-coded heuristic: actions that make a kernel fast on its target without measuring anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import gcd, prod

from tg_shape import Variable, coefficient, upper

from ...ir.matrix import MatrixInstruction
from ...machine.memory import PAGE_BYTES
from ...machine.target import Target
from ...nest.matrix_products import instruction_for
from ...nest.nest import Axis, Nest, Node, Root
from ...nest.spec import Kind, NodeOp
from ...nest.windows import overlapping
from .. import unsigned_products, widened_rows
from ..actions import LoopAction, Mark, Outermost, Pack, Split, apply
from ..planner import UNEVEN, UNROLL_MAX, Planner, busiest, masked, most_even, power_below
from .conversions import gains, row_conversions
from .elementwise import elementwise_tile
from .interleaved import read_in_place
from .kept_results import kept_results
from .lane_choice import LaneChoice
from .lane_tiles import lane_tile
from .matrix_tiles import TilePlanner
from .packed_blocks import pack_both
from .packing import pack_rows, pack_vectors
from .panels import least_reads, resident, scattered, widest
from .plan_cost import EVEN_GAIN, LANES_GAIN, plan_cycles
from .reduction_pieces import pieces_of, reduce_in_pieces
from .registers import FEW_ROWS, RegisterTile, SlidingWindow, best_tile
from .row_tiles import evenly
from .running import running
from .streaming import (
    VECTORS_BESIDE,
    prefetches,
    prefetches_indirect,
    runs_ahead,
    streams,
    sums_by_rows,
)
from .strips import strips
from .unrolling import unrolled_terms
from .window_tiles import window_tile

BESIDE_ROWS = 6
"""Registers that a tile needs in addition to those of its rows: vectors being transposed, and a scalar."""
LONG_RUN_BYTES = 4 * PAGE_BYTES
"""What a thread writes side by side, at the least, where it begins again and again: prefetchers begin in each page
(Intel 64 and IA-32 Architectures Optimization Reference Manual, "Hardware Prefetch")."""
LONG_REDUCTION = 1024
"""Terms of a reduction from which on the cost of storing its results is negligible."""


class CPUPlanner(Planner):
    """Plans a kernel for a CPU.

    Attributes:
      wanted: the dimension that is to have the lanes of reductions; None to choose one.
      alike: the others that seemed about as good as the one that was chosen.
      interleaved: whether a matrix instruction's second operand is interleaved in registers rather than packed.
    """

    def __init__(
        self, nest: Nest, target: Target, matrices: bool = False, wanted: Root | None = None, evenly: bool = False
    ) -> None:
        super().__init__(nest, target, matrices, evenly)
        self.wanted = wanted
        self.alike: list[Root] = []
        self.interleaved = False

    def thread(self) -> None:
        """Divides the outermost serial output loop that is long enough among the threads; the longest if none is.

        It goes to the outside, unless what it reads lies apart for each iteration of the loops around it: where it is,
        a thread reads one long run of each; outside, it would go from one to the other all the time. Without reductions
        a loop further in is divided where it stands if its shares are more even, and each a long run of memory.
        """
        if not self.threaded:
            return
        serial = [a for a in self.nest.axes if a.kind is Kind.LOOP]
        rows = {r.var for r in self.rows}
        for stage in self.nest.stages:
            if stage.node.op is NodeOp.REDUCE:  # its rows are done together, by every thread that wants one
                names = [a.name for a in serial]
                serial = serial[: names.index(stage.axis) + 1] if stage.axis in names else []
        reached = [
            a for number, a in enumerate(serial) if a.root in rows and upper(a.extent) > 1
            and (not self.nest.stages or all(upper(before.extent) == 1 for before in serial[:number]))]
        if not reached:
            return
        long = [a for a in reached if upper(a.extent) >= self.target.threads]
        enough = [a for a in long if self.enough(a)] or long
        axis = enough[0] if enough else max(reached, key=lambda a: upper(a.extent))
        even = most_even([axis, *filter(self.runs, long)], self.target.threads)
        if even is not None and even is not axis:
            self.do(Mark(even.name, Kind.THREAD))
            return
        around = {a.root for a in serial[: serial.index(axis)]}
        if around and not self.nest.stages and not self.apart(axis.root, around):
            self.do(Outermost(axis.name))
        self.do(Mark(axis.name, Kind.THREAD))

    def runs(self, axis: Axis) -> bool:
        """Whether threads that divide a loop of a nest without reductions write a long run of memory each."""
        if self.reductions or any(masked(load, axis.root) for load in self.loads):
            return False
        share = upper(axis.extent) // self.target.threads
        return all(axis.step(store.index) * share * store.value.dtype.itemsize >= LONG_RUN_BYTES
                   for store in self.nest.stores)

    def apart(self, inner: Variable, around: set[Variable]) -> bool:
        """Whether, in each iteration of the loops around, a reduction reads a run of memory of its own along a loop."""
        reads = [load.arg[1] for load in self.loads if inner in load.free]
        return bool(self.reductions and reads) and all(
            (step := coefficient(index, inner)) is not None and (far := coefficient(index, outer)) is not None
            and abs(far) > abs(step) > 0 for index in reads for outer in around)

    def reduce(self) -> None:
        """Reductions: vectors where memory is contiguous, a register tile where operands are reused."""
        together = running(self.nest, self.lanes, self.target)
        if together:
            self.do_all(together)
            return
        body = [n for r in self.reductions for n in r.toposort() if n.op is NodeOp.LOAD]
        choice = self.wanted
        if choice is None:
            choice, self.alike = LaneChoice(self).best(body)
        if choice is not None and not choice.reduce:
            self.output_tile(choice, body)
        else:
            lane_tile(self, choice, body)
        if not any(a.kind is Kind.VECTOR for a in self.nest.axes):
            for root in self.columns[-1:]:
                if self.vectorize(root, Kind.VECTOR) and upper(self.outer(root.var).extent) >= 4 * VECTORS_BESIDE:
                    self.cut(root.var, VECTORS_BESIDE, Kind.UPCAST)

    def output_tile(self, lanes: Root, body: list[Node]) -> None:
        """Lanes run over an output dimension: tile it with another that reuses the vectors."""
        self.vectorize(lanes, Kind.VECTOR)
        vectors = [n for n in body if lanes.var in n.free]
        reusing = [r for r in self.rows if r is not lanes and vectors and all(r.var not in n.free for n in vectors)]
        tile = RegisterTile(1, 1)
        wide = upper(self.outer(lanes.var).extent)
        if reusing:
            rows = max(reusing, key=lambda r: (min(upper(r.extent), 4), self.near(r), upper(r.extent)))
            inner = self.terms_left(body)
            strided = [n for n in vectors if self.lanes > 1 and coefficient(n.arg[1], lanes.var) not in (0, 1)
                       and self.along(n) is not None]
            instruction = self.vector_instruction(lanes) if self.matrices else None
            if instruction is not None:
                reduced = next(r for r in self.nest.roots.values() if r.reduce)
                self.contracted = self.cut(reduced.var, instruction.shape[2], Kind.CONTRACT)
            if strided and self.reuse(strided[0]) <= FEW_ROWS:  # read only once: transposed in registers
                tile = RegisterTile(min(upper(rows.extent), FEW_ROWS), 1)
                self.cut(rows.var, tile.rows, Kind.UPCAST)
                along = self.along(strided[0])
                assert along is not None
                self.cut(along.var, self.width(along), Kind.UNROLL)
            elif strided and len(reusing) > 1 and self.every_row(strided[0], reusing, wide):
                return
            elif (moving := window_tile(self, rows, lanes, vectors)) is not None and (
                    pieces := pieces_of(self, rows, lanes, moving.results, body)):
                last = [r for r in self.nest.roots.values() if r.reduce][-1]
                self.cut(rows.var, moving.rows, Kind.UPCAST)
                self.cut(moving.window.var, upper(moving.window.extent), Kind.UPCAST)
                self.cut(last.var, moving.terms, Kind.UNROLL)
                reduce_in_pieces(self, rows, lanes, moving.results, vectors, pieces)
                return
            else:
                tile = best_tile(
                    upper(rows.extent), wide, self.target.registers, sums=len(self.reductions),
                    widest=widest(self, lanes, vectors), window=self.shared_window(rows, body),
                    masked=any(masked(n, rows.var) for n in body),
                    turned=self.turned(rows, lanes, inner), lanes=self.width(lanes), copies=self.target.copies,
                    costs=self.target.cpu, folds=self.target.folds, packed_from=self.shared_from(lanes, vectors))
                by_strips = [] if instruction else strips(self.nest, rows.var, lanes.var, tile, self.target)
                if self.do_fitting(by_strips):
                    return
                self.cut(rows.var, tile.rows, Kind.UPCAST)
                self.cut(lanes.var, tile.vectors, Kind.UPCAST)
                if instruction is None and pack_both(self, rows, lanes, tile, body):
                    return
                pieces = pieces_of(self, rows, lanes, tile, body)
                if pieces is None:
                    self.interleaved = pack_vectors(self, lanes, vectors)
                    if instruction is not None:
                        pack_rows(self, rows, reduced)
                else:
                    reduce_in_pieces(self, rows, lanes, tile, vectors, pieces)
                    return
        else:
            if self.do_fitting(sums_by_rows(self.nest, lanes.var, self.target)):
                return
            self.cut(lanes.var, max(v for v in (1, 2, 4) if v <= wide), Kind.UPCAST)
        apart = [s.index for s in self.nest.stores if coefficient(s.index, lanes.var) not in (0, 1)]
        cut = {a.root for a in self.nest.axes if a.kind is not Kind.LOOP}
        cut.update(*(stage.node.free for stage in self.nest.stages))  # what is packed was planned for loops as they are
        left = self.target.registers // (tile.rows * tile.vectors)
        for root in self.nest.roots.values():  # neighbours of what the lanes store apart
            if not root.reduce and root.var not in cut and any(coefficient(index, root.var) == 1 for index in apart):
                many = min(self.width(root), FEW_ROWS, power_below(max(1, left)))
                if many > 1 and self.cut(root.var, many, Kind.UPCAST):
                    left //= many
        if tile.unrolled:
            self.unroll_small(tile.rows * tile.vectors, tile.vectors)

    def vector_instruction(self, lanes: Root) -> MatrixInstruction | None:
        """The matrix instruction whose columns are the lanes; None if there is none.

        The lanes are a loop of the nest already.
        """
        vector = next((a for a in self.nest.axes if a.kind is Kind.VECTOR and a.root is lanes.var), None)
        reduced = [r for r in self.nest.roots.values() if r.reduce]
        if vector is None or len(self.reductions) != 1 or len(reduced) != 1:
            return None
        found = instruction_for(self.reductions[0], lanes.var, None, self.target.matrices)
        if found is None or found[0].shape[1] != vector.extent or upper(reduced[0].extent) < 2 * found[0].shape[2]:
            return None
        return found[0]

    def shared_from(self, lanes: Root, vectors: list[Node]) -> int:
        """Tiles of rows from which on packing a vector gains that can be read in place; 0 without such a choice."""
        packed = None if self.contracted else next((n for n in vectors if scattered(self, n, lanes)), None)
        if packed is None or coefficient(packed.arg[1], lanes.var) != 1 or not resident(self, packed):
            return 0
        return least_reads(self, packed)

    def every_row(self, strided: Node, reusing: list[Root], vectors: int) -> bool:
        """Puts all rows of several short dimensions in one tile; False where they do not fit.

        Vectors that are transposed are then used up in registers, as if there were few rows.
        """
        along, rows = self.along(strided), self.reuse(strided)
        if along is None or rows > self.target.registers - BESIDE_ROWS or vectors < self.target.threads:
            return False
        if rows != prod(upper(r.extent) for r in reusing):
            return False
        for row in reusing:
            self.cut(row.var, upper(row.extent), Kind.UPCAST)
        self.cut(along.var, evenly(upper(along.extent), FEW_ROWS), Kind.UNROLL)
        return True

    def turned(self, rows: Root, lanes: Root, terms: int) -> int:
        """Terms over which the cost of transposing a tile's results for the store is spread; 0 where it is negligible.

        It is negligible for long reductions, unless the lanes of a result all fall on the same sets of the cache.
        """
        apart = [by for s in self.nest.stores if (by := coefficient(s.index, lanes.var)) not in (0, 1)]
        if not apart or not self.near(rows):
            return 0
        period, itemsize = self.target.period_bytes, self.reductions[0].dtype.itemsize
        crowded = self.width(lanes) > self.target.l1_ways
        if any(by is None or (crowded and by * itemsize % period == 0) for by in apart):
            return 1
        return terms if terms < LONG_REDUCTION else 0

    def shared_window(self, rows: Root, body: list[Node]) -> SlidingWindow:
        """The iterations of the innermost reduced dimension that read the same scalars for several rows."""
        last = [r for r in self.nest.roots.values() if r.reduce][-1]
        if not isinstance(last.extent, int) or last.extent > UNROLL_MAX:
            return SlidingWindow()
        for number, period in (found for n in body for found in self.gaps(n)):
            row, term = coefficient(number, rows.var), coefficient(number, last.var)
            if row and term and gcd(row, period) == 1:
                return SlidingWindow(last.extent, abs(row), abs(term), period)
        for near, far, factor in (pair for n in body for pair in overlapping(n, self.nest)):
            if (near, far) == (rows.var, last.var):
                return SlidingWindow(last.extent, term=factor)
            if (near, far) == (last.var, rows.var):
                return SlidingWindow(last.extent, row=factor)
        return SlidingWindow()

    def terms_left(self, body: list[Node]) -> int:
        """Terms of the reduction, without those that fall on zeros between the elements of an operand."""
        terms = prod(upper(r.extent) for r in self.nest.roots.values() if r.reduce)
        between = {(number, period) for load in body for number, period in self.gaps(load)
                   if any(self.nest.roots[v].reduce for v in number.variables() if v in self.nest.roots)}
        return max(1, terms // prod(period for _, period in between))

    def plan(self) -> list[LoopAction]:
        """All actions for the nest."""
        if self.reductions:
            self.reduce()
            self.do_all(unrolled_terms(self.nest, self.target))
        else:
            elementwise_tile(self)
        self.thread()
        self.do_all(prefetches(self.nest, self.target))
        self.do_all(runs_ahead(self.nest, self.target))
        self.do_all(prefetches_indirect(self.nest, self.target))
        self.do_all(streams(self.nest, self.target))
        self.do_all(row_conversions(self.nest, self.target))
        self.do_fitting(kept_results(self.nest))
        return self.actions


def cpu_loops(nest: Nest, target: Target) -> list[LoopAction]:
    """Actions for a nest on a target.

    Matrix instructions take their second operand packed, or interleaved in registers from rows: a plan with them that
    does neither is refused. Where lanes along several dimensions cost about the same, each is planned, and the plan
    with the fewest cycles is taken. Another one, which divides among threads more evenly, is compared with that where
    some threads would have much less to do than others.
    """
    matrices = tuple(found for found in target.matrices if gains(found, target))
    target = target if matrices == target.matrices else replace(target, matrices=matrices)
    if target.matrices:
        actions = TilePlanner(nest, target).planned()
        if actions:
            return actions
        actions = read_in_place(nest, target)
        if actions:
            return [*actions, *operand_actions(apply(nest, actions), target)]
        planner = CPUPlanner(nest, target, matrices=True)
        actions = planner.planned()
        packed = planner.interleaved or any(isinstance(a, Pack) for a in actions)
        if packed and any(contracts(a) for a in actions):
            return [*actions, *operand_actions(planner.nest, target)]
    first = CPUPlanner(nest, target)
    first.planned()
    best, least = first, LANES_GAIN * plan_cycles(first.nest, target) if first.alike else 0.0
    for root in first.alike:
        other = CPUPlanner(nest, target, wanted=root)
        other.planned()
        takes = plan_cycles(other.nest, target)
        if takes < least:
            best, least = other, takes
    divided = next((upper(a.extent) for a in best.nest.axes if a.kind is Kind.THREAD), 0)
    if best.reductions and divided and busiest(divided, target.threads) * target.threads > UNEVEN:
        even = CPUPlanner(nest, target, wanted=best.wanted, evenly=True)
        even.planned()
        if plan_cycles(even.nest, target) < EVEN_GAIN * plan_cycles(best.nest, target):
            best = even
    return best.actions


def operand_actions(nest: Nest, target: Target) -> Iterator[LoopAction]:
    """Actions that make the rows of a product what its matrix instruction takes with the least work."""
    yield from unsigned_products.proposed(nest, target)
    yield from widened_rows.proposed(nest, target)


def contracts(action: LoopAction) -> bool:
    """Whether an action gives the terms of a reduction to a matrix instruction."""
    return isinstance(action, Split | Mark) and action.kind is Kind.CONTRACT


def names(actions: Iterable[LoopAction]) -> tuple[str, ...]:
    """The actions as text."""
    return tuple(str(a) for a in actions)
