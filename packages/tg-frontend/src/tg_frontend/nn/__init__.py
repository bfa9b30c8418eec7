"""Layers, optimisers and state files.

A layer is any object with tensors as attributes and a ``__call__``; nothing has to be inherited or registered:
:func:`tg_frontend.nn.state.get_parameters` finds the tensors.
"""

from . import lr_scheduler, optim, state
from .checkpointing import checkpoint
from .convolutional import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from .describing import describe
from .layers import Embedding, Linear
from .normalization import BatchNorm, BatchNorm2d, BatchNorm3d, GroupNorm, InstanceNorm, LayerNorm, LayerNorm2d, RMSNorm
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell

__all__ = [
    "GRU", "LSTM", "RNN", "BatchNorm", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "ConvTranspose1d",
    "ConvTranspose2d", "Embedding", "GRUCell", "GroupNorm", "InstanceNorm", "LSTMCell", "LayerNorm", "LayerNorm2d",
    "Linear", "RMSNorm", "RNNCell", "checkpoint", "describe", "lr_scheduler", "optim", "state",
]  # fmt: skip
