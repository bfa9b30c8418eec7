"""Derivatives by the names of ``torch.autograd``; see :mod:`tg_frontend.transform`."""

from tg_frontend import Function, detect_anomaly, set_detect_anomaly
from tg_frontend.functions.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from tg_frontend.transform.custom import once_differentiable
from tg_frontend.transform.gradcheck import GradcheckError, gradcheck, gradgradcheck
from tg_frontend.transform.outputs import backward, grad

from . import functional, graph

__all__ = [
    "Function",
    "GradcheckError",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "once_differentiable",
    "set_detect_anomaly",
    "set_grad_enabled",
]
