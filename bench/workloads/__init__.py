"""Everything that is measured, in the order of the table."""

from __future__ import annotations

from ..workload import Registry
from . import (
    attention,
    chat,
    convolution,
    decode,
    decompositions,
    derivatives,
    dispatch,
    fourier,
    gemm,
    gpt,
    language,
    models,
    ordering,
    recurrent,
    scatter,
    speech,
    streaming,
    training,
)

_registry = Registry()
for _module in (
    gemm, convolution, attention, streaming, scatter, ordering, dispatch, training, language, gpt, models, speech,
    decode, chat,
    recurrent, derivatives, fourier, decompositions,
):  # fmt: skip
    _module.register(_registry)

WORKLOADS = _registry.items

__all__ = ["WORKLOADS"]
