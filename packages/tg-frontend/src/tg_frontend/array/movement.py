"""Shapes: reshape, permute, expand, pad, shrink, flip, and what is made of them."""

from __future__ import annotations

from tg_dtype import ConstType, DType, dtypes
from tg_lazy import LazyBuffer
from tg_shape import Expr, prod, sint, smax, sym_eval, unbind, upper

from ..autograd.functions import Cat, Expand, Flip, Pad, Permute, Reshape, Shrink, Where
from . import windows as sliding
from .gradient import Gradient
from .ingest import value_of
from .rearranging import rearranged
from .shapes import args_to_tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self


class Movement(Gradient):
    """Operations that move elements and compute nothing."""

    __slots__ = ()

    # *** the six that the graph knows ***

    def reshape(self, *shape: Any) -> Self:
        """The elements in row-major order in another shape. One size may be -1; None keeps the size of that axis.

        A view where strides can say it, as always of a tensor that lies row-major; else a copy.

        Raises:
          ValueError: the numbers of elements differ.
        """
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        if None in [s for s in sizes if s is None]:
            if any(s is None and i >= self.ndim for i, s in enumerate(sizes)):
                raise ValueError(f"reshape: None keeps an axis that shape {self.shape} has not, in {tuple(sizes)}")
            sizes = tuple(self.shape[i] if s is None else s for i, s in enumerate(sizes))
        new = args_to_tuple(tuple(sizes), "reshape")
        if new == self._lazy.shape:
            return self
        if any(isinstance(s, int) and s < 0 for s in new):
            new = self._solve(new)
        if prod(new) != self.numel():
            if any(isinstance(dim, Expr) for dim in (*new, *self.lazydata.shape)):
                return self._reshape_by_value(new)
            raise ValueError(f"reshape: {self.shape} has {self.numel()} elements, {new} has {prod(new)}")
        return self._apply(Reshape(new))

    def _reshape_by_value(self, new: tuple[sint, ...]) -> Self:
        """To a shape that has the same number of elements only for the values to which sizes are bound now.

        The elements keep their places up to the largest size that an axis may take, so that other values will do.
        """
        sizes = [unbind(dim) for dim in new]
        free = [isinstance(dim, Expr) and not dim.variables() <= values.keys() for dim, values in sizes]
        wanted = tuple(0 if f else sym_eval(dim, values) for f, (dim, values) in zip(free, sizes, strict=True))
        if any(free) or prod(wanted) != prod(self._ints()):
            raise ValueError(f"reshape: {self.shape} has {self.numel()} elements, {new} has {prod(new)}")
        out = self.shrink([(0, dim) for dim in self._ints()]).reshape(wanted)
        out = out.pad([(0, upper(dim) - size) for dim, size in zip(new, wanted, strict=True)])
        return out.shrink([(0, dim) for dim in new])

    def _solve(self, shape: tuple[sint, ...]) -> tuple[sint, ...]:
        known = prod(s for s in shape if s != -1)
        count = self.numel()
        if shape.count(-1) != 1 or any(isinstance(s, int) and s < -1 for s in shape):
            raise ValueError(f"reshape: {self.shape} to {shape}: at most one size may be -1, none below")
        if known == 0 or count % known != 0:
            raise ValueError(f"reshape: {self.shape} to {shape}: {count} elements do not divide by {known}")
        return tuple(count // known if s == -1 else s for s in shape)

    def view(self, *shape: Any) -> Self:
        """The same as :meth:`reshape`; of a dtype the same as :meth:`bitcast`."""
        if len(shape) == 1 and isinstance(shape[0], (str, DType)):
            return self.bitcast(shape[0])
        return self.reshape(*shape)

    def expand(self, *shape: Any) -> Self:
        """Axes of size 1 repeated to the given sizes; -1 keeps a size; new axes may come in front.

        Raises:
          ValueError: an axis of a size other than 1 would change, or axes would go.
        """
        new = args_to_tuple(shape, "expand")
        old = self.lazydata.shape
        if len(new) < len(old):
            raise ValueError(f"expand: {old} to {new}: the number of axes cannot fall")
        padded = (1,) * (len(new) - len(old)) + old
        new = tuple(o if n == -1 and isinstance(n, int) else n for n, o in zip(new, padded, strict=True))
        for n, o in zip(new, padded, strict=True):
            if n != o and o != 1:
                raise ValueError(f"expand: {old} to {new}: only axes of size 1 can be repeated")
            if isinstance(n, int) and n < 0:
                raise ValueError(f"expand: {old} to {new}: a size cannot be negative")
        return self._stretch(new)

    def _stretch(self, new: tuple[sint, ...]) -> Self:
        """Broadcast to ``new``, which is known to fit."""
        old = self._lazy.shape
        if old == new:
            return self
        out = self if len(old) == len(new) else self._apply(Reshape((1,) * (len(new) - len(old)) + old))
        return out if out._lazy.shape == new else out._apply(Expand(new))

    def permute(self, *order: Any) -> Self:
        """The axes in the given order, as a view.

        Raises:
          ValueError: ``order`` does not name every axis once.
          IndexError: an axis is out of range.
        """
        axes = tuple(self._axis(axis, "permute") for axis in args_to_tuple(order, "permute"))
        if sorted(axes) != list(range(self.ndim)):
            raise ValueError(f"permute: {order} does not name every axis of shape {self.shape} once")
        return self if axes == tuple(range(self.ndim)) else self._apply(Permute(axes))

    def flip(self, *axes: Any) -> Self:
        """The given axes reversed: a copy; ``t[::-1]`` is a view.

        Raises:
          ValueError: an axis is given twice.
          IndexError: an axis is out of range.
        """
        chosen = tuple(self._axis(axis, "flip") for axis in args_to_tuple(axes, "flip"))
        if len(set(chosen)) != len(chosen):
            raise ValueError(f"flip: an axis is given twice in {axes}")
        return self._apply(Flip(chosen)) if chosen and self.ndim else self._copied()

    def shrink(self, bounds: Sequence[tuple[sint, sint] | None]) -> Self:
        """A box: for each axis [start, stop), or None for all of it.

        Raises:
          ValueError: there is not one entry an axis, or it lies outside.
        """
        if len(bounds) != self.ndim:
            raise ValueError(f"shrink: {len(bounds)} bounds for shape {self.shape}")
        full = tuple((0, dim) if b is None else (b[0], b[1]) for b, dim in zip(bounds, self.shape, strict=True))
        for (start, stop), dim in zip(full, self.shape, strict=True):
            numbers = isinstance(start, int) and isinstance(stop, int) and isinstance(dim, int)
            if numbers and not 0 <= start <= stop <= dim:
                raise ValueError(f"shrink: {tuple(bounds)} does not lie inside shape {self.shape}")
        return self if full == tuple((0, dim) for dim in self.shape) else self._apply(Shrink(full))

    def shrink_to(self, *shape: Any) -> Self:
        """The first elements along each axis, as many as ``shape`` says; None leaves an axis as it is.

        Raises:
          ValueError: there is not one size an axis, or one is larger than the axis.
        """
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return self.shrink([None if size is None else (0, size) for size in sizes])

    def pad_to(self, *shape: Any) -> Self:
        """Zeros behind the elements of each axis, up to the sizes in ``shape``; None leaves an axis as it is.

        Raises:
          ValueError: there is not one size an axis, or one is smaller than the axis.
        """
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        if len(sizes) != self.ndim:
            raise ValueError(f"pad_to: {len(sizes)} sizes for shape {self.shape}")
        rest = [0 if size is None else size - dim for size, dim in zip(sizes, self.shape, strict=True)]
        if any(isinstance(more, int) and more < 0 for more in rest):
            raise ValueError(f"pad_to: {tuple(sizes)} is smaller than shape {self.shape}")
        return self.pad([(0, more) for more in rest])

    def pad(self, padding: Sequence[Any], mode: str = "constant", value: ConstType = 0) -> Self:
        """Elements around the tensor; negative amounts cut.

        Args:
          padding: either one (before, after) or None for each axis, or a flat list of amounts beginning with the last
            axis, as PyTorch has it: (left, right, top, bottom, …).
          mode: ``constant``, ``reflect``, ``replicate`` or ``circular``.
          value: the constant.

        Raises:
          ValueError: the amounts do not fit the shape, or there is no such mode.
        """
        if mode not in ("constant", "reflect", "replicate", "circular"):
            raise ValueError(f"pad: mode {mode!r}; there are constant, reflect, replicate, circular")
        amounts = self._amounts(padding)
        if mode != "constant":
            return self._pad_around(amounts, mode)
        cut = [(smax(0, -pair[0]), dim - smax(0, -pair[1])) for pair, dim in zip(amounts, self.shape, strict=True)]
        if any(isinstance(a, int) and isinstance(b, int) and a > b for a, b in cut):
            raise ValueError(f"pad: {tuple(amounts)} cuts more than shape {self.shape} has")
        inner = self.shrink(cut)
        outer = tuple((smax(0, before), smax(0, after)) for before, after in amounts)
        if all(pair == (0, 0) for pair in outer):
            return inner._copied()
        padded = inner._apply(Pad(outer))
        if value == 0:
            return padded
        inside = LazyBuffer.const(True, dtypes.bool, inner.shape, self.device).pad(outer)
        filler = LazyBuffer.const(value, self.dtype, padded.shape, self.device)
        return self._wrap(inside)._apply(Where(), padded, self._wrap(filler))

    def _amounts(self, padding: Sequence[Any]) -> list[tuple[sint, sint]]:
        if not isinstance(padding, (tuple, list)):
            raise TypeError(f"pad: amounts come in a tuple or list, got {padding!r}")
        if all(isinstance(p, (int, Expr)) for p in padding):
            if len(padding) % 2 or len(padding) > 2 * self.ndim:
                raise ValueError(f"pad: {tuple(padding)} is not (before, after) of the last axes of shape {self.shape}")
            pairs: list[tuple[sint, sint]] = [(padding[i], padding[i + 1]) for i in range(0, len(padding), 2)]
            return [(0, 0)] * (self.ndim - len(pairs)) + pairs[::-1]
        if len(padding) != self.ndim:
            raise ValueError(f"pad: {len(padding)} amounts for shape {self.shape}")
        return [(0, 0) if p is None else (p[0], p[1]) for p in padding]

    def _pad_around(self, amounts: list[tuple[sint, sint]], mode: str) -> Self:
        out = self
        for axis, (before, after) in enumerate(amounts):
            if mode == "circular" and (before < 0 or after < 0):  # what is cut does not come round
                keep = (max(0, -before), out.shape[axis] - max(0, -after))
                out = out.shrink([keep if i == axis else None for i in range(self.ndim)])
                before, after = max(0, before), max(0, after)
            dim = out.shape[axis]
            if not (isinstance(before, int) and isinstance(after, int) and isinstance(dim, int)):
                raise ValueError(f"pad: mode {mode!r} needs numbers, got {(before, after)} for shape {self.shape}")
            most = {"reflect": dim - 1, "circular": dim, "replicate": max(before, after) if dim else 0}[mode]
            if max(before, after) > most:
                raise ValueError(f"pad: {mode!r} cannot add {(before, after)} to axis {axis} of shape {self.shape}")
            parts = [out]
            if before > 0:
                parts.insert(0, out._edge(axis, mode, before, first=True))
            if after > 0:
                parts.append(out._edge(axis, mode, after, first=False))
            out = out._join(parts, axis) if len(parts) > 1 else out
            if before < 0 or after < 0:
                keep = (max(0, -before), out.shape[axis] - max(0, -after))
                out = out.shrink([keep if i == axis else None for i in range(self.ndim)])
        return out._copied()

    def _edge(self, axis: int, mode: str, count: int, first: bool) -> Self:
        dim = self.shape[axis]
        if mode == "replicate":
            bounds = (0, 1) if first else (dim - 1, dim)
        elif mode == "circular":
            bounds = (dim - count, dim) if first else (0, count)
        else:
            bounds = (1, count + 1) if first else (dim - 1 - count, dim - 1)
        part = self.shrink([bounds if i == axis else None for i in range(self.ndim)])
        if mode == "replicate":
            return part._stretch(tuple(count if i == axis else d for i, d in enumerate(part.shape)))
        return part.flip(axis) if mode == "reflect" else part

    # *** made of them ***

    @property
    def T(self) -> Self:
        """The axes in reverse order."""
        return self.permute(*range(self.ndim - 1, -1, -1))

    def transpose(self, dim0: int = 1, dim1: int = 0) -> Self:
        """Two axes exchanged."""
        a, b = self._axis(dim0, "transpose"), self._axis(dim1, "transpose")
        order = list(range(self.ndim))
        if self.ndim:
            order[a], order[b] = order[b], order[a]
        return self.permute(*order)

    def squeeze(self, dim: int | None = None) -> Self:
        """Without the axes of size 1, or without one of them; an axis of another size stays."""
        if dim is None:
            return self.reshape(tuple(s for s in self.shape if s != 1))
        axis = self._axis(dim, "squeeze")
        if self.ndim == 0 or self.shape[axis] != 1:
            return self
        return self.reshape(self.shape[:axis] + self.shape[axis + 1 :])

    def unsqueeze(self, dim: int) -> Self:
        """A new axis of size 1 at ``dim``."""
        axis = self._axis(dim, "unsqueeze", extra=1)
        return self.reshape((*self.shape[:axis], 1, *self.shape[axis:]))

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """The axes from ``start_dim`` to ``end_dim`` as one.

        Raises:
          ValueError: the first comes after the last.
        """
        first, last = self._axis(start_dim, "flatten"), self._axis(end_dim, "flatten")
        if first > last:
            raise ValueError(f"flatten: axis {start_dim} comes after {end_dim} in shape {self.shape}")
        return self.reshape((*self.shape[:first], prod(self.shape[first : last + 1]), *self.shape[last + 1 :]))

    def unflatten(self, dim: int, sizes: Sequence[sint]) -> Self:
        """One axis as several; one size may be -1."""
        axis = self._axis(dim, "unflatten")
        if self.ndim == 0:
            raise ValueError("unflatten: a tensor of shape () has no axis to divide")
        known = prod(s for s in sizes if s != -1)
        if list(sizes).count(-1) > 1 or (-1 not in sizes and known != self.shape[axis]) or known == 0:
            raise ValueError(f"unflatten: axis {dim} of shape {self.shape} is not {tuple(sizes)}")
        return self.reshape((*self.shape[:axis], *sizes, *self.shape[axis + 1 :]))

    def _join(self, parts: Sequence[Self], axis: int) -> Self:
        """The parts one after another along an axis; their other sizes, dtypes and devices agree."""
        return parts[0]._apply(Cat(axis), *parts[1:])

    def repeat(self, *repeats: Any) -> Self:
        """The whole tensor repeated along each axis; more counts than axes add axes in front.

        Raises:
          ValueError: there are fewer counts than axes, or one is negative.
        """
        counts = args_to_tuple(repeats, "repeat")
        if len(counts) < self.ndim or any(isinstance(c, int) and c < 0 for c in counts):
            raise ValueError(f"repeat: {counts} for shape {self.shape}: one count, 0 or more, for each axis")
        base = (1,) * (len(counts) - self.ndim) + self.shape
        out = self.reshape(tuple(d for dim in base for d in (1, dim)))
        out = out._stretch(tuple(d for c, dim in zip(counts, base, strict=True) for d in (c, dim)))
        return out.reshape(tuple(c * dim for c, dim in zip(counts, base, strict=True)))._copied()

    def repeat_interleave(self, repeats: int, dim: int | None = None) -> Self:
        """Each element ``repeats`` times in a row along an axis, or of the flattened tensor."""
        if not isinstance(repeats, int) or repeats < 0:
            raise ValueError(f"repeat_interleave: {repeats!r} is not a number of repeats")
        x = self.flatten() if dim is None else self
        axis = 0 if dim is None else self._axis(dim, "repeat_interleave")
        shape = x.shape
        x = x.reshape((*shape[: axis + 1], 1, *shape[axis + 1 :]))
        x = x._stretch((*shape[: axis + 1], repeats, *shape[axis + 1 :]))
        return x.reshape((*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]))._copied()

    def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Self, ...]:
        """Parts of the given sizes along an axis; an integer gives parts of that size, the last one perhaps smaller.

        Raises:
          ValueError: the sizes do not add up to the axis.
        """
        axis = self._axis(dim, "split")
        if self.ndim == 0:
            raise ValueError("split: a tensor of shape () has no axis to split")
        length = value_of(self.shape[axis], self.shape)
        if isinstance(sizes, int):
            if sizes <= 0:
                raise ValueError(f"split: parts of {sizes} elements")
            sizes = [min(sizes, length - start) for start in range(0, max(length, 1), sizes)]
        if sum(sizes) != length or any(s < 0 for s in sizes):
            raise ValueError(f"split: {tuple(sizes)} do not add up to axis {dim} of shape {self.shape}")
        parts, start = [], 0
        for size in sizes:
            parts.append(self.shrink([(start, start + size) if i == axis else None for i in range(self.ndim)]))
            start += size
        return tuple(parts)

    def chunk(self, chunks: int, dim: int = 0) -> list[Self]:
        """At most ``chunks`` parts of equal size along an axis, the last one perhaps smaller."""
        axis = self._axis(dim, "chunk")
        if self.ndim == 0:
            raise ValueError("chunk: a tensor of shape () has no axis to split")
        if not isinstance(chunks, int) or chunks <= 0:
            raise ValueError(f"chunk: {chunks!r} is not a number of parts")
        return list(self.split(max(1, -(-value_of(self.shape[axis], self.shape) // chunks)), dim))

    def unbind(self, dim: int = 0) -> tuple[Self, ...]:
        """The parts along an axis, without it, as views: ``x, y = t.unbind(-1)``.

        Raises:
          ValueError: a tensor of shape () has no axis.
        """
        axis = self._axis(dim, "unbind")
        if self.ndim == 0:
            raise ValueError("unbind: a tensor of shape () has no axis to take apart")
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        length = value_of(self.shape[axis], self.shape)
        parts = [self.shrink([(n, n + 1) if i == axis else None for i in range(self.ndim)]) for n in range(length)]
        return tuple(part.reshape(shape) for part in parts)

    def unfold(self, dim: int, size: sint, step: int) -> Self:
        """Windows of ``size`` every ``step`` elements along an axis; the window is the new last axis.

        Raises:
          ValueError: no window fits, or a number is not positive.
        """
        axis = self._axis(dim, "unfold")
        if self.ndim == 0:  # one element is an axis of one, as PyTorch has it
            return self.reshape((1,)).unfold(0, size, step).reshape((-1,))
        length = self.shape[axis]
        if not isinstance(size, int) or size < 0 or step < 1:
            raise ValueError(f"unfold: windows of {size} every {step}: at least 0 and 1 are wanted")
        if isinstance(length, int) and size > length:
            raise ValueError(f"unfold: a window of {size} is larger than axis {dim} of shape {self.shape}")
        if size == 0:
            bounds = [(0, 0) if i == axis else None for i in range(self.ndim)]
            return self.shrink(bounds).reshape((*self.shape[:axis], length // step + 1, *self.shape[axis + 1 :], 0))
        order = [i for i in range(self.ndim) if i != axis]
        moved = sliding.windows(self.permute(*order, axis), (size,), (step,), (1,))
        back = list(range(self.ndim - 1))
        back.insert(axis, self.ndim - 1)
        return self._show_strided(
            moved.permute(*back, self.ndim),
            lambda s: (*(n * step if i == axis else n for i, n in enumerate(s)), s[axis]), lambda s: 0,
        )  # fmt: skip

    def roll(self, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Self:
        """The elements moved along axes; those that leave at one end come in at the other. None: of the flat tensor."""
        moves = (shifts,) if isinstance(shifts, int) else tuple(shifts)
        if dims is None:
            if len(moves) != 1:
                raise ValueError(f"roll: {shifts!r} places need axes")
            return self.flatten().roll(moves, 0).reshape(self.shape)
        axes = (dims,) if isinstance(dims, int) else tuple(dims)
        if len(moves) != len(axes):
            raise ValueError(f"roll: {len(moves)} shifts for {len(axes)} axes")
        out = self
        for move, dim in zip(moves, axes, strict=True):
            axis = out._axis(dim, "roll")
            length = out.shape[axis]
            if not isinstance(length, int) and abs(move) <= length.vmin:
                cut: sint = length - move if move > 0 else -move  # whatever the value is
            else:
                length = value_of(length, out.shape)
                cut = length - move % length if length else 0
            if isinstance(length, int) and (not length or not move % length):
                continue
            doubled = out.repeat(*(2 if i == axis else 1 for i in range(out.ndim)))
            out = doubled.shrink([(cut, cut + length) if i == axis else None for i in range(out.ndim)])
        return out._copied()

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
        """The elements whose position along ``dim2`` is that along ``dim1`` plus ``offset``, as the last axis.

        Raises:
          ValueError: there are not two axes.
          IndexError: an axis is out of range.
        """
        first, second = self._axis(dim1, "diagonal"), self._axis(dim2, "diagonal")
        if self.ndim < 2 or first == second:
            raise ValueError(f"diagonal: axes {dim1} and {dim2} of shape {self.shape}: two axes are wanted")
        x = self.permute(*(i for i in range(self.ndim) if i not in (first, second)), first, second)
        *lead, rows, columns = x.shape
        start = (-offset, 0) if offset < 0 else (0, offset)
        down, right = rows - start[0], columns - start[1]
        more = down - right
        n: sint = right if isinstance(more, int) and more > 0 else down
        if isinstance(n, int) or not isinstance(more, int) or n.vmin < 0:  # else, whatever the value of the side is
            high, wide = (value_of(dim, x.shape) for dim in (rows, columns))
            n = max(0, min(high - start[0], wide - start[1]))
        if 0 in [dim for dim in (n, *lead) if isinstance(dim, int)]:
            return x.shrink([(0, 0)] * x.ndim).reshape((0,)).reshape((*lead, n))
        keep = [(0, dim) for dim in lead]
        x = x.shrink([*keep, *((begin, begin + n) for begin in start)]).reshape((*lead, n * n))
        x = x.pad([*((0, 0) for _ in lead), (0, n)]).reshape((*lead, n, n + 1))
        out = x.shrink([*keep, (0, n), (0, 1)]).reshape((*lead, n))
        others = [i for i in range(self.ndim) if i not in (first, second)]
        return self._show_strided(
            out, lambda s: (*(s[i] for i in others), s[first] + s[second]),
            lambda s: start[0] * s[first] + start[1] * s[second],
        )  # fmt: skip

    def rearrange(self, formula: str, **sizes: int) -> Self:
        """Reshape and permute by names, as einops has it: ``"b (h w) c -> b c h w"`` with ``h=2``.

        ``...`` stands for the axes that are not named, also in parentheses on the right.

        Raises:
          ValueError: the formula does not fit the shape.
        """
        out: Self = rearranged(self, formula, sizes)
        return out

    def _windows(self, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]) -> Self:
        """The windows of the last axes: (…, *counts, *kernel)."""
        return sliding.windows(self, kernel, stride, dilation)
