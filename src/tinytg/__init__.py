"""tinytg: a tensor compiler, from dtypes to a PyTorch-like Tensor.

The names that a person types, from the layers that own them:

>>> from tinytg import Tensor
>>> (Tensor([1.0, 2.0, 3.0]) * 2).tolist()
[2.0, 4.0, 6.0]

Other names of PyTorch and numpy are found when they are asked for, as ``tinytg.cat``; see :mod:`tinytg.functions`.
"""

from __future__ import annotations

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

from . import array_api, fft, linalg, nn, signal, special

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import autograd, language, text

__all__ = [
    "Context", "Device", "Function", "GlobalCounters", "Tensor", "TinyJit", "Variable", "array_api", "associative_scan",
    "autocast", "autograd", "cond", "detect_anomaly", "dtypes", "fft", "grad", "hessian", "hvp", "jacfwd", "jacobian",
    "jacrev", "jvp", "language", "linalg", "nn", "scan", "set_detect_anomaly", "set_printoptions", "signal", "special",
    "text", "value_and_grad", "vjp", "vmap", "while_loop",
]  # fmt: skip


_WHEN_ASKED_FOR = ("autograd", "language", "text")


def __getattr__(name: str) -> Any:
    """Modules that few programs use, and other names of PyTorch and numpy, found when they are asked for.

    For the names see :mod:`tg_frontend.functions.names`.
    """
    if name in _WHEN_ASKED_FOR:
        from importlib import import_module

        return import_module(f".{name}", __name__)
    if name == "__version__":
        from importlib.metadata import version

        return version("tinytg")
    if name.startswith("__"):  # asked for by Python itself, while this is imported
        raise AttributeError(f"module 'tinytg' has no attribute {name!r}", name=name)
    from tg_frontend.functions.names import named

    return named(name)


def __dir__() -> list[str]:
    from tg_frontend.functions.names import names

    return sorted({*globals(), *_WHEN_ASKED_FOR, "__version__", *names()})
