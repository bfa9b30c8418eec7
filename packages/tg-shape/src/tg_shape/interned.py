"""Tables of immutable objects that are made once for each key."""

from __future__ import annotations

from typing import Generic, TypeVar
from weakref import ref

T = TypeVar("T")
Key = tuple[object, ...]


class Interned(Generic[T]):
    """Objects by key, which the table does not keep alive. Dead references are swept each time the table has doubled.

    Attributes:
      find: the reference to the object of a key, perhaps a dead one; None if there was none.
      table: the references, for hot loops that do themselves what :meth:`add` does.
      limit: how many references there may be before dead ones are swept.
    """

    FEWEST = 4096

    def __init__(self) -> None:
        self.table: dict[Key, ref[T]] = {}
        self.find = self.table.get
        self.limit = self.FEWEST

    def add(self, key: Key, weak: ref[T]) -> None:
        """Puts an object in, in place of one that is gone."""
        table = self.table
        table[key] = weak
        if len(table) > self.limit:
            self.sweep()

    def drop(self, key: Key, there: T) -> None:
        """Removes ``there``, if it is what ``key`` finds."""
        found = self.table.get(key)
        if found is not None and found() is there:
            del self.table[key]

    def add_fleeting(self, key: Key, there: T) -> None:
        """Puts an object in on whose key much memory hangs: the key goes with the object, not when it is swept."""

        def forget(weak: ref[T]) -> None:
            if self.table.get(key) is weak:
                self.table.pop(key, None)

        self.add(key, ref(there, forget))

    def sweep(self) -> None:
        """Removes dead references. Other threads, and finalizers that the collector runs, may add objects meanwhile."""
        table = self.table
        keys = list(table)  # not its items, whose tuples are new objects: making them may run the collector
        while keys:  # newest first: their keys may hold the last references to older objects
            key = keys.pop()
            weak = table.get(key)
            if weak is not None and weak() is None and table.get(key) is weak:
                table.pop(key, None)
        self.limit = max(self.FEWEST, 2 * len(table))

    def __len__(self) -> int:
        return len(self.table)
