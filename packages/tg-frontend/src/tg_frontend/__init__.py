"""Tensor, automatic differentiation, neural networks, optimisers, state files and TinyJit."""

from . import nn
from .array.printing import set_printoptions
from .autograd.anomaly import detect_anomaly, set_detect_anomaly
from .jit.call import JitError
from .jit.steps import JIT
from .jit.tinyjit import TinyJit
from .tensor import Tensor
from .transform.scan import scan

__all__ = [
    "JIT", "JitError", "Tensor", "TinyJit", "detect_anomaly", "nn", "scan", "set_detect_anomaly", "set_printoptions",
]  # fmt: skip
