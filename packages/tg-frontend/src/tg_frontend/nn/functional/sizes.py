"""Sizes that are given once for all axes, or one an axis."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def numbers(given: int | Sequence[int], n: int, what: str, least: int = 1) -> tuple[int, ...]:
    """One whole number an axis.

    Raises:
      ValueError: if there are more or fewer, or one is below ``least``.
    """
    found = (given,) * n if isinstance(given, int) else tuple(given)
    if len(found) == 1:
        found *= n
    if len(found) != n or any(not isinstance(one, int) or isinstance(one, bool) or one < least for one in found):
        raise ValueError(f"{what} {given!r}; {n} whole numbers of at least {least} are wanted")
    return found


def positive(name: str, **sizes: object) -> None:
    """Sees to it that sizes are positive integers.

    Raises:
      TypeError: if one is something else.
      ValueError: if one is below 1.
    """
    for what, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"{name}: {what} is an integer, got {size!r}")
        if size < 1:
            raise ValueError(f"{name}: {what} is 1 or more, got {size}")
