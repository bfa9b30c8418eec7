"""Layers that find out the size of their inputs from the first one."""

from __future__ import annotations

from ..tensor import Tensor
from .convolutional import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .layering import layer_class
from .layers import Linear
from .module import Module
from .normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from .uninitialized import Uninitialized, UninitializedBuffer, UninitializedParameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

_LEAST = 1  # inputs of the layer that tells which tensors there will be


class LazyModule(Module):
    """A layer that becomes another with its first input."""

    weight: Any  # an UninitializedParameter until then
    bias: Any
    _becomes: ClassVar[Any]
    _from_last: ClassVar[bool] = False  # whether the last axis tells the size, not that of channels
    _batched: ClassVar[tuple[int, ...]] = ()  # ranks of inputs with a batch; any other has none

    def _begin(self, *args: Any, groups: int = 1, **kwargs: Any) -> None:
        """Notes what the layer is made with, and which tensors it will have."""
        self._made_with = args, kwargs if groups == 1 else {**kwargs, "groups": groups}
        like = self._becomes(_LEAST * groups, *args, **self._made_with[1])
        for name, value in vars(like).items():
            if isinstance(value, Tensor) and value.ndim:
                kind = UninitializedParameter if value._parameter else UninitializedBuffer
                value = kind(None, value.device, value.dtype)
            setattr(self, name, value)

    def has_uninitialized_params(self) -> bool:
        """Whether a tensor has no shape yet: until the first call, or until a state was loaded.

        Example:
          >>> from tg_frontend import nn
          >>> nn.LazyLinear(3).has_uninitialized_params()
          True
        """
        return any(isinstance(value, Uninitialized) for value in vars(self).values())

    def initialize_parameters(self, x: Tensor) -> None:
        """Draws the parameters for inputs like this one. Those that were loaded stay.

        Raises:
          ValueError: if the input has too few axes, or what was loaded is for another number of features.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> layer = nn.LazyLinear(3)
          >>> layer.initialize_parameters(Tensor.ones(2, 5))
          >>> layer.weight.shape
          (3, 5)
        """
        what = type(self).__name__
        axis = -1 if self._from_last else int(not self._batched or x.ndim in self._batched)
        if x.ndim <= max(axis, 0):
            raise ValueError(f"{what}: input of shape {x.shape} does not tell the size of its features")
        size = x.shape[axis]
        args, kwargs = self._made_with
        like = self._becomes(size, *args, **kwargs)
        for name, value in vars(like).items():
            known = vars(self)[name]
            if not isinstance(value, Tensor):
                setattr(self, name, value)
            elif isinstance(known, Uninitialized):
                known._filled(value)
            elif known.shape != value.shape:
                loaded = f"{name} of shape {known.shape} was loaded"
                raise ValueError(f"{what}: {loaded}; an input of shape {x.shape} has {size}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As the layer that this becomes."""
        given = [*args, *kwargs.values()]
        if not given:
            raise TypeError(f"{type(self).__name__}: an input is wanted")
        with Tensor.no_grad():
            self.initialize_parameters(given[0])
        del self._made_with
        self.__class__ = self._becomes
        return self(*args, **kwargs)


@layer_class
class LazyLinear(LazyModule):
    """A :class:`Linear` whose ``in_features`` are those of its first input. After that it is a :class:`Linear`.

    Args:
      out_features: length of the last axis of the result.
      bias: whether there is a bias.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.LazyLinear(3)
      >>> layer(Tensor.ones(2, 5)).shape
      (2, 3)
      >>> layer
      Linear(in_features=5, out_features=3, bias=True)
    """

    _becomes = Linear
    _from_last = True

    def __init__(self, out_features: int, bias: bool = True) -> None:
        self._begin(out_features, bias)


class _LazyConv(LazyModule):
    """A convolution; its input may lack the batch."""

    def __init__(
        self, out_channels: int, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str = 0, dilation: int | tuple[int, ...] = 1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros",
    ) -> None:  # fmt: skip
        rest: dict[str, Any] = {"bias": bias, "padding_mode": padding_mode}
        self._begin(out_channels, kernel_size, stride, padding, dilation, groups=groups, **rest)


class _LazyConvTranspose(LazyModule):
    """Its transpose."""

    def __init__(
        self, out_channels: int, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0, output_padding: int | tuple[int, ...] = 0, groups: int = 1,
        bias: bool = True, dilation: int | tuple[int, ...] = 1, padding_mode: str = "zeros",
    ) -> None:  # fmt: skip
        rest: dict[str, Any] = {"bias": bias, "dilation": dilation, "padding_mode": padding_mode}
        self._begin(out_channels, kernel_size, stride, padding, output_padding, groups=groups, **rest)


class _LazyNorm(LazyModule):
    """A normalisation of channels."""

    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        *, bias: bool = True,
    ) -> None:  # fmt: skip
        self._begin(eps, momentum, affine, track_running_stats, bias=bias)


@layer_class
class LazyConv1d(_LazyConv):
    """A :class:`Conv1d` whose ``in_channels`` are those of its first input, and which then is one.

    Its arguments are those of :class:`Conv1d` without ``in_channels``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.LazyConv1d(3, 2)
      >>> layer(Tensor.ones(2, 5, 7)).shape, type(layer).__name__
      ((2, 3, 6), 'Conv1d')
    """

    _becomes = Conv1d
    _batched = (3,)


@layer_class
class LazyConv2d(_LazyConv):
    """A :class:`Conv2d` whose ``in_channels`` are those of its first input, and which then is one.

    Its arguments are those of :class:`Conv2d` without ``in_channels``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.LazyConv2d(3, 2)
      >>> layer(Tensor.ones(2, 5, 7, 7)).shape, type(layer).__name__
      ((2, 3, 6, 6), 'Conv2d')
    """

    _becomes = Conv2d
    _batched = (4,)


@layer_class
class LazyConv3d(_LazyConv):
    """A :class:`Conv3d` whose ``in_channels`` are those of its first input, and which then is one.

    Its arguments are those of :class:`Conv3d` without ``in_channels``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.LazyConv3d(3, 2)
      >>> layer(Tensor.ones(2, 5, 7, 7, 7)).shape, type(layer).__name__
      ((2, 3, 6, 6, 6), 'Conv3d')
    """

    _becomes = Conv3d
    _batched = (5,)


@layer_class
class LazyConvTranspose1d(_LazyConvTranspose):
    """A :class:`ConvTranspose1d` whose ``in_channels`` are those of its first input, and which then is one.

    Its arguments are those of :class:`ConvTranspose1d` without ``in_channels``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.LazyConvTranspose1d(3, 2)
      >>> layer(Tensor.ones(2, 5, 7)).shape, type(layer).__name__
      ((2, 3, 8), 'ConvTranspose1d')
    """

    _becomes = ConvTranspose1d
    _batched = (3,)


@layer_class
class LazyConvTranspose2d(_LazyConvTranspose):
    """A :class:`ConvTranspose2d` whose ``in_channels`` are those of its first input, and which then is one.

    Its arguments are those of :class:`ConvTranspose2d` without ``in_channels``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.LazyConvTranspose2d(3, 2)
      >>> layer(Tensor.ones(2, 5, 7, 7)).shape, type(layer).__name__
      ((2, 3, 8, 8), 'ConvTranspose2d')
    """

    _becomes = ConvTranspose2d
    _batched = (4,)


@layer_class
class LazyConvTranspose3d(_LazyConvTranspose):
    """A :class:`ConvTranspose3d` whose ``in_channels`` are those of its first input, and which then is one.

    Its arguments are those of :class:`ConvTranspose3d` without ``in_channels``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.LazyConvTranspose3d(3, 2)
      >>> layer(Tensor.ones(2, 5, 7, 7, 7)).shape, type(layer).__name__
      ((2, 3, 8, 8, 8), 'ConvTranspose3d')
    """

    _becomes = ConvTranspose3d
    _batched = (5,)


@layer_class
class LazyBatchNorm1d(_LazyNorm):
    """A :class:`BatchNorm1d` whose ``num_features`` are the channels of its first input, and which then is one.

    Its arguments are those of :class:`BatchNorm1d` without ``num_features``; ``track_running_stats`` is True as there.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.LazyBatchNorm1d()
      >>> layer(Tensor.ones(2, 5, 7)).shape, type(layer).__name__
      ((2, 5, 7), 'BatchNorm1d')
    """

    _becomes = BatchNorm1d


@layer_class
class LazyBatchNorm2d(_LazyNorm):
    """A :class:`BatchNorm2d` whose ``num_features`` are the channels of its first input, and which then is one.

    Its arguments are those of :class:`BatchNorm2d` without ``num_features``; ``track_running_stats`` is True as there.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.LazyBatchNorm2d()
      >>> layer(Tensor.ones(2, 5, 7, 7)).shape, type(layer).__name__
      ((2, 5, 7, 7), 'BatchNorm2d')
    """

    _becomes = BatchNorm2d


@layer_class
class LazyBatchNorm3d(_LazyNorm):
    """A :class:`BatchNorm3d` whose ``num_features`` are the channels of its first input, and which then is one.

    Its arguments are those of :class:`BatchNorm3d` without ``num_features``; ``track_running_stats`` is True as there.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.LazyBatchNorm3d()
      >>> layer(Tensor.ones(2, 5, 7, 7, 7)).shape, type(layer).__name__
      ((2, 5, 7, 7, 7), 'BatchNorm3d')
    """

    _becomes = BatchNorm3d


@layer_class
class LazyInstanceNorm1d(_LazyNorm):
    """A :class:`InstanceNorm1d` whose ``num_features`` are the channels of its first input, and which then is one.

    Its arguments are those of :class:`InstanceNorm1d` without ``num_features``; ``affine`` and
    ``track_running_stats`` are True, as PyTorch has it.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.LazyInstanceNorm1d()
      >>> layer(Tensor.ones(2, 5, 7)).shape, type(layer).__name__
      ((2, 5, 7), 'InstanceNorm1d')
    """

    _becomes = InstanceNorm1d
    _batched = (3,)


@layer_class
class LazyInstanceNorm2d(_LazyNorm):
    """A :class:`InstanceNorm2d` whose ``num_features`` are the channels of its first input, and which then is one.

    Its arguments are those of :class:`InstanceNorm2d` without ``num_features``; ``affine`` and
    ``track_running_stats`` are True, as PyTorch has it.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.LazyInstanceNorm2d()
      >>> layer(Tensor.ones(2, 5, 7, 7)).shape, type(layer).__name__
      ((2, 5, 7, 7), 'InstanceNorm2d')
    """

    _becomes = InstanceNorm2d
    _batched = (4,)


@layer_class
class LazyInstanceNorm3d(_LazyNorm):
    """A :class:`InstanceNorm3d` whose ``num_features`` are the channels of its first input, and which then is one.

    Its arguments are those of :class:`InstanceNorm3d` without ``num_features``; ``affine`` and
    ``track_running_stats`` are True, as PyTorch has it.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.LazyInstanceNorm3d()
      >>> layer(Tensor.ones(2, 5, 7, 7, 7)).shape, type(layer).__name__
      ((2, 5, 7, 7, 7), 'InstanceNorm3d')
    """

    _becomes = InstanceNorm3d
    _batched = (5,)
