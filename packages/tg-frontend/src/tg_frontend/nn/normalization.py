"""Normalisation layers."""

from __future__ import annotations

from tg_dtype import dtypes, sum_acc_dtype
from tg_shape import prod

from ..autograd.differentiation import MODE
from ..keywords import public
from ..tensor import Tensor
from .describing import described
from .initial import parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def _channels(x: Tensor, count: int, what: str) -> None:
    if x.ndim < 2 or x.shape[1] != count:
        raise ValueError(f"{what}: input of shape {x.shape}; axis 1 must have {count} channels")


@described
@public
class BatchNorm:
    """Each channel (axis 1) less its mean over the batch, over its deviation. Also ``BatchNorm1d`` to
    ``BatchNorm3d``.

    In training (``Tensor.train()``) the statistics are those of the batch, and the running ones follow; otherwise the
    running ones are used.

    Args:
      sz: number of channels.
      eps: added to the variance.
      affine: whether ``weight`` and ``bias`` are learnt.
      track_running_stats: whether running statistics are kept.
      momentum: share of the newest batch in the running statistics.

    Attributes:
      weight: shape (sz,), ones at first; or None.
      bias: shape (sz,), zeros at first; or None.
      running_mean: shape (sz,).
      running_var: shape (sz,), of corrected variances.
      num_batches_tracked: number of batches seen in training.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer, x = nn.BatchNorm(2), Tensor([[1.0, 10.0], [3.0, 30.0]])
      >>> with Tensor.train():
      ...     normal = layer(x)
      >>> normal.round(2), layer.running_mean
      (Tensor([[-1., -1.],
              [ 1.,  1.]]), Tensor([0.2, 2. ]))
    """

    def __init__(
        self, sz: int, eps: float = 1e-5, affine: bool = True, track_running_stats: bool = True, momentum: float = 0.1
    ) -> None:
        self.sz, self.eps, self.track_running_stats, self.momentum = sz, eps, track_running_stats, momentum
        self.weight = parameter(Tensor.ones(sz)) if affine else None
        self.bias = parameter(Tensor.zeros(sz)) if affine else None
        if track_running_stats:
            self.running_mean = Tensor.zeros(sz, requires_grad=False)
            self.running_var = Tensor.ones(sz, requires_grad=False)
            self.num_batches_tracked = Tensor.zeros(dtype=dtypes.int32, requires_grad=False)

    def calc_stats(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and (uncorrected) variance of each channel, of the batch in training, else the running ones.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> with Tensor.train():
          ...     mean, variance = nn.BatchNorm(2).calc_stats(Tensor([[1.0, 10.0], [3.0, 30.0]]))
          >>> mean, variance
          (Tensor([ 2., 20.]), Tensor([  1., 100.]))
        """
        if self.track_running_stats and not Tensor.training:
            return self.running_mean, self.running_var
        axes = [axis for axis in range(x.ndim) if axis != 1]
        var, mean = x.cast(sum_acc_dtype(x.dtype)).var_mean(axes, correction=0)
        return mean, var

    def __call__(self, x: Tensor) -> Tensor:
        """shape (batch, sz, …) to the same.

        Raises:
          ValueError: if axis 1 has not ``sz`` channels.
        """
        _channels(x, self.sz, "BatchNorm")
        mean, var = self.calc_stats(x)
        if self.track_running_stats and Tensor.training and not MODE.repeating:
            count = prod(x.shape) // self.sz
            corrected = var.detach() * (count / (count - 1)) if isinstance(count, int) and count > 1 else var.detach()
            keep, new = 1 - self.momentum, self.momentum
            self.running_mean.assign((self.running_mean * keep + mean.detach() * new).cast(self.running_mean.dtype))
            self.running_var.assign((self.running_var * keep + corrected * new).cast(self.running_var.dtype))
            self.num_batches_tracked.assign(self.num_batches_tracked + 1)
        return x.batchnorm(self.weight, self.bias, mean, (var + self.eps).rsqrt()).cast(x.dtype)


BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm


@described
@public
class GroupNorm:
    """The channels (axis 1) of a group and all that follows, less their mean, over their deviation.

    Args:
      num_groups: groups of channels.
      num_channels: length of axis 1.
      eps: added to the variance.
      affine: whether ``weight`` and ``bias`` (shape (num_channels,)) are learnt.

    Raises:
      ValueError: if the channels do not divide by the groups.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.GroupNorm(2, 4)(Tensor([[1.0, 3.0, 10.0, 30.0]])).round(2)
      Tensor([[-1.,  1., -1.,  1.]])
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"GroupNorm: {num_channels} channels do not divide into {num_groups} groups")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = parameter(Tensor.ones(num_channels)) if affine else None
        self.bias = parameter(Tensor.zeros(num_channels)) if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """shape (batch, num_channels, …) to the same.

        Raises:
          ValueError: if axis 1 has not ``num_channels`` channels.
        """
        _channels(x, self.num_channels, type(self).__name__)
        grouped = x.reshape((x.shape[0], self.num_groups, prod(x.shape[1:]) // self.num_groups))
        out = grouped.layernorm(-1, self.eps).reshape(x.shape)
        if self.weight is None or self.bias is None:
            return out
        shape = (1, -1, *(1,) * (x.ndim - 2))
        return (out * self.weight.reshape(shape) + self.bias.reshape(shape)).cast(x.dtype)


@public
class InstanceNorm(GroupNorm):
    """Each channel of each example less its mean, over its deviation.

    Args:
      num_features: length of axis 1.
      eps: added to the variance.
      affine: whether ``weight`` and ``bias`` are learnt.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.InstanceNorm(2)(Tensor([[[1.0, 3.0], [10.0, 30.0]]])).round(2)
      Tensor([[[-1.,  1.],
               [-1.,  1.]]])
    """

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__(num_features, num_features, eps, affine)
        self.num_features = num_features


@described
@public
class LayerNorm:
    """The last axes less their mean, over their deviation.

    Args:
      normalized_shape: sizes of the last axes.
      eps: added to the variance.
      elementwise_affine: whether ``weight`` and ``bias`` (of ``normalized_shape``) are learnt.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.LayerNorm(2)(Tensor([[1.0, 3.0], [10.0, 30.0]])).round(2)
      Tensor([[-1.,  1.],
              [-1.,  1.]])
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True
    ) -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps = shape, eps
        self.axis = tuple(range(-len(shape), 0))
        self.weight = parameter(Tensor.ones(*shape)) if elementwise_affine else None
        self.bias = parameter(Tensor.zeros(*shape)) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """shape (…, *normalized_shape) to the same.

        Raises:
          ValueError: if the last axes are others.
        """
        if x.shape[-len(self.normalized_shape) :] != self.normalized_shape:
            raise ValueError(f"LayerNorm: input of shape {x.shape} does not end in {self.normalized_shape}")
        out = x.layernorm(self.axis, self.eps)
        return out if self.weight is None or self.bias is None else (out * self.weight + self.bias).cast(x.dtype)


@public
class LayerNorm2d(LayerNorm):
    """:class:`LayerNorm` of the channels (axis 1) of images (batch, channels, height, width).

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> pixel = Tensor([1.0, 3.0]).reshape(1, 2, 1, 1)
      >>> nn.LayerNorm2d(2)(pixel).flatten().round(2)
      Tensor([-1.,  1.])
    """

    def __call__(self, x: Tensor) -> Tensor:
        """shape (batch, channels, height, width) to the same.

        Raises:
          ValueError: if the shape is another.
        """
        if x.ndim != 4 or (x.shape[1],) != self.normalized_shape:
            channels = self.normalized_shape[-1]
            raise ValueError(f"LayerNorm2d: input of shape {x.shape}; (batch, {channels}, height, width) is wanted")
        out = x.layernorm(1, self.eps)
        if self.weight is None or self.bias is None:
            return out
        weight, bias = (vector.reshape((-1, 1, 1)) for vector in (self.weight, self.bias))  # the same for every pixel
        return (out * weight + bias).cast(x.dtype)


@described
@public
class RMSNorm:
    """The last axis over the root of its mean square.

    Args:
      dim: size of the last axis.
      eps: added to the mean square.
      elementwise_affine: whether ``weight`` (shape (dim,)) is learnt.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.RMSNorm(2)(Tensor([[3.0, 4.0]])).round(3)
      Tensor([[0.849, 1.131]])
    """

    def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True) -> None:
        self.eps, self.dim = eps, dim
        self.weight = parameter(Tensor.ones(dim)) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """shape (…, dim) to the same.

        Raises:
          ValueError: if the last axis is another.
        """
        if x.shape[-1:] != (self.dim,):
            raise ValueError(f"RMSNorm: input of shape {x.shape} does not end in {self.dim}")
        wide = x.cast(sum_acc_dtype(x.dtype))
        out = (wide * ((wide * wide).mean(-1, keepdim=True) + self.eps).rsqrt()).cast(x.dtype)
        return out if self.weight is None else (out * self.weight).cast(x.dtype)
