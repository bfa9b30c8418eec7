"""Layers of neural networks; see :mod:`tg_frontend.nn`."""

from tg_frontend.nn import (
    GRU,
    LSTM,
    RNN,
    BatchNorm,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    ConvTranspose1d,
    ConvTranspose2d,
    Embedding,
    GroupNorm,
    GRUCell,
    InstanceNorm,
    LayerNorm,
    LayerNorm2d,
    Linear,
    LSTMCell,
    RMSNorm,
    RNNCell,
    checkpoint,
    describe,
)

from . import lr_scheduler, optim, state

__all__ = [
    "GRU", "LSTM", "RNN", "BatchNorm", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "ConvTranspose1d",
    "ConvTranspose2d", "Embedding", "GRUCell", "GroupNorm", "InstanceNorm", "LSTMCell", "LayerNorm", "LayerNorm2d",
    "Linear", "RMSNorm", "RNNCell", "checkpoint", "describe", "lr_scheduler", "optim", "state",
]
