"""Activations that are written to the memory of their argument, by PyTorch's names with an underscore."""

from __future__ import annotations

from ...ops.activation import celu, elu, hardtanh, leaky_relu, relu, selu, threshold
from ...ops.in_place import in_place
from .dropping import rrelu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TEXT = """:func:`{name}`, written to the memory of its argument, which is returned.

Example:
  >>> from tg_frontend import Tensor
  >>> from tg_frontend.nn import functional as F
  >>> x = Tensor([-2.0, 3.0])
  >>> F.{name}_(x{settings}) is x
  True
"""


def _written(function: Any, settings: str = "") -> Any:
    made = in_place(function)
    made.__doc__ = _TEXT.format(name=function.__name__, settings=settings)
    return made


celu_ = _written(celu)
elu_ = _written(elu)
hardtanh_ = _written(hardtanh)
leaky_relu_ = _written(leaky_relu)
relu_ = _written(relu)
rrelu_ = _written(rrelu)
selu_ = _written(selu)
threshold_ = _written(threshold, ", 0.5, 9.0")
