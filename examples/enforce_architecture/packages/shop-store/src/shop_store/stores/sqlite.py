"""A store in a database."""

import sqlite3

from shop_core import Item


class SqliteStore:
    def __init__(self, path: str = ":memory:") -> None:
        self._database = sqlite3.connect(path)
        self._database.execute("create table if not exists item (name text primary key, cents integer)")

    def put(self, item: Item) -> None:
        self._database.execute("insert or replace into item values (?, ?)", (item.name, item.cents))

    def get(self, name: str) -> Item:
        row = self._database.execute("select name, cents from item where name = ?", (name,)).fetchone()
        if row is None:
            raise KeyError(name)
        return Item(*row)
