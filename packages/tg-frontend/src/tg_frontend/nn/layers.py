"""Linear and Embedding."""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ..keywords import public
from ..tensor import Tensor
from .describing import described


def parameter(tensor: Tensor) -> Tensor:
    """A tensor that a layer learns: ``backward`` gives it a gradient where nothing else asks for one."""
    tensor._parameter = True
    return tensor


@described
@public
class Linear:
    """x @ weight.T + bias.

    Args:
      in_features: length of the last axis of the input.
      out_features: length of the last axis of the result.
      bias: whether there is a bias.

    Attributes:
      weight: shape (out_features, in_features), uniform within 1 / sqrt(in_features) at first.
      bias: shape (out_features,), likewise; or None.

    Example:
        >>> from tg_frontend import Tensor, nn
        >>> nn.Linear(3, 5)(Tensor.ones(2, 3)).shape
        (2, 5)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features, self.out_features = in_features, out_features
        bound = 1 / math.sqrt(max(1, in_features))
        self.weight = parameter(Tensor.uniform(out_features, in_features, low=-bound, high=bound))
        self.bias = parameter(Tensor.uniform(out_features, low=-bound, high=bound)) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """shape (…, in_features) to (…, out_features)."""
        return x.linear(self.weight.transpose(), self.bias)


@described
@public
class Embedding:
    """Rows of a table.

    Args:
      vocab_size: number of rows.
      embed_size: length of a row.

    Attributes:
      weight: shape (vocab_size, embed_size), Glorot uniform at first.

    Example:
        >>> from tg_frontend import Tensor, nn
        >>> nn.Embedding(10, 4)(Tensor([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    def __init__(self, vocab_size: int, embed_size: int) -> None:
        self.vocab_size, self.embed_size = vocab_size, embed_size
        self.weight = parameter(Tensor.glorot_uniform(vocab_size, embed_size))

    def __call__(self, idx: Tensor) -> Tensor:
        """The rows that ``idx``, of integers, names; zeros where it is out of range.

        Raises:
          TypeError: ``idx`` holds no integers.
        """
        if not dtypes.is_int(idx.dtype):
            raise TypeError(f"Embedding: indices are integers, got a tensor of {idx.dtype.name}")
        return self.weight[idx]
