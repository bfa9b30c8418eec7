"""Tensor, automatic differentiation, neural networks, optimisers, state files and TinyJit."""

from . import nn
from .jit import JIT, JitError, TinyJit
from .tensor import Tensor

__all__ = ["JIT", "JitError", "Tensor", "TinyJit", "nn"]
