"""Optimisers; see :mod:`tg_frontend.nn.optim`."""

from tg_frontend.nn.optim import (
    ASGD,
    LAMB,
    LARS,
    LBFGS,
    SGD,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lion,
    Muon,
    NAdam,
    Optimizer,
    OptimizerGroup,
    RAdam,
    RMSprop,
    Rprop,
    SparseAdam,
)

from . import lr_scheduler, swa_utils

__all__ = [
    "ASGD",
    "LAMB",
    "LARS",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "OptimizerGroup",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]

TYPE_CHECKING = False
if not TYPE_CHECKING:
    from tg_frontend.nn.optim import __getattr__  # noqa: F401
