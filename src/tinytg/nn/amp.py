"""Mixed precision; see :mod:`tg_frontend.nn.amp`."""

from tg_frontend.nn.amp import (
    GradScaler,
    autocast,
)

__all__ = [
    "GradScaler",
    "autocast",
]
