"""Mixed precision; see :mod:`tg_frontend.nn.amp`."""

from tg_frontend.nn.amp import (
    GradScaler,
    autocast,
)

__all__ = [
    "GradScaler",
    "autocast",
]

TYPE_CHECKING = False
if not TYPE_CHECKING:
    from tg_frontend.nn.amp import __getattr__  # noqa: F401
