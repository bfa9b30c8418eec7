"""Normalisation with given statistics, weights and biases."""

from __future__ import annotations

from tg_dtype import dtypes, sum_acc_dtype
from tg_shape import prod

from ...array.casts import floating
from ...tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_EPS = {"float64": 2.220446049250313e-16, "float16": 0.0009765625, "bfloat16": 0.0078125}


def _channels(x: Tensor, what: str, **vectors: Tensor | None) -> None:
    if x.ndim < 2:
        raise ValueError(f"{what}: input of shape {x.shape} has no axis of channels")
    for name, vector in vectors.items():
        if vector is not None and vector.shape != (x.shape[1],):
            raise ValueError(f"{what}: {name} of shape {vector.shape} for {x.shape[1]} channels")


def _follow(running: Tensor | None, new: Tensor, momentum: float) -> None:
    if running is not None:
        running.assign((running * (1 - momentum) + new.detach() * momentum).cast(running.dtype))


def _moved(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: tuple[int, ...]) -> Tensor:
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def batch_norm(
    x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each channel (axis 1) less its mean, over its deviation; of the batch in training, else the running ones.

    Args:
      running_mean: shape (channels,); in training it follows, if given.
      running_var: likewise, of corrected variances.
      weight: shape (channels,).
      bias: shape (channels,).
      training: whether the statistics are those of the batch.
      momentum: share of the batch in the running statistics.
      eps: added to the variance.

    Raises:
      ValueError: if a vector does not fit, the running statistics are missing, or a channel has one value in training.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.batch_norm(Tensor([[1.0, 10.0], [3.0, 30.0]]), None, None, training=True).round(2)
      Tensor([[-1., -1.],
              [ 1.,  1.]])
    """
    what = "batch_norm"
    _channels(x, what, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    mean, var = running_mean, running_var
    if training:
        if not eps > 0:
            raise ValueError(f"{what}: eps is positive in training, got {eps}")
        count = prod(x.shape) // x.shape[1] if x.shape[1] != 0 else 2
        if isinstance(count, int) and count == 1:
            raise ValueError(f"{what}: input of shape {x.shape} has one value a channel; training takes more")
        axes = [axis for axis in range(x.ndim) if axis != 1]
        var, mean = x.cast(sum_acc_dtype(x.dtype)).var_mean(axes, correction=0)
        _follow(running_mean, mean, momentum)
        _follow(running_var, var * (count / (count - 1)) if isinstance(count, int) and count > 1 else var, momentum)
    if mean is None or var is None:
        raise ValueError(f"{what}: running_mean and running_var are wanted outside of training")
    return x.batchnorm(weight, bias, mean, (var + eps).rsqrt()).cast(x.dtype)


def instance_norm(
    x: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each channel of each example less its mean, over its deviation.

    Args:
      running_mean: shape (channels,); follows the mean over the batch, or is used instead without ``use_input_stats``.
      running_var: likewise, of corrected variances.
      weight: shape (channels,).
      bias: shape (channels,).
      use_input_stats: whether the statistics are those of the input.
      momentum: share of the input in the running statistics.
      eps: added to the variance.

    Raises:
      ValueError: if a vector does not fit, or each channel has one value.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.instance_norm(Tensor([[[1.0, 3.0], [10.0, 30.0]]])).round(2)
      Tensor([[[-1.,  1.],
               [-1.,  1.]]])
    """
    what = "instance_norm"
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    _channels(x, what, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    count = prod(x.shape[2:])
    if isinstance(count, int) and count == 1:
        raise ValueError(f"{what}: input of shape {x.shape} has one value a channel; more are wanted")
    axes = tuple(range(2, x.ndim))
    wide = x.cast(sum_acc_dtype(x.dtype))
    var, mean = wide.var_mean(axes, correction=0, keepdim=True)
    _follow(running_mean, mean.reshape(x.shape[:2]).mean(0), momentum)
    scale = count / (count - 1) if isinstance(count, int) and count > 1 else 1.0
    _follow(running_var, var.reshape(x.shape[:2]).mean(0) * scale, momentum)
    out = (wide - mean) * (var + eps).rsqrt()
    return _moved(out, weight, bias, (1, -1, *(1,) * (x.ndim - 2))).cast(x.dtype)


def group_norm(
    x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """The channels (axis 1) of a group and all that follows, less their mean, over their deviation.

    Raises:
      ValueError: if the channels do not divide by the groups, or a vector does not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.group_norm(Tensor([[1.0, 3.0, 10.0, 30.0]]), 2).round(2)
      Tensor([[-1.,  1., -1.,  1.]])
    """
    _channels(x, "group_norm", weight=weight, bias=bias)
    if num_groups < 1 or x.shape[1] % num_groups != 0:
        raise ValueError(f"group_norm: {x.shape[1]} channels do not divide into {num_groups} groups")
    if 0 in x.shape:
        return _moved(x * 1, weight, bias, (1, -1, *(1,) * (x.ndim - 2)))
    grouped = x.reshape((x.shape[0], num_groups, prod(x.shape[1:]) // num_groups))
    out = grouped.layernorm(-1, eps).reshape(x.shape)
    return _moved(out, weight, bias, (1, -1, *(1,) * (x.ndim - 2))).cast(x.dtype)


def _last(x: Tensor, normalized_shape: int | Sequence[int], what: str, **tables: Tensor | None) -> tuple[int, ...]:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(f"{what}: input of shape {x.shape} does not end in normalized_shape {shape}")
    for name, table in tables.items():
        if table is not None and table.shape != shape:
            raise ValueError(f"{what}: {name} of shape {table.shape} for normalized_shape {shape}")
    return shape


def layer_norm(
    x: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """The last axes less their mean, over their deviation.

    Args:
      normalized_shape: sizes of the last axes.
      weight: of that shape.
      bias: of that shape.
      eps: added to the variance.

    Raises:
      ValueError: if a shape does not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.layer_norm(Tensor([[1.0, 3.0], [10.0, 30.0]]), (2,)).round(2)
      Tensor([[-1.,  1.],
              [-1.,  1.]])
    """
    shape = _last(x, normalized_shape, "layer_norm", weight=weight, bias=bias)
    out = x.layernorm(tuple(range(-len(shape), 0)), eps)
    return _moved(out, weight, bias, shape).cast(out.dtype)


def rms_norm(
    x: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The last axes over the root of the mean of their squares.

    Args:
      normalized_shape: sizes of the last axes.
      weight: of that shape.
      eps: added to the mean; the distance from 1 to the next number of the dtype if not given.

    Raises:
      ValueError: if a shape does not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.rms_norm(Tensor([[3.0, 4.0]]), (2,)).round(4)
      Tensor([[0.8485, 1.1314]])
    """
    shape = _last(x, normalized_shape, "rms_norm", weight=weight)
    known = dtypes.is_float(x.dtype) or x.is_complex()
    wide = x.cast(sum_acc_dtype(x.dtype) if dtypes.is_float(x.dtype) else x.dtype if known else dtypes.default_float)
    least = _EPS.get(wide.real.dtype.name, 1.1920928955078125e-07) if eps is None else eps
    mean = (wide * wide).mean(tuple(range(-len(shape), 0)), keepdim=True)
    return _moved(wide * (mean + least).rsqrt(), weight, None, shape).cast(x.dtype)


def local_response_norm(x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha * mean of squares of ``size`` neighbouring channels) ** beta (Krizhevsky et al. 2012).

    Raises:
      ValueError: if the input has fewer than 3 axes, or ``size`` is below 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.local_response_norm(Tensor.ones(1, 3, 1), 3, alpha=3.0, beta=1.0)
      Tensor([[[0.33333334],
               [0.25      ],
               [0.33333334]]])
    """
    if x.ndim < 3 or size < 1:
        raise ValueError(f"local_response_norm: input of shape {x.shape}, size {size!r}; 3 axes and 1 at least")
    if 0 in x.shape:
        return x * 1
    x = floating(x)
    squares = (x * x).pad([None, (size // 2, (size - 1) // 2), *(None,) * (x.ndim - 2)])
    mean = squares.unfold(1, size, 1).sum(-1) / size
    return x / (mean * alpha + k) ** beta
