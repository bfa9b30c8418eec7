"""Optimisers: SGD, Adam, AdamW, SparseAdam."""

from .adam import Adam, AdamW
from .optimizer import Optimizer, OptimizerGroup
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "OptimizerGroup", "SparseAdam"]
