"""Optimisers; see :mod:`tg_frontend.nn.optim`."""

from tg_frontend.nn.optim import SGD, Adam, AdamW, Optimizer, OptimizerGroup, SparseAdam

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "OptimizerGroup", "SparseAdam"]
