"""Products whose operands do not stay in the caches: these are packed, and long reductions are cut in pieces."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tg_dtype import dtypes
from tg_shape import Variable, ceildiv, coefficient, even_part, step, upper

from ...ir.matrix import MatrixInstruction
from ...machine.memory import PAGE_BYTES
from ...machine.target import PANEL_BYTES
from ...nest.matrix_products import instruction_for
from ...nest.nest import Axis, Node, Root
from ...nest.spec import Kind
from ...nest.windows import held, overlapping, windowed
from ..actions import Convert, Outermost, Pack, Split, SplitReduction, loads_of
from ..planner import UNROLL_MAX, Planner, power_below
from .conversions import kept_bytes
from .registers import FEW_ROWS, UNLIMITED, RegisterTile
from .streaming import lines_held

GROUP_TILES = 8
"""Panels that at least this many tiles of rows read are packed in groups: their reads then outweigh the packing."""


@dataclass(frozen=True, slots=True)
class WindowTile:
    """A tile of ``rows`` by all of ``window``: along it, a vector is that of other terms.

    Attributes:
      terms: how many of the reduction's innermost dimension are unrolled.
    """

    window: Root
    rows: int
    terms: int

    @property
    def results(self) -> RegisterTile:
        """The results that registers hold at a time, each a vector."""
        return RegisterTile(self.rows * upper(self.window.extent), 1)


@dataclass(frozen=True, slots=True)
class Pieces:
    """A cut reduction: ``length`` iterations at a time, for ``panels`` tiles of vectors together."""

    length: int
    panels: int


class Packer(Planner):
    """Plans what is packed and what is done in pieces."""

    @property
    def piece_bytes(self) -> int:
        """Most bytes of a panel that stays in the second-level cache beside what else a piece reads and writes.

        However large that cache is, no panel has more pages than the first-level TLB holds; and each partial tile may
        have a panel of its own on the stack.
        """
        return min(self.target.resident_bytes, self.target.cpu.near_pages * PAGE_BYTES, self.panel_most)

    @property
    def panel_most(self) -> int:
        """Most bytes of a panel."""
        return min(PANEL_BYTES, self.target.scratch_bytes)

    def instruction(self, lanes: Root) -> MatrixInstruction | None:
        """The matrix instruction for the innermost reduced dimension, once the lanes are cut; None if there is none."""
        vector = next((a for a in self.nest.axes if a.kind is Kind.VECTOR and a.root is lanes.var), None)
        reduced = [r for r in self.nest.roots.values() if r.reduce]
        if vector is None or len(self.reductions) != 1 or len(reduced) != 1:
            return None
        found = instruction_for(self.reductions[0], lanes.var, None, self.target.matrices)
        if found is None or found[0].shape[1] != vector.extent or upper(reduced[0].extent) < 2 * found[0].shape[2]:
            return None
        return found[0]

    def pack(self, lanes: Root, vectors: list[Node]) -> None:
        """Keeps a vector operand contiguous in cache where it is read again and again with large strides.

        The serial loops that the operand depends on go outermost; it is packed inside the last of them, and read by all
        iterations of the others. What is small is packed before its panels' loop, and what the rows read is near from
        panel to panel.
        """
        for load in vectors:
            serial = [a for a in self.nest.axes if a.kind is Kind.LOOP and upper(a.extent) > 1]
            together = self.overlapped(load)
            around = [a for a in serial if a.root in load.free and a not in together]
            local = [a for a in self.nest.axes if a.root in load.free and a not in (*around, *together)]
            again = prod(upper(a.extent) for a in serial if a not in around)
            reads = again
            if self.contracted and dtypes.is_int(load.dtype):  # multiplied one by one, integers take 32 bits each
                rows = [a for a in self.nest.axes if a.kind is Kind.UPCAST and a.root not in load.free]
                reads *= prod(upper(a.extent) for a in rows)
                if again == 1 and reads > 1 and coefficient(load.arg[1], lanes.var) == 1:
                    self.woven = True  # read once: its rows are woven in registers
                    return
            if any(not isinstance(a.extent, int) for a in (*local, *together)):
                continue
            nbytes = held([*local, *together], windowed(load, self.nest)) * self.itemsize(load)
            strided = coefficient(load.arg[1], lanes.var) != 1 or self.contracted
            most = self.panel_most if strided else min(self.target.beside_bytes, self.panel_most)
            if not serial or reads < (2 if strided else self.packed_from(load)) or nbytes > most:
                continue
            if not self.scattered(load, lanes):
                continue
            panels = [a for a in around if a.root is lanes.var]
            whole = nbytes * prod(upper(a.extent) for a in panels)
            alone = serial[0] not in around and again >= self.target.cpu.private_reads and whole <= self.piece_bytes
            if alone and not (self.evenly and not self.enough(serial[0]) and any(map(self.enough, panels))):
                around = [a for a in around if a not in panels]  # so little that every thread has it all
            if self.contracted and around == panels and len(panels) == 1 and again >= GROUP_TILES:
                around = [self.grouped(panels[0], nbytes)]
                serial = [a for a in self.nest.axes if a.kind is Kind.LOOP and upper(a.extent) > 1]
            around = self.longest_first(around)
            for axis in reversed(around):
                if serial[: len(around)] != around:
                    self.do(Outermost(axis.name))
            first = [*around, *serial][0]
            if self.threaded and not self.enough(first):
                self.one_part_each([a for a in serial if a not in around], upper(first.extent))
            self.keep(load, around[-1].name if around else None)
            return

    def itemsize(self, load: Node) -> int:
        """Bytes of an element of a load where it is packed; matrix instructions take it as it is."""
        return load.dtype.itemsize if self.contracted else kept_bytes(self.nest, load)

    def keep(self, load: Node, axis: str | None) -> None:
        """Packs a load, or what it is converted to."""
        kept = Convert if self.itemsize(load) > load.dtype.itemsize else Pack
        self.do(kept(loads_of(self.nest).index(load), axis))

    def grouped(self, panels: Axis, nbytes: int) -> Axis:
        """Cuts the loop of panels in groups that the second-level cache holds, each packed together.

        What a tile of rows reads is near then, and copied once, for all panels of a group.

        Returns:
          The outermost loop of panels.
        """
        if not isinstance(panels.extent, int):
            return panels
        most = max(1, min(self.panel_most, self.target.block_bytes) // nbytes)
        threads = self.target.threads if self.threaded else 1
        parts = max(2, threads * -(-panels.extent // (threads * most)))
        together = -(-panels.extent // parts)
        if 1 < together < panels.extent:
            self.do(Split(panels.name, together, Kind.LOOP))
        return self.nest.axis(panels.name)

    def packed_from(self, load: Node) -> int:
        """How often a vector that need not be gathered is read, at the least, for packing it to pay."""
        costs = self.target.cpu
        return costs.near_panel_reads if self.resident(load) else costs.panel_reads

    def resident(self, load: Node) -> bool:
        """Whether all of an operand stays in the second-level cache, beside as much."""
        elements = prod(upper(self.nest.roots[r].extent) for r in load.free)
        return elements * load.dtype.itemsize <= self.target.beside_bytes

    def pack_rows(self, rows: Root, reduced: Root) -> None:
        """Packs the rows' operand along the reduction, where a matrix instruction would read it with a stride."""
        for load in loads_of(self.nest):
            axes = [a.name for a in self.nest.axes if a.root is rows.var and a.kind is Kind.LOOP]
            staged = any(s.node is load for s in self.nest.stages)
            strided = coefficient(load.arg[1], reduced.var) != 1
            if axes and not staged and strided and {rows.var, reduced.var} <= load.free:
                self.do(Pack(loads_of(self.nest).index(load), axes[-1]))

    def widest(self, lanes: Root, vectors: list[Node]) -> int:
        """Most vectors of a panel of a strided operand that can still be packed whole."""
        reduced = [r for r in self.nest.roots.values() if r.reduce]
        if len(reduced) == 1:
            return UNLIMITED  # cut in pieces
        for walked in (reduced, reduced[1:]):  # what is too large for one vector is cut in pieces
            panels = (self.panel_bytes(n, walked) for n in vectors if coefficient(n.arg[1], lanes.var) != 1)
            most = self.panel_most // max(panels, default=1)
            if most:
                return most
        return UNLIMITED

    def panel_bytes(self, load: Node, reduced: list[Root]) -> int:
        """How many bytes a copy of a load has for one vector, some reduced dimensions and the loops that overlap."""
        together, inner = self.overlapped(load), {r.var for r in reduced}
        axes = [a for a in self.nest.axes if a.root in load.free and (a.kind is Kind.VECTOR or a.root in inner)]
        axes = [a for a in (*axes, *together) if isinstance(a.extent, int)]
        return held(axes, windowed(load, self.nest)) * self.itemsize(load)

    def pieces(self, rows: Root, lanes: Root, tile: RegisterTile, body: list[Node]) -> Pieces | None:
        """How to cut a long reduction; None if it is not long.

        A reduction is long if its vectors do not stay in the cache from one row to the next; or if the operand of the
        rows is walked across, and either is larger than the caches, or its neighbours along the reduction fall on so
        few sets of the cache that they do not stay either; or if it and a panel together take more than half of the
        second-level cache, so that what comes in beside drives out what the next panel is to find there. What is walked
        across serves several panels at once.
        """
        walked = [r for r in self.nest.roots.values() if r.reduce]
        count = self.serial(rows.var)
        if len(self.reductions) != 1 or self.outer(walked[0].var).kind is not Kind.REDUCE:
            return None
        if len(walked) > 1:
            return self.pieces_of_several(walked, lanes, tile, body)
        extent = self.outer(walked[0].var).extent
        if not isinstance(extent, int) or not isinstance(count, int) or count < 4:
            return None
        l2, costs = self.target.l2_bytes, self.target.cpu
        wide = tile.vectors * self.width(lanes) * max(map(self.itemsize, body))
        beside = 0
        if not any(self.scattered(n, lanes) for n in body if lanes.var in n.free):  # not packed: whole lines are read
            wide = -(-wide // self.target.line_bytes) * self.target.line_bytes
            beside = tile.rows * max(n.dtype.itemsize for n in body)
        across = [n for n in body if lanes.var not in n.free and coefficient(n.arg[1], rows.var) == 1]
        held, far, crowded = extent, False, False
        for load in across:
            jump = step(load.arg[1], walked[0].var) * load.dtype.itemsize
            held = min(held, lines_held(jump, self.target))
            nbytes = prod(upper(self.nest.roots[r].extent) for r in load.free) * load.dtype.itemsize
            far |= nbytes > self.target.far_bytes
            crowded |= l2 < 2 * (nbytes + extent * wide) <= 2 * l2
        if extent * (wide + beside) <= self.target.beside_bytes and held == extent and not far and not crowded:
            return None
        panels = min(costs.group_panels, upper(self.serial(lanes.var)) // self.target.threads) if across else 1
        panels = max(1, panels)
        length = power_below(max(self.piece_bytes // (wide * panels), costs.short_piece))
        if held < extent:
            length = min(length, max(costs.short_piece, min(held, 2 * costs.short_piece)))
        return Pieces(even_piece(extent, length), panels) if length < extent else None

    def pieces_of_several(self, walked: list[Root], lanes: Root, tile: RegisterTile, body: list[Node]) -> Pieces | None:
        """How to cut a reduction over several dimensions: the outermost, where a panel of all cannot be packed."""
        strided = [n for n in body if {lanes.var, walked[0].var} <= n.free and self.scattered(n, lanes)
                   and self.reuse(n) >= FEW_ROWS]
        steps = self.outer(walked[0].var)
        if not strided or not isinstance(steps.extent, int):
            return None
        one = self.panel_bytes(strided[0], walked[1:])
        most = self.piece_bytes if self.overlapped(strided[0]) else self.panel_most
        if one * steps.extent <= most or one * tile.vectors > self.panel_most:
            return None
        results = tile.rows * tile.vectors * self.width(lanes)
        results *= prod(upper(a.extent) for a in self.overlapped(strided[0]))
        if results * self.reductions[0].dtype.itemsize > self.target.partial_bytes:
            return None
        length = max(1, self.piece_bytes // (one * tile.vectors))
        return Pieces(even_piece(steps.extent, length), 1) if length < steps.extent else None

    def pack_both(self, rows: Root, lanes: Root, tile: RegisterTile, body: list[Node]) -> bool:
        """Packs both operands, each for several tiles, where the rows' neighbours fall on the same sets of the cache.

        They come from the second-level cache then, a line for every term of a tile: a small tile waits for them. It is
        the order of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008.

        Returns:
          whether it did: it does not where too few panels would share a packed block of rows.
        """
        walked = [r for r in self.nest.roots.values() if r.reduce]
        steps, axis, across = self.outer(walked[0].var), self.outer(rows.var), self.outer(lanes.var)
        serial = [a for a in self.nest.axes if a.kind is Kind.LOOP and upper(a.extent) > 1]
        if len(self.reductions) != 1 or len(walked) != 1 or steps.kind is not Kind.REDUCE:
            return False
        if {a.name for a in serial} != {axis.name, across.name}:
            return False
        terms, blocks, count = steps.extent, axis.extent, across.extent
        if not isinstance(terms, int) or not isinstance(blocks, int) or not isinstance(count, int):
            return False
        near = [n for n in body if lanes.var not in n.free and coefficient(n.arg[1], rows.var) == 1]
        vectors = [n for n in body if lanes.var in n.free and rows.var not in n.free]
        if len(near) != 1 or len(vectors) != 1:
            return False
        jump = step(near[0].arg[1], walked[0].var) * near[0].dtype.itemsize
        wide = tile.vectors * self.width(lanes) * self.itemsize(vectors[0])
        room, costs = min(self.target.l2_bytes, self.panel_most), self.target.cpu
        length = even_piece(terms, max(1, min(terms, power_below(max(1, room // (costs.row_panels * wide))))))
        most = min(2 * costs.row_panels, room // (wide * length))
        shares = self.target.threads * -(-count // (self.target.threads * most))
        panels = -(-count // shares)  # as many parts as divide evenly among threads
        tiles = -(-costs.packed_lines * self.target.line_bytes // (tile.rows * near[0].dtype.itemsize))
        results = blocks * tile.rows * panels * wide if length < terms else 0
        if lines_held(jump, self.target) >= terms or panels < costs.row_panels or blocks <= tiles:
            return False
        if results > self.target.partial_bytes or tiles * tile.rows * length * self.itemsize(near[0]) > room:
            return False
        if length < terms:
            self.do(Split(steps.name, length, Kind.REDUCE))
        self.do(Split(axis.name, tiles, Kind.LOOP))
        if panels < count:
            self.do(Split(across.name, panels, Kind.LOOP))
        self.do(Outermost(across.name))
        if length < terms:
            self.do(SplitReduction(0, across.name))
        self.keep(vectors[0], steps.name if length < terms else across.name)
        self.keep(near[0], axis.name)
        return True

    def window_tile(self, rows: Root, lanes: Root, vectors: list[Node]) -> WindowTile | None:
        """A tile in which a vector is read once for several results and terms: its window moves along the reduction.

        It is legal where the window and the innermost reduced dimension overlap in what the lanes read, by whatever
        steps: results at ``w`` read their term ``t`` at ``by * w + step * t``. The accumulators, the distinct vectors
        and a scalar have to fit the registers, two of which are left to addresses.
        """
        last = [r for r in self.nest.roots.values() if r.reduce][-1]
        shared: dict[Variable, tuple[int, int]] = {}
        for load in (n for n in vectors if self.scattered(n, lanes)):
            for near, far, factor in overlapping(load, self.nest):
                if last.var in (near, far):
                    shared |= {far: (factor, 1)} if near is last.var else {near: (1, factor)}
        for window in self.rows:
            if window.var in shared and 2 <= upper(window.extent) <= UNROLL_MAX:
                width, (by, step) = upper(window.extent), shared[window.var]
                options = [
                    WindowTile(window, count, terms) for count in range(FEW_ROWS, 1, -1) for terms in (4, 3, 2)
                    if upper(rows.extent) % count == 0 and upper(last.extent) % terms == 0
                    and count * width * terms <= self.target.copies
                    and count * width + (read := positions(width, by, terms, step)) + 1 <= self.target.registers - 2
                    and read < width * terms
                ]
                return next(iter(options), None)
        return None

    def overlapped(self, load: Node) -> list[Axis]:
        """The serial output loops along which the windows of a load overlap, so that one copy serves them all."""
        near = {root for pair in overlapping(load, self.nest) for root in pair[:2]}
        return [a for a in self.nest.axes if a.kind is Kind.LOOP and a.root in near]

    def reduce_in_pieces(
        self, rows: Root, lanes: Root, tile: RegisterTile, vectors: list[Node], pieces: Pieces
    ) -> None:
        """Cuts a long reduction; partial results of all rows, or of as many as fit, are kept in scratch."""
        reduction = self.reductions[0]
        steps = self.outer(next(r.var for r in self.nest.roots.values() if r.reduce))
        if pieces.length > 1:
            self.do(Split(steps.name, pieces.length, Kind.REDUCE))
        packed = next((n for n in vectors if steps.root in n.free and self.scattered(n, lanes)), None)
        together = [] if packed is None else self.overlapped(packed)
        axis, across = self.outer(rows.var), self.outer(lanes.var)
        count = upper(axis.extent)
        one = pieces.panels * tile.rows * tile.vectors * self.width(lanes) * reduction.dtype.itemsize
        one *= prod(upper(a.extent) for a in together)
        near = min(self.target.beside_bytes, self.target.partial_bytes)
        if packed is not None:
            for other in self.nest.axes:  # what is packed serves these too
                fits = isinstance(other.extent, int) and one * other.extent <= near
                if other.kind is Kind.LOOP and other.root not in (*packed.free, rows.var, lanes.var) and fits:
                    together.append(other)
                    one *= upper(other.extent)
        fitting = max(1, (self.target.partial_bytes if pieces.panels > 1 else near) // one)
        needed = blocks = -(-count // fitting)
        threads = self.target.threads
        alone = across.kind is not Kind.LOOP or not self.enough(across)  # nothing yet to divide among threads
        if alone:
            blocks = max(blocks, threads)
        by_tile = axis.kind is Kind.LOOP and needed > max(1, count // 2)
        if blocks > count // 2:  # too few tiles for all threads to have several
            blocks = needed
        if axis.kind is Kind.LOOP and 1 < blocks <= count // 2:
            self.do(Split(axis.name, min(fitting, -(-count // blocks)), Kind.LOOP))
        elif alone and threads > 1 and not by_tile:
            together = self.divided(together)
        inner = [] if by_tile else [a.name for a in self.nest.axes if a.root is rows.var and a.kind is Kind.LOOP][-1:]
        if pieces.panels > 1:
            if upper(across.extent) > pieces.panels:
                self.do(Split(across.name, pieces.panels, Kind.LOOP))
            inner += [a.name for a in self.nest.axes if a.root is lanes.var and a.kind is Kind.LOOP][-1:]
        inner += [a.name for a in together]
        loops = [a for a in self.nest.axes if a.kind is Kind.LOOP and a.name not in inner]
        around = [a.name for a in self.longest_first(loops)]
        for name in reversed(around):
            self.do(Outermost(name))
        self.do(SplitReduction(0, around[-1] if around else None))
        if packed is not None:
            self.keep(packed, steps.name)

    def longest_first(self, loops: list[Axis]) -> list[Axis]:
        """Loops in order, but first those that have enough iterations for all threads, or else the longest.

        Only the outermost loop is divided among threads.
        """
        threads = self.target.threads
        longest = max(loops, key=lambda a: min(upper(a.extent), threads), default=None)
        return sorted(loops, key=lambda a: a is not longest and not self.enough(a))

    def one_part_each(self, serial: list[Axis], most: int) -> None:
        """Cuts the longest of some output loops in a part for each thread, around all others; each packs for itself.

        Where it is not long enough, it is outermost only if it has more than ``most`` iterations.
        """
        rows, threads = {r.var for r in self.rows}, self.target.threads
        axis = max((a for a in serial if a.root in rows), key=lambda a: upper(a.extent), default=None)
        if axis is None or not isinstance(axis.extent, int) or axis.extent <= min(most, threads - 1):
            return
        if most >= threads and not self.enough(axis):
            return
        if axis.extent > threads:
            self.do(Split(axis.name, -(-axis.extent // threads), Kind.LOOP))
        self.do(Outermost(axis.name))

    def divided(self, together: list[Axis]) -> list[Axis]:
        """Cuts the first of some output loops that is long enough in as many parts as there are threads.

        Returns:
          The loops that are left inside.
        """
        threads = self.target.threads
        for number, axis in enumerate(together):
            if isinstance(axis.extent, int) and self.enough(axis):
                if axis.extent == threads:
                    return together[:number] + together[number + 1 :]
                self.do(Split(axis.name, -(-axis.extent // threads), Kind.LOOP))
                inner = self.nest.of_root(axis.root)[1]
                return [inner if a is axis else a for a in together]
        return together

    def scattered(self, load: Node, lanes: Root) -> bool:
        """Whether the vectors of a load along a reduction are not as they are wanted: far apart, or strided themselves.

        A matrix instruction wants several iterations in turn.
        """
        if self.contracted:
            return True
        steps = (coefficient(load.arg[1], r.var) for r in self.nest.roots.values() if r.reduce)
        jumps = [abs(step) for step in steps if step is not None]
        apart = max(jumps, default=0) * load.dtype.itemsize
        return coefficient(load.arg[1], lanes.var) != 1 or apart >= self.target.cpu.scattered_bytes


def positions(results: int, by: int, terms: int, step: int) -> int:
    """How many places some results read, each its terms ``step`` apart, if the results are ``by`` apart.

    >>> positions(3, 1, 4, 1), positions(3, 2, 4, 1), positions(3, 1, 2, 2)
    (6, 8, 5)
    """
    return len({by * result + step * term for result in range(results) for term in range(terms)})


def even_piece(extent: int, most: int) -> int:
    """The size, at most ``most``, of pieces that have nothing over, or else as little as may be.

    >>> even_piece(4096, 1024), even_piece(1000, 128), even_piece(1009, 512)
    (1024, 125, 505)
    """
    return even_part(extent, most) or upper(ceildiv(extent, ceildiv(extent, most)))
