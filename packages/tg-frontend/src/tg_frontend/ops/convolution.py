"""Convolution and pooling over any number of spatial axes."""

from __future__ import annotations

import math

from tg_dtype import dtypes
from tg_shape import sint

from ..array.ingest import value_of
from ..array.windows import Correlate, spread, window_counts
from ..autograd.functions import Max
from .linear import Linear
from .resampling import resampled, sizes_and_ratios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

    Numbers = int | Sequence[int]


def per_axis(value: Any, n: int, what: str, least: int) -> tuple[int, ...]:
    """One integer an axis, from one for all or one each.

    Raises:
      ValueError: there are not ``n``, or one is below ``least``.
    """
    numbers = (value,) * n if isinstance(value, int) else tuple(value)
    if len(numbers) != n or any(not isinstance(v, int) or v < least for v in numbers):
        raise ValueError(f"{what}: {value!r}: one number, {least} or more, or {n} of them")
    return numbers


def same_padding(padding: str, kernel: tuple[int, ...], stride: Any, dilation: Any, what: str) -> list[int]:
    """The amounts (left, right, top, bottom, …) that PyTorch's ``"same"`` and ``"valid"`` stand for.

    Raises:
      ValueError: it is neither; or ``"same"`` for a stride other than 1.
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


class Convolution(Linear):
    """Convolutions and pools. Shapes are (batch, channels, *spatial)."""

    __slots__ = ()

    def _paddings(self, padding: Any, n: int, what: str) -> list[tuple[int, int]]:
        """(before, after) for each spatial axis, from PyTorch's forms: p, (p, …), or (left, right, top, bottom, …)."""
        if isinstance(padding, int):
            return [(padding, padding)] * n
        amounts = tuple(padding)
        if len(amounts) == n and all(isinstance(p, int) for p in amounts):
            return [(p, p) for p in amounts]
        if len(amounts) == n and all(isinstance(p, (tuple, list)) and len(p) == 2 for p in amounts):
            return [(p[0], p[1]) for p in amounts]
        if len(amounts) == 2 * n and all(isinstance(p, int) for p in amounts):
            return [(amounts[i], amounts[i + 1]) for i in range(0, 2 * n, 2)][::-1]
        raise ValueError(f"{what}: padding {padding!r} for {n} spatial axes")

    def conv2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: Numbers = 1,
        dilation: Numbers = 1,
        padding: Any = 0,
    ) -> Self:
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
          ValueError: the shapes do not fit, or no window does.
        """
        what = "conv2d"
        n = weight.ndim - 2
        if n >= 1 and self.ndim == n + 1:
            return self.unsqueeze(0).conv2d(weight, bias, groups, stride, dilation, padding).squeeze(0)
        if n < 1 or self.ndim != weight.ndim:
            raise ValueError(f"{what}: input of shape {self.shape} and weight of shape {weight.shape}: axes differ")
        if not isinstance(groups, int) or groups < 1:
            raise ValueError(f"{what}: {groups!r} groups")
        outputs, inputs = weight.shape[0], weight.shape[1]
        if self.shape[1] != groups * inputs or outputs % groups != 0:
            raise ValueError(
                f"{what}: input of shape {self.shape} with weight of shape {weight.shape} and {groups} groups: "
                f"{groups} * {inputs} channels are wanted, and outputs that divide by {groups}"
            )
        steps, gaps = per_axis(stride, n, f"{what}: stride", 1), per_axis(dilation, n, f"{what}: dilation", 1)
        x, w = self._operands(weight, what)
        if isinstance(padding, str):
            padding = same_padding(padding, w._ints()[2:], steps, gaps, what)
        x = x.pad([(0, 0), (0, 0), *self._paddings(padding, n, what)])
        kernel = w._ints()[2:]
        self._windows_fit(x.shape[2:], kernel, steps, gaps, what)
        if bias is not None and bias.shape != (outputs,):
            raise ValueError(f"{what}: bias of shape {bias.shape} for {outputs} outputs")
        if 0 in (*x.shape, *w.shape):
            counts = window_counts(x.shape[2:], kernel, steps, gaps)
            out = type(self).zeros(x.shape[0], outputs, *counts, dtype=x.dtype, device=x.device)
        else:
            out = x._apply(Correlate(groups, steps, gaps), w)
        return out if bias is None else out + bias.reshape((1, -1, *(1,) * n))

    def _windows_fit(
        self, spatial: tuple[sint, ...], kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...],
        what: str,
    ) -> None:  # fmt: skip
        counts = window_counts(spatial, kernel, stride, dilation)
        if any(isinstance(c, int) and c < 1 for c in counts) or 0 in kernel:
            raise ValueError(
                f"{what}: input of shape {self.shape}: kernel {kernel} with dilation {dilation} does not fit the "
                f"padded size {spatial}"
            )

    def conv_transpose2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: Numbers = 1,
        dilation: Numbers = 1,
        padding: Any = 0,
        output_padding: Numbers = 0,
    ) -> Self:
        """The transpose of :meth:`conv2d` as a linear map, as PyTorch has it.

        Args:
          weight: shape (channels, outputs / groups, *kernel).
          bias: shape (outputs,).
          output_padding: zeros added at the end of each axis of the result.

        Raises:
          ValueError: the shapes do not fit.
        """
        what = "conv_transpose2d"
        n = weight.ndim - 2
        if n >= 1 and self.ndim == n + 1:
            one = self.unsqueeze(0)
            return one.conv_transpose2d(weight, bias, groups, stride, dilation, padding, output_padding).squeeze(0)
        if n < 1 or self.ndim != weight.ndim or self.shape[1] != weight.shape[0] or weight.shape[0] % groups != 0:
            raise ValueError(
                f"{what}: input of shape {self.shape} with weight of shape {weight.shape} and {groups} groups"
            )
        steps, gaps = per_axis(stride, n, f"{what}: stride", 1), per_axis(dilation, n, f"{what}: dilation", 1)
        extra = per_axis(output_padding, n, f"{what}: output_padding", 0)
        kernel = weight._ints()[2:]
        w = weight.unflatten(0, (groups, -1)).transpose(1, 2).flip(*range(3, 3 + n)).flatten(0, 1)
        around = [
            (d * (k - 1) - before, d * (k - 1) - after + e)
            for k, d, (before, after), e in zip(kernel, gaps, self._paddings(padding, n, what), extra, strict=True)
        ]
        return spread(self, steps).conv2d(w, bias, groups, 1, gaps, around)

    # *** pools ***

    def _pool_arguments(
        self, kernel_size: Numbers, stride: Any, dilation: Numbers, padding: Any, ceil_mode: bool, what: str
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], list[tuple[int, int]], list[tuple[int, int]]]:
        n = 2 if isinstance(kernel_size, int) else len(kernel_size)
        if self.ndim < n:
            raise ValueError(f"{what}: input of shape {self.shape} for a kernel of {n} axes")
        kernel = per_axis(kernel_size, n, f"{what}: kernel_size", 1)
        steps = kernel if stride is None else per_axis(stride, n, f"{what}: stride", 1)
        gaps = per_axis(dilation, n, f"{what}: dilation", 1)
        pads = self._paddings(padding, n, what)
        whole = list(pads)
        if ceil_mode:
            for i, size in enumerate(self._ints()[-n:]):
                before, after = pads[i]
                reach = gaps[i] * (kernel[i] - 1) + 1
                count = -(-(size + before + after - reach) // steps[i]) + 1
                if (count - 1) * steps[i] >= size + before:  # a window may not lie in the padding alone
                    count -= 1
                whole[i] = (before, max(after, (count - 1) * steps[i] + reach - size - before))
        spatial = tuple(d + b + a for d, (b, a) in zip(self.shape[-n:], whole, strict=True))
        self._windows_fit(spatial, kernel, steps, gaps, what)
        return kernel, steps, gaps, pads, whole

    def max_pool2d(
        self,
        kernel_size: Numbers = (2, 2),
        stride: Numbers | None = None,
        dilation: Numbers = 1,
        padding: Any = 0,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The maximum of each window of the last axes. Padding never wins; ties share the gradient evenly.

        Args:
          kernel_size: one number for each of the last axes (two, if it is one number).
          stride: distance of windows; the kernel size if not given.
          ceil_mode: windows may hang over at the end.
          return_indices: also tell where each maximum is (the first, of several; int32), counted through the last axes.

        Returns:
          The maxima; with ``return_indices`` they and the positions.

        Raises:
          ValueError: no window fits.
        """
        arguments = self._pool_arguments(kernel_size, stride, dilation, padding, ceil_mode, "max_pool2d")
        kernel, steps, gaps, _, pads = arguments
        n = len(kernel)
        x = self.pad([*((0, 0),) * (self.ndim - n), *pads], value=dtypes.min(self.dtype))
        x = x._windows(kernel, steps, gaps)
        axes = tuple(range(self.ndim, self.ndim + n))
        out = x._apply(Max(axes))
        if not return_indices:
            return out._kept(axes, False)
        spatial = tuple(value_of(dim, self.shape) for dim in self.shape[-n:])
        size = math.prod(spatial)
        place = self._iota(size, dtypes.int32, self.device).reshape((*(1,) * (self.ndim - n), *spatial))
        place = place.pad([*((0, 0),) * (self.ndim - n), *pads], value=size)._windows(kernel, steps, gaps)
        best = out.detach()
        hit = x.detach().eq(best) | best.isnan()
        return out._kept(axes, False), hit.where(place, size).min(axes)

    def avg_pool2d(
        self,
        kernel_size: Numbers = (2, 2),
        stride: Numbers | None = None,
        dilation: Numbers = 1,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Self:
        """The mean of each window of the last axes.

        Args:
          kernel_size: one number for each of the last axes (two, if it is one number).
          stride: distance of windows; the kernel size if not given.
          ceil_mode: windows may hang over at the end; what hangs over is not counted.
          count_include_pad: whether padding is counted.

        Raises:
          ValueError: no window fits.
        """
        arguments = self._pool_arguments(kernel_size, stride, dilation, padding, ceil_mode, "avg_pool2d")
        kernel, steps, gaps, pads, whole = arguments
        n = len(kernel)
        lead = [(0, 0)] * (self.ndim - n)
        axes = tuple(range(self.ndim, self.ndim + n))
        x = self._floating()
        total = x.pad([*lead, *whole])._windows(kernel, steps, gaps).sum(axes)
        if whole == pads and (count_include_pad or all(p == (0, 0) for p in pads)):
            return total / math.prod(kernel)
        ones = x.detach().ones_like()
        if count_include_pad:
            ones = ones.pad([*lead, *pads], value=1)
            ones = ones.pad([*lead, *((0, w[1] - p[1]) for w, p in zip(whole, pads, strict=True))])
        else:
            ones = ones.pad([*lead, *whole])
        return total / ones._windows(kernel, steps, gaps).sum(axes)

    def max_unpool2d(
        self,
        indices: Self,
        kernel_size: Numbers = (2, 2),
        stride: Numbers | None = None,
        dilation: Numbers = 1,
        padding: Any = 0,
        output_size: Sequence[int] | None = None,
    ) -> Self:
        """Puts maxima back where :meth:`max_pool2d` found them, zeros elsewhere; of several for one place the last.

        Args:
          indices: the positions, from ``max_pool2d(..., return_indices=True)``.
          output_size: sizes of the last axes of the result; those that fit the windows if not given.

        Raises:
          ValueError: the shapes differ.
          TypeError: the positions are no integers.
        """
        what = "max_unpool2d"
        n = 2 if isinstance(kernel_size, int) else len(kernel_size)
        if indices.shape != self.shape or self.ndim < n:
            raise ValueError(f"{what}: maxima of shape {self.shape} with indices of shape {indices.shape}")
        if not dtypes.is_int(indices.dtype):
            raise TypeError(f"{what}: indices are integers, got a tensor of {indices.dtype.name}")
        kernel = per_axis(kernel_size, n, f"{what}: kernel_size", 1)
        steps = kernel if stride is None else per_axis(stride, n, f"{what}: stride", 1)
        gaps = per_axis(dilation, n, f"{what}: dilation", 1)
        *lead, counts = (*self.shape[:-n], [value_of(dim, self.shape) for dim in self.shape[-n:]])
        if output_size is None:
            spatial = tuple(
                (c - 1) * s + d * (k - 1) + 1 - before - after
                for c, s, d, k, (before, after) in zip(
                    counts, steps, gaps, kernel, self._paddings(padding, n, what), strict=True
                )
            )
        else:
            spatial = tuple(output_size)[-n:]
        where_to = indices.detach().reshape((*lead, -1))
        flat = type(self).zeros(*lead, math.prod(spatial), dtype=self.dtype, device=self.device)
        return flat.scatter(-1, where_to, self.reshape((*lead, -1))).reshape((*lead, *spatial))

    def interpolate(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "linear",
        align_corners: bool | None = None,
    ) -> Self:
        """The last axes resampled to ``size``, or by a factor. Integers are interpolated as floats and rounded.

        Args:
          size: the new sizes of the last axes; one number for all but the first two.
          scale_factor: or by how much they grow, one number or one an axis; sizes are rounded down.
          mode: ``"nearest"`` (also ``"nearest-exact"``), ``"linear"`` along every resampled axis (also ``"bilinear"``
            of two and ``"trilinear"`` of three), or ``"bicubic"``, as PyTorch has them. PyTorch's default is nearest.
          align_corners: of all but nearest: whether the first and last elements keep their places.

        Raises:
          ValueError: there is no such mode, not one of ``size`` and ``scale_factor``, or they do not fit the shape.

        Example:
            >>> from tg_frontend import Tensor
            >>> Tensor([[[1.0, 3.0]]], device="NUMPY").interpolate(scale_factor=2).tolist()
            [[[1.0, 1.5, 2.5, 3.0]]]
        """
        sizes, ratios = sizes_and_ratios(self.shape, size, scale_factor, mode)
        if align_corners is not None and mode.startswith("nearest") and align_corners:
            raise ValueError(f"interpolate: align_corners is not for mode {mode!r}")
        out = self if mode.startswith("nearest") else self._floating()
        out = out if mode.startswith("nearest") or out.dtype.itemsize >= 4 else out.cast(dtypes.float32)
        for axis, (new, ratio) in enumerate(zip(sizes, ratios, strict=True), start=self.ndim - len(sizes)):
            out = resampled(out, axis, new, ratio, mode, bool(align_corners))
        if out is self:
            return self._copied()
        if out.dtype is self.dtype:
            return out
        return out.cast(self.dtype) if self.dtype.kind == "float" else out.round().cast(self.dtype)
