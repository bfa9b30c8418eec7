"""Linear and Embedding."""

from __future__ import annotations

from tg_dtype import dtypes

from ..ops.row_sparse import padding_row
from ..tensor import Tensor
from . import functional
from .initial import Parameter, for_lookups, for_sums
from .layering import Layer, layer_class


@layer_class
class Linear(Layer):
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

    _numbers = "any"

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = for_sums(out_features, in_features, terms=in_features)
        self.bias = for_sums(out_features, terms=in_features) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """shape (…, in_features) to (…, out_features)."""
        return x.linear(self.weight.T, self.bias)


@layer_class
class Embedding(Layer):
    """Rows of a table.

    Args:
      vocab_size: number of rows.
      embed_size: length of a row.
      padding_idx: a row that is zero at first, and gets no gradient; negative ones count from the end.
      max_norm: rows that are looked up and whose norm is greater are made that long, in the table.
      norm_type: the power of that norm.
      scale_grad_by_freq: whether the gradient of a row is divided by how often it was looked up.
      sparse: whether the gradient of the table is row-sparse: the rows that were looked up, and no others. Then a step
        of ``nn.optim.SparseAdam``, or of ``nn.optim.SGD`` without momentum, touches no others either.

    Attributes:
      weight: shape (vocab_size, embed_size), uniform within sqrt(6 / (vocab_size + embed_size)) at first
        (Glorot and Bengio 2010, equation 16).

    Raises:
      TypeError: if ``padding_idx`` is no integer.
      ValueError: if there is no row ``padding_idx``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Embedding(10, 4)(Tensor([[1, 2, 3]])).shape
      (1, 3, 4)
    """

    def __init__(
        self, vocab_size: int, embed_size: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> None:  # fmt: skip
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.vocab_size, self.embed_size, self.sparse = vocab_size, embed_size, sparse
        self.num_embeddings, self.embedding_dim = vocab_size, embed_size  # PyTorch's names
        self.padding_idx = None if padding_idx is None else padding_row(padding_idx, vocab_size, "Embedding")
        self.weight = for_lookups(vocab_size, embed_size)
        if self.padding_idx is not None:
            self.weight[self.padding_idx] = 0

    def forward(self, idx: Tensor) -> Tensor:
        """The rows that ``idx``, of integers, names; zeros where it is out of range. See :meth:`Tensor.embedding`.

        Raises:
          TypeError: if ``idx`` holds no integers.
        """
        if not dtypes.is_int(idx.dtype):
            raise TypeError(f"Embedding: indices are integers, got a tensor of {idx.dtype.name}")
        settings = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)
        return functional.embedding(idx, self.weight, *settings)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Embedding:  # fmt: skip
        """A layer of given rows.

        Args:
          embeddings: shape (vocab_size, embed_size); a copy is made.
          freeze: whether they are not to be learnt. The others are those of the class.

        Raises:
          ValueError: if ``embeddings`` has another number of axes.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.Embedding.from_pretrained(Tensor([[1.0, 2.0], [3.0, 4.0]]))(Tensor([1]))
          Tensor([[3., 4.]])
        """
        layer = cls(*table_sizes(embeddings), padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        layer.weight = Parameter(embeddings, not freeze)
        return layer


def table_sizes(embeddings: Tensor) -> tuple[int, int]:
    """The numbers of rows and columns of a table.

    Raises:
      ValueError: if it is none.
    """
    if embeddings.ndim != 2:
        raise ValueError(f"from_pretrained: a table has two axes, got a tensor of shape {embeddings.shape}")
    rows, width = embeddings._ints()
    return rows, width
