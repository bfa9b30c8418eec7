"""Square brackets, and reading and writing at computed positions.

A position outside of an axis reads as 0 where it stands in a tensor (it cannot be checked before it is computed);
where it is a Python number it is an IndexError.
"""

from __future__ import annotations

from tg_dtype import dtypes, least_upper_dtype

from tg_shape import Expr, prod, sint

from . import host
from .autograd import MODE
from .core import Core
from .function import Max
from .lookup import Take, TakeAlong
from .movement import broadcast_shape
from .realization import note_assign
from .scan import Scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


class Indexing(Scan):
    """Indexing, gather and scatter."""

    __slots__ = ()

    # *** what the brackets hold ***

    def _index_terms(self, indices: Any, what: str) -> list[Any]:
        """One term an axis of the operand (and None for new axes): int, slice or integer tensor.

        Raises:
          IndexError: there are too many, or a mask does not fit.
          TypeError: something is no index.
        """
        given = list(indices) if isinstance(indices, tuple) else [indices]
        terms: list[Any] = []
        for term in given:
            if host.is_array(term) or isinstance(term, (list, tuple)):
                term = type(self)(term, device=self.device, dtype=dtypes.int32 if _is_empty(term) else None)
            if isinstance(term, Core):
                terms.extend(self._index_tensors(term, what))  # type: ignore[arg-type]
            elif term is None or term is Ellipsis or isinstance(term, (slice, Expr)):
                terms.append(term)
            elif isinstance(term, int) and not isinstance(term, bool):
                terms.append(term)
            elif isinstance(term, bool):
                raise TypeError(f"{what}: a bool is no index of shape {self.shape}; use a tensor of bools as a mask")
            else:
                raise TypeError(f"{what}: a {type(term).__name__} is no index of shape {self.shape}")
        dots = [i for i, term in enumerate(terms) if term is Ellipsis]
        if len(dots) > 1:
            raise IndexError(f"{what}: there can be only one '...' in an index")
        used = sum(term is not None and term is not Ellipsis for term in terms)
        if used > self.ndim:
            raise IndexError(f"{what}: {used} indices for shape {self.shape}")
        fill = [slice(None)] * (self.ndim - used)
        at = dots[0] if dots else len(terms)
        terms[at : at + len(dots)] = fill
        place = 0
        for i, term in enumerate(terms):
            if isinstance(term, _Mask):
                if self.shape[place] != term.size:
                    raise IndexError(f"{what}: a mask of shape {term.shape} does not fit shape {self.shape}")
                terms[i] = term.positions
            place += term is not None
        return terms

    def _index_tensors(self, term: Self, what: str) -> list[Any]:
        if term.dtype.kind == "bool":
            found = term._true_positions()
            return [_Mask(found[axis], term.shape, axis) for axis in range(term.ndim)]
        if term.dtype.kind == "float":
            raise TypeError(f"{what}: indices are integers or bools, got a tensor of {term.dtype.name}")
        if term.device != self.device:
            raise ValueError(f"{what}: an index on {term.device} for a tensor on {self.device}; use .to()")
        return [term.detach()]

    def _true_positions(self) -> list[Self]:
        """For each axis the positions of the true elements, in order. Computes the tensor."""
        shape = self._ints()
        flat = [i for i, value in enumerate(bytes(self._bytes())) if value]
        out = []
        for axis in range(len(shape)):
            inner = 1
            for dim in shape[axis + 1 :]:
                inner *= dim
            values = [i // inner % shape[axis] for i in flat]
            out.append(type(self)(values, device=self.device, dtype=dtypes.int32))
        return out

    def _bytes(self) -> memoryview:
        size = prod(self._ints())
        assert isinstance(size, int)
        return host.download(self.detach()._host())[: size * self.dtype.itemsize]

    def _basic(self, terms: list[Any], what: str) -> Self:
        """Integers (leaving an axis of size 1), slices and new axes; tensors leave their axis alone."""
        bounds: list[tuple[sint, sint]] = []
        steps: list[int] = []
        for axis, term in enumerate(term for term in terms if term is not None):
            dim = self.shape[axis]
            start, stop, step = _range(term, dim, self.shape, axis, what)
            bounds.append((start, stop))
            steps.append(step)
        out = self.shrink(bounds)
        backward = [axis for axis, step in enumerate(steps) if step < 0]
        if backward:
            out = out.flip(*backward)
        for axis, step in enumerate(abs(step) for step in steps):
            if step > 1:
                out = out._every(axis, step)
        shape: list[sint] = []
        dims = iter(out.shape)
        for term in terms:
            shape.append(1 if term is None else next(dims))
        return out.reshape(tuple(shape))

    def _every(self, axis: int, step: int) -> Self:
        length = self.shape[axis]
        rows = -(-length // step)
        around = tuple((0, rows * step - length) if i == axis else (0, 0) for i in range(self.ndim))
        out = self.pad(around)
        out = out.reshape((*out.shape[:axis], rows, step, *out.shape[axis + 1 :]))
        out = out.shrink([(0, 1) if i == axis + 1 else None for i in range(out.ndim)])
        return out.reshape((*out.shape[:axis], rows, *out.shape[axis + 2 :]))

    def __getitem__(self, indices: Any) -> Self:
        """A part, as numpy has it: ints, slices with steps, None, ``...``, tensors of integers, and masks.

        A mask (a tensor of bools) is computed at once, since the size of the result depends on it.

        Raises:
          IndexError: a number is out of range, there are too many indices, or a mask does not fit.
          TypeError: something is no index.
        """
        terms = self._index_terms(indices, "getitem")
        out = self._basic(terms, "getitem")
        single = [isinstance(term, (int, Expr)) for term in terms]
        if any(isinstance(term, Core) for term in terms):
            return out._look_up(terms, single)
        return out.reshape(tuple(dim for one, dim in zip(single, out.shape, strict=True) if not one))

    def _look_up(self, terms: list[Any], single: list[bool]) -> Self:
        """Whole slices at the positions that index tensors give; without the axes of integers."""
        advanced = [i for i, term in enumerate(terms) if isinstance(term, Core)]
        used = [i for i, term in enumerate(terms) if isinstance(term, Core) or single[i]]
        rest = [i for i in range(self.ndim) if i not in used]
        # numpy puts the looked up axes where they were if they stood together, else in front
        place = sum(1 for i in rest if i < used[0]) if used == list(range(used[0], used[-1] + 1)) else 0
        shape = broadcast_shape("getitem", *(terms[i].shape for i in advanced))
        flat, size = _flat_index([terms[i]._stretch(shape) for i in advanced], [self.shape[i] for i in advanced])
        gone = [i for i in used if single[i]]
        moved = self.permute(*rest[:place], *gone, *advanced, *rest[place:])
        kept = [self.shape[i] for i in rest]
        before, after = prod(kept[:place]), prod(kept[place:])
        found = moved.reshape((before, size, after))._apply(Take(), flat.reshape((prod(shape),)))
        return found.reshape((*kept[:place], *shape, *kept[place:]))

    # *** writing ***

    def __setitem__(self, indices: Any, value: Any) -> None:
        """Writes a part, in the same memory where there is some. The value is broadcast to the part.

        With tensors of integers, of several values for one position the last one stays.

        Raises:
          IndexError: a number is out of range, there are too many indices, or a mask does not fit.
          ValueError: the value does not broadcast to the part, or is on another device.
          TypeError: something is no index, or the value has another dtype.
          RuntimeError: this tensor requires a gradient.
        """
        if self.requires_grad and MODE.recording:
            raise RuntimeError(
                f"setitem: a tensor of shape {self.shape} that requires a gradient is not written in place; "
                "use where() or cat(), or Tensor.no_grad()"
            )
        new = self._as_value(value, "setitem")
        mask = indices[0] if isinstance(indices, tuple) and len(indices) == 1 else indices
        if host.is_array(mask):
            mask = type(self)(mask, device=self.device)
        if isinstance(mask, Core) and mask.dtype.kind == "bool":
            self._take_over(self._masked_write(mask, new))  # type: ignore[arg-type]
            return
        terms = self._index_terms(indices, "setitem")
        if any(isinstance(term, Core) for term in terms):
            self._take_over(self._written_at(terms, new))
        elif new.requires_grad:
            self._take_over(self._written_box(terms, new))
        else:
            self._write_box(terms, new)

    def _take_over(self, new: Self) -> None:
        if new.requires_grad:
            self.lazydata, self._ctx, self.requires_grad = new.lazydata, new._ctx, True
        else:
            self._store(new)

    def _part_of(self, terms: list[Any], value: Self) -> Self:
        """The value in the shape of the part with axes of size 1 for integers."""
        inner = self.detach()._basic(terms, "setitem")
        part = inner.shape
        kept = tuple(d for term, d in zip(terms, part, strict=True) if not isinstance(term, (int, Expr)))
        if broadcast_shape("setitem", value.shape, kept) != kept:
            raise ValueError(f"setitem: a value of shape {value.shape} does not fit a part of shape {kept}")
        return value._stretch(kept).reshape(part)

    def _write_box(self, terms: list[Any], value: Self) -> None:
        fitted = self._part_of(terms, value)
        storage = self.lazydata.storage
        whole = self.lazydata
        if storage is None or host.is_borrowed(storage):
            whole = whole.contiguous() if storage is None else whole.clone()
        box = self._wrap(whole)._box(terms)
        if box.numel() == 0:
            return
        new = box.lazydata.assign(fitted.reshape(box.shape).lazydata)
        self.lazydata = whole.rebase(new)
        note_assign(self.lazydata)

    def _box(self, terms: list[Any]) -> Self:
        """The part as a view without padding, of the operand's number of axes."""
        bounds, steps = [], []
        for axis, term in enumerate(term for term in terms if term is not None):
            start, stop, step = _range(term, self.shape[axis], self.shape, axis, "setitem")
            bounds.append((start, stop))
            steps.append(step)
        return self._wrap(self.lazydata.shrink(bounds).stride(steps))

    def _written_box(self, terms: list[Any], value: Self) -> Self:
        """This tensor with a part replaced, as a new tensor through which a gradient flows."""
        fitted = self._part_of(terms, value)
        inner = [term for term in terms if term is not None]
        fitted = fitted.reshape(tuple(d for term, d in zip(terms, fitted.shape, strict=True) if term is not None))
        old = self.detach()
        inside = fitted.detach().ones_like(dtype=dtypes.bool)
        for axis, term in enumerate(inner):
            start, stop, step = _range(term, self.shape[axis], self.shape, axis, "setitem")
            fitted = fitted._spread(axis, start, stop, step, self.shape[axis])
            inside = inside._spread(axis, start, stop, step, self.shape[axis])
        return inside.where(fitted, old)

    def _spread(self, axis: int, start: sint, stop: sint, step: int, dim: sint) -> Self:
        """An axis put back where a slice took it from, zeros elsewhere."""
        out, stride = self, abs(step)
        if stride > 1:
            shape = out.shape
            out = out.reshape((*shape[: axis + 1], 1, *shape[axis + 1 :]))
            out = out.pad([(0, stride - 1) if i == axis + 1 else (0, 0) for i in range(out.ndim)])
            out = out.reshape((*shape[:axis], shape[axis] * stride, *shape[axis + 1 :]))
            out = out.shrink([(0, stop - start) if i == axis else None for i in range(out.ndim)])
        if step < 0:
            out = out.flip(axis)
        return out.pad([(start, dim - stop) if i == axis else (0, 0) for i in range(out.ndim)])

    def _masked_write(self, mask: Self, value: Self) -> Self:
        if mask.shape != self.shape[: mask.ndim]:
            raise IndexError(f"setitem: a mask of shape {mask.shape} does not fit shape {self.shape}")
        tail = self.shape[mask.ndim :]
        old = self.detach()
        wide = mask.reshape((*mask.shape, *(1,) * len(tail)))
        if value.ndim <= len(tail) or (value.ndim == len(tail) + 1 and value.shape[0] == 1):
            if broadcast_shape("setitem", value.shape, (1, *tail)) != (1, *tail):
                raise ValueError(f"setitem: a value of shape {value.shape} does not fit parts of shape {tail}")
            return wide.where(value.reshape(value.shape[-len(tail) :] if tail else ()), old)
        flat = mask.flatten()
        count = int(flat.sum().item())
        if broadcast_shape("setitem", value.shape, (count, *tail)) != (count, *tail):
            raise ValueError(f"setitem: a value of shape {value.shape} for {count} places of shape {tail}")
        rank = flat.cumsum() - 1
        rows = value._stretch((count, *tail)).reshape((1, count, prod(tail)))
        return wide.where(rows._apply(Take(), rank).reshape(self.shape), old)

    def _written_at(self, terms: list[Any], value: Self) -> Self:
        """This tensor with the value at the positions that index tensors give."""
        old = self.detach()
        index = old._iota(old.numel(), dtypes.int32, old.device).reshape(old.shape)
        where_to = index[tuple(slice(None) if t is Ellipsis else t for t in terms)]
        if broadcast_shape("setitem", value.shape, where_to.shape) != where_to.shape:
            raise ValueError(f"setitem: a value of shape {value.shape} does not fit a part of shape {where_to.shape}")
        at, new = where_to.flatten(), value._stretch(where_to.shape).flatten()
        return old.flatten().scatter(0, at, new).reshape(old.shape)

    # *** gather and scatter ***

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
            raise ValueError(f"{what}: an index of shape {index.shape} does not fit shape {self.shape} along axis {dim}")
        return axis, index.detach()  # type: ignore[return-value]

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
        if self.ndim == 0:
            return self
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
        around = [(0, 0) if i == axis else (0, d - a) for i, (d, a) in enumerate(zip(self.shape, at.shape, strict=True))]
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
        hit, value = self._one_hots(axis, at, src, "scatter")
        pre, m, n, post = broadcast_shape("scatter", hit.shape, value.shape)
        order = self._iota(m, dtypes.int32, self.device).reshape((1, m, 1, 1)) + 1
        last = hit.where(order, 0)._stretch((pre, m, n, post))._apply(Max((1,))) if m != 0 else None
        if last is None:
            return self
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
        if at.numel() == 0:
            return self
        hit, value = self._one_hots(axis, at, src, "scatter_reduce")
        pre, n, post = hit.shape[0], self.shape[axis], hit.shape[3]
        mine = self.reshape((pre, n, post))
        reached = hit.any(1)
        if reduce in ("sum", "mean"):
            out = hit.where(value, 0).sum(1).cast(self.dtype)
            out = mine + out if include_self else out
            if reduce == "mean":
                count = hit.sum(1) + (1 if include_self else 0)
                exact = self.dtype.kind == "float"
                out = out / count.maximum(1).cast(self.dtype) if exact else out // count.maximum(1).cast(self.dtype)
        elif reduce == "prod":
            out = hit.where(value, 1).prod(1).cast(self.dtype)
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
        if num_classes < 0:
            raise ValueError(f"one_hot: {num_classes} is not a number of classes")
        wide = least_upper_dtype(self.dtype, dtypes.int32)
        classes = self._iota(num_classes, wide, self.device)
        return self.cast(wide).unsqueeze(-1).eq(classes).cast(dtypes.int32)

    def masked_select(self, mask: Self) -> Self:
        """The elements where the mask is true, in order, flat. The mask is computed at once."""
        shape = broadcast_shape("masked_select", self.shape, mask.shape)
        return self._stretch(shape)[mask._stretch(shape)]

    def nonzero(self) -> Self:
        """The positions of the elements that are not 0: shape (count, ndim), int32. Computed at once."""
        found = self.ne(0)._true_positions() if self.dtype.kind != "bool" else self._true_positions()
        if not found:
            return type(self).zeros(int(self.ne(0).item()), 0, device=self.device, dtype=dtypes.int32)
        return found[0].stack(*found[1:], dim=-1)


class _Mask:
    """One axis of a mask: where it is true, and what it must fit."""

    __slots__ = ("axis", "positions", "shape", "size")

    def __init__(self, positions: Any, shape: tuple[sint, ...], axis: int) -> None:
        self.positions, self.shape, self.axis, self.size = positions, shape, axis, shape[axis]


def _is_empty(term: Any) -> bool:
    return isinstance(term, (list, tuple)) and not term


def _not_above(a: sint, b: sint) -> bool:
    return a == b or (isinstance(a, int) and isinstance(b, int) and a <= b)


def _range(term: Any, dim: sint, shape: tuple[sint, ...], axis: int, what: str) -> tuple[sint, sint, int]:
    """(start, stop, step) with 0 <= start <= stop <= dim; a negative step walks the same range backward."""
    if isinstance(term, Core):
        return 0, dim, 1
    if isinstance(term, Expr):
        return term, term + 1, 1
    if isinstance(term, int):
        if isinstance(dim, int) and not -dim <= term < dim:
            raise IndexError(f"{what}: index {term} is out of range for axis {axis} of shape {shape}")
        start = term + dim if term < 0 else term
        return start, start + 1, 1
    step = 1 if term.step is None else term.step
    if not isinstance(step, int):
        raise TypeError(f"{what}: the step of a slice is an integer, got {step!r}")
    if step == 0:
        raise ValueError(f"{what}: the step of a slice cannot be 0")
    for bound in (term.start, term.stop):
        if bound is not None and not isinstance(bound, (int, Expr)):
            raise TypeError(f"{what}: the bounds of a slice are integers, got {bound!r}")
    if isinstance(dim, int) and not isinstance(term.start, Expr) and not isinstance(term.stop, Expr):
        picked = range(*term.indices(dim))
        if not picked:
            return 0, 0, 1
        # the last one reached bounds the box, so that every step falls on an element
        low, high = (picked[0], picked[-1]) if step > 0 else (picked[-1], picked[0])
        return low, high + 1, step
    if step != 1:
        raise ValueError(f"{what}: a slice of symbolic length has step 1, got {step}")
    start = 0 if term.start is None else _from_end(term.start, dim)
    stop = dim if term.stop is None else _from_end(term.stop, dim)
    return start, stop, 1


def _from_end(bound: sint, dim: sint) -> sint:
    return bound + dim if isinstance(bound, int) and bound < 0 else bound


def _flat_index(indices: list[Any], sizes: list[sint]) -> tuple[Any, sint]:
    """Several positions as one in the flattened axes; -1 where one is out of range."""
    wide = dtypes.int64 if prod(s if isinstance(s, int) else s.vmax for s in sizes) > dtypes.max(dtypes.int32) else None
    flat, good = None, None
    for index, size in zip(indices, sizes, strict=True):
        at = index.cast(wide or (index.dtype if index.dtype is dtypes.int64 else dtypes.int32))
        at = (at < 0).where(at + size, at)
        if len(indices) > 1:
            inside = (at >= 0) & (at < size)
            good = inside if good is None else good & inside
        flat = at if flat is None else flat * size + at
    return (flat if good is None else good.where(flat, -1)), prod(sizes)
