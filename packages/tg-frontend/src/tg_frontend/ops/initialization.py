"""Random tensors for the parameters of layers.

Sources: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010,
equation 16; He et al., "Delving deep into rectifiers", ICCV 2015, equation 15: (1 + a**2) * fan in * variance / 2 = 1
keeps the variance through layers whose rectifier has the slope ``a`` below 0.
"""

from __future__ import annotations

import math

from tg_shape import prod, sint

from ..array.array import A
from ..array.base import DTypeLike
from .creation import checked_shape
from .random import normal, uniform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def scaled_uniform(
    cls: type[A], *shape: Any, device: str | None = None, dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:  # fmt: skip
    """Uniform from -1 to 1, over the square root of the number of elements.

    Example:
      >>> from tg_frontend import Tensor
      >>> (Tensor.scaled_uniform(10, 10).abs() <= 0.1).all().item()
      True
    """
    sizes = checked_shape(shape, "scaled_uniform")
    bound = _number(prod(sizes), "scaled_uniform") ** -0.5 if prod(sizes) != 0 else 0.0
    return uniform(cls, *sizes, low=-bound, high=bound, device=device, dtype=dtype, requires_grad=requires_grad)


def glorot_uniform(
    cls: type[A], *shape: Any, device: str | None = None, dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:  # fmt: skip
    """Uniform within sqrt(6 / (fan in + fan out)); the first axis is the fan out.

    Raises:
      ValueError: if the shape is ().

    Example:
      >>> from tg_frontend import Tensor
      >>> (Tensor.glorot_uniform(2, 4).abs() <= 1).all().item()
      True
    """
    sizes = checked_shape(shape, "glorot_uniform")
    if not sizes:
        raise ValueError("glorot_uniform: a shape () has no fans")
    bound = math.sqrt(6 / max(1, _number(sizes[0] + prod(sizes[1:]), "glorot_uniform")))
    return uniform(cls, *sizes, low=-bound, high=bound, device=device, dtype=dtype, requires_grad=requires_grad)


def kaiming_uniform(
    cls: type[A], *shape: Any, a: float = 0.01, device: str | None = None, dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:  # fmt: skip
    """Uniform within sqrt(6 / ((1 + a**2) * fan in)); the first axis is the fan out.

    Example:
      >>> from tg_frontend import Tensor
      >>> (Tensor.kaiming_uniform(4, 6, a=0).abs() <= 1).all().item()
      True
    """
    sizes = checked_shape(shape, "kaiming_uniform")
    bound = math.sqrt(6 / (1 + a * a) / max(1, _number(prod(sizes[1:]), "kaiming_uniform")))
    return uniform(cls, *sizes, low=-bound, high=bound, device=device, dtype=dtype, requires_grad=requires_grad)


def kaiming_normal(
    cls: type[A], *shape: Any, a: float = 0.01, device: str | None = None, dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:  # fmt: skip
    """Normal with standard deviation sqrt(2 / ((1 + a**2) * fan in)); the first axis is the fan out.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.kaiming_normal(4, 6).shape
      (4, 6)
    """
    sizes = checked_shape(shape, "kaiming_normal")
    std = math.sqrt(2 / (1 + a * a) / max(1, _number(prod(sizes[1:]), "kaiming_normal")))
    return normal(cls, *sizes, std=std, device=device, dtype=dtype, requires_grad=requires_grad)


def _number(size: sint, what: str) -> int:
    if not isinstance(size, int):
        raise ValueError(f"{what}: the number of elements is symbolic: {size}")
    return size
