"""Enumerations for hot loops: their members are read and hashed as fast as plain attributes and objects."""

from __future__ import annotations

from enum import EnumType

TYPE_CHECKING = False  # importing typing would cost more than this whole package
if TYPE_CHECKING:
    from enum import Enum
    from typing import NoReturn, TypeVar

    E = TypeVar("E", bound=type[Enum])

_LOOKUPS = ("__bool__", "__call__", "__contains__", "__dir__", "__getitem__", "__iter__", "__len__", "__members__",
            "__repr__", "__reversed__")  # fmt: skip
"""What EnumType adds to a class that is finished, but for what reads attributes."""


class _Finished(type):
    """The class of an enumeration that is finished: members are found, as :data:`_LOOKUPS` do, and stay as they are."""

    def __new__(cls, name: str, *_: object) -> NoReturn:
        raise TypeError(f"{name}: an enumeration with members cannot be extended")

    def __setattr__(cls, name: str, value: object) -> None:
        raise AttributeError(f"cannot assign to {name} of {cls!r}")

    def __delattr__(cls, name: str) -> None:
        raise AttributeError(f"cannot delete {name} of {cls!r}")


for _name in _LOOKUPS:
    setattr(_Finished, _name, vars(EnumType)[_name])


def fast_members(enumeration: E) -> E:
    """A class decorator of an :class:`enum.Enum`: members are hashed by identity and read as plain attributes.

    Enum hashes a member by its name, in a Python function. EnumType of Python 3.11 has a ``__getattr__`` for names that
    are not found, because of which each ``Ops.ADD`` makes and calls a method. Python 3.12 has it no more
    (python/cpython#106762): there, EnumType stays.

    The class is an Enum in all else: members are instances of Enum, and the class is iterated, indexed and called.

    Example:
      >>> from enum import Enum
      >>> @fast_members
      ... class Colour(Enum):
      ...     RED = 1
      ...     GREEN = 2
      >>> list(Colour), Colour["RED"] is Colour(1) is Colour.RED, Colour.GREEN.name
      ([<Colour.RED: 1>, <Colour.GREEN: 2>], True, 'GREEN')
    """
    enumeration.__hash__ = object.__hash__  # type: ignore[method-assign]
    if "__getattr__" in vars(EnumType):
        enumeration.__class__ = _Finished  # type: ignore[assignment]
    return enumeration
