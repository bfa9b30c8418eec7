"""Tensor, automatic differentiation, neural networks, optimisers, state files and TinyJit."""

from . import nn
from .tensor import Tensor

__all__ = ["Tensor", "nn"]
