"""One thing on the shelf."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """A name and a price in cents."""

    name: str
    cents: int
