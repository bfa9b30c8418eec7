"""Tensor, automatic differentiation, neural networks, optimisers, state files and TinyJit."""

from . import array_api, fft, language, linalg, nn, signal, special, text
from .array.printing import set_printoptions
from .autograd.anomaly import detect_anomaly, set_detect_anomaly
from .jit.call import JitError
from .jit.steps import JIT
from .jit.tinyjit import TinyJit
from .nn.amp import autocast
from .tensor import Tensor
from .transform.associative import associative_scan
from .transform.branch import cond
from .transform.custom import Function, FunctionContext
from .transform.derivatives import grad, hvp, jvp, value_and_grad, vjp
from .transform.jacobians import hessian, jacfwd, jacobian, jacrev
from .transform.scan import scan
from .transform.vectorization import vmap
from .transform.while_loop import while_loop

__all__ = [
    "JIT",
    "Function",
    "FunctionContext",
    "JitError",
    "Tensor",
    "TinyJit",
    "array_api",
    "associative_scan",
    "autocast",
    "cond",
    "detect_anomaly",
    "fft",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "language",
    "linalg",
    "nn",
    "scan",
    "set_detect_anomaly",
    "set_printoptions",
    "signal",
    "special",
    "text",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]  # fmt: skip
