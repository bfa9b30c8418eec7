"""Tensor, automatic differentiation, neural networks, optimisers, state files and TinyJit."""

from .tensor import Tensor

__all__ = ["Tensor"]
