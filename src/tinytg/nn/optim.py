"""Optimisers; see :mod:`tg_frontend.nn.optim`."""

from tg_frontend.nn.optim import SGD, Adam, AdamW, Optimizer, OptimizerGroup

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "OptimizerGroup"]
