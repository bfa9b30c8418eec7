"""The closed core of Tensor: what it holds, movement, arithmetic, reductions; each subject a module of functions."""

from ..keywords import Results
from .array import A, Array
from .base import DTypeLike
from .outs import written

__all__ = ["A", "Array", "DTypeLike"]

Results.write = written
