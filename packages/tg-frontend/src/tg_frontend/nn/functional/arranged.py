"""Functions that are methods of Tensor, too, and take their arguments in another order or with other defaults here."""

from __future__ import annotations

from tg_dtype import dtypes

from ...ops.pooling import check_rank, window_means
from ...tensor import Tensor
from .sizes import numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Numbers = int | Sequence[int]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias.

    Args:
      weight: shape (outputs, inputs); or (inputs,), which leaves out the axis of outputs.
      bias: shape (outputs,).

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.linear(Tensor([[1.0, 2.0]]), Tensor([[3.0, 4.0], [5.0, 6.0]]))
      Tensor([[11., 17.]])
    """
    if weight.ndim == 1:
        out: Tensor = x.dot(weight)
        return out if bias is None else out + bias
    return x.linear(weight.transpose(-2, -1), bias)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x times the share of a normal distribution below it; ``approximate="tanh"`` for the approximation.

    Raises:
      ValueError: if there is no such approximation.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.gelu(Tensor([-1.0, 2.0])).round(4)
      Tensor([-0.1587,  1.9545])
    """
    return x.gelu(approximate)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above ``threshold``.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.softplus(Tensor([0.0, 30.0])).round(4)
      Tensor([ 0.6931, 30.    ])
    """
    return x.softplus(beta, threshold)


def _implied(x: Tensor) -> int:
    """The axis that PyTorch takes where none is given: the first of 0, 1 or 3 axes, else the second."""
    return 0 if x.ndim in (0, 1, 3) else 1


def softmax(x: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis. See :meth:`tg_frontend.Tensor.softmax`.

    Args:
      dim: the axis; if not given, the first of an x of 0, 1 or 3 axes, and the second of others, as PyTorch has it.
      dtype: what x is cast to before.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.softmax(Tensor([[0.0, 1.0, 2.0]]), dim=1).round(4)
      Tensor([[0.09  , 0.2447, 0.6652]])
    """
    return x.softmax(_implied(x) if dim is None else dim, dtype)


def log_softmax(x: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """The logarithm of :func:`softmax`, accurate where that is tiny. Its arguments are those of :func:`softmax`.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.log_softmax(Tensor([0.0, 1.0, 2.0]), 0).round(4)
      Tensor([-2.4076, -1.4076, -0.4076])
    """
    return x.log_softmax(_implied(x) if dim is None else dim, dtype)


def softmin(x: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """:func:`softmax` of -x. Its arguments are those of :func:`softmax`.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.softmin(Tensor([0.0, 1.0, 2.0]), 0).round(4)
      Tensor([0.6652, 0.2447, 0.09  ])
    """
    return x.softmin(_implied(x) if dim is None else dim, dtype)


def cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """-sum(target log softmax(x)) along axis 1. See :meth:`tg_frontend.Tensor.cross_entropy`.

    Raises:
      ValueError: if the shapes do not fit, or there is no such reduction.
      TypeError: if the target has the shape of ``x``, which is that of probabilities, and holds integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.cross_entropy(Tensor([[0.0, 2.0], [0.0, 0.0]]), Tensor([1, 0])).round(4)
      Tensor(0.41)
    """
    if target.shape == x.shape and dtypes.is_int(target.dtype):
        raise TypeError(f"cross_entropy: a target of x's shape holds probabilities, got {target.dtype.name}")
    return x.cross_entropy(target, reduction, label_smoothing, ignore_index, weight)


def binary_cross_entropy(x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """-target log(x) - (1 - target) log(1 - x). See :meth:`tg_frontend.Tensor.binary_crossentropy`.

    Raises:
      ValueError: if the shapes differ, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.binary_cross_entropy(Tensor([0.5, 0.25]), Tensor([1.0, 0.0])).round(4)
      Tensor(0.4904)
    """
    return x.binary_crossentropy(target, reduction, weight=weight)


def binary_cross_entropy_with_logits(
    x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """:func:`binary_cross_entropy` of sigmoid(x), without overflow.

    Raises:
      ValueError: if the shapes differ, or there is no such reduction.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.binary_cross_entropy_with_logits(Tensor([0.0, 1000.0]), Tensor([1.0, 1.0])).round(4)
      Tensor(0.3466)
    """
    return x.binary_crossentropy_logits(target, reduction, pos_weight, weight=weight)


def conv2d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Numbers = 1, padding: Any = 0,
    dilation: Numbers = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """A convolution over two axes. See :meth:`tg_frontend.Tensor.conv2d`.

    Raises:
      ValueError: if the shapes do not fit, or no window does.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.conv2d(Tensor.ones(1, 1, 3, 3), Tensor.ones(1, 1, 2, 2), None, 1, 1)[0, 0, 0]
      Tensor([1., 2., 2., 1.])
    """
    return x.conv2d(weight, bias, groups=groups, stride=stride, dilation=dilation, padding=padding)


def conv_transpose2d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Numbers = 1, padding: Numbers = 0,
    output_padding: Numbers = 0, groups: int = 1, dilation: Numbers = 1,
) -> Tensor:  # fmt: skip
    """A transposed convolution over two axes. See :meth:`tg_frontend.Tensor.conv_transpose2d`.

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.conv_transpose2d(Tensor.ones(1, 1, 2, 2), Tensor.ones(1, 1, 2, 2), None, 2).shape
      (1, 1, 4, 4)
    """
    return x.conv_transpose2d(
        weight, bias, groups=groups, stride=stride, dilation=dilation, padding=padding, output_padding=output_padding
    )


def max_pool2d(
    x: Tensor, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0, dilation: Numbers = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The maximum of each window of two axes. See :meth:`tg_frontend.Tensor.max_pool2d`.

    Returns:
      The maxima; with ``return_indices`` they and the positions.

    Raises:
      ValueError: if no window fits.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.max_pool2d(Tensor([[[1.0, 2.0], [3.0, 6.0]]]), 2)
      Tensor([[[6.]]])
    """
    check_rank(x, 2, "max_pool2d")
    return x.max_pool2d(
        numbers(kernel_size, 2, "max_pool2d: kernel_size"), stride, padding=padding, dilation=dilation,
        ceil_mode=ceil_mode, return_indices=return_indices,
    )  # fmt: skip


def _means(
    x: Tensor, axes: int, kernel_size: Numbers, stride: Numbers | None, padding: Numbers, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """Means of windows; those of integers are cut to integers, as PyTorch's functions do it."""
    what = f"avg_pool{axes}d"
    check_rank(x, axes, what)
    kernel = numbers(kernel_size, axes, f"{what}: kernel_size")
    return window_means(
        x, axes, kernel, stride, 1, padding, ceil_mode, count_include_pad, divisor_override, what, truncated=True
    )


def avg_pool1d(
    x: Tensor, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """The mean of each window of one axis. See :meth:`tg_frontend.Tensor.avg_pool1d`; of integers it is an integer.

    Raises:
      ValueError: if the input has another number of axes, or no window fits.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.avg_pool1d(Tensor([[1, 4, 2, 4]]), 2)
      Tensor([[2, 3]])
    """
    return _means(x, 1, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    x: Tensor, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of two axes. See :meth:`tg_frontend.Tensor.avg_pool2d`; of integers it is an integer.

    Raises:
      ValueError: if no window fits, or the divisor is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.avg_pool2d(Tensor([[[1.0, 2.0], [3.0, 6.0]]]), 2)
      Tensor([[[3.]]])
    """
    return _means(x, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    x: Tensor, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of three axes. See :meth:`tg_frontend.Tensor.avg_pool3d`; of integers it is an integer.

    Raises:
      ValueError: if the input has another number of axes, or no window fits; or the divisor is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.avg_pool3d(Tensor([1.0, 4.0, 2.0, 3.0]).reshape(1, 1, 1, 4), (1, 1, 2)).flatten()
      Tensor([2.5, 2.5])
    """
    return _means(x, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def max_unpool2d(
    x: Tensor, indices: Tensor, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Puts maxima back where :func:`max_pool2d` found them. See :meth:`tg_frontend.Tensor.max_unpool2d`.

    Raises:
      ValueError: if the shapes differ.
      TypeError: if the positions are no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.max_unpool2d(*F.max_pool2d(Tensor([[[1.0, 2.0], [3.0, 6.0]]]), 2, return_indices=True), 2)
      Tensor([[[0., 0.],
               [0., 6.]]])
    """
    size = numbers(kernel_size, 2, "max_unpool2d: kernel_size")
    return x.max_unpool2d(indices, size, stride, padding=padding, output_size=output_size)
