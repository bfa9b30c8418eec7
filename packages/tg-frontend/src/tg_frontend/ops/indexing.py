"""Square brackets: reading and writing parts.

A position outside of an axis is an IndexError where the host knows it: numbers, lists and arrays. Where it stands in a
tensor (it cannot be checked before it is computed) it reads as 0 and writes nothing. Negative ones count from the end.
"""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import LazyBuffer
from tg_shape import Expr, bound_value, prod, sint, upper

from ..array.core import Core
from ..array.positions import check_known, counting_dtype, signed
from ..array.shapes import broadcast_shape
from ..autograd.differentiation import MODE
from ..autograd.functions import Max, Stride, Take
from ..host import transfer
from ..memory import disk
from .scan import Scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

class Indexing(Scan):
    """Square brackets."""

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
        known: dict[int, list[int]] = {}
        for term in given:
            if transfer.is_array(term) or isinstance(term, (list, tuple, range)):
                ends = _ends(term)
                term = type(self)(term, device=self.device, dtype=dtypes.int32 if _is_empty(term) else None)
                if ends and dtypes.is_int(term.dtype):
                    known[len(terms)] = ends
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
        known = {i + (len(fill) - 1 if dots and i > at else 0): ends for i, ends in known.items()} if known else known
        place = 0
        for i, term in enumerate(terms):
            if i in known:
                check_known(known[i], self.shape[place], what, f"axis {place} of {self.shape}")
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
        return transfer.download(self.detach()._host(), self._ints())

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
        if any(step != 1 for step in steps):
            out = out._apply(Stride(tuple(steps)))
        shape: list[sint] = []
        dims = iter(out.shape)
        for term in terms:
            shape.append(1 if term is None else next(dims))
        return out.reshape(tuple(shape))

    def __getitem__(self, indices: Any) -> Self:
        """A part: ints, slices with steps, None, ``...``, tensors of integers, and masks, as PyTorch has it.

        Of several tensors the axes stay where they are if no slice stands between them, else they come first; an
        integer takes its axis away before that. A mask (a tensor of bools) is computed at once, since the size of the
        result depends on it.

        Raises:
          IndexError: a number is out of range, there are too many indices, or a mask does not fit.
          TypeError: something is no index.
        """
        terms = self._index_terms(indices, "getitem")
        out = self._basic(terms, "getitem")
        single = [isinstance(term, (int, Expr)) for term in terms]
        if any(isinstance(term, Core) for term in terms):
            return out._look_up(terms)
        return out.reshape(tuple(dim for one, dim in zip(single, out.shape, strict=True) if not one))

    def __iter__(self) -> Iterator[Self]:
        """The parts along the first axis, one after another."""
        return (self[i] for i in range(len(self)))

    def _look_up(self, terms: list[Any]) -> Self:
        """Whole slices at the positions that index tensors give; without the axes of integers."""
        advanced, gone, rest, place = _axes_of(terms)
        shape = broadcast_shape("getitem", *(terms[i].shape for i in advanced))
        flat, size = _flat_index([terms[i]._stretch(shape) for i in advanced], [self.shape[i] for i in advanced])
        moved = self.permute(*rest[:place], *gone, *advanced, *rest[place:])
        kept = [self.shape[i] for i in rest]
        before, after = prod(kept[:place]), prod(kept[place:])
        found = moved.reshape((before, size, after))._apply(Take(), flat.reshape((prod(shape),)))
        return found.reshape((*kept[:place], *shape, *kept[place:]))

    # *** writing ***

    def __setitem__(self, indices: Any, value: Any) -> None:
        """Writes a part, in the same memory where there is some. The value is broadcast to the part and cast.

        With tensors of integers, of several values for one position the last one stays.

        Raises:
          IndexError: a number is out of range, there are too many indices, or a mask does not fit.
          ValueError: the value does not broadcast to the part, or is on another device.
          TypeError: something is no index, or the value is nothing that holds numbers.
          RuntimeError: this tensor is a leaf that requires a gradient.
          DeviceError: the file of a DISK tensor is read-only, or too short. Files are written at once, from any device,
            and in contiguous parts only.
        """
        flows = self.requires_grad and MODE.recording
        if flows and self._ctx is None:
            raise RuntimeError(
                f"setitem: a leaf of shape {self.shape} that requires a gradient is not written in place; "
                "do it in Tensor.no_grad(), or use where()"
            )
        if transfer.runs_nothing(self.device):
            self._copy_in(indices, value)
            return
        new = self._fitting(value, "setitem")
        mask = indices[0] if isinstance(indices, tuple) and len(indices) == 1 else indices
        if transfer.is_array(mask):
            mask = type(self)(mask, device=self.device)
        if isinstance(mask, Core) and mask.dtype.kind == "bool":
            self._take_over(self._shadow()._masked_write(mask, new))  # type: ignore[arg-type]
            return
        terms = self._index_terms(indices, "setitem")
        if any(isinstance(term, Core) for term in terms):
            self._take_over(self._shadow()._written_at(terms, new))
        elif (new.requires_grad and MODE.recording) or flows:
            self._take_over(self._shadow()._written_box(terms, new))
        else:
            self._write_box(terms, new)

    def _copy_in(self, indices: Any, value: Any) -> None:
        """Writes a part of memory on a device that runs nothing."""
        given = indices if isinstance(indices, tuple) else (indices,)
        if any(isinstance(term, (Core, list, tuple)) or transfer.is_array(term) for term in given):
            raise ValueError(
                f"setitem: {self.device} runs no kernels: parts are slices and numbers there, no tensors or lists; "
                f"compute the whole on another device, as x = t.to({disk.HOST!r}), and assign that"
            )
        terms = self._index_terms(indices, "setitem")
        if isinstance(value, Core) and transfer.runs_nothing(value.device) and value.dtype is not self.dtype:
            value = value.to(disk.HOST)
        there = value.device if isinstance(value, Core) else disk.HOST
        like = self._wrap(LazyBuffer.const(0, self.dtype, (), there))
        new = like._fitting(value, "setitem")
        if new.requires_grad and MODE.recording:
            raise RuntimeError("setitem: the value requires a gradient, which cannot flow to a file; detach() it")
        box = self._box(terms)
        fitted = self._part_of(terms, new, box.shape)
        disk.write(self._memory(), box, fitted.lazydata.reshape(box.shape), "setitem")

    def _shadow(self) -> Self:
        """Another tensor with this one's content and graph, to which what is computed now refers."""
        out = self._wrap(self.lazydata, self.requires_grad)
        out._ctx = self._ctx
        return out

    def _part_of(self, terms: list[Any], value: Self, box: tuple[sint, ...]) -> Self:
        """The value in the shape of the part with axes of size 1 for integers and new axes.

        Args:
          terms: what the brackets hold.
          value: what is written.
          box: the part's size along each of this tensor's axes.
        """
        sizes = iter(box)
        part = tuple([1 if term is None else next(sizes) for term in terms])
        kept = tuple(d for term, d in zip(terms, part, strict=True) if not isinstance(term, (int, Expr)))
        value = value._without_leading(len(kept))
        if broadcast_shape("setitem", value.shape, kept) != kept:
            raise ValueError(f"setitem: a value of shape {value.shape} does not fit a part of shape {kept}")
        return value._stretch(kept).reshape(part)

    def _without_leading(self, ndim: int) -> Self:
        """This value with at most ``ndim`` axes, as far as those in front of them have size 1."""
        extra = 0
        while self.ndim - extra > ndim and self.shape[extra] == 1:
            extra += 1
        return self.reshape(self.shape[extra:]) if extra else self

    def _write_box(self, terms: list[Any], value: Self) -> None:
        self._let_go()
        bounds, steps = self._bounds(terms)
        box = self._lazy.st.shrink(bounds).stride(steps).shape
        fitted = self._part_of(terms, value, box)
        if fitted.numel() == 0:
            return
        self._write((bounds, steps), fitted.reshape(box).lazydata)

    def _bounds(self, terms: list[Any]) -> tuple[tuple[tuple[sint, sint], ...], tuple[int, ...]]:
        """The part that integers and slices name: a range of each axis, and a step in it."""
        found = [_range(term, self.shape[axis], self.shape, axis, "setitem")
                 for axis, term in enumerate(term for term in terms if term is not None)]  # fmt: skip
        return tuple((start, stop) for start, stop, _ in found), tuple(step for *_, step in found)

    def _box(self, terms: list[Any]) -> LazyBuffer:
        """The part as a view without padding, of the operand's number of axes."""
        bounds, steps = self._bounds(terms)
        return self.lazydata.shrink(bounds).stride(steps)

    def _written_box(self, terms: list[Any], value: Self) -> Self:
        """This tensor with a part replaced, as a new tensor through which a gradient flows."""
        fitted = self._part_of(terms, value, self._box(terms).shape)
        inner = [term for term in terms if term is not None]
        fitted = fitted.reshape(tuple(d for term, d in zip(terms, fitted.shape, strict=True) if term is not None))
        old = self
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
        old = self
        wide = mask.reshape((*mask.shape, *(1,) * len(tail)))
        if value.ndim <= len(tail) or (value.ndim == len(tail) + 1 and value.shape[0] == 1):
            if broadcast_shape("setitem", value.shape, (1, *tail)) != (1, *tail):
                raise ValueError(f"setitem: a value of shape {value.shape} does not fit parts of shape {tail}")
            return wide.where(value.reshape(value.shape[-len(tail) :] if tail else ()), old)
        flat = mask.flatten()
        count = int(flat.sum().item())
        value = value._without_leading(1 + len(tail))
        if broadcast_shape("setitem", value.shape, (count, *tail)) != (count, *tail):
            raise ValueError(f"setitem: a value of shape {value.shape} for {count} places of shape {tail}")
        rank = flat.cumsum() - 1
        rows = value._stretch((count, *tail)).reshape((1, count, prod(tail)))
        return wide.where(rows._apply(Take(), rank).reshape(self.shape), old)

    def _written_at(self, terms: list[Any], value: Self) -> Self:
        """This tensor with the value at the positions that index tensors give."""
        inner = self._basic(terms, "setitem")
        advanced, gone, rest, place = _axes_of(terms)
        shape = broadcast_shape("setitem", *(terms[i].shape for i in advanced))
        at, n = _flat_index([terms[i]._stretch(shape) for i in advanced], [inner.shape[i] for i in advanced])
        kept = tuple(inner.shape[i] for i in rest)
        part = (*kept[:place], *shape, *kept[place:])
        value = value._without_leading(len(part))
        if broadcast_shape("setitem", value.shape, part) != part:
            raise ValueError(f"setitem: a value of shape {value.shape} does not fit a part of shape {part}")
        looked_up = range(place, place + len(shape))
        order = [*looked_up, *(i for i in range(len(part)) if i not in looked_up)]
        new = value._stretch(part).permute(*order).reshape((prod(shape), prod(kept)))
        moved = [*advanced, *rest, *gone]
        front = inner.permute(*moved)
        written = front.reshape((n, prod(kept)))._rows_replaced(at.reshape((prod(shape),)), new)
        inner = written.reshape(front.shape).permute(*(moved.index(i) for i in range(inner.ndim)))
        inner = inner.reshape(tuple(d for i, d in enumerate(inner.shape) if i not in gone))
        return self._written_box([slice(None) if isinstance(term, Core) else term for term in terms], inner)

    def _rows_replaced(self, at: Self, new: Self) -> Self:
        """This matrix with rows of another at given positions; of several for one position the last one stays."""
        m, (n, width) = at.shape[0], self.shape
        if 0 in (m, n, width):
            return self
        targets = self._iota(n, at.dtype, self.device)
        turn = self._iota(m, dtypes.int32, self.device).reshape((m, 1)) + 1
        last = at.reshape((m, 1)).eq(targets).where(turn, 0)._apply(Max((0,))).reshape((n,))
        found = new.reshape((1, m, width))._apply(Take(), last - 1).reshape((n, width))
        return (last > 0).reshape((n, 1)).where(found, self)


class _Mask:
    """One axis of a mask: where it is true, and what it must fit."""

    __slots__ = ("axis", "positions", "shape", "size")

    def __init__(self, positions: Any, shape: tuple[sint, ...], axis: int) -> None:
        self.positions, self.shape, self.axis, self.size = positions, shape, axis, shape[axis]


def _axes_of(terms: list[Any]) -> tuple[list[int], list[int], list[int], int]:
    """The axes of index tensors, those of integers, the rest; and how many of the rest the looked up axes come after.

    As PyTorch does: the looked up axes stay where they are if no other axis parts them, else they come first.
    """
    advanced = [i for i, term in enumerate(terms) if isinstance(term, Core)]
    gone = [i for i, term in enumerate(terms) if isinstance(term, (int, Expr))]
    rest = [i for i in range(len(terms)) if i not in advanced and i not in gone]
    parted = any(advanced[0] < i < advanced[-1] for i in rest)
    return advanced, gone, rest, 0 if parted else sum(1 for i in rest if i < advanced[0])


def _ends(term: Any) -> list[int]:
    """The least and the greatest of the integers in lists or an array."""
    if transfer.is_array(term):
        return [int(term.min()), int(term.max())] if term.size and term.dtype.kind in "iu" else []
    values = transfer.flatten(term)[0]
    return [int(min(values)), int(max(values))] if values else []


def _is_empty(term: Any) -> bool:
    return isinstance(term, (list, tuple)) and not term


def _range(term: Any, dim: sint, shape: tuple[sint, ...], axis: int, what: str) -> tuple[sint, sint, int]:
    """(start, stop, step) with 0 <= start <= stop <= dim; a negative step walks the same range backward."""
    if isinstance(term, Core):
        return 0, dim, 1
    if isinstance(term, Expr):
        at, length = bound_value(term), bound_value(dim)
        if at is not None and length is not None and not 0 <= at < length:
            raise IndexError(f"{what}: index {term!r}, which is {at}, is out of range for axis {axis} of shape {shape}")
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
    wide = counting_dtype(prod(map(upper, sizes)))
    flat, good = None, None
    for index, size in zip(indices, sizes, strict=True):
        at = signed(index, size)
        at = at if at.dtype is dtypes.int64 else at.cast(wide)
        at = (at < 0).where(at + size, at)
        if len(indices) > 1:
            inside = (at >= 0) & (at < size)
            good = inside if good is None else good & inside
        flat = at if flat is None else flat * size + at
    return (flat if good is None else good.where(flat, -1)), prod(sizes)
