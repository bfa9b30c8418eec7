"""Everything that is measured, in the order of the table."""

from __future__ import annotations

from ..workload import Registry
from . import attention, convolution, decode, dispatch, gemm, language, models, recurrent, scatter, streaming, training

_registry = Registry()
_modules = (gemm, convolution, attention, streaming, scatter, dispatch, training, language, models, decode, recurrent)
for _module in _modules:
    _module.register(_registry)

WORKLOADS = _registry.items

__all__ = ["WORKLOADS"]
