"""Schedules of the learning rate; see :mod:`tg_frontend.nn.lr_scheduler`."""

from tg_frontend.nn.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, LRScheduler, MultiStepLR, StepLR

__all__ = ["CosineAnnealingLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "StepLR"]
