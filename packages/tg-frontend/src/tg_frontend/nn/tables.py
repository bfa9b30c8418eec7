"""Layers of learnt tables: bags of rows, products of two inputs, slopes."""

from __future__ import annotations

from ..ops.row_sparse import padding_row
from ..tensor import Tensor
from . import functional
from .initial import Parameter, for_lookups, for_sums, parameter
from .layering import Layer, layer_class
from .layers import table_sizes


@layer_class
class EmbeddingBag(Layer):
    """Sums, means or maxima of rows of a table, bag by bag. See :func:`tg_frontend.nn.functional.embedding_bag`.

    Args:
      num_embeddings: number of rows.
      embedding_dim: length of a row.
      max_norm: as for :class:`~tg_frontend.nn.layers.Embedding`; and so are ``norm_type``, ``scale_grad_by_freq`` and
        ``sparse``.
      mode: "mean", "sum" or "max".
      include_last_offset: whether the last of the offsets begins no bag.
      padding_idx: a row that does not count, and is zero at first.

    Attributes:
      weight: shape (num_embeddings, embedding_dim).

    Raises:
      TypeError: if ``padding_idx`` is no integer.
      ValueError: if there is no row ``padding_idx``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.EmbeddingBag(10, 4)(Tensor([1, 2, 3]), Tensor([0, 2])).shape
      (2, 4)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, *,
        include_last_offset: bool = False, padding_idx: int | None = None,
    ) -> None:  # fmt: skip
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.sparse = sparse
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.include_last_offset = include_last_offset
        given = padding_idx
        self.padding_idx = None if given is None else padding_row(given, num_embeddings, "EmbeddingBag")
        self.weight = for_lookups(num_embeddings, embedding_dim)
        if self.padding_idx is not None:
            self.weight[self.padding_idx] = 0

    def forward(
        self, x: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """shape (bags, rows of a bag), or all bags one after another with ``offsets``, to (bags, embedding_dim)."""
        return functional.embedding_bag(
            x, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:  # fmt: skip
        """A layer of given rows.

        Args:
          embeddings: shape (num_embeddings, embedding_dim); a copy is made.
          freeze: whether they are not to be learnt. The others are those of the class.

        Raises:
          ValueError: if ``embeddings`` has another number of axes.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.EmbeddingBag.from_pretrained(Tensor([[1.0, 2.0], [3.0, 4.0]]))(Tensor([[0, 1]]))
          Tensor([[2., 3.]])
        """
        layer = cls(
            *table_sizes(embeddings), max_norm, norm_type, scale_grad_by_freq, mode, sparse,
            include_last_offset=include_last_offset, padding_idx=padding_idx,
        )  # fmt: skip
        layer.weight = Parameter(embeddings, not freeze)
        return layer


@layer_class
class Bilinear(Layer):
    """x @ weight[k] @ other for each output k, plus the bias.

    Args:
      in1_features: length of the last axis of the first input.
      in2_features: length of the last axis of the second input.
      out_features: length of the last axis of the result.
      bias: whether there is a bias.

    Attributes:
      weight: shape (out_features, in1_features, in2_features), uniform within 1 / sqrt(in1_features) at first.
      bias: shape (out_features,), likewise; or None.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Bilinear(3, 4, 5)(Tensor.ones(2, 3), Tensor.ones(2, 4)).shape
      (2, 5)
    """

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True) -> None:
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = for_sums(out_features, in1_features, in2_features, terms=in1_features)
        self.bias = for_sums(out_features, terms=in1_features) if bias else None

    def forward(self, x: Tensor, other: Tensor) -> Tensor:
        """shapes (…, in1_features) and (…, in2_features) to (…, out_features)."""
        return functional.bilinear(x, other, self.weight, self.bias)


@layer_class
class PReLU(Layer):
    """x, times a learnt slope below 0.

    Args:
      num_parameters: 1, or the number of channels (axis 1), each of which has its own.
      init: the slope at first.

    Attributes:
      weight: shape (num_parameters,).

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.PReLU()(Tensor([-2.0, 2.0]))
      Tensor([-0.5,  2. ])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        self.num_parameters, self.init = num_parameters, init
        self.weight = parameter(Tensor.full((num_parameters,), init))

    def forward(self, x: Tensor) -> Tensor:
        """Any shape, with ``num_parameters`` channels if these are several, to the same."""
        return x.prelu(self.weight)
