"""Rule sets, and the order in which a kernel goes through them."""

from .pipeline import full_rewrite
from .simplify import fuse_multiply_add, simplify

__all__ = ["full_rewrite", "fuse_multiply_add", "simplify"]
