"""Data sets; see :mod:`tg_frontend.nn.datasets`."""

from tg_frontend.nn.datasets import (
    cifar,
    digits,
    mnist,
)

__all__ = [
    "cifar",
    "digits",
    "mnist",
]
