"""Square brackets: reading parts.

A position outside of an axis is an IndexError where the host knows it: numbers, lists and arrays. Where it stands in a
tensor (it cannot be checked before it is computed) it reads as 0. Negative ones count from the end.
"""

from __future__ import annotations

from operator import index

from tg_dtype import dtypes
from tg_shape import Expr, bound_value, prod, sint, upper

from ..array.array import A, Array
from ..array.movement import stretch
from ..array.positions import check_known, counting_dtype, signed
from ..array.reading import host_bytes
from ..array.shapes import broadcast_shape
from ..autograd.functions import Stride, Take
from ..host import transfer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class WrongIndexError(IndexError, TypeError):
    """Something that is no index: an ``IndexError``, as PyTorch and numpy raise, and a ``TypeError``, which it is."""


class UnlikeIndexesError(IndexError, ValueError):
    """Indices that do not meet: an ``IndexError``, as PyTorch and numpy raise, and a ``ValueError``, as shapes."""


class _Mask:
    """One axis of a mask: where it is true, and what it must fit."""

    __slots__ = ("axis", "positions", "shape", "size")

    def __init__(self, positions: Any, shape: tuple[sint, ...], axis: int) -> None:
        self.positions, self.shape, self.axis, self.size = positions, shape, axis, shape[axis]


def index_terms(x: A, indices: Any, what: str) -> list[Any]:
    """One term an axis of the operand (and None for new axes): int, slice or integer tensor.

    Raises:
      IndexError: if there are too many, or a mask does not fit.
      WrongIndexError: if something is no index.
    """
    given = [_plain(term, what) for term in (indices if isinstance(indices, tuple) else (indices,))]
    terms: list[Any] = []
    known: dict[int, list[int]] = {}
    for term in given:
        if transfer.is_array(term) or isinstance(term, (list, tuple, range)):
            ends = _ends(term)
            term = type(x)(term, device=x.device, dtype=dtypes.int32 if _is_empty(term) else None)
            if ends and dtypes.is_int(term.dtype):
                known[len(terms)] = ends
        if isinstance(term, Array):
            terms.extend(_index_tensors(x, term, what))
        elif term is None or term is Ellipsis or isinstance(term, (slice, Expr)):
            terms.append(term)
        elif isinstance(term, int):
            terms.append(term)
        else:
            raise WrongIndexError(f"{what}: a {type(term).__name__} is no index of shape {x.shape}")
    dots = [i for i, term in enumerate(terms) if term is Ellipsis]
    if len(dots) > 1:
        raise IndexError(f"{what}: an index has a single ellipsis ('...') at most, got {len(dots)}")
    used = sum(term is not None and term is not Ellipsis for term in terms)
    if used > x.ndim:
        raise IndexError(f"{what}: too many indices: {used} for shape {x.shape}")
    fill = [slice(None)] * (x.ndim - used)
    at = dots[0] if dots else len(terms)
    terms[at : at + len(dots)] = fill
    known = {i + (len(fill) - 1 if dots and i > at else 0): ends for i, ends in known.items()} if known else known
    place = 0
    for i, term in enumerate(terms):
        if i in known:
            check_known(known[i], x.shape[place], what, f"axis {place} of {x.shape}")
        if isinstance(term, _Mask):
            if x.shape[place] != term.size:
                raise IndexError(f"{what}: a mask of shape {term.shape} does not fit shape {x.shape}")
            terms[i] = term.positions
        place += term is not None
    return terms


def _plain(term: Any, what: str) -> Any:
    """A term whose numbers are Python's: the bounds of a slice, and numpy's integers."""
    if isinstance(term, slice):
        return slice(*(_bound(part, what) for part in (term.start, term.stop, term.step)))
    if transfer.is_array(term) and term.shape == () and term.dtype.kind == "b":
        return bool(term)
    return int(term) if type(term).__module__ == "numpy" and type(term).__name__.startswith(("int", "uint")) else term


def with_axes_of_bools(x: A, indices: Any, what: str) -> tuple[A, Any]:
    """The operand with an axis of size 1 for every single bool among the indices, and indices without bools.

    A bool is a mask of no axes, as in numpy and PyTorch: true stands for position 0 of an axis of its own, false for no
    position, and like all index tensors they broadcast together. A tensor of one bool is computed at once.

    Raises:
      IndexError: if there are too many indices.
    """
    given = [_plain(term, what) for term in (indices if isinstance(indices, tuple) else (indices,))]
    if not any(is_single_bool(term) for term in given):
        return x, indices
    taken = [_axes_taken(term) for term in given]
    if sum(taken) > x.ndim:
        raise IndexError(f"{what}: too many indices: {sum(taken)} for shape {x.shape}")
    shape, axis = list(x.shape), 0
    for i, term in enumerate(given):
        if is_single_bool(term):
            shape.insert(axis, 1)
            given[i] = type(x)([0] if bool(term) else [], device=x.device, dtype=dtypes.int32)
            axis += 1
        else:
            axis += x.ndim - sum(taken) if term is Ellipsis else taken[i]
    return x.reshape(tuple(shape)), tuple(given)


def is_single_bool(term: Any) -> bool:
    """Whether a term is a mask of no axes."""
    return isinstance(term, bool) or (isinstance(term, Array) and term.ndim == 0 and term.dtype.kind == "bool")


def _axes_taken(term: Any) -> int:
    """How many axes of the operand a term stands for."""
    if term is None or term is Ellipsis or is_single_bool(term):
        return 0
    if isinstance(term, (list, tuple)):
        values, shape, _ = transfer.flatten(term)
        return len(shape) if values and all(isinstance(value, bool) for value in values) else 1
    if isinstance(term, Array):
        return term.ndim if term.dtype.kind == "bool" else 1
    return int(term.ndim) if transfer.is_array(term) and term.dtype.kind == "b" else 1


def _bound(bound: Any, what: str) -> Any:
    if bound is None or isinstance(bound, (int, Expr)) or not hasattr(bound, "__index__"):
        return bound
    if isinstance(bound, Array) and bound.ndim:
        raise WrongIndexError(f"{what}: the bounds of a slice are integers, got {bound!r}")
    return index(bound)


def _index_tensors(x: A, term: A, what: str) -> list[Any]:
    if term.dtype.kind == "bool":
        found = true_positions(term)
        return [_Mask(found[axis], term.shape, axis) for axis in range(term.ndim)]
    if term.dtype.kind == "float":
        raise WrongIndexError(f"{what}: indices are integers or bools, got a tensor of {term.dtype.name}")
    if term.device != x.device:
        raise ValueError(f"{what}: an index on {term.device} for a tensor on {x.device}; use .to()")
    return [term.detach()]


def true_positions(x: A) -> list[A]:
    """For each axis the positions of the true elements, in order. Computes the tensor."""
    shape = x._ints()
    flat = [i for i, value in enumerate(bytes(_bytes(x))) if value]
    out = []
    for axis in range(len(shape)):
        inner = 1
        for dim in shape[axis + 1 :]:
            inner *= dim
        values = [i // inner % shape[axis] for i in flat]
        out.append(type(x)(values, device=x.device, dtype=dtypes.int32))
    return out


def _bytes(x: A) -> memoryview:
    return host_bytes(x.detach())


def basic(x: A, terms: list[Any], what: str) -> A:
    """Integers (leaving an axis of size 1), slices and new axes; tensors leave their axis alone."""
    bounds: list[tuple[sint, sint]] = []
    steps: list[int] = []
    for axis, term in enumerate(term for term in terms if term is not None):
        dim = x.shape[axis]
        start, stop, step = range_of(term, dim, x.shape, axis, what)
        bounds.append((start, stop))
        steps.append(step)
    out = x.shrink(bounds)
    if any(step != 1 for step in steps):
        out = out._apply(Stride(tuple(steps)))
    shape: list[sint] = []
    dims = iter(out.shape)
    for term in terms:
        shape.append(1 if term is None else next(dims))
    return out.reshape(tuple(shape))


def __getitem__(x: A, indices: Any) -> A:
    """A part: ints, slices with steps, None, ``...``, tensors of integers, and masks, as PyTorch has it.

    Of several tensors the axes stay where they are if no slice stands between them, else they come first; an
    integer, or a tensor of no axes, takes its axis away before that. A mask (a tensor of bools) is computed at once,
    since the size of the result depends on it. Single bools are masks of no axes, which bring one axis together.

    Raises:
      IndexError: if a number is out of range, there are too many indices, or a mask does not fit.
      TypeError: if something is no index.
    """
    one = _plain(indices[0] if isinstance(indices, tuple) and len(indices) == 1 else indices, "getitem")
    if is_single_bool(one):
        return x.unsqueeze(0).shrink(((0, int(one)), *(None for _ in x.shape)))  # all, or nothing
    x, indices = with_axes_of_bools(x, indices, "getitem")
    terms = index_terms(x, indices, "getitem")
    out = basic(x, terms, "getitem")
    single = [isinstance(term, (int, Expr)) for term in terms]
    if any(isinstance(term, Array) for term in terms):
        return _look_up(out, terms)
    return out.reshape(tuple(dim for one, dim in zip(single, out.shape, strict=True) if not one))


getitem = __getitem__  # as operations call it


def __iter__(x: A) -> Iterator[A]:
    """The parts along the first axis, one after another."""
    return (__getitem__(x, i) for i in range(len(x)))


def _look_up(x: A, terms: list[Any]) -> A:
    """Whole slices at the positions that index tensors give; without the axes of integers."""
    advanced, gone, rest, place = axes_of_terms(terms)
    shape = shape_of_places("getitem", [terms[i] for i in advanced])
    flat, size = flat_index([stretch(terms[i], shape) for i in advanced], [x.shape[i] for i in advanced])
    moved = x.permute(*rest[:place], *gone, *advanced, *rest[place:])
    kept = [x.shape[i] for i in rest]
    before, after = prod(kept[:place]), prod(kept[place:])
    found = moved.reshape((before, size, after))._apply(Take(), flat.reshape((prod(shape),)))
    return found.reshape((*kept[:place], *shape, *kept[place:]))


def shape_of_places(what: str, indices: list[Any]) -> tuple[sint, ...]:
    """The shape in which index tensors meet.

    Raises:
      UnlikeIndexesError: if they do not.
    """
    try:
        return broadcast_shape(what, *(one.shape for one in indices))
    except ValueError as error:
        raise UnlikeIndexesError(f"{error}, which the indices have") from None


def axes_of_terms(terms: list[Any]) -> tuple[list[int], list[int], list[int], int]:
    """The axes of index tensors, those of integers, the rest; and how many of the rest the looked up axes come after.

    As PyTorch does: the looked up axes stay where they are if no other axis parts them, else they come first. An index
    tensor of no axes takes its axis away, as an integer does, and so parts nothing.
    """
    advanced = [i for i, term in enumerate(terms) if isinstance(term, Array)]
    gone = [i for i, term in enumerate(terms) if isinstance(term, (int, Expr))]
    rest = [i for i in range(len(terms)) if i not in advanced and i not in gone]
    shaping = [i for i in advanced if terms[i].ndim] or advanced
    parted = any(shaping[0] < i < shaping[-1] for i in rest)
    return advanced, gone, rest, 0 if parted else sum(1 for i in rest if i < shaping[0])


def _ends(term: Any) -> list[int]:
    """The least and the greatest of the integers in lists or an array."""
    if transfer.is_array(term):
        return [int(term.min()), int(term.max())] if term.size and term.dtype.kind in "iu" else []
    values = transfer.flatten(term)[0]
    return [int(min(values)), int(max(values))] if values else []


def _is_empty(term: Any) -> bool:
    return isinstance(term, (list, tuple)) and not term


def range_of(term: Any, dim: sint, shape: tuple[sint, ...], axis: int, what: str) -> tuple[sint, sint, int]:
    """(start, stop, step) with 0 <= start <= stop <= dim; a negative step walks the same range backward."""
    if isinstance(term, Array):
        if dim == 0 and term.numel() != 0:  # whatever it holds
            raise IndexError(
                f"{what}: an index of shape {term.shape} into axis {axis} of shape {shape}, which is empty"
            )
        return 0, dim, 1
    if isinstance(term, Expr):
        at, length = bound_value(term), bound_value(dim)
        if at is not None and length is not None and not 0 <= at < length:
            raise IndexError(f"{what}: index {term!r}, which is {at}, is out of range for axis {axis} of shape {shape}")
        return term, term + 1, 1
    if isinstance(term, int):
        if isinstance(dim, int) and not -dim <= term < dim:
            raise IndexError(f"{what}: index {term} is out of bounds for axis {axis} of shape {shape}")
        start = term + dim if term < 0 else term
        return start, start + 1, 1
    step = 1 if term.step is None else term.step
    if not isinstance(step, int):
        raise WrongIndexError(f"{what}: the step of a slice is an integer, got {step!r}")
    if step == 0:
        raise ValueError(f"{what}: the step of a slice cannot be 0")
    for bound in (term.start, term.stop):
        if bound is not None and not isinstance(bound, (int, Expr)):
            raise WrongIndexError(f"{what}: the bounds of a slice are integers, got {bound!r}")
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


def flat_index(indices: list[Any], sizes: list[sint]) -> tuple[Any, sint]:
    """Several positions as one in the flattened axes; -1 where one is out of range."""
    wide = counting_dtype(prod(map(upper, sizes)))
    flat, good = None, None
    for places, size in zip(indices, sizes, strict=True):
        at = signed(places, size)
        at = at if at.dtype is dtypes.int64 else at.cast(wide)
        at = (at < 0).where(at + size, at)
        if len(indices) > 1:
            inside = (at >= 0) & (at < size)
            good = inside if good is None else good & inside
        flat = at if flat is None else flat * size + at
    return (flat if good is None else good.where(flat, -1)), prod(sizes)
