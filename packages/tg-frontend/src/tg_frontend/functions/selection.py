"""Elements chosen by conditions, and places found among edges."""

from __future__ import annotations

from itertools import pairwise

from ..array.operands import beside
from ..array.writing import fitting
from ..host.coerce import is_arraylike
from ..host.transfer import is_array
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def _truth(condition: Any) -> Tensor:
    """A condition as a tensor of bools."""
    made = condition if isinstance(condition, Tensor) else Tensor(condition)
    return made if made.dtype.kind == "bool" else made.ne(0)


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Elements of one where a condition holds, of another where it does not; or the places where it holds.

    Args:
      condition: a tensor of bools, or of numbers, of which all but 0 hold; a bool.
      input: a tensor or a number.
      other: a tensor or a number. If neither is given, the places are wanted: a tensor for each axis.

    Raises:
      TypeError: if only one is given.
      ValueError: if the shapes do not broadcast.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import where
      >>> x = Tensor([1.0, -2.0, 3.0])
      >>> where(x > 0, x, 0.0), where(x > 0)
      (Tensor([1., 0., 3.]), (Tensor([0, 2]),))
    """
    if (input is None) != (other is None):
        raise TypeError("where: either two values are wanted behind the condition, or none")
    held = _truth(condition)
    if input is None:
        return held.nonzero(as_tuple=True)
    return held.where(*(Tensor(v) if _is_list_or_array(v) else v for v in (input, other)))


def select(input: Any, dim: Any, index: Any = 0) -> Tensor:
    """One place along an axis, as ``Tensor.select``; or, of a list of conditions, values by the first that holds.

    Args:
      input: a tensor; or a list of conditions, as numpy has it.
      dim: the axis; or a list of values, as many as conditions.
      index: the place; or the value where none holds.

    Raises:
      ValueError: if there are not as many values as conditions, or none.
      IndexError: if the place is out of range.
      TypeError: if conditions are no bools.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import select
      >>> x = Tensor([1.0, 5.0, 9.0])
      >>> select([x < 3, x > 7], [x, x * 10], 0.0), select(x, 0, 1)
      (Tensor([ 1.,  0., 90.]), Tensor(5.))
    """
    if isinstance(input, Tensor) and not isinstance(dim, (list, tuple)):
        return input.select(dim, index)
    if len(input) != len(dim) or not len(input):
        raise ValueError(f"select: {len(input)} conditions for {len(dim)} values")
    device = next((one.device for one in (*input, *dim, index) if isinstance(one, Tensor)), None)
    others = (index, *dim)
    out, *values = (beside(Tensor, one, others) if _is_list_or_array(one) else one for one in others)
    for condition, value in zip(reversed(list(input)), reversed(values), strict=True):
        held = condition if isinstance(condition, Tensor) else Tensor(condition, device=device)
        if held.dtype.kind != "bool":
            raise TypeError(f"select: conditions are bools, got a tensor of {held.dtype.name}")
        out = where(held, value, out)
    found: Tensor = out
    return found


def choose(x: Tensor, choices: Any, mode: str = "raise") -> Tensor:
    """For each element the one of several tensors that it numbers.

    Args:
      x: integers.
      choices: tensors or numbers, which broadcast with ``x``; or one tensor, whose first axis counts them.
      mode: what becomes of a number out of range: ``"raise"``, for which the numbers are looked at, ``"wrap"`` or
        ``"clip"``.

    Raises:
      ValueError: if a number is out of range; or there is no such mode; or the shapes do not broadcast.
      TypeError: if ``x`` holds no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import choose
      >>> choose(Tensor([1, 0, 1]), [Tensor([1, 2, 3]), Tensor([10, 20, 30])])
      Tensor([10,  2, 30])
    """
    if x.dtype.kind not in ("int", "uint"):
        raise TypeError(f"choose: integers number the choices, got a tensor of {x.dtype.name}")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"choose: there are 'raise', 'wrap' and 'clip', got {mode!r}")
    parts = [part if isinstance(part, Tensor) else beside(Tensor, part, (x, *choices)) for part in choices]
    if not parts:
        raise ValueError("choose: there are no choices")
    if mode == "raise" and x.numel() and not ((x >= 0) & (x < len(parts))).all().item():
        raise ValueError(f"choose: a number is out of range for {len(parts)} choices")
    place = x % len(parts) if mode == "wrap" else x.clamp(0, len(parts) - 1)
    place, *parts = Tensor.broadcast_tensors(place, *parts)
    out = parts[-1]
    for number, part in enumerate(parts[:-1]):
        out = place.eq(number).where(part, out)
    return out


def piecewise(x: Tensor, condlist: Any, funclist: Sequence[Any], *args: Any, **kwargs: Any) -> Tensor:
    """A function that is another one where another condition holds.

    Every function is called with all elements, of which the right ones are chosen; numpy calls it with these alone.

    Args:
      x: where.
      condlist: conditions, of which the last that holds counts.
      funclist: functions or numbers, one for each condition, and perhaps one more for where none holds; else that is 0.
      args: what the functions take behind the elements.
      kwargs: what they take by name.

    Raises:
      ValueError: if there are more or fewer functions.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import piecewise
      >>> x = Tensor([-2.0, 1.0, 4.0])
      >>> piecewise(x, [x < 0, x > 3], [lambda x: -x, 10.0, lambda x: x * x])
      Tensor([ 2.,  1., 10.])
    """
    single = condlist.ndim == x.ndim if hasattr(condlist, "ndim") else _is_flat(condlist, x)
    conditions = [condlist] if single else list(condlist)
    conditions = [one if isinstance(one, Tensor) else Tensor(one, device=x.device) for one in conditions]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"piecewise: {len(funclist)} functions for {len(conditions)} conditions")
    values = [f(x, *args, **kwargs) if callable(f) and not isinstance(f, Tensor) else fitting(x, f, "piecewise")
              for f in funclist]  # fmt: skip
    out = x.zeros_like() if len(values) == len(conditions) else values[len(conditions)]
    for condition, value in zip(conditions, values, strict=False):
        out = where(condition, value, out)
    return (out if isinstance(out, Tensor) else x.zeros_like() + out).cast(x.dtype)


def _is_list_or_array(value: Any) -> bool:
    """Whether a value is a list or an array, and no tensor or number."""
    if isinstance(value, Tensor) or (is_array(value) and value.shape == ()):
        return False
    return isinstance(value, list) or is_arraylike(value)


def _is_flat(conditions: Any, x: Tensor) -> bool:
    """Whether conditions that are no tensor are one: a truth, or a row of truths for a tensor that has axes."""
    if isinstance(conditions, bool):
        return True
    return x.ndim > 0 and len(conditions) > 0 and isinstance(conditions[0], bool)


def compress(condition: Any, x: Tensor, axis: int | None = None) -> Tensor:
    """The places along an axis at which a condition holds: the condition is computed now.

    Args:
      condition: bools, one for each place; behind the last nothing is taken.
      x: the elements.
      axis: along which one; all elements, row by row, if None.

    Raises:
      ValueError: if the condition has other than one axis, or is longer than that axis.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import compress
      >>> compress([True, False, True], Tensor([[1, 2, 3], [4, 5, 6]]), axis=1)
      Tensor([[1, 3],
              [4, 6]])
    """
    held = _truth(condition)
    flat, along = (x.flatten(), 0) if axis is None else (x, axis)
    if held.ndim != 1 or held.shape[0] > flat.shape[along]:
        raise ValueError(f"compress: a condition of shape {held.shape} for {flat.shape[along]} places")
    places = [place for place, holds in enumerate(held.tolist()) if holds]
    return flat.index_select(along, Tensor(places, dtype="int32", device=x.device))


def extract(condition: Any, x: Tensor) -> Tensor:
    """The elements at which a condition holds, row by row: shape (how many,).

    Args:
      condition: bools, in the shape of ``x`` or another one with as many elements.
      x: the elements.

    Raises:
      ValueError: if there are not as many.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import extract
      >>> x = Tensor([[1, 2], [3, 4]])
      >>> extract(x % 2 == 0, x)
      Tensor([2, 4])
    """
    held = _truth(condition).flatten()
    if held.shape != x.flatten().shape:
        raise ValueError(f"extract: {held.numel()} conditions for {x.numel()} elements")
    return x.flatten().masked_select(held)


def flatnonzero(x: Tensor) -> Tensor:
    """The places of elements that are not 0, row by row.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import flatnonzero
      >>> flatnonzero(Tensor([[0, 2], [3, 0]]))
      Tensor([1, 2])
    """
    found: Tensor = x.flatten().nonzero().squeeze(-1)
    return found


def digitize(x: Tensor, bins: Any, right: bool = False) -> Tensor:
    """The number of the bin in which each element lies: 0 is before the first edge.

    Args:
      x: the elements.
      bins: edges that rise or fall, shape (n,); which of both is looked at.
      right: whether an edge belongs to the bin before it.

    Raises:
      ValueError: if the edges do neither.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import digitize
      >>> digitize(Tensor([0.5, 1.0, 7.0]), [1.0, 2.0, 4.0])
      Tensor([0, 1, 3])
    """
    edges = bins if isinstance(bins, Tensor) else beside(Tensor, bins, (x,))
    values = edges.tolist()
    pairs = list(pairwise(values)) if edges.ndim == 1 else [(1, 0), (0, 1)]
    if all(a <= b for a, b in pairs):
        return edges.searchsorted(x, side="left" if right else "right")
    if not all(a >= b for a, b in pairs):
        raise ValueError(f"digitize: edges of shape {edges.shape} neither rise nor fall")
    return len(values) - edges.flip(0).searchsorted(x, side="left" if right else "right")
