"""Layers of neural networks; see :mod:`tg_frontend.nn`."""

from tg_frontend.nn import (
    BatchNorm,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    ConvTranspose1d,
    ConvTranspose2d,
    Embedding,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    LayerNorm2d,
    Linear,
    RMSNorm,
    checkpoint,
    describe,
)

from . import lr_scheduler, optim, state

__all__ = [
    "BatchNorm", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d",
    "Embedding", "GroupNorm", "InstanceNorm", "LayerNorm", "LayerNorm2d", "Linear", "RMSNorm", "checkpoint", "describe",
    "lr_scheduler", "optim", "state",
]
