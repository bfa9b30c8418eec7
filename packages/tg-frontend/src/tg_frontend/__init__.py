"""Tensor, automatic differentiation, neural networks, optimisers, state files and TinyJit."""

from __future__ import annotations

from tg_lazy.settings.collector import Uncollected

with Uncollected():  # what is imported stays, and the collector would look through it a hundred times
    from . import array_api, fft, linalg, nn, signal, special
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from . import language, text

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

_WHEN_ASKED_FOR = ("language", "text")


def __getattr__(name: str) -> ModuleType:
    """Modules that few programs use are imported when they are asked for."""
    if name not in _WHEN_ASKED_FOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    from importlib import import_module

    return import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHEN_ASKED_FOR})
