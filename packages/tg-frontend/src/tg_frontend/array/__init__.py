"""The closed core of Tensor: what it holds, movement, arithmetic, reductions; each subject a module of functions."""

from .array import A, Array
from .base import DTypeLike

__all__ = ["A", "Array", "DTypeLike"]
