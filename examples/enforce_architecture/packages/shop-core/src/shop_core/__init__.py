"""What a shop sells."""

from shop_core.item import Item

__all__ = ["Item"]
