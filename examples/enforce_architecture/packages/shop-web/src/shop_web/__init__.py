"""How a shop shows its items."""

from shop_core import Item
from shop_store import Store

__all__ = ["price_tag"]


def price_tag(store: Store, name: str) -> str:
    """The text beside an item."""
    item: Item = store.get(name)
    return f"{item.name}: {item.cents / 100:.2f}"
