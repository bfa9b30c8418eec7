"""Rows: what nodes of the lazy graph compute, each made once."""

from __future__ import annotations

from weakref import ref

from tg_shape import Interned

Key = tuple[object, ...]


class Row:
    """What a node computes, without on which operands: op, device, dtype, argument and how each operand is seen.

    Equal rows are one object, different ones never are.
    """

    __slots__ = ("__weakref__", "content")

    def __init__(self, content: Key) -> None:
        self.content = content

    def __repr__(self) -> str:
        return f"<Row {self.content}>"


_rows: Interned[Row] = Interned()
find_row = _rows.find
"""The reference to the row of a content, perhaps a dead one; None if there was none. :func:`row_of` makes it."""


def row_of(content: Key) -> Row:
    """The row of that content. One thread at a time."""
    weak = _rows.find(content)
    row = None if weak is None else weak()
    if row is None:
        row = Row(content)
        _rows.add(content, ref(row))
    return row
