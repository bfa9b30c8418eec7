"""Register tiles: how many results of a product are computed together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...machine.costs import CPUCosts
from ...machine.target import COPIES
from ...nest.interior import LEAST_INTERIOR

UNLIMITED = 1 << 30
USUAL = CPUCosts()
FEW_ROWS = 8
"""Most rows of a tile where a row costs more than one scalar register: masked, transposed or windowed rows."""
MANY_ROWS = 14
"""Most rows of a tile: 14 rows of two vectors are 28 accumulators, which leaves 4 of 32 registers for operands."""

TILE_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, MANY_ROWS)
"""Rows of a tile that are tried: every number while one row more is much, then even ones."""
TILE_VECTORS = (1, 2, 3, 4, 6)
"""Vectors of a tile that are tried: six by four rows are all that 32 registers hold beside the operands."""


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """A register tile: ``rows`` scalars are multiplied with ``vectors`` vectors.

    Attributes:
      rows: how many scalars.
      vectors: how many vectors.
      unrolled: whether a short window is unrolled around it; where its vectors would be read again with every row, a
        loop that has them in registers for one term may take less.
    """

    rows: int
    vectors: int
    unrolled: bool = True


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Terms of a reduction in which rows read the same scalars: for term t, row r reads that at ``r * row + t * term``.

    Attributes:
      terms: how many are unrolled.
      row: how far the scalars of two rows are apart.
      term: how far those of two terms are apart.
      apart: only every so many-th place has a scalar: a transposed convolution has zeros between, of which an unrolled
        window leaves out the products, if the places of all its tiles are known.

    Example:
      >>> SlidingWindow(3).reach(8), SlidingWindow(4, apart=2).reach(8)
      (10, 6)
    """

    terms: int = 1
    row: int = 1
    term: int = 1
    apart: int = 1

    def reach(self, rows: int) -> int:
        """About how many scalars some rows read for all terms."""
        return -(-((rows - 1) * self.row + (self.terms - 1) * self.term + 1) // self.apart)


def best_tile(
    rows: int, vectors: int, registers: int, *, sums: int = 1, widest: int = UNLIMITED, most: int = MANY_ROWS,
    window: SlidingWindow = SlidingWindow(), masked: bool = False, turned: int = 0, lanes: int = 16,
    copies: int = COPIES, costs: CPUCosts = USUAL, folds: bool = False, packed_from: int = 0,
) -> RegisterTile:
    """The register tile that takes the fewest cycles for each result, by what the machine's instructions cost.

    Args:
      rows: how many there are in all.
      vectors: how many there are in all.
      registers: how many a tile may take.
      sums: of each result, over the same terms: as the two of a complex product.
      widest: how many vectors a tile may have.
      most: how many rows a tile may have.
      window: iterations of a reduction that are unrolled if that makes few copies, and in which rows read the same
        scalars. Its vectors are kept where they fit, or else read again with every row.
      masked: the scalars of the rows are masked; an unrolled window knows where, and other tiles have none only where
        there are so many that those inside are apart from the first and the last one.
      turned: terms of the reduction, where it counts beside them that rows are transposed to be stored, which for
        each lane takes a store of every power of two of which the rows are the sum; else 0.
      lanes: of a vector.
      copies: few copies, of one multiplication.
      costs: of instructions and memory.
      folds: a multiply-add may read an operand from memory, which then needs no register.
      packed_from: how many tiles of rows read a vector, at the least, for it to be packed: a copy that they share. With
        fewer its lines are read as they lie, far apart. 0 where it makes no difference.
    """
    def unrolled(tile: RegisterTile) -> int:
        return window.terms if tile.unrolled and tile.rows * tile.vectors * window.terms <= copies else 1

    def apart(tile: RegisterTile) -> int:
        """One of how many products an unrolled window keeps: whole tiles all have their zeros at the same places."""
        return window.apart if unrolled(tile) > 1 and tile.rows % window.apart == 0 else 1

    def kept(tile: RegisterTile) -> bool:
        """Whether the vectors of an unrolled window stay in registers: compilers read a scalar ahead of its use."""
        beside = 1 if unrolled(tile) == 1 else 2
        return sums * tile.rows * tile.vectors + tile.vectors * unrolled(tile) + beside <= registers

    def fits(tile: RegisterTile) -> bool:
        if tile.rows * tile.vectors > copies or (masked and tile.rows > FEW_ROWS and unrolled(tile) == 1):
            return False
        if masked and not tile.unrolled and rows // tile.rows - 2 < LEAST_INTERIOR:
            return False  # every tile would ask for the masks
        beside = 1 if folds and unrolled(tile) > 1 else tile.vectors
        return kept(tile) or sums * tile.rows * tile.vectors + beside + 1 <= registers

    def term(tile: RegisterTile) -> float:
        """Cycles of one term of all results of a tile, where no sum waits for the one before.

        Vectors come from the second-level cache, where a panel of them is packed; scalars from the first one. Reads are
        added to multiply-adds: other units do them, but each waits for the other now and then.
        """
        terms, gap = unrolled(tile), apart(tile)
        scalars = tile.rows if terms == 1 else min(tile.rows, window.reach(tile.rows) / terms)
        again = 0 if kept(tile) else (terms if gap == 1 else min(terms, tile.rows // gap)) - 1
        reads = scalars * costs.load + tile.vectors * (costs.far_load + costs.reload * again)
        if packed_from:
            count = -(-rows // tile.rows)
            copied = (costs.far_load + costs.store + costs.iteration) / count
            reads += tile.vectors * (copied if count >= packed_from else costs.late_line)
        turns = costs.iteration / terms if gap > 1 else 0.0  # what is left is too little to hide the loops around
        return sums * tile.rows * tile.vectors / gap / costs.units + reads + turns

    def partial(extent: int, size: int) -> float:
        """The tiles' work along a dimension relative to its results; a partial tile costs a copy of the code."""
        count = -(-extent // size)
        return count * size / extent * (1 + 1 / count if extent % size else 1)

    def cost(tile: RegisterTile) -> tuple[float, int]:
        """Cycles for each term of a result that is wanted; of tiles that cost as much, the larger one."""
        results, waste = tile.rows * tile.vectors, partial(vectors, tile.vectors)
        if apart(tile) > 1 and (rest := rows % tile.rows):  # little code, of no more rows than are left
            waste *= (rows - rest + tile.rows * term(replace(tile, rows=rest)) / term(tile)) / rows
        else:
            waste *= partial(rows, tile.rows)
        latency = max(1.0, costs.slack * costs.in_flight / (sums * results))
        stores = lanes * tile.rows.bit_count() * costs.store / (tile.rows * turned) if turned else 0.0
        return term(tile) / results * waste * latency * (1 + costs.units * stores), -results

    counts = {*TILE_ROWS}
    if window.apart > 1:
        counts.update(range(window.apart, MANY_ROWS + 1, window.apart))
    options = (
        RegisterTile(r, v, unrolled) for r in sorted(counts) for v in TILE_VECTORS
        for unrolled in ((True, False) if window.terms > 1 else (True,))
        if r <= min(rows, most) and v <= min(vectors, widest)
    )
    return min(filter(fits, options), key=cost, default=RegisterTile(1, 1))
