"""Maxima and sums of windows, whose gradients ask of each place which windows cover it.

Differentiated as a reduction of a view, a window would hand its gradient to each of its elements: an array as large as
all windows side by side, which is then added up where they overlap. Asked from the other side, a place of the input
reads the few numbers of the windows around it, and is written once. Windows that are disjoint do hand it on: nothing
has to be added up.
"""

from __future__ import annotations

from tg_dtype import ConstType, dtypes
from tg_lazy import LazyBuffer, Ops
from tg_shape import ceildiv, sint

from ..autograd.functions import Function, Grads, splat, total
from .windows import Ints, disjoint, framed, interleave, joined, spread, windows

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

    __slots__ = ("_apart", "_stride", "_turns", "dilation", "disjoint", "kernel", "padding", "stride")

    def __init__(self, kernel: Ints, stride: Ints, dilation: Ints, padding: Sequence[tuple[sint, sint]]) -> None:
        self.kernel, self.stride, self.dilation, self.padding = kernel, stride, dilation, tuple(padding)
        self.disjoint = disjoint(kernel, stride, dilation)
        rows = tuple(zip(kernel, stride, dilation, strict=True))
        self._apart = tuple(s if d > 1 and k > 1 else 1 for k, s, d in rows)
        self._stride = tuple(s // apart for s, apart in zip(stride, self._apart, strict=True))
        self._turns = tuple(-(-k // s) for k, s in zip(kernel, self._stride, strict=True))

    def of(self, x: LazyBuffer, value: ConstType) -> LazyBuffer:
        """The windows, padded with a value: shape (…, *spatial) gives (…, *counts, *kernel)."""
        if self.padded:
            inside = self._inside(x)
            x = x.pad(self._around(x))
            x = x if value == 0 else inside.alu(Ops.WHERE, x, splat(x, value))
        return windows(x, self.kernel, self.stride, self.dilation)

    @property
    def padded(self) -> bool:
        """Whether there is any padding."""
        return any(amount != (0, 0) for amount in self.padding)

    def real(self, x: LazyBuffer) -> LazyBuffer:
        """Which elements of the windows in :meth:`of` are no padding."""
        return windows(self._inside(x), self.kernel, self.stride, self.dilation)

    def _around(self, x: LazyBuffer) -> tuple[tuple[sint, sint], ...]:
        return (*((0, 0) for _ in x.shape[: -len(self.kernel)]), *self.padding)

    def _inside(self, x: LazyBuffer) -> LazyBuffer:
        return splat(x, True, dtypes.bool).pad(self._around(x))

    def handed(self, x: LazyBuffer, spatial: tuple[sint, ...]) -> LazyBuffer:
        """The elements of disjoint windows at their places: the opposite of :meth:`of`, zero where no window is."""
        whole = tuple(before + size + after for size, (before, after) in zip(spatial, self.padding, strict=True))
        x = joined(x, whole, self.stride, self.dilation)
        return framed(x, tuple((-before, -after) for before, after in self.padding))

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
        if self.windows.disjoint:
            single = tuple(1 for _ in self.spatial)
            each = grad.reshape((*grad.shape, *single)).expand((*grad.shape, *self.windows.kernel))
            return (self.windows.handed(each, self.spatial),)
        out = total(self.windows.over(grad, self.spatial), self.windows.axes(ndim))
        return (out.reshape(out.shape[:ndim]),)


class WindowMax(Function):
    """The maximum of each window of the last axes, in which padding never wins.

    Ties share the gradient evenly, as those of ``Max``. A window whose maximum is NaN has none to give, either.
    """

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
        spatial = x.shape[-len(axes) :]
        seen = self._seen(x)
        hit = seen.alu(Ops.CMPEQ, self.out.reshape((*self.out.shape, *single)).expand(seen.shape))
        if self.windows.padded:  # which is as low as -inf
            hit = hit.alu(Ops.AND, self.windows.real(x))
        count = total(hit.cast(dtypes.float32 if grad.dtype.itemsize < 4 else grad.dtype), axes).cast(grad.dtype)
        count = count.alu(Ops.MAX, splat(count, 1))  # of NaN, and of padding alone, there is none
        share = grad.alu(Ops.FDIV, count.reshape(grad.shape))
        if self.windows.disjoint:
            share = share.reshape((*share.shape, *single)).expand(seen.shape)
            return (self.windows.handed(hit.alu(Ops.WHERE, share, splat(share, 0)), spatial),)
        most, share = self.windows.over(self.out, spatial), self.windows.over(share, spatial)
        hit = x.reshape((*x.shape, *single)).expand(most.shape).alu(Ops.CMPEQ, most)
        out = total(hit.alu(Ops.WHERE, share, splat(share, 0)), axes)
        return (out.reshape(x.shape),)
