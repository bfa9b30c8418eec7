"""Movements of one view."""

from __future__ import annotations

from tg_shape import View
from tg_shape.movement import expand


def test_what_is_masked_elsewhere_stays_visible_where_it_is_expanded() -> None:
    view = View((1, 4), (0, 1), 0, ((0, 1), (1, 3)))
    assert expand(view, (3, 4)).mask == ((0, 3), (1, 3))
    hidden = View((1, 4), (0, 1), 0, ((0, 0), (1, 3)))
    assert expand(hidden, (3, 4)).mask in (((0, 0), (1, 3)), ((0, 0), (0, 0)))
