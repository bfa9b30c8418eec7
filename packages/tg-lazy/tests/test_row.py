from __future__ import annotations

from tg_lazy.graph.row import row_of


def test_equal_rows_are_one_object() -> None:
    row = row_of(("a", 1))
    assert row_of(("a", 1)) is row is not row_of(("a", 2))
    assert "('a', 1)" in repr(row)
