"""Normalisation layers."""

from __future__ import annotations

from tg_dtype import dtypes, sum_acc_dtype
from tg_shape import prod

from ..array.gradients import in_training
from ..autograd.differentiation import MODE
from ..tensor import Tensor
from . import functional
from .initial import parameter
from .layering import Layer, layer_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, ClassVar


def _channels(x: Tensor, count: int, what: str) -> None:
    if x.ndim < 2 or x.shape[1] != count:
        raise ValueError(f"{what}: input of shape {x.shape}; axis 1 must have {count} channels")


class _Running(Layer):
    """Channels with weights and running statistics."""

    running_mean: Any  # a tensor; None where no running statistics are kept
    running_var: Any
    num_batches_tracked: Any

    def _make(
        self, channels: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool, bias: bool
    ) -> None:
        self.eps, self.momentum, self.affine, self.track_running_stats = eps, momentum, affine, track_running_stats
        self.weight = parameter(Tensor.ones(channels)) if affine else None
        self.bias = parameter(Tensor.zeros(channels)) if affine and bias else None
        self.running_mean = Tensor.zeros(channels, requires_grad=False) if track_running_stats else None
        self.running_var = Tensor.ones(channels, requires_grad=False) if track_running_stats else None
        self.num_batches_tracked = (
            Tensor.zeros(dtype=dtypes.int32, requires_grad=False) if track_running_stats else None
        )

    def reset_running_stats(self) -> None:
        """Running statistics as they were at first.

        Example:
          >>> from tg_frontend import nn
          >>> nn.BatchNorm1d(2).reset_running_stats()
        """
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.running_mean.assign(self.running_mean.zeros_like())
            self.running_var.assign(self.running_var.ones_like())
            self.num_batches_tracked.assign(self.num_batches_tracked.zeros_like())

    def _share(self) -> Tensor | float:
        """Of the newest batch in the running statistics, which count it; the mean of all without a momentum."""
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.assign(self.num_batches_tracked + 1)
        return 1 / self.num_batches_tracked.cast(dtypes.float32) if self.momentum is None else self.momentum

    def _follow(self, mean: Tensor, var: Tensor, empty: bool = False) -> None:
        """Counts the batch, and unless it is empty takes its statistics into the running ones."""
        if self.running_mean is None or self.running_var is None or MODE.repeating:
            return
        new = self._share()
        if empty:
            return
        for running, now in ((self.running_mean, mean), (self.running_var, var)):
            running.assign((running * (1 - new) + now.detach() * new).cast(running.dtype))


@layer_class
class BatchNorm(_Running):
    """Each channel (axis 1) less its mean over the batch, over its deviation.

    In training (``Tensor.train()``) the statistics are those of the batch, and the running ones follow; otherwise the
    running ones are used.

    Args:
      sz: number of channels.
      eps: added to the variance.
      affine: whether ``weight`` and ``bias`` are learnt.
      track_running_stats: whether running statistics are kept.
      momentum: share of the newest batch in the running statistics; None for the mean of all batches.
      bias: whether there is a ``bias`` beside a ``weight``.

    Attributes:
      weight: shape (sz,), ones at first; or None.
      bias: shape (sz,), zeros at first; or None.
      running_mean: shape (sz,); or None.
      running_var: shape (sz,), of corrected variances; or None.
      num_batches_tracked: number of batches seen in training; or None.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer, x = nn.BatchNorm(2), Tensor([[1.0, 10.0], [3.0, 30.0]])
      >>> with Tensor.train():
      ...     normal = layer(x)
      >>> normal.round(2), layer.running_mean
      (Tensor([[-1., -1.],
              [ 1.,  1.]]), Tensor([0.2, 2. ]))
    """

    _ranks: ClassVar[tuple[int, ...]] = ()

    def __init__(
        self, sz: int, eps: float = 1e-5, affine: bool = True, track_running_stats: bool = True,
        momentum: float | None = 0.1, *, bias: bool = True,
    ) -> None:  # fmt: skip
        self.sz = self.num_features = sz
        self._make(sz, eps, momentum, affine, track_running_stats, bias)

    def calc_stats(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and (uncorrected) variance of each channel, of the batch in training, else the running ones.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> with Tensor.train():
          ...     mean, variance = nn.BatchNorm(2).calc_stats(Tensor([[1.0, 10.0], [3.0, 30.0]]))
          >>> mean, variance
          (Tensor([ 2., 20.]), Tensor([  1., 100.]))
        """
        if self.running_mean is not None and self.running_var is not None and not Tensor.training:
            return self.running_mean, self.running_var
        axes = [axis for axis in range(x.ndim) if axis != 1]
        var, mean = x.cast(sum_acc_dtype(x.dtype)).var_mean(axes, correction=0)
        return mean, var

    def forward(self, x: Tensor) -> Tensor:
        """shape (batch, channels, …) to the same.

        Raises:
          ValueError: if axis 1 has another number of channels, there are more or fewer axes than the class takes, or
            ``eps`` is not positive in training.
        """
        what = type(self).__name__
        if self._ranks and x.ndim not in self._ranks:
            raise ValueError(f"{what}: input of shape {x.shape}; {' or '.join(map(str, self._ranks))} axes are wanted")
        _channels(x, self.sz, what)
        learnt = x if self.weight is None else self.weight
        training = Tensor.training if self.running_mean is None else in_training(learnt, what)
        if training and not self.eps > 0:
            raise ValueError(f"{what}: eps is positive in training, got {self.eps}")
        if training and self._ranks and (prod(x.shape) == x.shape[1] != 0):
            raise ValueError(f"{what}: input of shape {x.shape} has one value a channel; training takes more")
        mean, var = self.calc_stats(x)
        if training:
            count = prod(x.shape) // self.sz if self.sz else 2
            corrected = var.detach() * (count / (count - 1)) if isinstance(count, int) and count > 1 else var.detach()
            self._follow(mean, corrected, 0 in x.shape)
        return x.batchnorm(self.weight, self.bias, mean, (var + self.eps).rsqrt()).cast(x.dtype)


@layer_class
class BatchNorm1d(BatchNorm):
    """:class:`BatchNorm` of inputs (batch, channels) or (batch, channels, length), its settings in PyTorch's order.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.BatchNorm1d(3)(Tensor.ones(2, 3, 5)).shape
      (2, 3, 5)
    """

    _ranks: ClassVar[tuple[int, ...]] = (2, 3)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, affine, track_running_stats, momentum, bias=bias)


@layer_class
class BatchNorm2d(BatchNorm1d):
    """:class:`BatchNorm` of inputs (batch, channels, height, width), its settings in PyTorch's order.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.BatchNorm2d(3)(Tensor.ones(2, 3, 5, 7)).shape
      (2, 3, 5, 7)
    """

    _ranks = (4,)


@layer_class
class BatchNorm3d(BatchNorm1d):
    """:class:`BatchNorm` of inputs (batch, channels, depth, height, width), its settings in PyTorch's order.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.BatchNorm3d(3)(Tensor.ones(2, 3, 5, 7, 2)).shape
      (2, 3, 5, 7, 2)
    """

    _ranks = (5,)


@layer_class
class SyncBatchNorm(BatchNorm1d):
    """:class:`BatchNorm` of any number of axes. One process sees the whole batch here: there is nothing to exchange.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.SyncBatchNorm(3)(Tensor.ones(2, 3, 5, 7)).shape
      (2, 3, 5, 7)
    """

    _ranks = ()

    def __init__(
        self, sz: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(sz, eps, momentum, affine, track_running_stats, bias=bias)
        if process_group is not None:
            raise ValueError("SyncBatchNorm: there are no groups of processes")


@layer_class
class GroupNorm(Layer):
    """The channels (axis 1) of a group and all that follows, less their mean, over their deviation.

    Args:
      num_groups: groups of channels.
      num_channels: length of axis 1.
      eps: added to the variance.
      affine: whether ``weight`` and ``bias`` (shape (num_channels,)) are learnt.
      bias: whether there is a ``bias`` beside a ``weight``.

    Raises:
      ValueError: if the channels do not divide by the groups.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.GroupNorm(2, 4)(Tensor([[1.0, 3.0, 10.0, 30.0]])).round(2)
      Tensor([[-1.,  1., -1.,  1.]])
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, *, bias: bool = True
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"GroupNorm: {num_channels} channels do not divide into {num_groups} groups")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.weight = parameter(Tensor.ones(num_channels)) if affine else None
        self.bias = parameter(Tensor.zeros(num_channels)) if affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        """shape (batch, num_channels, …) to the same.

        Raises:
          ValueError: if axis 1 has not ``num_channels`` channels.
        """
        _channels(x, self.num_channels, type(self).__name__)
        grouped = x.reshape((x.shape[0], self.num_groups, prod(x.shape[1:]) // self.num_groups))
        out = grouped.layernorm(-1, self.eps).reshape(x.shape)
        return _scaled(out, self.weight, self.bias, (1, -1, *(1,) * (x.ndim - 2))).cast(x.dtype)


@layer_class
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


@layer_class
class InstanceNorm1d(_Running):
    """Each channel of each example less its mean, over its deviation: of inputs ([batch,] channels, length).

    Args:
      num_features: number of channels.
      eps: added to the variance.
      momentum: share of the newest batch in the running statistics.
      affine: whether ``weight`` and ``bias`` are learnt.
      track_running_stats: whether running statistics are kept, and used outside of training.
      bias: whether there is a ``bias`` beside a ``weight``.

    Attributes:
      weight: shape (num_features,); or None. Likewise ``bias``, ``running_mean`` and ``running_var``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.InstanceNorm1d(2)(Tensor([[[1.0, 3.0], [10.0, 30.0]]])).round(2)
      Tensor([[[-1.,  1.],
               [-1.,  1.]]])
    """

    _rank: ClassVar[int] = 2

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, *, bias: bool = True,
    ) -> None:  # fmt: skip
        self.num_features = num_features
        self._make(num_features, eps, momentum, affine, track_running_stats, bias)

    def forward(self, x: Tensor) -> Tensor:
        """shape ([batch,] channels, *spatial) to the same.

        Raises:
          ValueError: if the shape does not fit.
        """
        if x.ndim not in (self._rank, self._rank + 1):
            raise ValueError(
                f"{type(self).__name__}: input of shape {x.shape}; {self._rank} or {self._rank + 1} axes are wanted"
            )
        batched = x if x.ndim > self._rank else x.unsqueeze(0)
        _channels(batched, self.num_features, type(self).__name__)
        learnt = x if self.weight is None else self.weight
        own = not self.track_running_stats or in_training(learnt, type(self).__name__)
        follow = own and Tensor.training and not MODE.repeating
        mean, var = (self.running_mean, self.running_var) if follow or not own else (None, None)
        share = self.momentum if self.momentum is not None else 0.0
        out = functional.instance_norm(batched, mean, var, self.weight, self.bias, own, share, self.eps)
        return out if batched is x else out.squeeze(0)


@layer_class
class InstanceNorm2d(InstanceNorm1d):
    """:class:`InstanceNorm1d` of inputs ([batch,] channels, height, width).

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.InstanceNorm2d(2)(Tensor.ones(1, 2, 3, 5)).shape
      (1, 2, 3, 5)
    """

    _rank = 3


@layer_class
class InstanceNorm3d(InstanceNorm1d):
    """:class:`InstanceNorm1d` of inputs ([batch,] channels, depth, height, width).

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.InstanceNorm3d(2)(Tensor.ones(1, 2, 3, 5, 2)).shape
      (1, 2, 3, 5, 2)
    """

    _rank = 4


@layer_class
class LayerNorm(Layer):
    """The last axes less their mean, over their deviation.

    Args:
      normalized_shape: sizes of the last axes.
      eps: added to the variance.
      elementwise_affine: whether ``weight`` and ``bias`` (of ``normalized_shape``) are learnt.
      bias: whether there is a ``bias`` beside a ``weight``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.LayerNorm(2)(Tensor([[1.0, 3.0], [10.0, 30.0]])).round(2)
      Tensor([[-1.,  1.],
              [-1.,  1.]])
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True,
    ) -> None:  # fmt: skip
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        self.axis = tuple(range(-len(shape), 0))
        self.weight = parameter(Tensor.ones(*shape)) if elementwise_affine else None
        self.bias = parameter(Tensor.zeros(*shape)) if elementwise_affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        """shape (…, *normalized_shape) to the same.

        Raises:
          ValueError: if the last axes are others.
        """
        if x.shape[-len(self.normalized_shape) :] != self.normalized_shape:
            raise ValueError(f"LayerNorm: input of shape {x.shape} does not end in {self.normalized_shape}")
        out = x.layernorm(self.axis, self.eps)
        return _scaled(out, self.weight, self.bias, self.normalized_shape).cast(out.dtype)


@layer_class
class LayerNorm2d(LayerNorm):
    """:class:`LayerNorm` of the channels (axis 1) of images (batch, channels, height, width).

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> pixel = Tensor([1.0, 3.0]).reshape(1, 2, 1, 1)
      >>> nn.LayerNorm2d(2)(pixel).flatten().round(2)
      Tensor([-1.,  1.])
    """

    def forward(self, x: Tensor) -> Tensor:
        """shape (batch, channels, height, width) to the same.

        Raises:
          ValueError: if the shape is another.
        """
        if x.ndim != 4 or (x.shape[1],) != self.normalized_shape:
            channels = self.normalized_shape[-1]
            raise ValueError(f"LayerNorm2d: input of shape {x.shape}; (batch, {channels}, height, width) is wanted")
        out = x.layernorm(1, self.eps)
        return _scaled(out, self.weight, self.bias, (-1, 1, 1)).cast(out.dtype)  # the same for every pixel


@layer_class
class RMSNorm(Layer):
    """The last axes over the root of their mean square.

    Args:
      dim: size of the last axis, or sizes of the last axes.
      eps: added to the mean square; the distance from 1 to the next number of the dtype if not given.
      elementwise_affine: whether ``weight`` (of shape ``dim``) is learnt.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.RMSNorm(2)(Tensor([[3.0, 4.0]])).round(3)
      Tensor([[0.849, 1.131]])
    """

    def __init__(self, dim: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True) -> None:
        self.eps, self.dim = eps, dim
        self.normalized_shape = (dim,) if isinstance(dim, int) else tuple(dim)
        self.elementwise_affine = elementwise_affine
        self.weight = parameter(Tensor.ones(*self.normalized_shape)) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        """shape (…, *dim) to the same.

        Raises:
          ValueError: if the last axes are others.
        """
        if x.shape[-len(self.normalized_shape) :] != self.normalized_shape:
            raise ValueError(f"RMSNorm: input of shape {x.shape} does not end in {self.dim}")
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: tuple[int, ...]) -> Tensor:
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)
