"""Settings: environment variables, and a scope that overrides them."""

from __future__ import annotations

import contextvars
import os
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar, overload

from .scope import Scope

T = TypeVar("T", int, str)


@overload
def getenv(key: str, default: str) -> str: ...
@overload
def getenv(key: str, default: int = 0) -> int: ...
def getenv(key: str, default: int | str = 0) -> int | str:
    """The environment variable ``key``, converted to the type of ``default``.

    An empty variable counts as not set. So does one that holds no number where a number is expected, with a
    ``RuntimeWarning``: another program may use the same name, and must not stop this one.
    """
    raw = os.environ.get(key, "").strip()
    if not raw:
        return default
    if isinstance(default, str):
        return raw
    try:
        number = int(raw)
    except ValueError:
        number = -1
    if number >= 0:
        return number
    allowed = f"a whole number from 0 on is wanted, and {default} is taken"
    warnings.warn(f"the environment variable {key} is {raw!r}: {allowed}", RuntimeWarning, stacklevel=2)
    return default


class ContextVar(Generic[T]):
    """A named setting, read from the environment once and overridden by :class:`Context`.

    Attributes:
      value: the current value in this thread and ``asyncio`` task. Assigning to it changes the value wherever no
        :class:`Context` overrides it.
    """

    registry: ClassVar[dict[str, ContextVar[int] | ContextVar[str]]] = {}
    __slots__ = ("key", "named", "value")

    def __init__(self, key: str, default: T, named: Callable[[], object] | None = None) -> None:
        """Declares a setting.

        Args:
          key: its name.
          default: its value where the environment says nothing.
          named: called before it first takes a value other than the default, from the environment or a
            :class:`Context`.
        """
        if key in ContextVar.registry:
            raise RuntimeError(f"the setting {key} is declared twice")
        self.key, self.named = key, named
        self.value: T = getenv(key, default)
        if named is not None and self.value != default:
            named()
        ContextVar.registry[key] = self

    def __bool__(self) -> bool:
        return bool(self.value)

    def __ge__(self, other: T) -> bool:
        return self.value >= other

    def __gt__(self, other: T) -> bool:
        return self.value > other

    def __lt__(self, other: T) -> bool:
        return self.value < other

    def __repr__(self) -> str:
        return f"ContextVar({self.key}={self.value!r})"


_overrides: contextvars.ContextVar[Mapping[str, int | str] | None] = contextvars.ContextVar("overrides", default=None)
_base: Any = ContextVar.__dict__["value"]  # the slot of the value outside of every Context


class _Overridden(ContextVar[T]):
    """A setting that some :class:`Context` has overridden once; all others are read without a look at overrides."""

    __slots__ = ()

    def _get(self) -> T:
        overrides = _overrides.get()
        if overrides is not None and self.key in overrides:
            return overrides[self.key]  # type: ignore[return-value]
        found: T = _base.__get__(self)
        return found

    def _set(self, value: T) -> None:
        _base.__set__(self, value)

    value = property(_get, _set)


class Context(Scope):
    """Overrides settings inside a ``with`` block, for this thread and task: others keep theirs.

    A thread that is started inside of the block does not inherit it; to hand it on, run the thread's function by
    ``contextvars.copy_context().run``. Tasks of ``asyncio`` and what ``asyncio.to_thread`` runs do inherit it.

    >>> with Context(DEBUG=2):
    ...     DEBUG.value
    2

    Raises:
      KeyError: if a name is not a setting (the message lists those that are).
    """

    __slots__ = ("_values",)

    def __init__(self, **values: int | str) -> None:
        super().__init__()
        for key in values:
            if key not in ContextVar.registry:
                raise KeyError(f"{key} is not a setting; these are: {', '.join(sorted(ContextVar.registry))}")
        for key in values:
            setting = ContextVar.registry[key]
            if type(setting) is ContextVar:
                setting.__class__ = _Overridden
                if setting.named is not None:
                    setting.named()
        self._values = values

    def restorer(self) -> Callable[[], object]:
        """What restores the overrides that are in force now."""
        return partial(_overrides.set, _overrides.get())

    def change(self) -> None:
        """Adds overrides to those in force."""
        _overrides.set({**(_overrides.get() or {}), **self._values})


DEBUG: ContextVar[int] = ContextVar("DEBUG", 0)
STRICT: ContextVar[int] = ContextVar("STRICT", 0)
"""Whether sums of floats are computed in the order in which the program states them."""
