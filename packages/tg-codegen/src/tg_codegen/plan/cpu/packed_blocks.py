"""Products that pack both operands: panels of the one and blocks of the other, each read many times.

It is the order of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_shape import coefficient, step

from ...nest.nest import Node, Root
from ...nest.spec import Kind
from ..actions import Outermost, Split, SplitReduction
from ..planner import Planner, power_below
from .packing import serial_loops
from .panels import pack_load, packed_itemsize
from .reduction_pieces import even_piece
from .registers import RegisterTile
from .streaming import lines_held


def pack_both(planner: Planner, rows: Root, lanes: Root, tile: RegisterTile, body: Sequence[Node]) -> bool:
    """Packs both operands where the rows' lines along the reduction fall on the same sets of the cache.

    Unpacked, such a line is evicted before the next tile of vectors reads it: it comes from the second-level cache for
    every term of a tile, and a small tile waits for it.

    Args:
      planner: its nest has the tile already, and takes the actions.
      rows: the dimension of the tile's rows.
      lanes: that of its vectors.
      tile: results that registers hold at a time.
      body: the loads of the reduction.

    Returns:
      whether both were packed: they are not where too few panels would share a packed block of rows.
    """
    nest, target, costs = planner.nest, planner.target, planner.target.cpu
    walked = [r for r in nest.roots.values() if r.reduce]
    steps, axis, across = planner.outer(walked[0].var), planner.outer(rows.var), planner.outer(lanes.var)
    if len(planner.reductions) != 1 or len(walked) != 1 or steps.kind is not Kind.REDUCE:
        return False
    if {a.name for a in serial_loops(planner)} != {axis.name, across.name}:
        return False
    terms, blocks, count = steps.extent, axis.extent, across.extent
    if not isinstance(terms, int) or not isinstance(blocks, int) or not isinstance(count, int):
        return False
    near = [n for n in body if lanes.var not in n.free and coefficient(n.arg[1], rows.var) == 1]
    vectors = [n for n in body if lanes.var in n.free and rows.var not in n.free]
    if len(near) != 1 or len(vectors) != 1:
        return False
    jump = step(near[0].arg[1], walked[0].var) * near[0].dtype.itemsize
    wide = tile.vectors * planner.width(lanes) * packed_itemsize(planner, vectors[0])
    room = min(target.l2_bytes, target.panel_bytes)
    length = even_piece(terms, max(1, min(terms, power_below(max(1, room // (costs.row_panels * wide))))))
    most = min(2 * costs.row_panels, room // (wide * length))
    shares = target.threads * -(-count // (target.threads * most))
    panels = -(-count // shares)  # as many parts as divide evenly among threads
    tiles = -(-costs.packed_lines * target.line_bytes // (tile.rows * near[0].dtype.itemsize))
    results = blocks * tile.rows * panels * wide if length < terms else 0
    if lines_held(jump, target) >= terms or panels < costs.row_panels or blocks <= tiles:
        return False
    if results > target.partial_bytes or tiles * tile.rows * length * packed_itemsize(planner, near[0]) > room:
        return False
    if length < terms:
        planner.do(Split(steps.name, length, Kind.REDUCE))
    planner.do(Split(axis.name, tiles, Kind.LOOP))
    if panels < count:
        planner.do(Split(across.name, panels, Kind.LOOP))
    planner.do(Outermost(across.name))
    if length < terms:
        planner.keep(SplitReduction(0, across.name))
    pack_load(planner, vectors[0], steps.name if length < terms else across.name)
    pack_load(planner, near[0], axis.name)
    return True
