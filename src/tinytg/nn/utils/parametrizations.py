"""Weights that are normalised or orthogonal; see :mod:`tg_frontend.nn.utils.parametrizations`."""

from tg_frontend.nn.utils.parametrizations import (
    orthogonal,
    spectral_norm,
    weight_norm,
)

__all__ = [
    "orthogonal",
    "spectral_norm",
    "weight_norm",
]

TYPE_CHECKING = False
if not TYPE_CHECKING:
    from tg_frontend.nn.utils.parametrizations import __getattr__  # noqa: F401
