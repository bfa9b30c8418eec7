"""Linear and Embedding."""

from __future__ import annotations

from tg_dtype import dtypes

from ..keywords import public
from ..tensor import Tensor
from .describing import described
from .initial import for_lookups, for_sums


@described
@public
class Linear:
    """x @ weight.T + bias.

    Args:
      in_features: length of the last axis of the input.
      out_features: length of the last axis of the result.
      bias: whether there is a bias.

    Attributes:
      weight: shape (out_features, in_features), uniform within 1 / sqrt(in_features) at first
        (Glorot and Bengio 2010, equation 1).
      bias: shape (out_features,), likewise; or None.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Linear(3, 5)(Tensor.ones(2, 3)).shape
      (2, 5)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = for_sums(out_features, in_features, terms=in_features)
        self.bias = for_sums(out_features, terms=in_features) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """shape (…, in_features) to (…, out_features)."""
        return x.linear(self.weight.T, self.bias)


@described
@public
class Embedding:
    """Rows of a table.

    Args:
      vocab_size: number of rows.
      embed_size: length of a row.

    Attributes:
      weight: shape (vocab_size, embed_size), uniform within sqrt(6 / (vocab_size + embed_size)) at first
        (Glorot and Bengio 2010, equation 16).

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Embedding(10, 4)(Tensor([[1, 2, 3]])).shape
      (1, 3, 4)
    """

    def __init__(self, vocab_size: int, embed_size: int) -> None:
        self.vocab_size, self.embed_size = vocab_size, embed_size
        self.weight = for_lookups(vocab_size, embed_size)

    def __call__(self, idx: Tensor) -> Tensor:
        """The rows that ``idx``, of integers, names; zeros where it is out of range.

        Raises:
          TypeError: if ``idx`` holds no integers.
        """
        if not dtypes.is_int(idx.dtype):
            raise TypeError(f"Embedding: indices are integers, got a tensor of {idx.dtype.name}")
        return self.weight[idx]
