"""Panels of a product whose whole reduction is done at once: one for each tile of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tg_dtype import dtypes
from tg_shape import coefficient, upper

from ...nest.nest import Axis, Node, Root
from ...nest.spec import Kind
from ...nest.windows import held, windowed
from ..actions import Outermost, Pack, Split, loads_of
from ..planner import Planner
from .panels import largest_piece, least_reads, overlapped, pack_load, packed_itemsize, scattered
from .row_tiles import footprint
from .thread_loops import longest_first, panels_for_each_thread

GROUP_TILES = 8
"""Tiles of rows that read a panel, from which on panels are packed in groups: their reads then outweigh the packing."""


def serial_loops(planner: Planner) -> list[Axis]:
    """The serial output loops of more than one iteration."""
    return [a for a in planner.nest.axes if a.kind is Kind.LOOP and upper(a.extent) > 1]


def interleaves_rows(planner: Planner, lanes: Root, load: Node) -> bool:
    """Whether a matrix instruction's second operand is interleaved in registers, from rows as they lie in memory.

    That is so where only one tile reads each vector of it: a panel of it would be read once.
    """
    serial = serial_loops(planner)
    again = prod(upper(a.extent) for a in serial if a.root not in load.free or a in overlapped(planner.nest, load))
    return planner.contracted and dtypes.is_int(load.dtype) and again == 1 and _rows_of_tile(planner, load) > 1 and (
        coefficient(load.arg[1], lanes.var) == 1)


def _rows_of_tile(planner: Planner, load: Node) -> int:
    """Results of a tile that multiply the same vector of a load."""
    rows = [a for a in planner.nest.axes if a.kind is Kind.UPCAST and a.root not in load.free]
    return prod(upper(a.extent) for a in rows)


def pack_vectors(planner: Planner, lanes: Root, vectors: Sequence[Node]) -> bool:
    """Packs the first operand of the lanes that gains from it: where it is read again and again with large strides.

    The serial loops that the operand depends on go outermost. It is packed in each iteration of the last of them, and
    read in all iterations of the others. An operand so small that each thread packs all of it goes before the loop over
    its panels, as what the rows read then stays in the caches from one panel to the next.

    Returns:
      whether an operand is ready for a matrix instruction without being packed: :func:`interleaves_rows`.
    """
    costs, target = planner.target.cpu, planner.target
    for load in vectors:
        if interleaves_rows(planner, lanes, load):
            return True
        serial, together = serial_loops(planner), overlapped(planner.nest, load)
        around = [a for a in serial if a.root in load.free and a not in together]
        local = [a for a in planner.nest.axes if a.root in load.free and a not in (*around, *together)]
        again = prod(upper(a.extent) for a in serial if a not in around)
        reads = again
        if planner.contracted and dtypes.is_int(load.dtype):  # multiplied one by one, integers take 32 bits each
            reads *= _rows_of_tile(planner, load)
        if any(not isinstance(a.extent, int) for a in (*local, *together)):
            continue
        nbytes = held([*local, *together], windowed(load, planner.nest)) * packed_itemsize(planner, load)
        strided = coefficient(load.arg[1], lanes.var) != 1 or planner.contracted
        most = target.panel_bytes if strided else min(target.beside_bytes, target.panel_bytes)
        if not serial or reads < (2 if strided else least_reads(planner, load)) or nbytes > most:
            continue
        if not scattered(planner, load, lanes):
            continue
        panels = [a for a in around if a.root is lanes.var]
        whole = nbytes * prod(upper(a.extent) for a in panels)
        private = serial[0] not in around and again >= costs.private_reads and whole <= largest_piece(target)
        uneven = planner.evenly and not planner.enough(serial[0]) and any(map(planner.enough, panels))
        if private and not uneven:
            around = [a for a in around if a not in panels]  # each thread packs all panels for itself
        if len(panels) == 1 and panels[0] in around and again >= GROUP_TILES:
            around = group_panels(planner, lanes, around, panels[0], nbytes)
            serial = serial_loops(planner)
        around = longest_first(planner, around)
        if serial[: len(around)] != around:
            planner.do_all(Outermost(axis.name) for axis in reversed(around))
        first = [*around, *serial][0]
        if planner.threaded and not planner.enough(first):
            panels_for_each_thread(planner, [a for a in serial if a not in around], upper(first.extent))
        pack_load(planner, load, around[-1].name if around else None)
        return False
    return False


def group_panels(planner: Planner, lanes: Root, around: Sequence[Axis], panels: Axis, nbytes: int) -> list[Axis]:
    """Cuts the loop over panels in groups that the second-level cache holds: the panels of a group are packed together.

    A tile of rows is then read from far once for all panels of a group, and is in a near cache for the others.

    Args:
      planner: takes the action.
      lanes: the dimension of the panels' vectors.
      around: the loops around what is packed.
      panels: that of them which is over panels.
      nbytes: bytes of a panel.

    Returns:
      The loops around what is packed then.
    """
    others = [a for a in around if a is not panels]
    if not isinstance(panels.extent, int) or (planner.contracted and others):
        return [*around]
    together = largest_group(planner, panels.extent, nbytes) if planner.contracted else (
        even_group(planner, panels.extent, nbytes, far_rows(planner, lanes, others), any(map(planner.enough, others))))
    if together < 2:
        return [*around]
    planner.do(Split(panels.name, together, Kind.LOOP))
    return [planner.nest.axis(panels.name) if a is panels else a for a in around]


def largest_group(planner: Planner, count: int, nbytes: int) -> int:
    """How many of ``count`` panels of ``nbytes`` each are packed together: as many as the second-level cache holds.

    Matrix instructions compute so much with each row in a cycle that they wait for it where it comes from far.
    """
    target = planner.target
    most = max(1, min(target.panel_bytes, target.block_bytes) // nbytes)
    threads = target.threads if planner.threaded else 1
    parts = max(2, threads * -(-count // (threads * most)))
    together = -(-count // parts)
    return together if together < count else 1


def even_group(planner: Planner, count: int, nbytes: int, far: float, divided: bool = False) -> int:
    """How many of ``count`` panels of ``nbytes`` each are packed together, where rows mostly come in time.

    The panels stay in the second-level cache beside the rows and results. A group is no gain for which some threads
    have more to do than others.

    Args:
      planner: its nest has the tile.
      count: how many panels there are.
      nbytes: bytes of each.
      far: what reading the rows from far adds to a product, as a share of it.
      divided: whether another loop is divided among threads.
    """
    target = planner.target
    most = min(target.panel_bytes, target.resident_bytes) // nbytes
    threads = target.threads if planner.threaded and not divided else 1

    def cost(together: int) -> float:
        """Panels that the busiest thread computes, and those whose product takes as long as its reads from far."""
        return min(count, -(-count // together // threads) * together) * (1 + far / together)

    return min(range(min(count // 2, most), 0, -1), key=cost, default=1) if far else 1


def far_rows(planner: Planner, lanes: Root, around: Sequence[Axis]) -> float:
    """What reading the rows of a tile from far rather than near adds to its product, as a share of it.

    Where the second-level cache does not hold all rows, each panel has them read again from the last cache or from
    memory.

    Args:
      planner: its nest has the tile.
      lanes: the dimension of the tile's vectors.
      around: loops in each of whose iterations the rows may be others.

    Returns:
      The share; 0 where the rows stay near, or where the lanes of a result lie apart, so that neighbouring rows are
      to be stored before the next panel.
    """
    nest, target, costs = planner.nest, planner.target, planner.target.cpu
    if any(coefficient(store.index, lanes.var) != 1 for store in nest.stores):
        return 0.0
    rows = {n.arg[0]: n for n in planner.loads if lanes.var not in n.free}
    nbytes = {slot: footprint(nest, n) // prod(
        upper(nest.roots[a.root].extent) for a in around if a.root in n.free) for slot, n in rows.items()}
    if sum(nbytes.values()) <= target.block_bytes:
        return 0.0
    tile = [a for a in nest.axes if a.kind is Kind.UPCAST]
    late = sum(
        prod(upper(a.extent) for a in tile if a.root in n.free) * n.dtype.itemsize / target.line_bytes * (
            costs.line(nbytes[slot], target.block_bytes, target.last_bytes) - costs.far_load)
        for slot, n in rows.items())
    return late / (prod(upper(a.extent) for a in tile) * costs.load)


def pack_rows(planner: Planner, rows: Root, reduced: Root) -> None:
    """Packs the rows' operand along the reduction, where a matrix instruction would read it with a stride."""
    for load in loads_of(planner.nest):
        axes = [a.name for a in planner.nest.axes if a.root is rows.var and a.kind is Kind.LOOP]
        staged = any(s.node is load for s in planner.nest.stages)
        strided = coefficient(load.arg[1], reduced.var) != 1
        if axes and not staged and strided and {rows.var, reduced.var} <= load.free:
            planner.do(Pack(loads_of(planner.nest).index(load), axes[-1]))
