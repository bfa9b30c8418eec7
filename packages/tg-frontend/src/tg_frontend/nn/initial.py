"""How the parameters of layers begin."""

from __future__ import annotations

import math

from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


LEARNT = ("float", "complex")
"""Kinds of dtypes of what a model may learn."""


def parameter(tensor: Tensor) -> Tensor:
    """A tensor that a layer learns: ``backward`` gives it a gradient where nothing else asks for one."""
    tensor._parameter = True
    return tensor


def Parameter(data: Any, requires_grad: bool = True) -> Tensor:
    """A tensor that a model learns.

    Args:
      data: a tensor, of which a copy is made, or anything that a tensor is made of.
      requires_grad: whether it is to have a gradient.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Parameter(Tensor.zeros(2)).requires_grad
      True
    """
    made = data.detach().clone() if isinstance(data, Tensor) else Tensor(data)
    made.requires_grad = requires_grad
    return parameter(made)


def Buffer(data: Any, persistent: bool = True) -> Tensor:
    """A tensor that a model holds and does not learn.

    Args:
      data: a tensor, of which a copy is made, or anything that a tensor is made of.
      persistent: whether it is in the state of the model: in ``state_dict()``, and in files.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> model = nn.Module()
      >>> model.mean, model.mask = nn.Buffer([1.0, 2.0]), nn.Buffer([True, False], persistent=False)
      >>> [name for name, _ in model.named_buffers()], list(model.state_dict())
      (['mean', 'mask'], ['mean'])
    """
    made = data.detach().clone() if isinstance(data, Tensor) else Tensor(data)
    made.requires_grad = False
    if not persistent:
        made._transient = True
    return made


def for_sums(*shape: int, terms: int) -> Tensor:
    """A parameter of sums over so many products, uniform within one over the root of that number.

    Its variance is 1 / (3 terms), so that a sum over inputs of variance 1 has the variance 1/3, however many terms it
    has. Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks",
    AISTATS 2010, equation 1, the heuristic with which they begin. It is that of PyTorch's layers.
    """
    limit = 1 / math.sqrt(max(1, terms))
    return parameter(Tensor.uniform(*shape, low=-limit, high=limit))


def for_lookups(rows: int, width: int) -> Tensor:
    """A table of which rows are looked up, uniform within sqrt(6 / (rows + width)).

    A lookup is the product of a row that holds a single one with this matrix. Its variance is what that paper gives a
    matrix of this shape: 2 / (rows + width), the harmonic mean of 1 / rows, which keeps the variance of values on the
    way forward, and 1 / width, which keeps that of gradients on the way back. Source: the same, equation 16.
    """
    return parameter(Tensor.glorot_uniform(rows, width))
