"""Register tiles: how many results of a product are computed together."""

from __future__ import annotations

from dataclasses import dataclass

from ..machine.costs import CPUCosts
from ..machine.target import COPIES

UNLIMITED = 1 << 30
FEW_ROWS = 8
"""Rows of a tile where each is more code, or needs more registers, than a scalar."""
MANY_ROWS = 14
"""Rows of a tile, at the most: 28 accumulators of two vectors each, of 32 registers."""
LANE_STORES = 16
"""Stores, of one lane each, that a transposed tile takes for every power of two of which its rows are the sum."""


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """A register tile: ``rows`` scalars are multiplied with ``vectors`` vectors."""

    rows: int
    vectors: int


def best_tile(
    rows: int, vectors: int, registers: int, *, widest: int = UNLIMITED, most: int = MANY_ROWS, window: int = 1,
    masked: bool = False, turned: int = 0, copies: int = COPIES, in_flight: int = CPUCosts().in_flight,
) -> RegisterTile:
    """The register tile with the fewest loads for each multiply-add that the extents do not waste.

    Args:
      rows: how many there are in all.
      vectors: how many there are in all.
      registers: how many a tile may take.
      widest: how many vectors a tile may have.
      most: how many rows a tile may have.
      window: iterations of a reduction that are unrolled if that makes few copies, and in which rows read the same
        scalars: then all of its vectors are kept.
      masked: the scalars of the rows are masked; an unrolled window knows where.
      turned: terms of the reduction, where it counts beside them that rows are transposed to be stored; else 0.
      copies: few copies, of one multiplication.
      in_flight: how many accumulators hide the latency of an addition.
    """
    def unrolled(tile: RegisterTile) -> int:
        return window if tile.rows * tile.vectors * window <= copies else 1

    def fits(tile: RegisterTile) -> bool:
        if tile.rows * tile.vectors > copies or (masked and tile.rows > FEW_ROWS and unrolled(tile) == 1):
            return False
        return tile.rows * tile.vectors + tile.vectors * unrolled(tile) + 1 <= registers

    def cost(tile: RegisterTile) -> tuple[float, int]:
        waste = 1.0
        for n, t in ((rows, tile.rows), (vectors, tile.vectors)):
            count = -(-n // t)
            waste *= count * t / n * (1 + 1 / count if n % t else 1)  # a partial tile is a copy of the code
        loads = (tile.rows + 2 * tile.vectors) / (tile.rows * tile.vectors)  # vectors come from a farther cache
        latency = max(1.0, in_flight / (tile.rows * tile.vectors))
        if turned:  # for each lane a store of every power of two of which the rows are the sum
            waste *= 1 + 2 * LANE_STORES * tile.rows.bit_count() / (tile.rows * turned)
        return (1 + loads) * waste * latency, -tile.rows * tile.vectors

    options = (
        RegisterTile(r, v) for r in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14) for v in (1, 2, 3, 4, 6)
        if r <= min(rows, most) and v <= min(vectors, widest)
    )
    return min(filter(fits, options), key=cost, default=RegisterTile(1, 1))
