"""Reading and writing at computed positions along an axis: gather, scatter, one-hot.

A position outside of the axis reads as 0 and is not written: it cannot be checked before it is computed.
"""

from __future__ import annotations

from tg_dtype import ConstType, dtypes, sum_acc_dtype
from tg_shape import prod, sint

from ..array.core import Core
from ..array.ingest import sure_of
from ..array.positions import signed
from ..array.shapes import broadcast_shape
from ..autograd.functions import Max, TakeAlong
from .indexing import Indexing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


class Placement(Indexing):
    """Gather and scatter."""

    __slots__ = ()

    def _along(self, dim: int, index: Any, what: str) -> tuple[int, Self]:
        axis = self._axis(dim, what)
        if not isinstance(index, Core):
            raise TypeError(f"{what}: the index is a tensor, got a {type(index).__name__}")
        if not dtypes.is_int(index.dtype):
            raise TypeError(f"{what}: indices are integers, got a tensor of {index.dtype.name}")
        if index.device != self.device:
            raise ValueError(f"{what}: an index on {index.device} for a tensor on {self.device}; use .to()")
        fits = index.ndim == self.ndim and all(
            i == axis or _not_above(a, b) for i, (a, b) in enumerate(zip(index.shape, self.shape, strict=True))
        )
        if not fits:
            raise ValueError(f"{what}: an index of shape {index.shape} for shape {self.shape} along axis {dim}")
        return axis, signed(self._wrap(index.lazydata), self.shape[axis] if self.ndim else 1)

    def gather(self, dim: int, index: Self) -> Self:
        """One element for each element of ``index``: its own place, with the position along ``dim`` replaced.

        Raises:
          ValueError: the index has another number of axes, or is larger than this tensor along other axes.
          TypeError: the index holds no integers.

        Example:
            >>> from tg_frontend import Tensor
            >>> t = Tensor([[1, 2], [3, 4]], device="NUMPY")
            >>> t.gather(1, Tensor([[0, 0], [1, 0]], device="NUMPY")).tolist()
            [[1, 1], [4, 3]]
        """
        axis, at = self._along(dim, index, "gather")
        if self.ndim == 0:  # one element is an axis of one, as PyTorch has it
            return self.reshape((1,)).gather(0, at.reshape((1,))).reshape(())
        box = self.shrink([None if i == axis else (0, d) for i, d in enumerate(at.shape)])
        pre, post = prod(at.shape[:axis]), prod(at.shape[axis + 1 :])
        found = box.reshape((pre, box.shape[axis], post))._apply(TakeAlong(), at.reshape((pre, at.shape[axis], post)))
        return found.reshape(at.shape)

    def _one_hots(self, axis: int, at: Self, src: Any, what: str) -> tuple[Self, Self]:
        """Where element m goes to position k, (pre, m, k, post), and the sources, (pre, m, 1, post)."""
        value = self._as_value(src, what)
        if value.shape == ():
            value = value._stretch(at.shape)
        if value.ndim != self.ndim or any(not _not_above(a, b) for a, b in zip(at.shape, value.shape, strict=True)):
            raise ValueError(f"{what}: a source of shape {value.shape} is smaller than the index of shape {at.shape}")
        value = value.shrink([(0, d) for d in at.shape])
        around = [(0, 0) if i == axis else (0, d - at.shape[i]) for i, d in enumerate(self.shape)]
        at, value = at.pad(around, value=-1), value.pad(around)
        pre, post = prod(self.shape[:axis]), prod(self.shape[axis + 1 :])
        m, n = at.shape[axis], self.shape[axis]
        targets = self._iota(n, at.dtype if at.dtype.itemsize > 4 else dtypes.int32, self.device).reshape((1, 1, n, 1))
        hit = at.reshape((pre, m, 1, post)).eq(targets)
        return hit, value.reshape((pre, m, 1, post))

    def scatter(self, dim: int, index: Self, src: Any, reduce: str | None = None) -> Self:
        """This tensor with ``src`` at the positions ``index`` along ``dim``; of several for one place the last stays.

        Positions outside of the axis are left out.

        Args:
          reduce: ``"add"`` or ``"multiply"`` combines with what is there instead.

        Raises:
          ValueError: the shapes do not fit, or there is no such ``reduce``.
          TypeError: the index holds no integers, or the source has another dtype.
        """
        if reduce not in (None, "add", "multiply"):
            raise ValueError(f"scatter: reduce {reduce!r}; there are 'add' and 'multiply'")
        if reduce is not None:
            return self.scatter_reduce(dim, index, src, "sum" if reduce == "add" else "prod")
        axis, at = self._along(dim, index, "scatter")
        if self.ndim == 0:
            return self.reshape((1,)).scatter(0, at.reshape((1,)), src).reshape(())
        hit, value = self._one_hots(axis, at, src, "scatter")
        pre, m, n, post = broadcast_shape("scatter", hit.shape, value.shape)
        order = self._iota(m, dtypes.int32, self.device).reshape((1, m, 1, 1)) + 1
        last = hit.where(order, 0)._stretch((pre, m, n, post))._apply(Max((1,))) if m != 0 else None
        if last is None:
            return self._copied()
        last = last.reshape((pre, n, post))
        found = value.reshape((pre, m, post))._apply(TakeAlong(), last - 1)
        return (last > 0).where(found, self.reshape((pre, n, post))).reshape(self.shape)

    def scatter_reduce(self, dim: int, index: Self, src: Any, reduce: str, include_self: bool = True) -> Self:
        """This tensor with the sources that go to one place combined: ``sum``, ``prod``, ``mean``, ``amax``, ``amin``.

        Args:
          include_self: combine with what is there, too; places to which nothing goes stay in either case.

        Raises:
          ValueError: the shapes do not fit, or there is no such ``reduce``.
          TypeError: the index holds no integers, or the source has another dtype.
        """
        if reduce not in _REDUCTIONS:
            raise ValueError(f"scatter_reduce: reduce {reduce!r}; there are {', '.join(_REDUCTIONS)}")
        axis, at = self._along(dim, index, "scatter_reduce")
        if self.ndim == 0:
            return self.reshape((1,)).scatter_reduce(0, at.reshape((1,)), src, reduce, include_self).reshape(())
        if at.numel() == 0:
            return self._copied()
        hit, value = self._one_hots(axis, at, src, "scatter_reduce")
        pre, n, post = hit.shape[0], self.shape[axis], hit.shape[3]
        mine = self.reshape((pre, n, post))
        reached = hit.any(1)
        if reduce in ("sum", "mean"):
            out = hit.where(value, 0).sum(1, dtype=sum_acc_dtype(self.dtype)).cast(self.dtype)
            out = mine + out if include_self else out
            if reduce == "mean":
                count = hit.sum(1) + (1 if include_self else 0)
                exact = self.dtype.kind == "float"
                out = out / count.maximum(1).cast(self.dtype) if exact else out // count.maximum(1).cast(self.dtype)
        elif reduce == "prod":
            out = hit.where(value, 1).prod(1, dtype=sum_acc_dtype(self.dtype)).cast(self.dtype)
            out = mine * out if include_self else out
        elif reduce == "amax":
            out = hit.where(value, dtypes.min(self.dtype)).max(1)
            out = mine.maximum(out) if include_self else out
        else:
            out = hit.where(value, dtypes.max(self.dtype)).min(1)
            out = mine.minimum(out) if include_self else out
        return reached.where(out, mine).reshape(self.shape)

    def one_hot(self, num_classes: int = -1) -> Self:
        """A new last axis: 1 at the position that the element names, 0 elsewhere (int32).

        Args:
          num_classes: length of the axis; -1 is one more than the greatest element, which is computed at once.

        Raises:
          TypeError: the elements are no integers.
        """
        if not dtypes.is_int(self.dtype):
            raise TypeError(f"one_hot: integers are wanted, got a tensor of {self.dtype.name}")
        if num_classes == -1:
            num_classes = int(self.max().item()) + 1
            if int(self.min().item()) < 0:
                raise ValueError(f"one_hot: class {self.min().item()} is negative")
        if num_classes < 0:
            raise ValueError(f"one_hot: {num_classes} is not a number of classes")
        classes = signed(self, num_classes)
        return classes.unsqueeze(-1).eq(self._iota(num_classes, classes.dtype, self.device)).cast(dtypes.int32)

    def _first_true(self, size: int, what: str) -> tuple[Self, Self]:
        """Where the first ``size`` true elements of these bools are, in the flat tensor, and which there are."""
        if not isinstance(size, int) or size < 0:
            raise ValueError(f"{what}: {size!r} is not a number of elements")
        flat = self.flatten()
        n = sure_of(flat.shape[0], 1, flat.shape)
        turn = self._iota(size, dtypes.int32, self.device).reshape((size, 1))
        if n == 0:
            return turn.flatten() * 0, turn.flatten() < 0
        rank = flat.cast(dtypes.int32).cumsum()
        at = (flat & rank.eq(turn + 1)).where(flat._counter(0), 0).sum(1, dtype=dtypes.int32)
        return at, turn.flatten() < rank.shrink(((n - 1, n),))

    def masked_select(self, mask: Self, size: int | None = None, fill_value: ConstType = 0) -> Self:
        """The elements where the mask is true, in order, flat.

        Args:
          size: how many; where there are fewer, ``fill_value`` follows. If it is not given, the mask is computed at
            once to find out.

        Raises:
          TypeError: the mask is no tensor of bools.
          ValueError: the shapes do not broadcast.
        """
        if not isinstance(mask, Core) or mask.dtype.kind != "bool":
            kind = f"a tensor of {mask.dtype.name}" if isinstance(mask, Core) else f"a {type(mask).__name__}"
            raise TypeError(f"masked_select: a mask is a tensor of bools, got {kind}")
        shape = broadcast_shape("masked_select", self.shape, mask.shape)
        x, chosen = self._stretch(shape), mask._stretch(shape)
        if size is None:
            return x.flatten()[chosen.flatten()]
        at, there = chosen._first_true(size, "masked_select")
        fill = type(self).full((1,), fill_value, self.device).cast(self.dtype)
        return there.where(x.flatten()[at], fill)

    def nonzero(self, size: int | None = None, fill_value: int = 0, as_tuple: bool = False) -> Any:
        """The positions of the elements that are not 0: shape (count, ndim), int32.

        Args:
          size: how many; where there are fewer, rows of ``fill_value`` follow. If it is not given, the tensor is
            computed at once to find out.
          as_tuple: give one vector for each axis instead, as numpy does: what square brackets take.

        Returns:
          The tensor, or with ``as_tuple`` the vectors.
        """
        if not isinstance(fill_value, int):
            raise TypeError(f"nonzero: fill_value is an integer, got {fill_value!r}")
        columns = self._nonzero_columns(size, fill_value)
        if as_tuple:
            return tuple(columns)
        if columns:
            return columns[0].stack(*columns[1:], dim=-1)
        count = int(self.ne(0).item()) if size is None else size
        return type(self).zeros(count, 0, device=self.device, dtype=dtypes.int32)

    def _nonzero_columns(self, size: int | None, fill_value: int) -> list[Self]:
        """The positions along each axis of the elements that are not 0."""
        if size is None:
            return (self.ne(0) if self.dtype.kind != "bool" else self)._true_positions()
        at, there = self.ne(0)._first_true(size, "nonzero")
        columns: list[Self] = []
        inner = 1
        for dim in reversed(self._ints()):
            columns.insert(0, there.where(at // inner % max(dim, 1), int(fill_value)))
            inner *= max(dim, 1)
        return columns


def _not_above(a: sint, b: sint) -> bool:
    return a == b or (isinstance(a, int) and isinstance(b, int) and a <= b)
