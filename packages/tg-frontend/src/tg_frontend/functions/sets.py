"""Sets of elements: each once, in order. How many there are is computed now."""

from __future__ import annotations

from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def intersect1d(a: Tensor, b: Tensor, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The elements that both have.

    Args:
      assume_unique: see :func:`setdiff1d`; it makes no difference here.
      return_indices: also where either has them first.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import intersect1d
      >>> intersect1d(Tensor([1, 3, 4, 3]), Tensor([3, 1, 2, 1]))
      Tensor([1, 3])
    """
    a, b = _meet(a, b)
    found = _once(a)
    both = found.masked_select(found.isin(b))
    return (both, *(_first(both, one) for one in (a, b))) if return_indices else both


def union1d(a: Tensor, b: Tensor) -> Tensor:
    """The elements that one of both has.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import union1d
      >>> union1d(Tensor([3, 1, 3]), Tensor([2, 1]))
      Tensor([1, 2, 3])
    """
    a, b = _meet(a, b)
    return _once(a.cat(b))


def setdiff1d(a: Tensor, b: Tensor, assume_unique: bool = False) -> Tensor:
    """The elements of the first that the second has not, in the dtype of the first.

    Args:
      assume_unique: no tensor has an element twice: the result is in the order of the first, and not sorted.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import setdiff1d
      >>> setdiff1d(Tensor([1, 2, 3, 2, 4]), Tensor([3, 4, 5]))
      Tensor([1, 2])
    """
    found = a.flatten() if assume_unique else _once(a)
    return found.masked_select(found.isin(b, invert=True))


def setxor1d(a: Tensor, b: Tensor, assume_unique: bool = False) -> Tensor:
    """The elements that only one of both has.

    Args:
      assume_unique: see :func:`setdiff1d`; it makes no difference here.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import setxor1d
      >>> setxor1d(Tensor([1, 2, 3, 2]), Tensor([2, 3, 5]))
      Tensor([1, 5])
    """
    return _once(setdiff1d(a, b).cat(setdiff1d(b, a)))


def _first(elements: Tensor, x: Tensor) -> Tensor:
    """Where elements are in a tensor for the first time, which has all of them."""
    values, places = x.sort()
    return places[values.searchsorted(elements)]


def _once(x: Tensor) -> Tensor:
    found = x.unique()
    assert isinstance(found, Tensor)
    return found


def _meet(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both in one dtype, flat."""
    kind = a.flatten().result_type(b.flatten())
    return a.cast(kind).flatten(), b.cast(kind).flatten()
