"""Tensor, automatic differentiation, neural networks, optimisers, state files and TinyJit."""

from . import nn
from .anomaly import detect_anomaly, set_detect_anomaly
from .call import JitError
from .jit import TinyJit
from .printing import set_printoptions
from .steps import JIT
from .tensor import Tensor

__all__ = [
    "JIT", "JitError", "Tensor", "TinyJit", "detect_anomaly", "nn", "set_detect_anomaly", "set_printoptions",
]  # fmt: skip
