"""Rule sets, and the order in which a kernel goes through them."""

from .pipeline import full_rewrite, rewrites
from .simplify import simplify

__all__ = ["full_rewrite", "rewrites", "simplify"]
