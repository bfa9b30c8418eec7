"""Convolutions. Shapes are (batch, channels, *spatial)."""

from __future__ import annotations

from tg_shape import sint

from ..array.array import A
from ..array.computing import copied
from .creation import zeros
from .linear import promoted
from .windows import Correlate, CorrelateTransposed, Correlation, window_counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Numbers = int | Sequence[int]


def per_axis(value: Any, n: int, what: str, least: int) -> tuple[int, ...]:
    """One integer an axis, from one for all or one each.

    Raises:
      ValueError: if there are not ``n``, or one is below ``least``.
    """
    numbers = (value,) * n if isinstance(value, int) else tuple(value)
    numbers = numbers * n if len(numbers) == 1 else numbers
    if len(numbers) != n or any(not isinstance(v, int) or v < least for v in numbers):
        raise ValueError(f"{what}: {value!r}: one number, {least} or more, or {n} of them")
    return numbers


def same_padding(padding: str, kernel: tuple[int, ...], stride: Any, dilation: Any, what: str) -> list[int]:
    """The amounts (left, right, top, bottom, …) that PyTorch's ``"same"`` and ``"valid"`` stand for.

    Raises:
      ValueError: if it is neither; or ``"same"`` for a stride other than 1.
    """
    if padding not in ("same", "valid"):
        raise ValueError(f"{what}: padding {padding!r}; a number, one an axis, 'same' or 'valid'")
    if padding == "valid":
        return [0] * (2 * len(kernel))
    if any(s != 1 for s in per_axis(stride, len(kernel), f"{what}: stride", 1)):
        raise ValueError(f"{what}: padding 'same' is for a stride of 1, not {stride!r}")
    gaps = per_axis(dilation, len(kernel), f"{what}: dilation", 1)
    reaches = [d * (k - 1) for k, d in zip(kernel, gaps, strict=True)]
    return [amount for reach in reversed(reaches) for amount in (reach // 2, reach - reach // 2)]


def paddings(padding: Any, n: int, what: str) -> list[tuple[int, int]]:
    """(before, after) for each spatial axis, from PyTorch's forms: p, (p, …), or (left, right, top, bottom, …)."""
    if isinstance(padding, int):
        return [(padding, padding)] * n
    amounts = tuple(padding)
    if len(amounts) == 1 and isinstance(amounts[0], int):
        amounts = amounts * n
    if len(amounts) == n and all(isinstance(p, int) for p in amounts):
        return [(p, p) for p in amounts]
    if len(amounts) == n and all(isinstance(p, (tuple, list)) and len(p) == 2 for p in amounts):
        return [(p[0], p[1]) for p in amounts]
    if len(amounts) == 2 * n and all(isinstance(p, int) for p in amounts):
        return [(amounts[i], amounts[i + 1]) for i in range(0, 2 * n, 2)][::-1]
    raise ValueError(f"{what}: padding {padding!r} for {n} spatial axes")


def check_windows_fit(
    x: A, spatial: tuple[sint, ...], kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...],
    what: str,
) -> None:  # fmt: skip
    """Sees to it that there is a window.

    Raises:
      ValueError: if there is none, since the kernel is larger than the padded input.
    """
    counts = window_counts(spatial, kernel, stride, dilation)
    if any(isinstance(c, int) and c < 1 for c in counts) or 0 in kernel:
        raise ValueError(
            f"{what}: input of shape {x.shape}: kernel {kernel} with dilation {dilation} does not fit the "
            f"padded size {spatial}"
        )


def conv2d(
    x: A,
    weight: A,
    bias: A | None = None,
    *,
    groups: int = 1,
    stride: Numbers = 1,
    dilation: Numbers = 1,
    padding: Any = 0,
) -> A:
    """Windows times kernels, summed (no kernel is turned around), over as many axes as the weight has.

    This tensor has the shape (batch, channels, *spatial), or (channels, *spatial) for one example.

    Args:
      weight: shape (outputs, channels / groups, *kernel).
      bias: shape (outputs,).
      stride: distance of windows, one number or one an axis.
      dilation: distance of the elements of a window.
      padding: zeros around: one number, one an axis, a pair an axis, or (left, right, top, bottom, …); or
        ``"same"`` for a stride of 1, or ``"valid"`` for none.

    Returns:
      shape (batch, outputs, *counts), without the batch if the input has none.

    Raises:
      ValueError: if the shapes do not fit, or no window does.

    Example:
      >>> from tg_frontend import Tensor
      >>> image = Tensor([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]]])
      >>> image.conv2d(Tensor.ones(1, 1, 2, 2))[0, 0]
      Tensor([[12., 16.],
              [24., 28.]])
    """
    return _convolved(x, weight, bias, stride, padding, dilation, groups, "conv2d")


def _convolved(
    x: A, weight: A, bias: A | None, stride: Numbers, padding: Any, dilation: Numbers, groups: int, what: str
) -> A:
    n = weight.ndim - 2
    if n >= 1 and x.ndim == n + 1:
        return _convolved(x.unsqueeze(0), weight, bias, stride, padding, dilation, groups, what).squeeze(0)
    if n < 1 or x.ndim != weight.ndim:
        raise ValueError(f"{what}: input of shape {x.shape} and weight of shape {weight.shape}: axes differ")
    if not isinstance(groups, int) or groups < 1:
        raise ValueError(f"{what}: {groups!r} groups")
    outputs, inputs = weight.shape[0], weight.shape[1]
    if x.shape[1] != groups * inputs or outputs % groups != 0:
        raise ValueError(
            f"{what}: input of shape {x.shape} with weight of shape {weight.shape} and {groups} groups: "
            f"{groups} * {inputs} channels are wanted, and outputs that divide by {groups}"
        )
    steps, gaps = per_axis(stride, n, f"{what}: stride", 1), per_axis(dilation, n, f"{what}: dilation", 1)
    padded, w = promoted(x, weight, what)
    if isinstance(padding, str):
        padding = same_padding(padding, w._ints()[2:], steps, gaps, what)
    padded = padded.pad([(0, 0), (0, 0), *paddings(padding, n, what)])
    kernel = w._ints()[2:]
    check_windows_fit(x, padded.shape[2:], kernel, steps, gaps, what)
    if bias is not None and bias.shape != (outputs,):
        raise ValueError(f"{what}: bias of shape {bias.shape} for {outputs} outputs")
    if 0 in (*padded.shape, *w.shape):
        counts = window_counts(padded.shape[2:], kernel, steps, gaps)
        out = zeros(type(x), padded.shape[0], outputs, *counts, dtype=padded.dtype, device=padded.device)
        out = copied(out, padded, w)
    else:
        out = padded._apply(Correlate(Correlation(groups, steps, gaps)), w)
    return out if bias is None else out + bias.reshape((1, -1, *(1,) * n))


def conv_transpose2d(
    x: A,
    weight: A,
    bias: A | None = None,
    *,
    groups: int = 1,
    stride: Numbers = 1,
    dilation: Numbers = 1,
    padding: Any = 0,
    output_padding: Numbers = 0,
) -> A:
    """The transpose of :meth:`conv2d` as a linear map, as PyTorch has it.

    Args:
      weight: shape (channels, outputs / groups, *kernel).
      bias: shape (outputs,).
      output_padding: zeros added at the end of each axis of the result.

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> image = Tensor([[[[1.0, 2.0]]]])
      >>> image.conv_transpose2d(Tensor.ones(1, 1, 2, 2), stride=2)[0, 0]
      Tensor([[1., 1., 2., 2.],
              [1., 1., 2., 2.]])
    """
    what = "conv_transpose2d"
    return _transposed(x, weight, bias, stride, padding, output_padding, groups, dilation, what)


def _transposed(
    x: A, weight: A, bias: A | None, stride: Numbers, padding: Any, output_padding: Numbers, groups: int,
    dilation: Numbers, what: str,
) -> A:  # fmt: skip
    n = weight.ndim - 2
    if n >= 1 and x.ndim == n + 1:
        one = x.unsqueeze(0)
        return _transposed(one, weight, bias, stride, padding, output_padding, groups, dilation, what).squeeze(0)
    if not isinstance(groups, int) or groups < 1:
        raise ValueError(f"{what}: {groups!r} groups")
    if n < 1 or x.ndim != weight.ndim or x.shape[1] != weight.shape[0] or weight.shape[0] % groups != 0:
        raise ValueError(
            f"{what}: input of shape {x.shape} with weight of shape {weight.shape} and {groups} groups"
        )
    steps, gaps = per_axis(stride, n, f"{what}: stride", 1), per_axis(dilation, n, f"{what}: dilation", 1)
    extra = per_axis(output_padding, n, f"{what}: output_padding", 0)
    around = paddings(padding, n, what)
    rows = zip(x.shape[2:], weight._ints()[2:], steps, gaps, around, extra, strict=True)
    spatial = tuple((i - 1) * s + d * (k - 1) + 1 - sum(p) + e for i, k, s, d, p, e in rows)
    if 0 in (*x.shape[2:], *weight.shape[2:]) or any(isinstance(size, int) and size < 1 for size in spatial):
        raise ValueError(
            f"{what}: input of shape {x.shape}, weight of shape {weight.shape}, stride {steps} and padding {around}: "
            f"the result would have the sizes {spatial}"
        )
    outputs = groups * weight._ints()[1]
    if bias is not None and bias.shape != (outputs,):
        raise ValueError(f"{what}: bias of shape {bias.shape} for {outputs} outputs")
    x, w = promoted(x, weight, what)
    if 0 in (*x.shape, *w.shape):
        out = zeros(type(x), x.shape[0], outputs, *spatial, dtype=x.dtype, device=x.device)
        out = copied(out, x, w)
    else:
        begin = tuple(before for before, _ in around)
        out = x._apply(CorrelateTransposed(Correlation(groups, steps, gaps), spatial, begin), w)
    return out if bias is None else out + bias.reshape((1, -1, *(1,) * n))


def _check_axes(weight: A, n: int, what: str) -> None:
    if weight.ndim != n + 2:
        raise ValueError(f"{what}: weight of shape {weight.shape}; {n + 2} axes are wanted, {n} of them of the kernel")


def conv1d(
    x: A,
    weight: A,
    bias: A | None = None,
    stride: Numbers = 1,
    padding: Any = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> A:
    """:meth:`conv2d` over one axis, with its arguments in PyTorch's order.

    Args:
      weight: shape (outputs, channels / groups, *kernel).
      bias: shape (outputs,).

    Raises:
      ValueError: if the shapes do not fit, or no window does.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 2.0, 3.0]]).conv1d(Tensor.ones(1, 1, 2))[0]
      Tensor([3., 5.])
    """
    _check_axes(weight, 1, "conv1d")
    return _convolved(x, weight, bias, stride, padding, dilation, groups, "conv1d")


def conv_transpose1d(
    x: A,
    weight: A,
    bias: A | None = None,
    stride: Numbers = 1,
    padding: Any = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
) -> A:
    """:meth:`conv_transpose2d` over one axis, with its arguments in PyTorch's order.

    Args:
      weight: shape (channels, outputs / groups, *kernel).
      bias: shape (outputs,).
      output_padding: zeros added at the end of each axis of the result.

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 2.0, 3.0]]).conv_transpose1d(Tensor.ones(1, 1, 2))[0]
      Tensor([1., 3., 5., 3.])
    """
    what = "conv_transpose1d"
    _check_axes(weight, 1, what)
    return _transposed(x, weight, bias, stride, padding, output_padding, groups, dilation, what)


def conv3d(
    x: A,
    weight: A,
    bias: A | None = None,
    stride: Numbers = 1,
    padding: Any = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> A:
    """:meth:`conv2d` over three axes, with its arguments in PyTorch's order.

    Args:
      weight: shape (outputs, channels / groups, *kernel).
      bias: shape (outputs,).

    Raises:
      ValueError: if the shapes do not fit, or no window does.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0, 3.0]).reshape(1, 1, 1, 3).conv3d(Tensor.ones(1, 1, 1, 1, 2)).flatten()
      Tensor([3., 5.])
    """
    _check_axes(weight, 3, "conv3d")
    return _convolved(x, weight, bias, stride, padding, dilation, groups, "conv3d")


def conv_transpose3d(
    x: A,
    weight: A,
    bias: A | None = None,
    stride: Numbers = 1,
    padding: Any = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
) -> A:
    """:meth:`conv_transpose2d` over three axes, with its arguments in PyTorch's order.

    Args:
      weight: shape (channels, outputs / groups, *kernel).
      bias: shape (outputs,).
      output_padding: zeros added at the end of each axis of the result.

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0, 3.0]).reshape(1, 1, 1, 3).conv_transpose3d(Tensor.ones(1, 1, 1, 1, 2)).flatten()
      Tensor([1., 3., 5., 3.])
    """
    what = "conv_transpose3d"
    _check_axes(weight, 3, what)
    return _transposed(x, weight, bias, stride, padding, output_padding, groups, dilation, what)
