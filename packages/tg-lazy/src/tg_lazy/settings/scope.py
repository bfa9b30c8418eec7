"""Blocks that change a setting and put it back whatever happens, a signal at any instruction included.

Python runs signal handlers between its instructions, and a handler may raise: Ctrl-C does. An ``__exit__`` written in
Python can so end before its first line, and what it was to put back stays changed. The end of a :class:`Scope` is one
call of C functions, in which no handler runs.
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

    closed = True  # so that nothing is closed once more when the object goes
    close: Any = None


class _Exit:
    """The ``__exit__`` of a :class:`Scope` in a ``with`` statement.

    The statement looks it up in the class, before the block is entered: it knows what to put back. An explicit
    ``scope.__exit__(…)``, which comes after the entry, finds the attribute of the object instead, see
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
    """A ``with`` block, or a decorator, that changes something. It may be entered again, also inside of itself.

    A subclass says what is changed, and how it is put back: by a C function, such as ``partial(setattr, …)``.
    """

    __slots__ = ("__dict__", "saved")

    __exit__ = _Exit()

    def __init__(self) -> None:
        self.saved: list[Callable[[], object]] = []
        self.__dict__["__exit__"] = partial(_leave, self.saved)  # found by explicit calls, not by ``with``

    @abstractmethod
    def restorer(self) -> Callable[[], object]:
        """What puts back what is in force now: a C function."""

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
        """The function, each call of which is such a block."""

        @wraps(function)
        def changed(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return changed
