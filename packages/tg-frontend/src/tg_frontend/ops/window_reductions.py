"""Maxima and sums of windows, whose gradients ask of each place which windows cover it.

Differentiated as a reduction of a view, a window would hand its gradient to each of its elements: an array as large as
all windows side by side, which is then added up where they overlap. Asked from the other side, a place of the input
reads the few numbers of the windows around it, and is written once.
"""

from __future__ import annotations

from tg_dtype import ConstType, dtypes
from tg_lazy import LazyBuffer, Ops
from tg_shape import ceildiv, sint

from ..autograd.functions import Function, Grads, splat, total
from .windows import Ints, framed, interleave, spread, windows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class WindowShape:
    """What windows of the last axes of an input look like.

    Args:
      kernel: elements of a window along each axis.
      stride: distance of neighbouring windows.
      dilation: distance of neighbouring elements of a window.
      padding: what is added before and after each axis.
    """

    __slots__ = ("_apart", "_stride", "_turns", "dilation", "kernel", "padding", "stride")

    def __init__(self, kernel: Ints, stride: Ints, dilation: Ints, padding: Sequence[tuple[sint, sint]]) -> None:
        self.kernel, self.stride, self.dilation, self.padding = kernel, stride, dilation, tuple(padding)
        rows = tuple(zip(kernel, stride, dilation, strict=True))
        self._apart = tuple(s if d > 1 and k > 1 else 1 for k, s, d in rows)
        self._stride = tuple(s // apart for s, apart in zip(stride, self._apart, strict=True))
        self._turns = tuple(-(-k // s) for k, s in zip(kernel, self._stride, strict=True))

    def of(self, x: LazyBuffer, value: ConstType) -> LazyBuffer:
        """The windows, padded with a value: shape (…, *spatial) gives (…, *counts, *kernel)."""
        if any(amount != (0, 0) for amount in self.padding):
            around = (*((0, 0) for _ in x.shape[: -len(self.kernel)]), *self.padding)
            inside = splat(x, True, dtypes.bool).pad(around)
            x = x.pad(around)
            x = x if value == 0 else inside.alu(Ops.WHERE, x, splat(x, value))
        return windows(x, self.kernel, self.stride, self.dilation)

    def axes(self, ndim: int) -> tuple[int, ...]:
        """The axes of the elements in :meth:`of`, and of the turns in :meth:`over`, for an input of so many axes."""
        return tuple(range(ndim, ndim + len(self.kernel)))

    def over(self, out: LazyBuffer, spatial: tuple[sint, ...]) -> LazyBuffer:
        """The numbers of the windows that cover a place: shape (…, *counts) gives (…, *spatial, *turns).

        Along an axis, place ``s * q + u`` with ``u < s`` is element ``s * t + u`` of window ``q - d * t``, for each
        turn ``t``; s is the stride and d the dilation. With both above 1 such an element is at ``s * q + d * u``, in no
        order: windows of stride 1 are taken then, all but those in steps of s without a value.

        Args:
          out: a number a window.
          spatial: sizes of the input's last axes.

        Returns:
          The numbers, which are 0 where there is no such window, or it ends before this place.
        """
        n = len(spatial)
        lead, ones = out.shape[:-n], tuple(1 for _ in spatial)
        out = spread(out, self._apart, tuple((0, 0) for _ in spatial))
        first = tuple(before for before, _ in self.padding)
        steps = tuple(
            ceildiv(begin + size, s) for begin, size, s in zip(first, spatial, self._stride, strict=True))
        reach = tuple(d * (t - 1) for d, t in zip(self.dilation, self._turns, strict=True))
        beyond = tuple(q - count for q, count in zip(steps, out.shape[-n:], strict=True))
        out = framed(out, tuple(zip(reach, beyond, strict=True)))
        out = windows(out, self._turns, ones, self.dilation).flip(self.axes(len(lead) + n))
        out = out.reshape((*lead, *interleave(steps, ones), *self._turns))
        out = out.expand((*lead, *interleave(steps, self._stride), *self._turns))
        out = out.reshape((*lead, *(q * s for q, s in zip(steps, self._stride, strict=True)), *self._turns))
        inside = tuple((begin, begin + size) for begin, size in zip(first, spatial, strict=True))
        out = out.shrink((*((0, dim) for dim in lead), *inside, *((0, t) for t in self._turns)))
        for axis, (k, s, t) in enumerate(zip(self.kernel, self._stride, self._turns, strict=True)):
            if k != s * t:  # of the last turn some elements are none
                some = out.const(True, dtypes.bool, (k,), out.device).pad(((0, s * t - k),)).reshape((1, t, s))
                some = some.permute((0, 2, 1)).expand((steps[axis], s, t)).reshape((steps[axis] * s, t))
                some = some.shrink((inside[axis], (0, t)))
                there: list[sint] = [1 for _ in out.shape]
                there[len(lead) + axis], there[len(lead) + n + axis] = spatial[axis], t
                out = some.reshape(tuple(there)).expand(out.shape).alu(Ops.WHERE, out, splat(out, 0))
        return out


class WindowSum(Function):
    """The sum of each window of the last axes, padded with zeros."""

    __slots__ = ("spatial", "windows")

    def __init__(self, windows: WindowShape) -> None:
        self.windows = windows

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        ndim = len(x.shape)
        self.spatial = x.shape[-len(self.windows.kernel) :]
        out = total(self.windows.of(x, 0), self.windows.axes(ndim))
        return out.reshape(out.shape[:ndim])

    def backward(self, grad: LazyBuffer) -> Grads:
        ndim = len(grad.shape)
        out = total(self.windows.over(grad, self.spatial), self.windows.axes(ndim))
        return (out.reshape(out.shape[:ndim]),)


class WindowMax(Function):
    """The maximum of each window of the last axes, in which padding never wins; ties share the gradient evenly."""

    __slots__ = ("out", "windows", "x")

    def __init__(self, windows: WindowShape) -> None:
        self.windows = windows

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        ndim = len(x.shape)
        out = self._seen(x).reduce(Ops.MAX, self.windows.axes(ndim))
        self.x, self.out = x, out.reshape(out.shape[:ndim])
        return self.out

    def _seen(self, x: LazyBuffer) -> LazyBuffer:
        return self.windows.of(x, dtypes.min(x.dtype))

    def backward(self, grad: LazyBuffer) -> Grads:
        axes, x = self.windows.axes(len(grad.shape)), self.x
        single = tuple(1 for _ in axes)
        seen = self._seen(x)
        hit = seen.alu(Ops.CMPEQ, self.out.reshape((*self.out.shape, *single)).expand(seen.shape))
        count = total(hit.cast(dtypes.float32 if grad.dtype.itemsize < 4 else grad.dtype), axes).cast(grad.dtype)
        share = grad.alu(Ops.FDIV, count.reshape(grad.shape))
        spatial = x.shape[-len(axes) :]
        most, share = self.windows.over(self.out, spatial), self.windows.over(share, spatial)
        hit = x.reshape((*x.shape, *single)).expand(most.shape).alu(Ops.CMPEQ, most)
        out = total(hit.alu(Ops.WHERE, share, splat(share, 0)), axes)
        return (out.reshape(x.shape),)
