"""Sliding windows, and correlation (the convolution of neural networks) with its two gradients.

All spatial axes are handled at once with the ordinary movement operations, so that a window is a view and costs no
memory. The same code serves tensors, which then differentiate through it, and ``LazyBuffer``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tg_dtype import sum_acc_dtype
from tg_lazy import LazyBuffer, Ops
from tg_shape import ceildiv, sint, smax

from ..array.array import A
from ..autograd.functions import Function, Grads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Protocol, Self, TypeVar

    class Movable(Protocol):
        """What has a shape and the movement operations."""

        @property
        def shape(self) -> tuple[sint, ...]: ...
        def reshape(self, shape: tuple[sint, ...], /) -> Self: ...
        def expand(self, shape: tuple[sint, ...], /) -> Self: ...
        def permute(self, order: tuple[int, ...], /) -> Self: ...
        def pad(self, amounts: tuple[tuple[sint, sint], ...], /) -> Self: ...
        def shrink(self, bounds: tuple[tuple[sint, sint], ...], /) -> Self: ...

    M = TypeVar("M", bound=Movable)
    T = TypeVar("T")

Ints = tuple[int, ...]


def _keep(shape: tuple[sint, ...]) -> tuple[tuple[sint, sint], ...]:
    return tuple((0, dim) for dim in shape)


def interleave(*columns: tuple[T, ...]) -> tuple[T, ...]:
    """The first of each, then the second of each, and so on."""
    return tuple(dim for row in zip(*columns, strict=True) for dim in row)


def window_counts(spatial: tuple[sint, ...], kernel: Ints, stride: Ints, dilation: Ints) -> tuple[sint, ...]:
    """How many windows fit along each axis; below 1 if none does."""
    rows = zip(spatial, kernel, stride, dilation, strict=True)
    return tuple((i - d * (k - 1) - 1) // s + 1 for i, k, s, d in rows)


def windows(x: M, kernel: Ints, stride: Ints, dilation: Ints) -> M:
    """The windows of the last axes: shape (…, *spatial) gives (…, *counts, *kernel).

    ``counts`` must be at least 1 (:func:`window_counts`).
    """
    n = len(kernel)
    lead, spatial = x.shape[:-n], x.shape[-n:]
    counts = window_counts(spatial, kernel, stride, dilation)
    still = _keep(lead)
    axes = range(len(lead))
    if disjoint(kernel, stride, dilation):  # a plain cut into rows of one stride each
        x = framed(x, tuple((0, c * s - i) for c, s, i in zip(counts, stride, spatial, strict=True)))
        x = x.reshape((*lead, *interleave(counts, stride)))
        beyond = tuple(k * d - s for k, s, d in zip(kernel, stride, dilation, strict=True))
        x = framed(x, tuple((0, amount) for amount in interleave((0,) * n, beyond)))
        x = x.reshape((*lead, *interleave(counts, kernel, dilation)))
        x = x.shrink((*still, *_keep(interleave(counts, kernel, (1,) * n))))
        x = x.reshape((*lead, *interleave(counts, kernel)))
        return x.permute((*axes, *(len(lead) + 2 * i for i in range(n)), *(len(lead) + 2 * i + 1 for i in range(n))))
    # Rows of length w*i + d, cut out of repeated copies, start d further with every row.
    reach = tuple(c * s for c, s in zip(counts, stride, strict=True))
    rows = tuple(
        smax(1, ceildiv(r - d, i)) * i + d for r, d, i in zip(reach, dilation, spatial, strict=True)
    )
    copies = tuple(ceildiv(k * row, i) for k, row, i in zip(kernel, rows, spatial, strict=True))
    ones = (1,) * n
    x = x.reshape((*lead, *interleave(ones, spatial))).expand((*lead, *interleave(copies, spatial)))
    x = x.reshape((*lead, *(c * i for c, i in zip(copies, spatial, strict=True))))
    x = x.shrink((*still, *((0, k * row) for k, row in zip(kernel, rows, strict=True))))
    x = x.reshape((*lead, *interleave(kernel, rows)))
    x = x.shrink((*still, *_keep(interleave(kernel, reach))))
    x = x.reshape((*lead, *interleave(kernel, counts, stride)))
    x = x.shrink((*still, *_keep(interleave(kernel, counts, ones))))
    x = x.reshape((*lead, *interleave(kernel, counts)))
    return x.permute((*axes, *(len(lead) + 2 * i + 1 for i in range(n)), *(len(lead) + 2 * i for i in range(n))))


def disjoint(kernel: Ints, stride: Ints, dilation: Ints) -> bool:
    """Whether each window ends before the next one begins, along every axis."""
    return all(d * (k - 1) < s for k, s, d in zip(kernel, stride, dilation, strict=True))


def joined(x: M, spatial: tuple[sint, ...], stride: Ints, dilation: Ints) -> M:
    """The opposite of :func:`windows` that are disjoint: shape (…, *counts, *kernel) gives (…, *spatial).

    What no window holds is zero.
    """
    n = len(stride)
    lead, counts, kernel = x.shape[: -2 * n], x.shape[-2 * n : -n], x.shape[-n:]
    first, ones = len(lead), (1,) * n
    x = x.permute((*range(first), *interleave(tuple(range(first, first + n)), tuple(range(first + n, first + 2 * n)))))
    x = x.reshape((*lead, *interleave(counts, kernel, ones)))
    none = ((0, 0),) * n
    x = framed(x, interleave(none, none, tuple((0, d - 1) for d in dilation)))
    x = x.reshape((*lead, *interleave(counts, tuple(k * d for k, d in zip(kernel, dilation, strict=True)))))
    x = framed(x, interleave(none, tuple((0, s - k * d) for k, s, d in zip(kernel, stride, dilation, strict=True))))
    x = x.reshape((*lead, *(c * s for c, s in zip(counts, stride, strict=True))))
    return framed(x, tuple((0, i - c * s) for i, c, s in zip(spatial, counts, stride, strict=True)))


def overlapped(
    x: LazyBuffer, spatial: tuple[sint, ...], begin: Ints, stride: Ints, dilation: Ints
) -> LazyBuffer:
    """The sum of windows at their places: shape (…, *counts, *kernel) gives (…, *spatial), one axis after the other.

    What is wanted begins ``begin`` elements after the first window does, along each axis.

    Element ``j`` of a window is ``j * dilation // stride`` strides from where it begins. All elements that are as many
    strides away lie between two others of their row, so that they are one summand.
    """
    n, size = len(stride), len(x.shape)
    first = size - 2 * n
    pairs = interleave(tuple(range(first + n, size)), tuple(range(first, first + n)))
    x = x.permute((*range(first), *pairs))
    for at, (length, skipped, s, d) in enumerate(zip(spatial, begin, stride, dilation, strict=True), first):
        kernel, count = int(x.shape[at]), x.shape[at + 1]
        lead, rest = x.shape[:at], x.shape[at + 2 :]
        order = (*range(at), at + 1, at, *range(at + 2, len(x.shape)))
        still, none = _keep(rest), ((0, 0),) * (len(rest) + 1)
        strides: dict[int, list[int]] = {}
        for j in range(kernel):
            strides.setdefault(j * d // s, []).append(j)
        found: LazyBuffer | None = None
        for q, js in strides.items():
            offset, many = js[0] * d - q * s, len(js)
            part = x.shrink((*_keep(lead), (js[0], js[-1] + 1), (0, count), *still)).permute(order)
            part = framed(part.reshape((*lead, count, many, 1, *rest)), ((0, d - 1), *none[1:]))
            part = framed(part.reshape((*lead, count, many * d, *rest)), ((offset, s - offset - many * d), *none[1:]))
            part = part.reshape((*lead, count * s, *rest))
            part = framed(part, ((q * s - skipped, length + skipped - (count + q) * s), *none[1:]))
            found = part if found is None else found.alu(Ops.ADD, part)
        assert found is not None
        x = found if at == first + n - 1 or len(strides) == 1 else found.contiguous()
    return x


class Windows(Function):
    """The windows of the last axes; its gradient is added where they overlap."""

    __slots__ = ("dilation", "kernel", "spatial", "stride")

    def __init__(self, kernel: Ints, stride: Ints, dilation: Ints) -> None:
        self.kernel, self.stride, self.dilation = kernel, stride, dilation

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.spatial = x.shape[-len(self.kernel) :]
        return windows(x, self.kernel, self.stride, self.dilation)

    def backward(self, grad: LazyBuffer) -> Grads:
        wide, begin = grad.cast(sum_acc_dtype(grad.dtype)), (0,) * len(self.kernel)
        return (overlapped(wide, self.spatial, begin, self.stride, self.dilation).cast(grad.dtype),)


class WindowsAdded(Function):
    """Windows at their places, added where they overlap; its gradient is the windows of one."""

    __slots__ = ("begin", "dilation", "kernel", "reach", "spatial", "stride")

    def __init__(self, spatial: tuple[sint, ...], begin: Ints, stride: Ints, dilation: Ints) -> None:
        self.spatial, self.begin, self.stride, self.dilation = spatial, begin, stride, dilation

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        n = len(self.stride)
        counts, self.kernel = x.shape[-2 * n : -n], _ints(x.shape[-n:])
        rows = zip(counts, self.stride, self.kernel, self.dilation, strict=True)
        self.reach = tuple((count - 1) * s + (k - 1) * d + 1 for count, s, k, d in rows)
        wide = x.cast(sum_acc_dtype(x.dtype))
        return overlapped(wide, self.spatial, self.begin, self.stride, self.dilation).cast(x.dtype)

    def backward(self, grad: LazyBuffer) -> Grads:
        after = (r - b - i for r, b, i in zip(self.reach, self.begin, self.spatial, strict=True))
        whole = framed(grad, tuple(zip(self.begin, after, strict=True)))
        return (windows(whole, self.kernel, self.stride, self.dilation),)


def framed(x: M, amounts: Sequence[tuple[sint, sint]]) -> M:
    """Zeros added before and after each of the last axes; elements taken away where an amount is negative."""
    lead, spatial = x.shape[: -len(amounts)], x.shape[-len(amounts) :]
    none = tuple((0, 0) for _ in lead)
    x = x.pad((*none, *((smax(0, before), smax(0, after)) for before, after in amounts)))
    bounds = (
        (smax(0, -before), i + smax(0, before) + after) for i, (before, after) in zip(spatial, amounts, strict=True)
    )
    return x.shrink((*_keep(lead), *bounds))


def spread(x: M, stride: Ints, around: Sequence[tuple[sint, sint]]) -> M:
    """``stride - 1`` zeros between neighbours along the last axes, framed by ``around``.

    The frame is added before the zeros between, in whole steps, so that each axis keeps a condition of its own.
    """
    if all(s == 1 for s in stride):
        return framed(x, around)
    n = len(stride)
    lead, spatial = x.shape[:-n], x.shape[-n:]
    still, none = _keep(lead), tuple((0, 0) for _ in lead)
    first = tuple(smax(0, ceildiv(before, s)) for s, (before, _) in zip(stride, around, strict=True))
    last = tuple(smax(0, ceildiv(after + 1 - s, s)) for s, (_, after) in zip(stride, around, strict=True))
    x = x.pad((*none, *zip(first, last, strict=True)))
    wide = x.shape[-n:]
    x = x.reshape((*lead, *interleave(wide, (1,) * n)))
    x = x.pad((*none, *(amount for s in stride for amount in ((0, 0), (0, s - 1)))))
    x = x.reshape((*lead, *(i * s for i, s in zip(wide, stride, strict=True))))
    begins = tuple(f * s - before for f, s, (before, _) in zip(first, stride, around, strict=True))
    sizes = (
        (i - 1) * s + 1 + before + after for i, s, (before, after) in zip(spatial, stride, around, strict=True)
    )
    return x.shrink((*still, *((begin, begin + size) for begin, size in zip(begins, sizes, strict=True))))


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation as the trilinear form that it is: of an input, a weight and an output, two give the third.

    input: (batch, groups * inputs, *spatial), padded already; weight: (groups * outputs, inputs, *kernel);
    output: (batch, groups * outputs, *counts). Narrow floats are accumulated in float32.
    """

    groups: int
    stride: Ints
    dilation: Ints

    def output(self, x: LazyBuffer, weight: LazyBuffer) -> LazyBuffer:
        """Windows times kernels, summed."""
        batch, groups, (outputs, inputs, *kernel) = x.shape[0], self.groups, weight.shape
        n = len(kernel)
        columns = self._columns(x, weight.shape)
        counts = columns.shape[3 : 3 + n]
        full = (batch, groups, outputs // groups, *counts, inputs, *kernel)
        kernels = weight.reshape((1, groups, outputs // groups, *(1,) * n, inputs, *kernel))
        out = _contract(columns.expand(full), kernels.expand(full), tuple(range(3 + n, 4 + 2 * n)))
        return out.reshape((batch, outputs, *counts))

    def weight(self, x: LazyBuffer, out: LazyBuffer, shape: tuple[sint, ...]) -> LazyBuffer:
        """Windows times an output, summed over all places: the gradient of a weight of ``shape``."""
        batch, groups, (outputs, inputs, *kernel) = x.shape[0], self.groups, shape
        n = len(kernel)
        columns = self._columns(x, shape)
        counts = columns.shape[3 : 3 + n]
        full = (batch, groups, outputs // groups, *counts, inputs, *kernel)
        errors = out.reshape((batch, groups, outputs // groups, *counts, *(1,) * (1 + n))).expand(full)
        return _contract(columns.expand(full), errors, (0, *range(3, 3 + n))).reshape(shape)

    def input(self, out: LazyBuffer, weight: LazyBuffer, spatial: Sequence[sint], begin: Sequence[int]) -> LazyBuffer:
        """An output put back where its windows were: the gradient of an input, of which ``spatial`` is wanted.

        Args:
          out: the output.
          weight: the weight.
          spatial: sizes of what is wanted.
          begin: where that begins.
        """
        # A correlation again: the output, spread by the stride, with the kernels turned around.
        batch, groups, (outputs, inputs, *kernel) = out.shape[0], self.groups, weight.shape
        n = len(kernel)
        reach = tuple(d * (k - 1) for k, d in zip(_ints(kernel), self.dilation, strict=True))
        have = tuple((i - 1) * s + 1 for i, s in zip(out.shape[2:], self.stride, strict=True))
        around = tuple((r - b, i + b - h) for r, b, i, h in zip(reach, begin, spatial, have, strict=True))
        errors = windows(spread(out, self.stride, around), _ints(kernel), (1,) * n, self.dilation)
        errors = errors.reshape((batch, groups, 1, outputs // groups, *spatial, *kernel))
        turned = weight.flip(tuple(range(2, 2 + n)))
        turned = turned.reshape((1, groups, outputs // groups, inputs, *(1,) * n, *kernel))
        turned = turned.permute((0, 1, 3, 2, *range(4, 4 + 2 * n)))
        full = (batch, groups, inputs, outputs // groups, *spatial, *kernel)
        found = _contract(errors.expand(full), turned.expand(full), (3, *range(4 + n, 4 + 2 * n)))
        return found.reshape((batch, groups * inputs, *spatial))

    def _columns(self, x: LazyBuffer, weight: tuple[sint, ...]) -> LazyBuffer:
        """The windows as (batch, groups, 1, *counts, inputs, *kernel)."""
        groups, (_, inputs, *kernel) = self.groups, weight
        n = len(kernel)
        columns = windows(x, _ints(kernel), self.stride, self.dilation)
        counts = columns.shape[2 : 2 + n]
        columns = columns.reshape((x.shape[0], groups, inputs, *counts, *kernel))
        columns = columns.permute((0, 1, *range(3, 3 + n), 2, *range(3 + n, 3 + 2 * n)))
        return columns.reshape((x.shape[0], groups, 1, *counts, inputs, *kernel))


class Correlate(Function):
    """The output of a correlation: convolution, as neural networks mean it."""

    __slots__ = ("form", "weight", "x")

    def __init__(self, form: Correlation) -> None:
        self.form = form

    def forward(self, x: LazyBuffer, weight: LazyBuffer) -> LazyBuffer:
        self.x, self.weight = x, weight
        return self.form.output(x, weight)

    def backward(self, grad: LazyBuffer) -> Grads:
        x, weight = self.x, self.weight
        return (
            self.form.input(grad, weight, x.shape[2:], (0,) * (len(x.shape) - 2)) if self.needs[0] else None,
            self.form.weight(x, grad, weight.shape) if self.needs[1] else None,
        )


class CorrelateTransposed(Function):
    """The input of a correlation, of its output ``x``: transposed convolution.

    Its gradients are a correlation of what is wanted with the weight, and the gradient of a correlation's weight.
    """

    __slots__ = ("begin", "form", "spatial", "weight", "x")

    def __init__(self, form: Correlation, spatial: tuple[sint, ...], begin: Ints) -> None:
        self.form, self.spatial, self.begin = form, spatial, begin

    def forward(self, x: LazyBuffer, weight: LazyBuffer) -> LazyBuffer:
        self.x, self.weight = x, weight
        return self.form.input(x, weight, self.spatial, self.begin)

    def backward(self, grad: LazyBuffer) -> Grads:
        x, weight, form = self.x, self.weight, self.form
        whole = (
            (i - 1) * s + d * (k - 1) + 1
            for i, s, d, k in zip(x.shape[2:], form.stride, form.dilation, weight.shape[2:], strict=True)
        )
        after = (w - b - i for w, b, i in zip(whole, self.begin, self.spatial, strict=True))
        errors = framed(grad, tuple(zip(self.begin, after, strict=True)))
        return (
            form.output(errors, weight) if self.needs[0] else None,
            form.weight(errors, x, weight.shape) if self.needs[1] else None,
        )


def _ints(dims: Iterable[sint]) -> Ints:
    return tuple(int(dim) for dim in dims)


def _contract(a: LazyBuffer, b: LazyBuffer, axes: Ints) -> LazyBuffer:
    wide = sum_acc_dtype(a.dtype)
    return a.cast(wide).alu(Ops.MUL, b.cast(wide)).reduce(Ops.ADD, axes).cast(a.dtype)


def unfold(x: A, dim: int, size: sint, step: int) -> A:
    """Windows of ``size`` every ``step`` elements along an axis; the window is the new last axis.

    Raises:
      ValueError: if no window fits, or a number is not positive.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3, 4, 5]).unfold(0, size=3, step=2)
      Tensor([[1, 2, 3],
              [3, 4, 5]])
    """
    axis = x._axis(dim, "unfold")
    if x.ndim == 0:  # one element is an axis of one, as PyTorch has it
        return unfold(x.reshape((1,)), 0, size, step).reshape((-1,))
    length = x.shape[axis]
    if not isinstance(size, int) or size < 0 or step < 1:
        raise ValueError(f"unfold: windows of {size} every {step}: at least 0 and 1 are wanted")
    if isinstance(length, int) and size > length:
        raise ValueError(f"unfold: a window of {size} is larger than axis {dim} of shape {x.shape}")
    if size == 0:
        bounds = [(0, 0) if i == axis else None for i in range(x.ndim)]
        return x.shrink(bounds).reshape((*x.shape[:axis], length // step + 1, *x.shape[axis + 1 :], 0))
    order = [i for i in range(x.ndim) if i != axis]
    moved = x.permute(*order, axis)._apply(Windows((size,), (step,), (1,)))
    back = list(range(x.ndim - 1))
    back.insert(axis, x.ndim - 1)
    return x._show_strided(
        moved.permute(*back, x.ndim),
        lambda s: (*(n * step if i == axis else n for i, n in enumerate(s)), s[axis]), lambda s: 0,
    )  # fmt: skip
