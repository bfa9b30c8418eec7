"""Where a part is infinite or NaN: results that no formula gives, without slopes, beside one that holds elsewhere."""

from __future__ import annotations

import math

from .parts import composed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def lost(part: Any) -> Any:
    """Whether a part is an angle that nobody knows: infinite or NaN."""
    part = part.detach()
    return (part - part) != 0


def infinite(part: Any, sign: int = 0) -> Any:
    """Whether a part is infinite; of one sign, if that is given."""
    part = part.detach()
    return part == sign * math.inf if sign else part.abs() == math.inf


def is_endless(a: Any, b: Any) -> Any:
    """Whether the modulus of a + bi is infinite, although the other part may be NaN."""
    return infinite(a).logical_or(infinite(b))


def zero_like(part: Any) -> Any:
    """Zeros with the signs of a part."""
    part = part.detach()
    return part.zeros_like().copysign(part)


def endless_like(part: Any) -> Any:
    """Infinities with the signs of a part."""
    part = part.detach()
    return part.full_like(math.inf).copysign(part)


def at_infinity(plain: Any, where: Any, re: Any, im: Any) -> Any:
    """A complex tensor with other parts where a condition holds."""
    return composed(where.where(re, plain._parts[0]), where.where(im, plain._parts[1]))
