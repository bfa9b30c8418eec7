"""Losses with weights of their own."""

from __future__ import annotations

from math import prod

from ..tensor import Tensor
from .functional import linear_cross_entropy
from .layering import Layer, layer_class
from .layers import Linear


@layer_class
class LinearCrossEntropyLoss(Layer):
    """Cross entropy of a linear layer. See :func:`tg_frontend.nn.functional.linear_cross_entropy`.

    Args:
      in_features: length of the last axis of the input.
      num_classes: number of classes.
      out_features: shape of the losses of each example.
      bias: whether the linear layer has a bias.
      reduction: ``"mean"``, ``"sum"`` or ``"none"``.
      weight: of each class, shape (num_classes,).
      ignore_index: the class that does not count; -100 if not given.
      label_smoothing: the share of the target that is spread over all classes.
      options: None alone.

    Attributes:
      linear: the layer, with num_classes times the product of ``out_features`` outputs.

    Raises:
      ValueError: if ``options`` are given.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> loss = nn.LinearCrossEntropyLoss(3, 7, out_features=(2,))
      >>> loss(Tensor.ones(5, 3), Tensor.zeros(5, 2).cast("int64")).shape, list(loss.state_dict())
      ((), ['linear.weight'])
    """

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        reduction: str = "mean", weight: Tensor | None = None, ignore_index: int | None = None,
        label_smoothing: float = 0.0, options: None = None,
    ) -> None:  # fmt: skip
        if options is not None:
            raise ValueError("LinearCrossEntropyLoss: there are no options; leave them out")
        self.in_features, self.num_classes, self.out_features = in_features, num_classes, tuple(out_features)
        self.linear = Linear(in_features, num_classes * prod(self.out_features), bias)
        if weight is not None:
            weight.requires_grad = False
        self.weight, self.reduction, self.ignore_index = weight, reduction, ignore_index
        self.label_smoothing = label_smoothing

    @property
    def bias(self) -> bool:
        """Whether the linear layer has a bias.

        Example:
          >>> from tg_frontend import nn
          >>> nn.LinearCrossEntropyLoss(3, 7).bias
          False
        """
        return self.linear.bias is not None

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The loss of inputs of shape ([batch,] in_features).

        Raises:
          ValueError: if the shapes do not fit.
        """
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return linear_cross_entropy(
            x, self.linear.weight.reshape(*shape, self.in_features), target,
            linear_bias=None if bias is None else bias.reshape(shape), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
        )
