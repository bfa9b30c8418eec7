"""Optimisers; see :mod:`tg_frontend.nn.optim`."""

from tg_frontend.nn.optim import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lion,
    NAdam,
    Optimizer,
    OptimizerGroup,
    RAdam,
    RMSprop,
    SparseAdam,
)

__all__ = [
    "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "NAdam", "Optimizer", "OptimizerGroup", "RAdam",
    "RMSprop", "SparseAdam",
]  # fmt: skip
