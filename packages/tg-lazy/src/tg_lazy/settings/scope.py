"""Blocks that change a setting and restore it whatever happens, even if a signal interrupts them anywhere.

Python runs signal handlers between its instructions, and a handler may raise: Ctrl-C does. An ``__exit__`` written in
Python can therefore end before its first line, and leave the setting changed. A :class:`Scope` ends with one call of C
functions, during which no handler runs.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial, wraps
from operator import call
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, overload

P = ParamSpec("P")
R = TypeVar("R")

Leave = Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None]


class _AtEnd(io.IOBase):
    """An ``__exit__`` that calls ``close`` from C; that may be any C function without arguments.

    Source: CPython, ``Modules/_io/iobase.c``, ``iobase_exit``.
    """

    closed = True  # else the destructor would close it again
    close: Any = None


class _Exit:
    """The ``__exit__`` of a :class:`Scope` in a ``with`` statement.

    The statement looks it up in the class before it enters the block, so it still sees what has to be restored. An
    explicit ``scope.__exit__(…)`` comes after the entry, and finds the attribute of the object instead: see
    :class:`Scope`.
    """

    @overload
    def __get__(self, scope: None, owner: type) -> Callable[..., None]: ...
    @overload
    def __get__(self, scope: Scope, owner: type) -> Leave: ...
    def __get__(self, scope: Scope | None, owner: type) -> Callable[..., None]:
        if scope is None:
            return lambda scope, *error: _leave(scope.saved)  # what ExitStack calls
        end = _AtEnd()
        end.close = partial(deque, map(call, (scope.restorer(), scope.saved.pop)), 0)
        return end.__exit__


def _leave(saved: list[Callable[[], object]], *error: object) -> None:
    saved.pop()()


class Scope(ABC):
    """A ``with`` block, or a decorator, that changes something. It is reusable and reentrant.

    A subclass says what it changes, and which C function restores it, such as ``partial(setattr, …)``.
    """

    __slots__ = ("__dict__", "saved")

    __exit__ = _Exit()

    def __init__(self) -> None:
        self.saved: list[Callable[[], object]] = []
        self.__dict__["__exit__"] = partial(_leave, self.saved)  # found by explicit calls, not by ``with``

    @abstractmethod
    def restorer(self) -> Callable[[], object]:
        """A C function that restores the present state."""

    @abstractmethod
    def change(self) -> None:
        """Makes the change."""

    def __enter__(self) -> None:
        restore = self.restorer()
        try:
            self.saved.append(restore)
            self.change()
        except BaseException:
            restore()
            self.saved[:] = [one for one in self.saved if one is not restore]
            raise

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function, with each call of it inside such a block."""

        @wraps(function)
        def changed(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return changed
