"""Sliding windows, and correlation (the convolution of neural networks) with its two gradients.

All spatial axes are handled at once with the ordinary movement operations, so that a window is a view and costs no
memory. The same code serves tensors, which then differentiate through it, and ``LazyBuffer``.
"""

from __future__ import annotations

from tg_dtype import sum_acc_dtype
from tg_lazy import LazyBuffer, Ops
from tg_shape import ceildiv, sint, smax

from ..array.array import A
from ..autograd.functions import Function, Grads

TYPE_CHECKING = False
if TYPE_CHECKING:
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

Ints = tuple[int, ...]


def _keep(shape: tuple[sint, ...]) -> tuple[tuple[sint, sint], ...]:
    return tuple((0, dim) for dim in shape)


def _interleave(*columns: tuple[sint, ...]) -> tuple[sint, ...]:
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
    if all(k <= s and (d == 1 or k == 1) for k, s, d in zip(kernel, stride, dilation, strict=True)):
        # Windows that do not overlap are a plain cut into rows of one stride each.
        whole = tuple(c * s for c, s in zip(counts, stride, strict=True))
        x = x.pad((*((0, 0) for _ in lead), *((0, smax(0, w - i)) for w, i in zip(whole, spatial, strict=True))))
        x = x.shrink((*still, *_keep(whole)))
        x = x.reshape((*lead, *_interleave(counts, stride)))
        x = x.shrink((*still, *_keep(_interleave(counts, kernel))))
        return x.permute((*axes, *(len(lead) + 2 * i for i in range(n)), *(len(lead) + 2 * i + 1 for i in range(n))))
    # Rows of length w*i + d, cut out of repeated copies, start d further with every row.
    reach = tuple(c * s for c, s in zip(counts, stride, strict=True))
    rows = tuple(
        smax(1, ceildiv(r - d, i)) * i + d for r, d, i in zip(reach, dilation, spatial, strict=True)
    )
    copies = tuple(ceildiv(k * row, i) for k, row, i in zip(kernel, rows, spatial, strict=True))
    ones = (1,) * n
    x = x.reshape((*lead, *_interleave(ones, spatial))).expand((*lead, *_interleave(copies, spatial)))
    x = x.reshape((*lead, *(c * i for c, i in zip(copies, spatial, strict=True))))
    x = x.shrink((*still, *((0, k * row) for k, row in zip(kernel, rows, strict=True))))
    x = x.reshape((*lead, *_interleave(kernel, rows)))
    x = x.shrink((*still, *_keep(_interleave(kernel, reach))))
    x = x.reshape((*lead, *_interleave(kernel, counts, stride)))
    x = x.shrink((*still, *_keep(_interleave(kernel, counts, ones))))
    x = x.reshape((*lead, *_interleave(kernel, counts)))
    return x.permute((*axes, *(len(lead) + 2 * i + 1 for i in range(n)), *(len(lead) + 2 * i for i in range(n))))


def spread(x: M, stride: Ints) -> M:
    """``stride - 1`` zeros between neighbours along the last axes."""
    n = len(stride)
    lead, spatial = x.shape[:-n], x.shape[-n:]
    if all(s == 1 for s in stride):
        return x
    still, none = _keep(lead), tuple((0, 0) for _ in lead)
    x = x.reshape((*lead, *_interleave(spatial, (1,) * n)))
    x = x.pad((*none, *(amount for s in stride for amount in ((0, 0), (0, s - 1)))))
    x = x.reshape((*lead, *(i * s for i, s in zip(spatial, stride, strict=True))))
    return x.shrink((*still, *((0, (i - 1) * s + 1) for i, s in zip(spatial, stride, strict=True))))


class Correlate(Function):
    """Windows of x times a kernel, summed, as neural networks mean by convolution.

    x: (batch, groups * inputs, *spatial), padded already; weight: (groups * outputs, inputs, *kernel).
    Result: (batch, groups * outputs, *counts). Narrow floats are accumulated in float32.
    """

    __slots__ = ("dilation", "groups", "stride", "weight", "x")

    def __init__(self, groups: int, stride: Ints, dilation: Ints) -> None:
        self.groups, self.stride, self.dilation = groups, stride, dilation

    def forward(self, x: LazyBuffer, weight: LazyBuffer) -> LazyBuffer:
        self.x, self.weight = x, weight
        batch, groups, (outputs, inputs, *kernel) = x.shape[0], self.groups, weight.shape
        n = len(kernel)
        columns = self._columns()
        counts = columns.shape[3 : 3 + n]
        full = (batch, groups, outputs // groups, *counts, inputs, *kernel)
        kernels = weight.reshape((1, groups, outputs // groups, *(1,) * n, inputs, *kernel))
        out = _contract(columns.expand(full), kernels.expand(full), tuple(range(3 + n, 4 + 2 * n)))
        return out.reshape((batch, outputs, *counts))

    def _columns(self) -> LazyBuffer:
        """The windows as (batch, groups, 1, *counts, inputs, *kernel)."""
        x, groups, (_, inputs, *kernel) = self.x, self.groups, self.weight.shape
        n = len(kernel)
        columns = windows(x, _ints(kernel), self.stride, self.dilation)
        counts = columns.shape[2 : 2 + n]
        columns = columns.reshape((x.shape[0], groups, inputs, *counts, *kernel))
        columns = columns.permute((0, 1, *range(3, 3 + n), 2, *range(3 + n, 3 + 2 * n)))
        return columns.reshape((x.shape[0], groups, 1, *counts, inputs, *kernel))

    def backward(self, grad: LazyBuffer) -> Grads:
        return self._grad_x(grad) if self.needs[0] else None, self._grad_weight(grad) if self.needs[1] else None

    def _grad_weight(self, grad: LazyBuffer) -> LazyBuffer:
        batch, groups, (outputs, inputs, *kernel) = self.x.shape[0], self.groups, self.weight.shape
        n = len(kernel)
        columns = self._columns()
        counts = columns.shape[3 : 3 + n]
        full = (batch, groups, outputs // groups, *counts, inputs, *kernel)
        errors = grad.reshape((batch, groups, outputs // groups, *counts, *(1,) * (1 + n))).expand(full)
        return _contract(columns.expand(full), errors, (0, *range(3, 3 + n))).reshape(self.weight.shape)

    def _grad_x(self, grad: LazyBuffer) -> LazyBuffer:
        # A correlation again: the errors, spread by the stride, with the kernels turned around.
        batch, groups, (outputs, inputs, *kernel) = self.x.shape[0], self.groups, self.weight.shape
        n, spatial = len(kernel), self.x.shape[2:]
        reach = tuple(d * (k - 1) for k, d in zip(_ints(kernel), self.dilation, strict=True))
        errors = spread(grad, self.stride)
        after = tuple(i - have for i, have in zip(spatial, errors.shape[2:], strict=True))
        errors = errors.pad(((0, 0), (0, 0), *zip(reach, after, strict=True)))
        errors = windows(errors, _ints(kernel), (1,) * n, self.dilation)
        errors = errors.reshape((batch, groups, 1, outputs // groups, *spatial, *kernel))
        turned = self.weight.flip(tuple(range(2, 2 + n)))
        turned = turned.reshape((1, groups, outputs // groups, inputs, *(1,) * n, *kernel))
        turned = turned.permute((0, 1, 3, 2, *range(4, 4 + 2 * n)))
        full = (batch, groups, inputs, outputs // groups, *spatial, *kernel)
        out = _contract(errors.expand(full), turned.expand(full), (3, *range(4 + n, 4 + 2 * n)))
        return out.reshape(self.x.shape)


def _ints(dims: list[sint]) -> Ints:
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
    moved = windows(x.permute(*order, axis), (size,), (step,), (1,))
    back = list(range(x.ndim - 1))
    back.insert(axis, x.ndim - 1)
    return x._show_strided(
        moved.permute(*back, x.ndim),
        lambda s: (*(n * step if i == axis else n for i, n in enumerate(s)), s[axis]), lambda s: 0,
    )  # fmt: skip
