"""Where a shop keeps its items: a protocol, and the stores that fill it, found by name."""

from shop_store.store import Store, open_store

__all__ = ["Store", "open_store"]
