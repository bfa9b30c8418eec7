"""Running combinations by an associative function, of all positions at once."""

from __future__ import annotations

from ..tensor import Tensor
from .tracing import numeric, same_device
from .tree import form, in_parts, leaves, of_parts, rebuild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_WHAT = "associative_scan"


def associative_scan(f: Callable[[Any, Any], Any], xs: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The elements up to each along an axis, combined by an associative function.

    ``f(f(a, b), c)`` and ``f(a, f(b, c))`` must be the same, but for rounding; then neighbours are combined in pairs,
    the results in pairs again, and so on: of n elements the function is applied 2 log2(n) times, to about 2 n pairs.
    The result is lazy, and gradients flow through it.

    Args:
      f: takes two trees like ``xs``, of which it combines elements at the same places, and returns such a tree.
      xs: a tree of tensors of one length along the axis.
      axis: along which they are combined.
      reverse: combine each element with those after it.

    Raises:
      TypeError: if ``xs`` are no tensors, or the function returns another form or dtype.
      ValueError: if the lengths differ, a size along the axis is symbolic, or the function returns another shape.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor, associative_scan
      >>> associative_scan(lambda a, b: a * b, Tensor([1, 2, 3, 4])).tolist()
      [1, 2, 6, 24]
    """
    xs = in_parts(xs)
    found = leaves(xs, "xs")
    for name, value in found:
        if not isinstance(value, Tensor):
            raise TypeError(f"{_WHAT}: {name} is a tensor, got a {type(value).__name__}")
    if not found:
        return xs
    same_device(_WHAT, found)
    numeric(_WHAT, found)
    axes = [tensor._axis(axis, _WHAT) for _, tensor in found]
    for (name, tensor), place in zip(found, axes, strict=True):
        if tensor.ndim == 0:
            raise ValueError(f"{_WHAT}: {name} has shape (), and no axis to go along")
        first = found[0][1].shape[axes[0]]
        if tensor.shape[place] != first:
            raise ValueError(f"{_WHAT}: {found[0][0]} has length {first}, {name} {tensor.shape[place]}")
    parts = [tensor.transpose(0, place) for (_, tensor), place in zip(found, axes, strict=True)]
    if reverse:
        parts = [part.flip(0) for part in parts]

    def combined(before: list[Tensor], after: list[Tensor]) -> list[Tensor]:
        args = [rebuild(xs, [p.transpose(0, place) for p, place in zip(side, axes, strict=True)])
                for side in ((after, before) if reverse else (before, after))]  # fmt: skip
        return _checked(xs, in_parts(f(*map(of_parts, args))), axes, after)

    out = _scanned(combined, parts)
    if reverse:
        out = [part.flip(0) for part in out]
    return of_parts(rebuild(xs, [part.transpose(0, place) for part, place in zip(out, axes, strict=True)]))


def _checked(xs: Any, result: Any, axes: list[int], like: list[Tensor]) -> list[Tensor]:
    """What the function returned, with the axis first."""
    if form(xs) != form(result):
        raise TypeError(f"{_WHAT}: the function takes the form {form(xs)}, and returns {form(result)}")
    out = []
    for (name, value), place, old in zip(leaves(result, "result"), axes, like, strict=True):
        if not isinstance(value, Tensor) or value.dtype is not old.dtype:
            got = value.dtype.name if isinstance(value, Tensor) else f"a {type(value).__name__}"
            raise TypeError(f"{_WHAT}: the function takes {name} as {old.dtype.name}, and returns {got}")
        new = value.transpose(0, place) if value.ndim == old.ndim else value
        if new.shape != old.shape:
            wanted = old.transpose(0, place).shape
            raise ValueError(f"{_WHAT}: the function takes {name} of shape {wanted}, and returns {value.shape}")
        out.append(new)
    return out


def _scanned(combined: Callable[[list[Tensor], list[Tensor]], list[Tensor]], parts: list[Tensor]) -> list[Tensor]:
    """Along axis 0. Pairs are combined and scanned, which gives every other result; the rest take one step more."""
    sizes: Any = [part.shape[0] for part in parts]
    waiting: list[list[Tensor]] = []
    while (n := sizes[0]) > 1:
        waiting.append(parts)
        even = [part[0 : n - 1 : 2] for part in parts]
        odd = [part[1:n:2] for part in parts]
        parts = [part.contiguous() for part in combined(even, odd)]
        sizes = [part.shape[0] for part in parts]
    for whole in reversed(waiting):
        n = whole[0].shape[0]
        odds = parts  # the results at places 1, 3, 5, …
        first = [part[0:1] for part in whole]
        if n > 2:
            count = (n - 1) // 2
            evens = combined([part[0:count] for part in odds], [part[2:n:2] for part in whole])
            evens = [one.cat(rest, dim=0) for one, rest in zip(first, evens, strict=True)]
        else:
            evens = first
        parts = [_interleaved(even, odd).contiguous() for even, odd in zip(evens, odds, strict=True)]
    return parts


def _interleaved(even: Tensor, odd: Tensor) -> Tensor:
    """Elements of both in turn; ``even`` has as many, or one more."""
    more = even.shape[0] - odd.shape[0]
    rest = tuple(even.shape[1:])
    if more:
        odd = odd.pad(((0, 1), *((0, 0) for _ in rest)))
    pairs = Tensor.stack(even, odd, dim=1).reshape(2 * even.shape[0], *rest)
    return pairs[: pairs.shape[0] - 1] if more else pairs
