"""Which elements a reduction counts, and what it begins with: ``where`` and ``initial`` of numpy's reductions."""

from __future__ import annotations

from ..host import coerce
from .base import B, Base
from .operands import constant
from .selection import where as chosen
from .shapes import broadcast_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def mask_of(x: B, where: Any, what: str) -> B | None:
    """A mask as a tensor of bools that broadcasts to the shape of ``x``; None if it counts all elements.

    Raises:
      TypeError: if it holds no bools.
      ValueError: if it is of another shape.
    """
    if where is None or where is True:
        return None
    mask: B = where if isinstance(where, Base) else type(x)(where, device=x.device)  # type: ignore[assignment]
    if mask.dtype.kind != "bool":
        raise TypeError(f"{what}: where is True or False for each element, got {mask.dtype.name}")
    if broadcast_shape(what, mask.shape, x.shape) != x.shape:
        raise ValueError(f"{what}: where, of shape {mask.shape}, does not broadcast to the shape {x.shape}")
    return mask


def only(x: B, where: Any, instead: float, what: str) -> B:
    """The elements that count, and a number for the others.

    Raises:
      TypeError: if the mask holds no bools.
      ValueError: if it is of another shape.
    """
    mask = mask_of(x, where, what)
    return x if mask is None else chosen(mask, x, constant(x, instead, x.dtype, what))


def beginning(out: B, initial: Any, what: str) -> B:
    """What a reduction begins with, as a tensor in the shape and the dtype of its result.

    Raises:
      TypeError: if it is no number that the dtype has.
      OverflowError: if the dtype has no such integer.
    """
    if isinstance(initial, Base) or hasattr(initial, "item"):
        initial = initial.item()
    if not isinstance(initial, (bool, int, float)) or (isinstance(initial, float) and out.dtype.kind != "float"):
        raise TypeError(f"{what}: initial is a number of {out.dtype.name}, got {initial!r}")
    coerce.check_fits(initial, out.dtype, what)
    return constant(out, initial, out.dtype, what)

