"""Tables of what is made once: the nodes of the lazy graph, and their rows."""

from __future__ import annotations

from typing import Generic, TypeVar
from weakref import ref

T = TypeVar("T")
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


class Interned(Generic[T]):
    """Objects by key, not kept alive. One that is gone leaves a dead reference, until the table has doubled.

    Attributes:
      find: the reference to the object of a key, perhaps a dead one; None if there was none.
      limit: how many references there may be before dead ones are swept.
    """

    FEWEST = 4096

    def __init__(self) -> None:
        self._table: dict[Key, ref[T]] = {}
        self.find = self._table.get
        self.limit = self.FEWEST

    def add(self, key: Key, weak: ref[T]) -> None:
        """Puts an object in, in place of one that is gone."""
        table = self._table
        table[key] = weak
        if len(table) > self.limit:
            self.sweep()

    def drop(self, key: Key, there: T) -> None:
        """Takes ``there`` out, if it is what ``key`` finds."""
        found = self._table.get(key)
        if found is not None and found() is there:
            del self._table[key]

    def sweep(self) -> None:
        """Forgets what is gone."""
        table = self._table
        for key in [key for key, weak in table.items() if weak() is None]:
            del table[key]
        self.limit = max(self.FEWEST, 2 * len(table))

    def __len__(self) -> int:
        return len(self._table)


_rows: Interned[Row] = Interned()


def row_of(content: Key) -> Row:
    """The row of that content. One thread at a time."""
    weak = _rows.find(content)
    row = None if weak is None else weak()
    if row is None:
        row = Row(content)
        _rows.add(content, ref(row))
    return row
