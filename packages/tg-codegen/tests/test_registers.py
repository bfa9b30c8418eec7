"""Register tiles: what is reused, what is wasted, what fits."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tg_codegen.machine.costs import CPUCosts
from tg_codegen.machine.target import COPIES
from tg_codegen.plan.cpu.registers import FEW_ROWS, RegisterTile, SlidingWindow, best_tile

IN_FLIGHT = CPUCosts().in_flight


def test_nothing_is_left_over_where_that_can_be() -> None:
    tile = best_tile(64, 4, 32, widest=3)
    assert 4 % tile.vectors == 0
    assert 64 % tile.rows == 0


def test_what_fits() -> None:
    for rows in range(1, 30):
        for vectors in range(1, 8):
            for window in (1, 3, 5):
                tile = best_tile(rows, vectors, 32, window=SlidingWindow(window))
                assert tile.rows * tile.vectors + tile.vectors + 1 <= 32
                assert tile.rows <= rows and tile.vectors <= vectors
                if tile.unrolled and tile.rows * tile.vectors * window <= COPIES:
                    assert tile.rows * tile.vectors + tile.vectors * window + 1 <= 32


@pytest.mark.parametrize("registers", [16, 32])
def test_a_tile_hides_the_latency_of_an_addition_where_nothing_is_left_over(registers: int) -> None:
    for rows in range(1, 30):
        for vectors in range(1, 13):
            whole = [(r, v) for r in (1, 2, 4, 6, 8) for v in (1, 2, 3, 4, 6) if rows % r == 0 and vectors % v == 0]
            if any(IN_FLIGHT <= r * v and r * v + v + 1 <= registers for r, v in whole):
                tile = best_tile(rows, vectors, registers)
                assert tile.rows * tile.vectors >= IN_FLIGHT, (rows, vectors, tile)


def test_eight_accumulators_hide_the_latency_of_an_addition() -> None:
    assert best_tile(2, 5, 16) == RegisterTile(2, 4), "six wait longer than a vector more in each of two rows takes"
    assert best_tile(3, 8, 16, widest=3) == RegisterTile(3, 3), "two would wait longer than a partial last tile takes"


def test_a_tile_makes_no_more_copies_than_it_may() -> None:
    tiles = {copies: best_tile(64, 4, 32, window=SlidingWindow(3), copies=copies) for copies in (1, 2, 6, 12, 24, 48)}
    assert all(tile.rows * tile.vectors <= copies for copies, tile in tiles.items())
    assert tiles[1] == RegisterTile(1, 1) and tiles[12].rows * tiles[12].vectors > 6


def test_a_window_keeps_its_vectors() -> None:
    assert best_tile(6, 4, 32) == best_tile(6, 4, 32, window=SlidingWindow(1))
    assert best_tile(6, 4, 32).vectors == 4
    assert best_tile(6, 4, 32, window=SlidingWindow(3)).vectors == 2


def test_a_window_that_is_not_kept_is_read_again() -> None:
    """Of three terms 14 rows read 16 scalars: that is worth more than keeping three vectors beside 8 rows."""
    assert best_tile(56, 8, 16, window=SlidingWindow(3), folds=True) == RegisterTile(14, 1)
    assert best_tile(7, 8, 16, window=SlidingWindow(3), folds=True) == RegisterTile(7, 2), "one is read from memory"
    assert best_tile(7, 8, 16, window=SlidingWindow(3)).vectors == 1, "or else it would not fit"
    assert best_tile(56, 8, 16, window=SlidingWindow(7, row=2), masked=True, folds=True) == RegisterTile(14, 1)


def test_a_long_window_is_a_loop_where_its_vectors_would_be_read_again() -> None:
    """Two vectors are in registers for a term of 6 rows; with masks it wants tiles inside, where none hold back."""
    window, loop = SlidingWindow(7, row=2), RegisterTile(6, 2, unrolled=False)
    assert best_tile(112, 8, 16, window=window, masked=True, folds=True) == loop
    assert best_tile(60, 8, 16, window=window, folds=True) == loop
    assert best_tile(60, 8, 16, window=window, masked=True, folds=True).unrolled, "the interior is too small"
    assert best_tile(112, 8, 32, window=window, masked=True, folds=True).unrolled, "they all fit"
    assert best_tile(112, 8, 16, window=SlidingWindow(3), masked=True, folds=True).unrolled


def test_scalars_of_a_window() -> None:
    assert SlidingWindow(3).reach(8) == 10
    assert SlidingWindow(7, row=2).reach(4) == len({2 * r + t for r in range(4) for t in range(7)})
    assert SlidingWindow(3, term=2).reach(9) == len({r + 2 * t for r in range(9) for t in range(3)})


def test_masks_want_a_window_that_is_unrolled() -> None:
    assert best_tile(10, 2, 32, window=SlidingWindow(3), masked=True).rows == 10
    assert best_tile(10, 2, 32, masked=True).rows <= FEW_ROWS
    assert best_tile(12, 2, 32, masked=True).rows <= FEW_ROWS


def test_rows_are_turned_whole_beside_few_terms() -> None:
    assert best_tile(20, 2, 32).rows == 10
    assert best_tile(20, 2, 32, turned=800).rows == 10
    assert best_tile(24, 2, 32, turned=9).rows == 8
    assert best_tile(1024, 64, 32, turned=1).rows == 8


def test_a_tile_is_as_the_machine_has_costs() -> None:
    """Dear vectors make more rows of fewer vectors; what takes long to add up makes more accumulators."""
    assert best_tile(64, 12, 32, costs=replace(CPUCosts(), far_load=8.0)).rows > best_tile(
        64, 12, 32, costs=replace(CPUCosts(), far_load=0.5)).rows
    few, many = (best_tile(1, 9, 16, costs=replace(CPUCosts(), latency=cycles)) for cycles in (1, 4))
    assert (few, many) == (RegisterTile(1, 3), RegisterTile(1, 6))


def test_a_window_with_gaps_has_few_vectors_and_many_rows() -> None:
    """A vector is multiplied with every second or third row only: more rows share it, and all tiles are alike."""
    assert best_tile(64, 4, 16, window=SlidingWindow(4, apart=2), folds=True) == RegisterTile(10, 1)
    assert best_tile(158, 8, 16, window=SlidingWindow(5, apart=3), folds=True) == RegisterTile(9, 1)
    for registers, apart, terms, rows in product((16, 32), (2, 3, 4, 5), (2, 3, 4, 5), (17, 64, 159)):
        tile = best_tile(rows, 4, registers, window=SlidingWindow(terms, apart=apart), folds=True)
        assert tile.rows % apart == 0, (registers, apart, terms, rows, tile)


def test_vectors_are_kept_beside_a_scalar_that_is_read_ahead() -> None:
    assert best_tile(60, 8, 16, window=SlidingWindow(3), folds=True) == RegisterTile(10, 1), "12 would spill"
    assert best_tile(12, 1, 17, window=SlidingWindow(3), folds=True) == RegisterTile(12, 1)


def test_few_tiles_of_rows_read_vectors_that_are_far_apart_as_they_lie() -> None:
    assert best_tile(32, 32, 32) == best_tile(64, 32, 32) == RegisterTile(4, 4)
    for rows in (32, 64):  # in tiles of four rows they would be packed, or read from the second-level cache too often
        assert best_tile(rows, 32, 32, packed_from=16) == RegisterTile(8, 2)
    assert best_tile(128, 32, 32, packed_from=16) == best_tile(128, 32, 32)
