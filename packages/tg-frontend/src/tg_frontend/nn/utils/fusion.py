"""A normalisation of batches in evaluation as a part of the layer before it; and layers that are not drawn."""

from __future__ import annotations

import copy

from ...autograd.differentiation import MODE, Switch
from ...tensor import Tensor
from ..convolutional import Conv, ConvTranspose
from ..initial import Parameter
from ..layers import Linear
from ..normalization import BatchNorm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    Fused = TypeVar("Fused", Conv, Linear)
    Pair = tuple[Tensor, Tensor]


def _fused(
    weight: Tensor, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, scale: Tensor | None,
    shift: Tensor | None, axis: int,
) -> Pair:  # fmt: skip
    with Switch(MODE, "recording", False):
        factor = (var + eps).rsqrt() if scale is None else (var + eps).rsqrt() * scale
        moved = -mean if bias is None else bias - mean
        other = moved * factor if shift is None else moved * factor + shift
        groups = int(weight.shape[axis]) and int(factor.shape[0]) // int(weight.shape[axis])
        if groups > 1:  # a transposed convolution, whose outputs of a group share an axis
            each = weight.unflatten(0, (groups, -1)) * factor.reshape((groups, 1, -1, *(1,) * (weight.ndim - 2)))
            wide = each.flatten(0, 1)
        else:
            wide = weight * factor.reshape([-1 if n == axis else 1 for n in range(weight.ndim)])
    learns = [one._wish is not False for one in (weight, weight if bias is None else bias)]
    return Parameter(wide.cast(weight.dtype), learns[0]), Parameter(other.cast(weight.dtype), learns[1])


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False,
) -> Pair:  # fmt: skip
    """The weight and the bias of a convolution that does what a normalisation of batches after it does in evaluation.

    Each is to have a gradient if that of the convolution is; a bias that it has not is as its weight.

    Args:
      conv_w: weight of the convolution, shape (outputs, inputs, *kernel), or (inputs, outputs, *kernel) with
        ``transpose``.
      conv_b: its bias, shape (outputs,); or None.
      bn_rm: running mean; and ``bn_rv``, running variance.
      bn_eps: what is added to the variance.
      bn_w: weight of the normalisation; and ``bn_b``, its bias; or None.
      transpose: whether the convolution is a transposed one.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> one = Tensor([1.0])
      >>> weight, bias = nn.utils.fuse_conv_bn_weights(Tensor([[[2.0]]]), None, one, one * 4, 0.0, one, one)
      >>> weight.tolist(), bias.tolist()
      ([[[1.0]]], [0.5])
    """
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, int(transpose))


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> Pair:  # fmt: skip
    """As :func:`fuse_conv_bn_weights`, of a linear layer, whose weight has the shape (outputs, inputs).

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> one = Tensor([1.0])
      >>> weight, bias = nn.utils.fuse_linear_bn_weights(Tensor([[2.0]]), None, one, one * 4, 0.0, one, one)
      >>> weight.tolist(), bias.tolist()
      ([[1.0]], [0.5])
    """
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _with(layer: Fused, norm: Any, axis: int, what: str) -> Fused:
    if not isinstance(norm, BatchNorm) or norm.running_mean is None:
        raise ValueError(f"{what}: a BatchNorm with running statistics is wanted, got a {type(norm).__name__}")
    training = [Tensor.training if one.training is None else one.training for one in (layer, norm)]
    if any(training):
        raise ValueError(f"{what}: both layers are to be in evaluation: call eval()")
    fused = copy.deepcopy(layer)
    statistics = (norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias)
    fused.weight, fused.bias = _fused(layer.weight, layer.bias, *statistics, axis)
    return fused


def fuse_conv_bn_eval(conv: Conv, bn: Any, transpose: bool = False) -> Conv:
    """A convolution that does what a convolution and a normalisation of batches after it do in evaluation.

    Args:
      conv: the convolution, of which a copy is changed.
      bn: the normalisation.
      transpose: whether the convolution is a transposed one.

    Raises:
      ValueError: if one of them is in training, or there are no running statistics.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> both = nn.Sequential(nn.Conv1d(3, 5, 2), nn.BatchNorm1d(5)).eval()
      >>> x = Tensor.ones(1, 3, 4)
      >>> bool((nn.utils.fuse_conv_bn_eval(*both)(x) - both(x)).abs().max() < 1e-5)
      True
    """
    return _with(conv, bn, int(transpose or isinstance(conv, ConvTranspose)), "fuse_conv_bn_eval")


def fuse_linear_bn_eval(linear: Linear, bn: Any) -> Linear:
    """As :func:`fuse_conv_bn_eval`, of a linear layer.

    Raises:
      ValueError: if one of them is in training, there are no running statistics, or they have other features.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> both = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5)).eval()
      >>> x = Tensor.ones(2, 3)
      >>> bool((nn.utils.fuse_linear_bn_eval(*both)(x) - both(x)).abs().max() < 1e-5)
      True
    """
    if getattr(bn, "num_features", linear.out_features) != linear.out_features:
        raise ValueError(f"fuse_linear_bn_eval: {bn.num_features} channels for {linear.out_features} features")
    return _with(linear, bn, 0, "fuse_linear_bn_eval")


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A layer whose parameters are not to be used before they are written. Nothing is drawn until something is read.

    Args:
      module_cls: the class of the layer.
      args: what it is made with; and ``kwargs``, ``device`` and ``dtype`` among them.

    Example:
      >>> from tg_frontend import nn
      >>> nn.utils.skip_init(nn.Linear, 3, 5).weight.shape
      (5, 3)
    """
    return module_cls(*args, **kwargs)
