"""Optimisers by PyTorch's names, and Lion."""

from .adam import Adam, AdamW
from .adaptive import Adadelta, Adagrad, Adamax, Lion, NAdam, RAdam, RMSprop
from .optimizer import Optimizer, OptimizerGroup
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "NAdam", "Optimizer", "OptimizerGroup", "RAdam",
    "RMSprop", "SparseAdam",
]  # fmt: skip
