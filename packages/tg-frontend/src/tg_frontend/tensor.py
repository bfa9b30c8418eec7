"""Tensor: the class that a person uses, the top of the tower."""

from __future__ import annotations

from tg_dtype import dtypes

from .interchange.sharing import Interchange as _Top
from .keywords import public

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


@public
class Tensor(_Top):
    """A multi-dimensional array whose elements are computed when they are asked for.

    Args:
      data: a number; nested lists or tuples of numbers; a numpy array, whose memory is used in place where the
        device can address it (leave it unchanged); bytes or a memoryview of elements of ``dtype`` (uint8 if it is
        not given); a ``LazyBuffer``; None for no elements.
      device: where the elements live, the default device if not given.
      dtype: a dtype or its name. If not given: of numbers by kind, of arrays their own.
      requires_grad: whether ``backward`` gives this tensor a ``grad``; None leaves it open: an optimiser may decide.

    Attributes:
      lazydata: the graph of this tensor.
      requires_grad: see above.
      grad: what ``backward`` has added up, or None.
      training: of the class: whether layers behave as in training; see :meth:`train`.

    Raises:
      ValueError: the lists are ragged, or the bytes no whole number of elements.
      TypeError: the data is something else; or a gradient is wanted of integers.

    Example:
        >>> from tg_frontend import Tensor
        >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]], device="NUMPY")
        >>> (x + 1).sum(axis=0)
        Tensor([6., 8.], device='NUMPY')
    """

    __slots__ = ()

    # Named like Python's types, so that nothing below may be annotated with those.

    def float(self) -> Self:
        """Cast to float32."""
        return self.cast(dtypes.float32)

    def half(self) -> Self:
        """Cast to float16."""
        return self.cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """Cast to bfloat16."""
        return self.cast(dtypes.bfloat16)

    def double(self) -> Self:
        """Cast to float64."""
        return self.cast(dtypes.float64)

    def int(self) -> Self:
        """Cast to int32."""
        return self.cast(dtypes.int32)

    def long(self) -> Self:
        """Cast to int64."""
        return self.cast(dtypes.int64)

    def short(self) -> Self:
        """Cast to int16."""
        return self.cast(dtypes.int16)

    def bool(self) -> Self:
        """Cast to bool: whether an element is not 0."""
        return self.cast(dtypes.bool)
