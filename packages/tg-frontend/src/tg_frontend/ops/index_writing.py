"""Square brackets: writing parts.

A position outside of an axis is an IndexError where the host knows it: numbers, lists and arrays. Where it stands in a
tensor (it cannot be checked before it is computed) it writes nothing. Negative ones count from the end.
"""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import LazyBuffer
from tg_shape import Expr, prod, sint

from ..array.agreement import shadow
from ..array.array import A, Array
from ..array.computing import copied
from ..array.movement import stretch
from ..array.shapes import broadcast_shape
from ..array.writing import fitting, place_of, recorded, take_over, write_as_data
from ..autograd.differentiation import MODE
from ..autograd.functions import Scatter, Take
from ..autograd.hooks import leave_hooks
from ..host import transfer
from ..memory import disk
from .creation import ones_like
from .indexing import axes_of_terms, basic, flat_index, index_terms, range_of, shape_of_places, with_axes_of_bools
from .scan import cumsum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __setitem__(x: A, indices: Any, value: Any) -> None:
    """Writes a part, in the same memory where there is some. The value is broadcast to the part and cast.

    With tensors of integers, of several values for one position the last one stays. A part with symbolic bounds
    of what is kept, as a cache that one graph fills step by step, is written as data where only parameters of layers
    that leave it open might want a gradient; a :meth:`backward` through it is an error. So it is of all ways to write.

    Raises:
      IndexError: if a number is out of range, there are too many indices, or a mask does not fit.
      ValueError: if the value does not broadcast to the part, or is on another device.
      TypeError: if something is no index, or the value is nothing that holds numbers.
      RuntimeError: if this tensor is a leaf that requires a gradient.
      DeviceError: if the file of a DISK tensor is read-only, or too short. Files are written at once, from any device,
        and in contiguous parts only.
    """
    if x._wish and x._ctx is None and MODE.recording:
        raise RuntimeError(
            f"setitem: a leaf of shape {x.shape} that requires a gradient is not written in place; "
            "do it in Tensor.no_grad(), or use where()"
        )
    if transfer.runs_nothing(x.device):
        _copy_in(x, indices, value)
        return
    new = fitting(x, value, "setitem")
    mask = indices[0] if isinstance(indices, tuple) and len(indices) == 1 else indices
    if transfer.is_array(mask) or isinstance(mask, bool):
        mask = type(x)(mask, device=x.device)
    if isinstance(mask, Array) and mask.dtype.kind == "bool":
        take_over(x, _masked_write(_shadow(x), mask, new))
        return
    wide, indices = with_axes_of_bools(x, indices, "setitem")
    terms = index_terms(wide, indices, "setitem")
    if wide.ndim > x.ndim:
        take_over(x, _written_at(_shadow(x).reshape(wide.shape), terms, new).reshape(x.shape))
        return
    bounds, steps = _bounds(x, [slice(None) if isinstance(term, Array) else term for term in terms])
    part = place_of(x).shrink(bounds).stride(steps)
    if any(isinstance(term, Array) for term in terms):
        take_over(x, _written_at(_shadow(x), terms, new), part)
    elif recorded(x, new, part):
        take_over(x, _written_box(_shadow(x), terms, new), part)
    else:
        fitted = _part_of(x, terms, new, part.shape)
        if fitted.numel() != 0:
            write_as_data(x, fitted.reshape(part.shape), part)


def _copy_in(x: A, indices: Any, value: Any) -> None:
    """Writes a part of memory on a device that runs nothing."""
    given = indices if isinstance(indices, tuple) else (indices,)
    if any(isinstance(term, (Array, list, tuple, bool)) or transfer.is_array(term) for term in given):
        raise ValueError(
            f"setitem: {x.device} runs no kernels: parts are slices and numbers there, no tensors, lists or bools; "
            f"compute the whole on another device, as x = t.to({disk.HOST!r}), and assign that"
        )
    terms = index_terms(x, indices, "setitem")
    if isinstance(value, Array) and transfer.runs_nothing(value.device) and value.dtype is not x.dtype:
        value = value.to(disk.HOST)
    there = value.device if isinstance(value, Array) else disk.HOST
    like = x._wrap(LazyBuffer.const(0, x.dtype, (), there))
    new = fitting(like, value, "setitem")
    if new._wish and MODE.recording:
        raise RuntimeError("setitem: the value requires a gradient, which cannot flow to a file; detach() it")
    box = _box(x, terms)
    fitted = _part_of(x, terms, new, box.shape)
    disk.write(x._memory(), box, fitted.lazydata.reshape(box.shape), "setitem")


def _shadow(x: A) -> A:
    """Another tensor with this one's content and graph, to which what is computed now refers."""
    leave_hooks(x)
    out: A = shadow(x)
    return out


def _part_of(x: A, terms: list[Any], value: A, box: tuple[sint, ...]) -> A:
    """The value in the shape of the part with axes of size 1 for integers and new axes.

    Args:
      terms: what the brackets hold.
      value: what is written.
      box: the part's size along each of this tensor's axes.
    """
    sizes = iter(box)
    part = tuple([1 if term is None else next(sizes) for term in terms])
    kept = tuple(d for term, d in zip(terms, part, strict=True) if not isinstance(term, (int, Expr)))
    value = _without_leading(value, len(kept))
    if broadcast_shape("setitem", value.shape, kept) != kept:
        raise ValueError(f"setitem: a value of shape {value.shape} does not fit a part of shape {kept}")
    return stretch(value, kept).reshape(part)


def _without_leading(x: A, ndim: int) -> A:
    """This value with at most ``ndim`` axes, as far as those in front of them have size 1."""
    extra = 0
    while x.ndim - extra > ndim and x.shape[extra] == 1:
        extra += 1
    return x.reshape(x.shape[extra:]) if extra else x


def _bounds(x: A, terms: list[Any]) -> tuple[tuple[tuple[sint, sint], ...], tuple[int, ...]]:
    """The part that integers and slices name: a range of each axis, and a step in it."""
    found = [range_of(term, x.shape[axis], x.shape, axis, "setitem")
             for axis, term in enumerate(term for term in terms if term is not None)]  # fmt: skip
    return tuple((start, stop) for start, stop, _ in found), tuple(step for *_, step in found)


def _box(x: A, terms: list[Any]) -> LazyBuffer:
    """The part as a view without padding, of the operand's number of axes."""
    bounds, steps = _bounds(x, terms)
    return x.lazydata.shrink(bounds).stride(steps)


def _written_box(x: A, terms: list[Any], value: A) -> A:
    """This tensor with a part replaced, as a new tensor through which a gradient flows."""
    fitted = _part_of(x, terms, value, _box(x, terms).shape)
    inner = [term for term in terms if term is not None]
    fitted = fitted.reshape(tuple(d for term, d in zip(terms, fitted.shape, strict=True) if term is not None))
    old = x
    inside = ones_like(fitted.detach(), dtype=dtypes.bool)
    for axis, term in enumerate(inner):
        start, stop, step = range_of(term, x.shape[axis], x.shape, axis, "setitem")
        fitted = _spread(fitted, axis, start, stop, step, x.shape[axis])
        inside = _spread(inside, axis, start, stop, step, x.shape[axis])
    return inside.where(fitted, old)


def _spread(x: A, axis: int, start: sint, stop: sint, step: int, dim: sint) -> A:
    """An axis put back where a slice took it from, zeros elsewhere."""
    out, stride = x, abs(step)
    if stride > 1:
        shape = out.shape
        out = out.reshape((*shape[: axis + 1], 1, *shape[axis + 1 :]))
        out = out.pad([(0, stride - 1) if i == axis + 1 else (0, 0) for i in range(out.ndim)])
        out = out.reshape((*shape[:axis], shape[axis] * stride, *shape[axis + 1 :]))
        out = out.shrink([(0, stop - start) if i == axis else None for i in range(out.ndim)])
    if step < 0:
        out = out.flip(axis)
    return out.pad([(start, dim - stop) if i == axis else (0, 0) for i in range(out.ndim)])


def _masked_write(x: A, mask: A, value: A) -> A:
    if mask.shape != x.shape[: mask.ndim]:
        raise IndexError(f"setitem: a mask of shape {mask.shape} does not fit shape {x.shape}")
    tail = x.shape[mask.ndim :]
    old = x
    wide = mask.reshape((*mask.shape, *(1,) * len(tail)))
    if value.ndim <= len(tail) or (value.ndim == len(tail) + 1 and value.shape[0] == 1):
        if broadcast_shape("setitem", value.shape, (1, *tail)) != (1, *tail):
            raise ValueError(f"setitem: a value of shape {value.shape} does not fit parts of shape {tail}")
        return wide.where(value.reshape(value.shape[-len(tail) :] if tail else ()), old)
    flat = mask.flatten()
    count = int(flat.sum().item())
    value = _without_leading(value, 1 + len(tail))
    if broadcast_shape("setitem", value.shape, (count, *tail)) != (count, *tail):
        raise ValueError(f"setitem: a value of shape {value.shape} for {count} places of shape {tail}")
    rank = cumsum(flat) - 1
    rows = stretch(value, (count, *tail)).reshape((1, count, prod(tail)))
    return wide.where(rows._apply(Take(), rank).reshape(x.shape), old)


def _written_at(x: A, terms: list[Any], value: A) -> A:
    """This tensor with the value at the positions that index tensors give."""
    inner = basic(x, terms, "setitem")
    advanced, gone, rest, place = axes_of_terms(terms)
    shape = shape_of_places("setitem", [terms[i] for i in advanced])
    at, n = flat_index([stretch(terms[i], shape) for i in advanced], [inner.shape[i] for i in advanced])
    kept = tuple(inner.shape[i] for i in rest)
    part = (*kept[:place], *shape, *kept[place:])
    value = _without_leading(value, len(part))
    if broadcast_shape("setitem", value.shape, part) != part:
        raise ValueError(f"setitem: a value of shape {value.shape} does not fit a part of shape {part}")
    looked_up = range(place, place + len(shape))
    order = [*looked_up, *(i for i in range(len(part)) if i not in looked_up)]
    new = stretch(value, part).permute(*order).reshape((prod(shape), prod(kept)))
    moved = [*advanced, *rest, *gone]
    front = inner.permute(*moved)
    written = _rows_replaced(front.reshape((n, prod(kept))), at.reshape((prod(shape),)), new)
    inner = written.reshape(front.shape).permute(*(moved.index(i) for i in range(inner.ndim)))
    inner = inner.reshape(tuple(d for i, d in enumerate(inner.shape) if i not in gone))
    return _written_box(x, [slice(None) if isinstance(term, Array) else term for term in terms], inner)


def _rows_replaced(x: A, at: A, new: A) -> A:
    """This matrix with rows of another at given positions; of several for one position the last one stays."""
    m, (n, width) = at.shape[0], x.shape
    if 0 in (m, n, width):
        return copied(x, new)
    return x._apply(Scatter(0), stretch(at.reshape((m, 1)), (m, width)), new)
