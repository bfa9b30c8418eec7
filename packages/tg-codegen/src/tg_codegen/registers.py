"""Register tiles: how many results of a product are computed together."""

from __future__ import annotations

from dataclasses import dataclass

from .planner import power_below

MANY_ROWS = 14


@dataclass(frozen=True, slots=True)
class Tile:
    """A register tile: ``rows`` scalars are multiplied with ``vectors`` vectors."""

    rows: int
    vectors: int


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
