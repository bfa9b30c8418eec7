"""tinytg: a tensor compiler, from dtypes to a PyTorch-like Tensor.

The names that a person types, from the layers that own them:

>>> from tinytg import Tensor
>>> (Tensor([1.0, 2.0, 3.0]) * 2).tolist()
[2.0, 4.0, 6.0]
"""

from tg_dtype import dtypes
from tg_frontend import (
    Function,
    Tensor,
    TinyJit,
    associative_scan,
    autocast,
    cond,
    detect_anomaly,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    scan,
    set_detect_anomaly,
    set_printoptions,
    value_and_grad,
    vjp,
    vmap,
    while_loop,
)
from tg_lazy import Context
from tg_runtime import Device, GlobalCounters
from tg_shape import Variable

from . import array_api, fft, language, linalg, nn, signal, special, text

__all__ = [
    "Context", "Device", "Function", "GlobalCounters", "Tensor", "TinyJit", "Variable", "array_api", "associative_scan",
    "autocast", "cond", "detect_anomaly", "dtypes", "fft", "grad", "hessian", "hvp", "jacfwd", "jacobian", "jacrev",
    "jvp", "language", "linalg", "nn", "scan", "set_detect_anomaly", "set_printoptions", "signal", "special", "text",
    "value_and_grad", "vjp", "vmap", "while_loop",
]  # fmt: skip
