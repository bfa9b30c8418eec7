"""The hand-coded heuristic: actions that make a kernel fast on its target without measuring anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from tg_lazy import Ops
from tg_shape import Expr, Variable

from .access import STRIDES
from .actions import Action, Mark, Outermost, Pack, Partial, Split, loads_of
from .contraction import instruction_for
from .matrix import MatrixInstruction
from .nest import REORDERING, Axis, Kind, Nest, Node, NodeOp, Root, is_alu, is_float_reduce
from .rowtile import rows_at_once
from .staging import MAX_SCRATCH_BYTES
from .streaming import TILE, foresees, grows, lines_held, prefetches, size, streams, sums_by_rows, walk_across
from .target import Target
from .windows import overlapping

THREAD_WORK = 1 << 15  # operations below which starting threads costs more than it saves
UNROLL_MAX = 9
FEW_ROWS = 8
MANY_ROWS = 14
SHUFFLED = 4  # vectors that are read together, and sorted into those of every second or every fourth element
MAX_PANEL_BYTES = 1 << 20
UNLIMITED = 1 << 30
MAX_PARTIAL_BYTES = MAX_SCRATCH_BYTES * 31 // 32  # strides may be lengthened
GROUP_PANELS = 4
FAR = 8  # second-level caches: what is larger comes slowly where it is walked across
LONG = 1024  # terms of a reduction beside which it does not count how its results are stored
SHORT_RUN = 8
LONG_ROW = 128  # vectors
SHORT_PIECE = 64  # iterations after which partial results cost little


def power_below(n: int) -> int:
    """The greatest power of two that is at most ``n``."""
    return 1 << (n.bit_length() - 1)


def step(node: Node, root: Variable) -> int | None:
    """By how much a load's index grows with ``root``; None if unevenly."""
    return grows(node.arg[1], root)


def masked(node: Node, root: Variable) -> bool:
    """Whether a load is masked along ``root``."""
    valid = node.arg[2]
    return isinstance(valid, Expr) and root in valid.variables()


class Planner:
    """Collects actions for one nest, applying each to see what the loops have become."""

    def __init__(self, nest: Nest, target: Target, matrices: bool = False) -> None:
        self.nest, self.target, self.matrices = nest, target, matrices
        self.actions: list[Action] = []
        self.contracted = False
        nodes = nest.nodes()
        self.loads = loads_of(nest)
        self.reductions = [n for n in nodes if n.op is NodeOp.REDUCE]
        self.work = max(
            (prod(size(nest.roots[r].extent) for r in n.free) for n in nodes), default=1) * max(1, len(nodes) // 4)
        itemsize = max([n.dtype.itemsize for n in nodes if n.op is not NodeOp.INDEX] or [4])
        self.lanes = max(1, target.vector_bytes // max(itemsize, 1 if itemsize == 1 else 2))
        if itemsize < 4 and any(is_alu(n) for n in nodes):  # it may be computed in 32 bits
            self.lanes = min(self.lanes, target.vector_bytes // 4)
        needed: set[Variable] = set()
        for node in self.reductions:
            needed |= node.free
        self.rows = [r for r in nest.roots.values() if not r.reduce and (r.var in needed or not self.reductions)]
        self.columns = [r for r in nest.roots.values() if not r.reduce and r not in self.rows]

    def do(self, action: Action) -> None:
        """Takes an action."""
        self.nest = action.apply(self.nest)
        self.actions.append(action)

    def do_all(self, actions: Iterable[Action]) -> None:
        """Takes actions in turn."""
        for action in actions:
            self.do(action)

    def outer(self, root: Variable) -> Axis:
        """The outermost loop of a root."""
        return self.nest.of_root(root)[0]

    def cut(self, root: Variable, factor: int, kind: Kind) -> bool:
        """Gives the innermost ``factor`` iterations of a root's outer loop to ``kind``; False if there are too few."""
        axis = self.outer(root)
        extent = axis.extent
        if factor < 2 or axis.kind not in (Kind.LOOP, Kind.REDUCE) or (kind in REORDERING and self.ordered(root)):
            return False
        if isinstance(extent, int) and extent <= factor:
            if extent < 2 or (kind in (Kind.VECTOR, Kind.LANES) and extent & (extent - 1)):
                return False
            self.do(Mark(axis.name, kind.name))
        else:
            self.do(Split(axis.name, factor, kind.name))
        return True

    def ordered(self, root: Variable) -> bool:
        """Whether the order of a reduced dimension must be kept."""
        return self.target.strict and any(is_float_reduce(n) and root in n.arg[1] for n in self.reductions)

    def width(self, root: Root) -> int:
        """How many lanes suit a root: a power of two, no more than it has iterations."""
        return min(self.lanes, power_below(max(size(root.extent), 1)))

    def vectorize(self, root: Root, kind: Kind) -> bool:
        """Puts a root's innermost iterations into vector lanes."""
        width = self.width(root)
        return width >= 2 and self.cut(root.var, width, kind)

    def thread(self) -> None:
        """Divides the outermost serial output loop that is long enough among the threads."""
        threads = self.target.threads
        if threads < 2 or self.work < THREAD_WORK:
            return
        serial = [a for a in self.nest.axes if a.kind is Kind.LOOP]
        rows = {r.var for r in self.rows}
        for stage in self.nest.stages:
            if stage.node.op is NodeOp.REDUCE:  # its rows are done together, by every thread that wants one
                names = [a.name for a in serial]
                serial = serial[: names.index(stage.axis) + 1] if stage.axis in names else []
        for axis in serial:
            if axis.root in rows and size(axis.extent) >= threads:
                if axis is not serial[0] and not self.nest.stages:
                    self.do(Outermost(axis.name))
                elif axis is not serial[0] and any(size(a.extent) > 1 for a in serial[: serial.index(axis)]):
                    continue
                self.do(Mark(axis.name, Kind.THREAD.name))
                return

    # families of kernels

    def elementwise(self) -> None:
        """No reduction: contiguous vectors, a few at a time."""
        best, score = None, 0
        for root in self.rows:
            if size(root.extent) < 2:
                continue
            found = sum(4 for s in self.nest.stores if grows(s.index, root.var) == 1)
            found += sum(1 for load in self.loads if step(load, root.var) == 1)
            found -= sum(1 for load in self.loads if step(load, root.var) not in (0, 1))
            if found > score or best is None:
                best, score = root, found
        if best is None:
            return
        self.vectorize(best, Kind.VECTOR)
        across = [
            r for r in self.rows if r is not best
            and any(step(load, r.var) == 1 and step(load, best.var) not in (0, 1) for load in self.loads)
        ]
        if across:
            self.cut(across[0].var, min(self.width(across[0]), TILE), Kind.UPCAST)
            self.do_all(walk_across(self.nest, best.var, across[0].var, self.target))
        elif len(self.nest.nodes()) <= 24:
            extent = self.outer(best.var).extent
            whole = (n for n in (4, 3, 2) if isinstance(extent, int) and extent >= 2 * n and extent % n == 0)
            self.cut(best.var, 4 if size(extent) >= 64 else next(whole, 1), Kind.UPCAST)

    def reduce(self) -> None:
        """Reductions: vectors where memory is contiguous, a register tile where operands are reused."""
        body = [n for r in self.reductions for n in r.toposort() if n.op is NodeOp.LOAD]
        choice = self.vector_choice(body)
        if choice is not None and not choice.reduce:
            self.output_tile(choice, body)
        else:
            self.lane_tile(choice, body)
        if not any(a.kind is Kind.VECTOR for a in self.nest.axes):
            for root in self.columns[-1:]:
                self.vectorize(root, Kind.VECTOR)

    def vector_choice(self, body: list[Node]) -> Root | None:
        """The dimension whose iterations become lanes; None if none gains."""
        best: Root | None = None
        best_cost = 1.0 * max(len(body), 1)
        inner = prod(size(r.extent) for r in self.nest.roots.values() if r.reduce)
        for root in [*reversed(self.rows), *[r for r in self.nest.roots.values() if r.reduce]]:
            width = self.width(root)
            if width < 2 or (root.reduce and self.ordered(root.var)):
                continue
            extent = size(root.extent)
            waste = -(-extent // width) * width / extent
            cost = 0.0
            for load in body:
                by = step(load, root.var)
                factor = 2 if masked(load, root.var) else 1
                if by in (0, 1, -1):
                    cost += factor * waste / width
                elif self.within(load, by, root):
                    cost += 2 * waste / width
                elif not root.reduce and self.reuse(load) >= 16:
                    cost += 2 * factor * waste / width
                elif by is not None and 1 < by <= STRIDES:
                    cost += factor * (2 * by - 1) * waste / width
                elif not root.reduce and self.along(load) is not None:
                    cost += 5 * waste / width
                else:
                    cost += 2.0  # each lane is read and put into its place
            if not root.reduce and any(
                    all(other.var not in n.free for n in body if root.var in n.free)
                    for other in self.rows if other is not root and size(other.extent) >= 4):
                cost *= 0.3  # a register tile reads each operand once for several results
            if root.reduce:
                cost += 4.0 / extent
                if any(root.var not in n.arg[1] for n in self.reductions if n.level == 1):
                    cost += 0.5
            else:
                if any(root.var not in n.free for n in self.reductions):
                    cost += 1.0
                if any(grows(s.index, root.var) != 1 for s in self.nest.stores):
                    cost += 2.0 / inner
            if cost < best_cost - 1e-9:
                best, best_cost = root, cost
        return best

    def within(self, load: Node, by: int | None, lanes: Root) -> bool:
        """Whether a short reduced dimension fills the gaps of a load that grows ``by`` from lane to lane."""
        return lanes.reduce and by is not None and any(
            r.reduce and r is not lanes and r.extent == by <= SHUFFLED and step(load, r.var) == 1
            for r in self.nest.roots.values())

    def reuse(self, load: Node) -> int:
        """How often each element of a load is used by different outputs."""
        return prod(size(r.extent) for r in self.rows if r.var not in load.free)

    def output_tile(self, lanes: Root, body: list[Node]) -> None:
        """Lanes run over an output dimension: tile it with another that reuses the vectors."""
        self.vectorize(lanes, Kind.VECTOR)
        vectors = [n for n in body if lanes.var in n.free]
        reusing = [r for r in self.rows if r is not lanes and vectors and all(r.var not in n.free for n in vectors)]
        tile = Tile(1, 1)
        wide = size(self.outer(lanes.var).extent)
        if reusing:
            rows = max(reusing, key=lambda r: (min(size(r.extent), 4), self.near(r), size(r.extent)))
            inner = prod(size(r.extent) for r in self.nest.roots.values() if r.reduce)
            turned = inner < LONG and self.near(rows) and any(
                grows(s.index, lanes.var) not in (0, 1) for s in self.nest.stores)
            strided = [n for n in vectors if step(n, lanes.var) not in (0, 1) and self.along(n) is not None]
            instruction = self.instruction(lanes) if self.matrices else None
            if instruction is not None:
                reduced = next(r for r in self.nest.roots.values() if r.reduce)
                self.contracted = self.cut(reduced.var, instruction.shape[2], Kind.CONTRACT)
            if strided and self.reuse(strided[0]) <= FEW_ROWS:  # read only once: transposed in registers
                tile = Tile(min(size(rows.extent), FEW_ROWS), 1)
                self.cut(rows.var, tile.rows, Kind.UPCAST)
                along = self.along(strided[0])
                assert along is not None
                self.cut(along.var, self.width(along), Kind.UNROLL)
            else:
                wide = min(wide, self.widest(lanes, vectors))
                most = FEW_ROWS if any(masked(n, rows.var) for n in body) else MANY_ROWS
                tile = best_tile(size(rows.extent), wide, self.target.registers, turned, most)
                self.cut(rows.var, tile.rows, Kind.UPCAST)
                self.cut(lanes.var, tile.vectors, Kind.UPCAST)
                pieces = self.pieces(rows, lanes, tile, body)
                if pieces is None:
                    self.pack(lanes, vectors)
                    if instruction is not None:
                        self.pack_rows(rows, reduced)
                else:
                    self.reduce_in_pieces(rows, lanes, tile, vectors, pieces)
                    return
        else:
            by_rows = sums_by_rows(self.nest, lanes.var, self.target)
            if by_rows:
                self.do_all(by_rows)
                return
            self.cut(lanes.var, max(v for v in (1, 2, 4) if v <= wide), Kind.UPCAST)
        apart = [s.index for s in self.nest.stores if grows(s.index, lanes.var) not in (0, 1)]
        cut = {a.root for a in self.nest.axes if a.kind is not Kind.LOOP}
        cut.update(*(stage.node.free for stage in self.nest.stages))  # what is packed was planned for loops as they are
        for root in self.nest.roots.values():  # neighbours of what the lanes store apart
            if not root.reduce and root.var not in cut and any(grows(index, root.var) == 1 for index in apart):
                self.cut(root.var, min(self.width(root), FEW_ROWS), Kind.UPCAST)
        self.unroll_small(tile.rows * tile.vectors)

    def instruction(self, lanes: Root) -> MatrixInstruction | None:
        """What multiplies and adds along the innermost reduced dimension, lanes being cut already."""
        vector = next((a for a in self.nest.axes if a.kind is Kind.VECTOR and a.root is lanes.var), None)
        reduced = [r for r in self.nest.roots.values() if r.reduce]
        if vector is None or len(self.reductions) != 1 or len(reduced) != 1:
            return None
        found = instruction_for(self.reductions[0], lanes.var, None, self.target.matrices)
        if found is None or found[0].shape[1] != vector.extent or size(reduced[0].extent) < 2 * found[0].shape[2]:
            return None
        return found[0]

    def along(self, load: Node) -> Root | None:
        """The reduced dimension along which a load is contiguous for long enough to be read in vectors."""
        reduced = (r for r in self.nest.roots.values() if r.reduce and size(r.extent) >= SHORT_RUN)
        return next((r for r in reduced if step(load, r.var) == 1), None)

    def near(self, root: Root) -> bool:
        """Whether neighbours along ``root`` are neighbours in the outputs."""
        return any(grows(s.index, root.var) == 1 for s in self.nest.stores)

    def pack(self, lanes: Root, vectors: list[Node]) -> None:
        """Keeps a vector operand contiguous in cache where it is read again and again with large strides.

        The serial loops that the operand depends on go outermost; it is packed inside the last of them, and read by all
        iterations of the others.
        """
        for load in vectors:
            serial = [a for a in self.nest.axes if a.kind is Kind.LOOP and size(a.extent) > 1]
            together = self.overlapped(load)
            around = [a for a in serial if a.root in load.free and a not in together]
            local = [a for a in self.nest.axes if a.root in load.free and a not in (*around, *together)]
            again = prod(size(a.extent) for a in serial if a not in around)
            nbytes = prod(size(a.extent) for a in local) * load.dtype.itemsize
            strided = step(load, lanes.var) != 1 or self.contracted
            most = MAX_PANEL_BYTES if strided else self.target.l2_bytes // 2
            if again < (2 if strided else 8) or any(not isinstance(a.extent, int) for a in local) or nbytes > most:
                continue
            if not self.scattered(load, lanes):
                continue
            for axis in reversed(around):
                if serial[: len(around)] != around:
                    self.do(Outermost(axis.name))
            self.do(Pack(loads_of(self.nest).index(load), around[-1].name if around else "-"))
            return

    def pack_rows(self, rows: Root, reduced: Root) -> None:
        """Keeps what a matrix instruction takes of the rows together along the reduction, where it is not."""
        for load in loads_of(self.nest):
            axes = [a.name for a in self.nest.axes if a.root is rows.var and a.kind is Kind.LOOP]
            staged = any(s.node is load for s in self.nest.stages)
            if axes and not staged and {rows.var, reduced.var} <= load.free and step(load, reduced.var) != 1:
                self.do(Pack(loads_of(self.nest).index(load), axes[-1]))

    def widest(self, lanes: Root, vectors: list[Node]) -> int:
        """Of how many vectors a panel of a strided operand may be, so that it can be packed whole."""
        reduced = [r for r in self.nest.roots.values() if r.reduce]
        if len(reduced) == 1:
            return UNLIMITED  # cut in pieces
        panels = (
            prod(size(r.extent) for r in reduced if r.var in n.free) * self.width(lanes) * n.dtype.itemsize
            for n in vectors if step(n, lanes.var) != 1
        )
        most = MAX_PANEL_BYTES // max(panels, default=1)
        return most or UNLIMITED  # too large for one vector: cut in pieces

    def pieces(self, rows: Root, lanes: Root, tile: Tile, body: list[Node]) -> Pieces | None:
        """How to cut a long reduction; None if it is not long.

        A reduction is long if its vectors do not stay in the cache from one row to the next; or if the operand of the
        rows is walked across, and either is larger than the caches, or its neighbours along the reduction fall on so
        few sets of the cache that they do not stay either. What is walked across serves several panels at once.
        """
        walked = [r for r in self.nest.roots.values() if r.reduce]
        count = self.outer(rows.var).extent
        if len(self.reductions) != 1 or self.outer(walked[0].var).kind is not Kind.REDUCE:
            return None
        if len(walked) > 1:
            return self.pieces_of_several(walked, lanes, tile, body)
        extent = self.outer(walked[0].var).extent
        if not isinstance(extent, int) or not isinstance(count, int) or count < 4:
            return None
        l2 = self.target.l2_bytes
        wide = tile.vectors * self.width(lanes) * max(n.dtype.itemsize for n in body)
        across = [n for n in body if lanes.var not in n.free and step(n, rows.var) == 1]
        held, far = extent, False
        for load in across:
            jump = abs(step(load, walked[0].var) or 0) * load.dtype.itemsize
            held = min(held, lines_held(jump, self.target))
            far |= prod(size(self.nest.roots[r].extent) for r in load.free) * load.dtype.itemsize > FAR * l2
        if extent * wide <= l2 // 2 and held == extent and not far:
            return None
        panels = min(GROUP_PANELS, size(self.outer(lanes.var).extent) // self.target.threads) if across else 1
        panels = max(1, panels)
        length = power_below(max(l2 // 4 // (wide * panels), SHORT_PIECE))
        if held < extent:
            length = min(length, max(SHORT_PIECE, min(held, 2 * SHORT_PIECE)))
        return Pieces(even_piece(extent, length), panels) if length < extent else None

    def pieces_of_several(self, walked: list[Root], lanes: Root, tile: Tile, body: list[Node]) -> Pieces | None:
        """How to cut a reduction over several dimensions: the outermost, where a panel of all cannot be packed."""
        strided = [n for n in body if lanes.var in n.free and self.scattered(n, lanes) and self.reuse(n) >= FEW_ROWS]
        steps = self.outer(walked[0].var)
        if not strided or not isinstance(steps.extent, int):
            return None
        one = self.width(lanes) * strided[0].dtype.itemsize * prod(size(r.extent) for r in walked[1:])
        most = self.target.l2_bytes // 4 if self.overlapped(strided[0]) else MAX_PANEL_BYTES
        if one * steps.extent <= most or one > MAX_PANEL_BYTES:
            return None
        length = max(1, self.target.l2_bytes // 4 // (one * tile.vectors))
        return Pieces(even_piece(steps.extent, length), 1) if length < steps.extent else None

    def overlapped(self, load: Node) -> list[Axis]:
        """The serial output loops along which the windows of a load overlap, so that one copy serves them all."""
        near = {root for pair in overlapping(load, self.nest) for root in pair[:2]}
        return [a for a in self.nest.axes if a.kind is Kind.LOOP and a.root in near]

    def reduce_in_pieces(self, rows: Root, lanes: Root, tile: Tile, vectors: list[Node], pieces: Pieces) -> None:
        """Cuts a long reduction; partial results of all rows, or of as many as fit, are kept in scratch."""
        reduction = self.reductions[0]
        steps = self.outer(next(r.var for r in self.nest.roots.values() if r.reduce))
        if pieces.length > 1:
            self.do(Split(steps.name, pieces.length, Kind.REDUCE.name))
        packed = next((n for n in vectors if self.scattered(n, lanes)), None)
        together = [] if packed is None else self.overlapped(packed)
        axis, across = self.outer(rows.var), self.outer(lanes.var)
        count = size(axis.extent)
        one = pieces.panels * tile.rows * tile.vectors * self.width(lanes) * reduction.dtype.itemsize
        one *= prod(size(a.extent) for a in together)
        if packed is not None:
            for other in self.nest.axes:  # what is packed serves these too
                fits = one * size(other.extent) <= self.target.l2_bytes // 2
                if other.kind is Kind.LOOP and other.root not in (*packed.free, rows.var, lanes.var) and fits:
                    together.append(other)
                    one *= size(other.extent)
        blocks = -(-count * one // (MAX_PARTIAL_BYTES if pieces.panels > 1 else self.target.l2_bytes // 2))
        if size(across.extent) < self.target.threads:
            blocks = max(blocks, self.target.threads)
        if 1 < blocks <= count // 2:
            self.do(Split(axis.name, -(-count // blocks), Kind.LOOP.name))
        inner = [a.name for a in self.nest.axes if a.root is rows.var and a.kind is Kind.LOOP][-1:]
        if pieces.panels > 1:
            if size(across.extent) > pieces.panels:
                self.do(Split(across.name, pieces.panels, Kind.LOOP.name))
            inner += [a.name for a in self.nest.axes if a.root is lanes.var and a.kind is Kind.LOOP][-1:]
        inner += [a.name for a in together]
        around = [a.name for a in self.nest.axes if a.kind is Kind.LOOP and a.name not in inner]
        for name in reversed(around):
            self.do(Outermost(name))
        self.do(Partial(0, around[-1] if around else "-"))
        if packed is not None:
            self.do(Pack(loads_of(self.nest).index(packed), steps.name))

    def scattered(self, load: Node, lanes: Root) -> bool:
        """Whether the vectors of a load along a reduction are not as they are wanted: far apart, or strided themselves.

        A matrix instruction wants several iterations in turn.
        """
        if self.contracted:
            return True
        jumps = [abs(by) for r in self.nest.roots.values() if r.reduce and (by := step(load, r.var)) is not None]
        return step(load, lanes.var) != 1 or max(jumps, default=0) * load.dtype.itemsize >= 1024

    def lane_tile(self, lanes: Root | None, body: list[Node]) -> None:
        """Lanes run over a reduced dimension (or there are none): several accumulators hide latency.

        Of reductions inside one another the longest has the lanes, and the others run over vectors of them.
        """
        groups: dict[tuple[Variable, ...], list[Node]] = {}
        for node in self.reductions:
            groups.setdefault(node.arg[1], []).append(node)
        within = {roots: frozenset[Variable]().union(*(n.free for n in nodes)) for roots, nodes in groups.items()}
        wide: list[tuple[Variable, ...]] = []
        for roots in sorted(groups, key=lambda roots: -prod(size(self.nest.roots[r].extent) for r in roots)):
            nested = [other for other in groups if other is not roots
                      and (within[roots] & set(other) or within[other] & set(roots))]
            if any(other in wide for other in nested):
                continue
            members = len(groups[roots])
            inner = [self.nest.roots[r] for r in roots]
            contiguous = [
                r for r in inner
                if any(step(n, r.var) == 1 for n in body) or (lanes is not None and r is lanes) or not body
            ]
            if not contiguous:
                continue
            root = contiguous[-1]
            if lanes in contiguous and self.width(lanes) > self.width(root):
                root = lanes
            if self.vectorize(root, Kind.LANES):
                wide.append(roots)
                if nested:
                    continue
                if len(groups) == 1:
                    self.do_all(rows_at_once(self.nest, self.target, root.var))
                    members *= prod(size(a.extent) for a in self.nest.axes if a.kind in (Kind.UPCAST, Kind.ROWS))
                left = size(self.outer(root.var).extent)
                # a maximum takes longer than a sum: what came before is looked at once more, for it may be no number
                slow = left >= LONG_ROW and all(n.arg[0] is Ops.MAX for n in groups[roots])
                spread = max(s for s in (1, 2, 4, 8) if s * members <= max(8 if slow else 4, members) and s <= left)
                self.cut(root.var, spread, Kind.SPREAD)
        self.unroll_small(4)

    def unroll_small(self, copies: int) -> None:
        """Unrolls short reduction loops, as a convolution's window."""
        for root in reversed([r for r in self.nest.roots.values() if r.reduce]):
            axis = self.outer(root.var)
            if any(root.var in n.free for n in self.reductions):
                continue  # another reduction would be copied with it
            if axis.kind is Kind.REDUCE and isinstance(axis.extent, int) and 2 <= axis.extent <= UNROLL_MAX:
                if copies * axis.extent > 96:
                    return
                copies *= axis.extent
                self.do(Mark(axis.name, Kind.UNROLL.name))
            elif axis.kind is Kind.REDUCE and self.ordered(root.var):
                return  # what is around a loop that stays one would go inside of it

    def plan(self) -> list[Action]:
        """All actions for the nest."""
        if self.reductions:
            self.reduce()
        else:
            self.elementwise()
        self.thread()
        self.do_all(prefetches(self.nest, self.target))
        self.do_all(foresees(self.nest, self.target))
        self.do_all(streams(self.nest, self.target))
        return self.actions


@dataclass(frozen=True, slots=True)
class Tile:
    """A register tile: ``rows`` scalars are multiplied with ``vectors`` vectors."""

    rows: int
    vectors: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """A cut reduction: ``length`` iterations at a time, for ``panels`` tiles of vectors together."""

    length: int
    panels: int


def best_tile(
    rows: int, vectors: int, registers: int, turned: bool = False, most: int = MANY_ROWS
) -> Tile:
    """The register tile with the fewest loads for each multiply-add that the extents do not waste.

    ``rows`` and ``vectors`` are how many there are in all, ``most`` how many rows a tile may have; ``turned`` asks for
    rows that can be transposed whole.
    """
    def cost(tile: Tile) -> tuple[float, int]:
        waste = 1.0
        for n, t in ((rows, tile.rows), (vectors, tile.vectors)):
            count = -(-n // t)
            waste *= count * t / n * (1 + 1 / count if n % t else 1)  # a partial tile is a copy of the code
        loads = (tile.rows + 2 * tile.vectors) / (tile.rows * tile.vectors)  # vectors come from a farther cache
        latency = max(1.0, 8 / (tile.rows * tile.vectors))
        return (1 + loads) * waste * latency, -tile.rows * tile.vectors

    options = (
        Tile(r, v) for r in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14) for v in (1, 2, 3, 4, 6)
        if r <= min(rows, most) and v <= vectors and r * v + v + 1 <= registers
        and not (turned and r != min(8, power_below(rows)))
    )
    return min(options, key=cost, default=Tile(1, 1))


def even_piece(extent: int, most: int) -> int:
    """The size, at most ``most``, of pieces that have nothing over, or else as little as may be.

    >>> even_piece(4096, 1024), even_piece(1000, 128), even_piece(1009, 512)
    (1024, 125, 505)
    """
    whole = next((n for n in range(most, most // 2, -1) if extent % n == 0), None)
    return whole or -(-extent // -(-extent // most))


def heuristic(nest: Nest, target: Target) -> list[Action]:
    """Actions for a nest on a target.

    Matrix instructions take their second operand packed: a plan with them is refused if it packs nothing.
    """
    if target.matrices:
        actions = Planner(nest, target, matrices=True).plan()
        if any(isinstance(a, Pack) for a in actions) and any(str(a).endswith("CONTRACT)") for a in actions):
            return actions
    return Planner(nest, target).plan()


def names(actions: Iterable[Action]) -> tuple[str, ...]:
    """The actions as text."""
    return tuple(str(a) for a in actions)
