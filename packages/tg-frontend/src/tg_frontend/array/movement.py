"""Shapes: reshape, permute, expand, pad, shrink, flip, and what is made of them."""

from __future__ import annotations

import math

from tg_dtype import ConstType, DType, dtypes
from tg_lazy import LazyBuffer
from tg_shape import Expr, prod, sint, smax, sym_eval, unbind, upper

from ..autograd.functions import Cat, Expand, Flip, Pad, Permute, Reshape, Shrink, Where
from ..host import coerce
from .base import B
from .casts import bitcast
from .computing import copied
from .shapes import args_to_tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def reshape(x: B, *shape: Any) -> B:
    """The elements in row-major order in another shape. One size may be -1; None keeps the size of that axis.

    A view where strides can say it, as always of a tensor that lies row-major; else a copy.

    Raises:
      ValueError: if the numbers of elements differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3, 4, 5, 6]).reshape(2, -1)
      Tensor([[1, 2, 3],
              [4, 5, 6]])
    """
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if None in [s for s in sizes if s is None]:
        if any(s is None and i >= x.ndim for i, s in enumerate(sizes)):
            raise ValueError(f"reshape: None keeps an axis that shape {x.shape} has not, in {tuple(sizes)}")
        sizes = tuple(x.shape[i] if s is None else s for i, s in enumerate(sizes))
    new = args_to_tuple(tuple(sizes), "reshape")
    if new == x._lazy.shape:
        return x
    if any(isinstance(s, int) and s < 0 for s in new):
        new = _solve(x, new)
    if prod(new) != x.numel():
        if any(isinstance(dim, Expr) for dim in (*new, *x.lazydata.shape)):
            return _reshape_by_value(x, new)
        raise ValueError(f"reshape: {x.shape} has {x.numel()} elements, {new} has {prod(new)}")
    return x._apply(Reshape(new))


def _reshape_by_value(x: B, new: tuple[sint, ...]) -> B:
    """To a shape that has the same number of elements only for the values to which sizes are bound now.

    The elements keep their places up to the largest size that an axis may take, so that other values will do.
    """
    sizes = [unbind(dim) for dim in new]
    free = [isinstance(dim, Expr) and not dim.variables() <= values.keys() for dim, values in sizes]
    wanted = tuple(0 if f else sym_eval(dim, values) for f, (dim, values) in zip(free, sizes, strict=True))
    if any(free) or prod(wanted) != prod(x._ints()):
        raise ValueError(f"reshape: {x.shape} has {x.numel()} elements, {new} has {prod(new)}")
    out = reshape(shrink(x, [(0, dim) for dim in x._ints()]), wanted)
    out = pad(out, [(0, upper(dim) - size) for dim, size in zip(new, wanted, strict=True)])
    return shrink(out, [(0, dim) for dim in new])


def _solve(x: B, shape: tuple[sint, ...]) -> tuple[sint, ...]:
    known = prod(s for s in shape if s != -1)
    count = x.numel()
    if shape.count(-1) != 1 or any(isinstance(s, int) and s < -1 for s in shape):
        raise ValueError(f"reshape: {x.shape} to {shape}: at most one size may be -1, none below")
    if known == 0 or count % known != 0:
        raise ValueError(f"reshape: {x.shape} to {shape}: {count} elements do not divide by {known}")
    return tuple(count // known if s == -1 else s for s in shape)


def view(x: B, *shape: Any) -> B:
    """The same as :meth:`reshape`; of a dtype the same as :meth:`bitcast`.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0, 3.0, 4.0]).view(2, 2)
      Tensor([[1., 2.],
              [3., 4.]])
    """
    if len(shape) == 1 and isinstance(shape[0], (str, DType)):
        return bitcast(x, shape[0])
    return reshape(x, *shape)


def expand(x: B, *shape: Any) -> B:
    """Axes of size 1 repeated to the given sizes; -1 keeps a size; new axes may come in front.

    Raises:
      ValueError: if an axis of a size other than 1 would change, axes would go, or -1 stands for a new one.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1], [2]]).expand(-1, 3)
      Tensor([[1, 1, 1],
              [2, 2, 2]])
    """
    new = args_to_tuple(shape, "expand")
    old = x.lazydata.shape
    if len(new) < len(old):
        raise ValueError(f"expand: {old} to {new}: the number of axes cannot fall")
    fresh = len(new) - len(old)
    if any(isinstance(n, int) and n == -1 for n in new[:fresh]):
        raise ValueError(f"expand: {old} to {new}: a new axis has no size that -1 could keep")
    padded = (1,) * fresh + old
    new = tuple(o if n == -1 and isinstance(n, int) else n for n, o in zip(new, padded, strict=True))
    for n, o in zip(new, padded, strict=True):
        if n != o and o != 1:
            raise ValueError(f"expand: {old} to {new}: only axes of size 1 can be repeated")
        if isinstance(n, int) and n < 0:
            raise ValueError(f"expand: {old} to {new}: a size cannot be negative")
    return stretch(x, new)


def stretch(x: B, new: tuple[sint, ...]) -> B:
    """Broadcast to ``new``, which is known to fit."""
    old = x._lazy.shape
    if old == new:
        return x
    out = x if len(old) == len(new) else x._apply(Reshape((1,) * (len(new) - len(old)) + old))
    return out if out._lazy.shape == new else out._apply(Expand(new))


def permute(x: B, *order: Any) -> B:
    """The axes in the given order, as a view.

    Raises:
      ValueError: if ``order`` does not name every axis once.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(2, 3, 5).permute(2, 0, 1).shape
      (5, 2, 3)
    """
    axes = tuple(x._axis(axis, "permute") for axis in args_to_tuple(order, "permute"))
    if sorted(axes) != list(range(x.ndim)):
        raise ValueError(f"permute: {order} does not name every axis of shape {x.shape} once")
    return x if axes == tuple(range(x.ndim)) else x._apply(Permute(axes))


def transpose(x: B, dim0: int = 1, dim1: int = 0) -> B:
    """Two axes exchanged.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).transpose()
      Tensor([[1, 3],
              [2, 4]])
    """
    a, b = x._axis(dim0, "transpose"), x._axis(dim1, "transpose")
    order = list(range(x.ndim))
    if x.ndim:
        order[a], order[b] = order[b], order[a]
    return permute(x, *order)


def flip(x: B, *axes: Any) -> B:
    """The given axes reversed: a copy; ``t[::-1]`` is a view.

    Raises:
      ValueError: if an axis is given twice.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).flip(0)
      Tensor([[3, 4],
              [1, 2]])
    """
    chosen = tuple(x._axis(axis, "flip") for axis in args_to_tuple(axes, "flip"))
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"flip: an axis is given twice in {axes}")
    return x._apply(Flip(chosen)) if chosen and x.ndim else copied(x)


def shrink(x: B, bounds: Sequence[tuple[sint, sint] | None]) -> B:
    """A box: for each axis [start, stop), or None for all of it.

    Raises:
      ValueError: if there is not one entry an axis, or it lies outside.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2, 3], [4, 5, 6]]).shrink([None, (1, 3)])
      Tensor([[2, 3],
              [5, 6]])
    """
    if len(bounds) != x.ndim:
        raise ValueError(f"shrink: {len(bounds)} bounds for shape {x.shape}")
    if any(b is not None and not (isinstance(b, (tuple, list)) and len(b) == 2) for b in bounds):
        raise ValueError(f"shrink: bounds are pairs of start and stop, or None, got {tuple(bounds)}")
    full = tuple((0, dim) if b is None else (b[0], b[1]) for b, dim in zip(bounds, x.shape, strict=True))
    for (start, stop), dim in zip(full, x.shape, strict=True):
        numbers = isinstance(start, int) and isinstance(stop, int) and isinstance(dim, int)
        if numbers and not 0 <= start <= stop <= dim:
            raise ValueError(f"shrink: {tuple(bounds)} does not lie inside shape {x.shape}")
    return x if full == tuple((0, dim) for dim in x.shape) else x._apply(Shrink(full))


def shrink_to(x: B, *shape: Any) -> B:
    """The first elements along each axis, as many as ``shape`` says; None leaves an axis as it is.

    Raises:
      ValueError: if there is not one size an axis, or one is larger than the axis.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2, 3], [4, 5, 6]]).shrink_to(None, 2)
      Tensor([[1, 2],
              [4, 5]])
    """
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return shrink(x, [None if size is None else (0, size) for size in sizes])


def pad(x: B, padding: Sequence[Any], mode: str = "constant", value: ConstType = 0) -> B:
    """Elements around the tensor; negative amounts cut.

    Args:
      padding: either one (before, after) or None for each axis, or a flat list of amounts beginning with the last
        axis, as PyTorch has it: (left, right, top, bottom, …).
      mode: ``constant``, ``reflect``, ``replicate`` or ``circular``.
      value: the constant.

    Raises:
      ValueError: if the amounts do not fit the shape, or there is no such mode.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).pad([(1, 2)])
      Tensor([0, 1, 2, 3, 0, 0])
      >>> Tensor([1, 2, 3]).pad([(1, 2)], mode="circular")
      Tensor([3, 1, 2, 3, 1, 2])
    """
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise ValueError(f"pad: mode {mode!r}; there are constant, reflect, replicate, circular")
    amounts = _amounts(x, padding)
    if mode != "constant":
        return _pad_around(x, amounts, mode)
    cut = [(smax(0, -pair[0]), dim - smax(0, -pair[1])) for pair, dim in zip(amounts, x.shape, strict=True)]
    if any(isinstance(a, int) and isinstance(b, int) and a > b for a, b in cut):
        raise ValueError(f"pad: {tuple(amounts)} cuts more than shape {x.shape} has")
    inner = shrink(x, cut)
    outer = tuple((smax(0, before), smax(0, after)) for before, after in amounts)
    if all(pair == (0, 0) for pair in outer):
        return copied(inner)
    padded = inner._apply(Pad(outer))
    if value == 0 and math.copysign(1, value) > 0:
        return padded
    inside = LazyBuffer.const(True, dtypes.bool, inner.shape, x.device).pad(outer)
    coerce.check_fits(value, x.dtype, "pad")
    filler = LazyBuffer.const(value, x.dtype, padded.shape, x.device)
    return x._wrap(inside)._apply(Where(), padded, x._wrap(filler))


def _amounts(x: B, padding: Sequence[Any]) -> list[tuple[sint, sint]]:
    if not isinstance(padding, (tuple, list)):
        raise TypeError(f"pad: amounts come in a tuple or list, got {padding!r}")
    if all(isinstance(p, (int, Expr)) for p in padding):
        if len(padding) % 2 or len(padding) > 2 * x.ndim:
            raise ValueError(f"pad: {tuple(padding)} is not (before, after) of the last axes of shape {x.shape}")
        pairs: list[tuple[sint, sint]] = [(padding[i], padding[i + 1]) for i in range(0, len(padding), 2)]
        return [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
    if len(padding) != x.ndim:
        raise ValueError(f"pad: {len(padding)} amounts for shape {x.shape}")
    return [(0, 0) if p is None else (p[0], p[1]) for p in padding]


def _pad_around(x: B, amounts: list[tuple[sint, sint]], mode: str) -> B:
    out = x
    for axis, (before, after) in enumerate(amounts):
        if mode == "circular" and (before < 0 or after < 0):  # what is cut does not come round
            keep = (max(0, -before), out.shape[axis] - max(0, -after))
            out = shrink(out, [keep if i == axis else None for i in range(x.ndim)])
            before, after = max(0, before), max(0, after)
        dim = out.shape[axis]
        if not (isinstance(before, int) and isinstance(after, int) and isinstance(dim, int)):
            raise ValueError(f"pad: mode {mode!r} needs numbers, got {(before, after)} for shape {x.shape}")
        most = {"reflect": dim - 1, "circular": dim, "replicate": max(before, after) if dim else 0}[mode]
        if max(before, after) > max(most, 0):
            raise ValueError(f"pad: {mode!r} cannot add {(before, after)} to axis {axis} of shape {x.shape}")
        parts = [out]
        if before > 0:
            parts.insert(0, _edge(out, axis, mode, before, first=True))
        if after > 0:
            parts.append(_edge(out, axis, mode, after, first=False))
        out = parts[0]._apply(Cat(axis), *parts[1:]) if len(parts) > 1 else out
        if before < 0 or after < 0:
            keep = (max(0, -before), out.shape[axis] - max(0, -after))
            out = shrink(out, [keep if i == axis else None for i in range(x.ndim)])
    return copied(out)


def _edge(x: B, axis: int, mode: str, count: int, first: bool) -> B:
    dim = x.shape[axis]
    if mode == "replicate":
        bounds = (0, 1) if first else (dim - 1, dim)
    elif mode == "circular":
        bounds = (dim - count, dim) if first else (0, count)
    else:
        bounds = (1, count + 1) if first else (dim - 1 - count, dim - 1)
    part = shrink(x, [bounds if i == axis else None for i in range(x.ndim)])
    if mode == "replicate":
        return stretch(part, tuple(count if i == axis else d for i, d in enumerate(part.shape)))
    return flip(part, axis) if mode == "reflect" else part


def pad_to(x: B, *shape: Any, value: ConstType = 0) -> B:
    """``value`` behind the elements of each axis, up to the sizes in ``shape``; None leaves an axis as it is.

    Raises:
      ValueError: if there is not one size an axis, or one is smaller than the axis.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).pad_to(5), Tensor([1]).pad_to(2, value=7)
      (Tensor([1, 2, 3, 0, 0]), Tensor([1, 7]))
    """
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if len(sizes) != x.ndim:
        raise ValueError(f"pad_to: {len(sizes)} sizes for shape {x.shape}")
    rest = [0 if size is None else size - dim for size, dim in zip(sizes, x.shape, strict=True)]
    if any(isinstance(more, int) and more < 0 for more in rest):
        raise ValueError(f"pad_to: {tuple(sizes)} is smaller than shape {x.shape}")
    return pad(x, [(0, more) for more in rest], value=value)


def squeeze(x: B, dim: int | Sequence[int] | None = None) -> B:
    """Without the axes of size 1, or without those of them that are named; an axis of another size stays.

    Raises:
      IndexError: if an axis is out of range.
      ValueError: if one is named twice.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(1, 3, 1).squeeze().shape, Tensor.zeros(1, 3, 1).squeeze(0).shape
      ((3,), (3, 1))
    """
    given = range(x.ndim) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    axes = [x._axis(axis, "squeeze") for axis in given]
    if len(set(axes)) != len(axes):
        raise ValueError(f"squeeze: an axis is named twice in {tuple(given)}")
    left = tuple(size for i, size in enumerate(x.shape) if i not in axes or size != 1)
    return x if left == x.shape else reshape(x, left)


def unsqueeze(x: B, dim: int) -> B:
    """A new axis of size 1 at ``dim``.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).unsqueeze(1)
      Tensor([[1],
              [2]])
    """
    axis = x._axis(dim, "unsqueeze", extra=1)
    return reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))


def flatten(x: B, start_dim: int = 0, end_dim: int = -1) -> B:
    """The axes from ``start_dim`` to ``end_dim`` as one.

    Raises:
      ValueError: if the first comes after the last.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).flatten()
      Tensor([1, 2, 3, 4])
    """
    first, last = x._axis(start_dim, "flatten"), x._axis(end_dim, "flatten")
    if first > last:
        raise ValueError(f"flatten: axis {start_dim} comes after {end_dim} in shape {x.shape}")
    return reshape(x, (*x.shape[:first], prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


def unflatten(x: B, dim: int, sizes: Sequence[sint]) -> B:
    """One axis as several; one size may be -1.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3, 4]).unflatten(0, (2, -1))
      Tensor([[1, 2],
              [3, 4]])
    """
    axis = x._axis(dim, "unflatten")
    if x.ndim == 0:
        raise ValueError("unflatten: a tensor of shape () has no axis to divide")
    known = prod(s for s in sizes if s != -1)
    if list(sizes).count(-1) > 1 or (known == 0 if -1 in sizes else known != x.shape[axis]):
        raise ValueError(f"unflatten: axis {dim} of shape {x.shape} is not {tuple(sizes)}")
    return reshape(x, (*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))
