"""Gradients of convolutions by themselves; see :mod:`tg_frontend.nn.grad`."""

from tg_frontend.nn.grad import (
    conv1d_input,
    conv1d_weight,
    conv2d_input,
    conv2d_weight,
    conv3d_input,
    conv3d_weight,
)

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]

TYPE_CHECKING = False
if not TYPE_CHECKING:
    from tg_frontend.nn.grad import __getattr__  # noqa: F401
