"""The protocol of a store, and the registry over entry points."""

from importlib.metadata import entry_points
from typing import Protocol

from shop_core import Item


class Store(Protocol):
    """Keeps items by name."""

    def put(self, item: Item) -> None: ...

    def get(self, name: str) -> Item: ...


def open_store(name: str) -> Store:
    """The store that some installed package offers under ``name``.

    Raises:
        LookupError: if no package does.
    """
    found = entry_points(group="shop.stores", name=name)
    if not found:
        raise LookupError(f"no store is called {name!r}")
    store: Store = next(iter(found)).load()()
    return store
