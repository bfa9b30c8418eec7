"""Functions that make a tensor of the class that they are called of, as methods of that class."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")

    class constructor(Generic[P]):
        """``classmethod`` for a generic function that returns an object of the class, which type checkers lose."""

        def __init__(self, function: Callable[Concatenate[type[Any], P], Any]) -> None: ...
        def __get__(self, instance: object, owner: type[T]) -> Callable[P, T]: ...

else:
    constructor = classmethod
