"""Matrix instructions of a warp."""

from __future__ import annotations

from .warp import Warp


class Tensor(Warp):
    """Translation of matrix instructions."""
