"""A store that forgets."""

from shop_core import Item


class MemoryStore:
    def __init__(self) -> None:
        self._items: dict[str, Item] = {}

    def put(self, item: Item) -> None:
        self._items[item.name] = item

    def get(self, name: str) -> Item:
        return self._items[name]
