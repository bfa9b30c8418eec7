"""Transformers (Vaswani et al. 2017), as PyTorch has them, with its names of weights."""

from __future__ import annotations

import copy
import math

from ..tensor import Tensor
from .attention import MultiheadAttention
from .containers import ModuleList
from .layering import Layer, layer_class
from .layers import Linear
from .normalization import LayerNorm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _activation(given: str | Callable[[Tensor], Tensor], what: str) -> Callable[[Tensor], Tensor]:
    if callable(given):
        return given
    if given == "gelu":
        return lambda x: x.gelu("none")
    if given != "relu":
        raise ValueError(f"{what}: activation {given!r}; there are relu, gelu, and any function of a tensor")
    return Tensor.relu


class _Layer(Layer):
    """What encoder and decoder layers share: the feed-forward part, and where normalisation stands."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int, dropout: float,
        activation: str | Callable[[Tensor], Tensor], layer_norm_eps: float, batch_first: bool, norm_first: bool,
        bias: bool,
    ) -> None:  # fmt: skip
        self.d_model, self.nhead, self.dim_feedforward = d_model, nhead, dim_feedforward
        self.dropout, self.norm_first, self.batch_first = dropout, norm_first, batch_first
        self.activation = _activation(activation, type(self).__name__)
        self.bias = bias
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.linear1, self.linear2 = Linear(d_model, dim_feedforward, bias), Linear(dim_feedforward, d_model, bias)
        self.norm1, self.norm2 = (LayerNorm(d_model, layer_norm_eps, bias=bias) for _ in range(2))

    def _beside(self, x: Tensor, norm: LayerNorm, part: Callable[[Tensor], Tensor]) -> Tensor:
        """The sum of x and what a part makes of it, normalised before the part or behind the sum."""
        if self.norm_first:
            return x + part(norm(x)).dropout(self.dropout)
        out: Tensor = norm(x + part(x).dropout(self.dropout))
        return out

    def _forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear2(self.activation(self.linear1(x)).dropout(self.dropout))
        return out


@layer_class
class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, and two linear layers; both beside the identity, and normalised.

    Args:
      d_model: width of the sequence.
      nhead: heads of attention.
      dim_feedforward: width between the two linear layers.
      dropout: share of elements that are dropped in training.
      activation: "relu", "gelu", or a function of a tensor.
      layer_norm_eps: added to variances.
      batch_first: whether the input has the shape (batch, length, width) and not (length, batch, width).
      norm_first: whether normalisation stands before attention and linear layers, not behind.
      bias: whether linear layers and normalisations have biases.

    Raises:
      ValueError: if the heads do not divide the width, or there is no such activation.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(Tensor.ones(3, 5, 8)).shape
      (3, 5, 8)
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu", layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        )

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The sequence as it is after this layer; masks are those of :class:`MultiheadAttention`."""

        def attend(x: Tensor) -> Tensor:
            found = self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)
            return found[0]  # type: ignore[no-any-return]

        return self._beside(self._beside(src, self.norm1, attend), self.norm2, self._forward)


@layer_class
class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself and to a memory, and two linear layers; each beside the identity.

    Args:
      d_model: width of the sequences.
      nhead: heads of attention.
      dim_feedforward: width between the two linear layers.
      dropout: share of elements that are dropped in training.
      activation: "relu", "gelu", or a function of a tensor.
      layer_norm_eps: added to variances.
      batch_first: whether inputs have the shape (batch, length, width) and not (length, batch, width).
      norm_first: whether normalisation stands before attention and linear layers, not behind.
      bias: whether linear layers and normalisations have biases.

    Raises:
      ValueError: if the heads do not divide the width, or there is no such activation.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
      >>> layer(Tensor.ones(3, 5, 8), Tensor.ones(3, 7, 8)).shape
      (3, 5, 8)
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu", layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        )
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The sequence as it is after this layer; masks are those of :class:`MultiheadAttention`."""

        def attend(x: Tensor) -> Tensor:
            found = self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)
            return found[0]  # type: ignore[no-any-return]

        def remember(x: Tensor) -> Tensor:
            found = self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
            )
            return found[0]  # type: ignore[no-any-return]

        x = self._beside(self._beside(tgt, self.norm1, attend), self.norm2, remember)
        return self._beside(x, self.norm3, self._forward)


@layer_class
class TransformerEncoder(Layer):
    """Encoder layers one after another.

    Args:
      encoder_layer: the layer, of which each is a copy.
      num_layers: how many.
      norm: called last, if given.
      enable_nested_tensor: accepted, and without effect: rows are as long as the longest; likewise ``mask_check``.

    Attributes:
      layers: the layers.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)(Tensor.ones(5, 3, 8)).shape
      (5, 3, 8)
    """

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Any = None,
        enable_nested_tensor: bool = True, mask_check: bool = True,
    ) -> None:  # fmt: skip
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The sequence as it is after the last layer."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)


@layer_class
class TransformerDecoder(Layer):
    """Decoder layers one after another.

    Args:
      decoder_layer: the layer, of which each is a copy.
      num_layers: how many.
      norm: called last, if given.

    Attributes:
      layers: the layers.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2)
      >>> decoder(Tensor.ones(5, 3, 8), Tensor.ones(7, 3, 8)).shape
      (5, 3, 8)
    """

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Any = None) -> None:
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The sequence as it is after the last layer."""
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
                memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


@layer_class
class Transformer(Layer):
    """An encoder, and a decoder that attends to what it gives.

    Args:
      d_model: width of the sequences.
      nhead: heads of attention.
      num_encoder_layers: layers of the encoder.
      num_decoder_layers: layers of the decoder.
      dim_feedforward: width between the two linear layers of each.
      dropout: share of elements that are dropped in training.
      activation: "relu", "gelu", or a function of a tensor.
      custom_encoder: in the place of the encoder, if given.
      custom_decoder: in the place of the decoder, if given.
      layer_norm_eps: added to variances.
      batch_first: whether inputs have the shape (batch, length, width) and not (length, batch, width).
      norm_first: whether normalisation stands before attention and linear layers, not behind.
      bias: whether linear layers and normalisations have biases.

    Raises:
      ValueError: if the heads do not divide the width, or there is no such activation.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
      >>> model(Tensor.ones(3, 7, 8), Tensor.ones(3, 5, 8)).shape
      (3, 5, 8)
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Tensor], Tensor] = "relu",
        custom_encoder: Any = None, custom_decoder: Any = None, layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True,
    ) -> None:  # fmt: skip
        each = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self.encoder, self.decoder = custom_encoder, custom_decoder
        if custom_encoder is None:
            last = LayerNorm(d_model, layer_norm_eps, bias=bias)
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*each), num_encoder_layers, last)
        if custom_decoder is None:
            last = LayerNorm(d_model, layer_norm_eps, bias=bias)
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*each), num_decoder_layers, last)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool = False, tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """What the decoder makes of ``tgt``; masks are those of :class:`MultiheadAttention`."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        out: Tensor = self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
            memory_is_causal,
        )  # fmt: skip
        return out

    @staticmethod
    def generate_square_subsequent_mask(size: int) -> Tensor:
        """What is added to scores so that each position attends only to itself and those before.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Transformer.generate_square_subsequent_mask(2)
          Tensor([[ 0., -inf],
                  [ 0.,  0.]])
        """
        return Tensor.full((size, size), -math.inf).triu(1)
