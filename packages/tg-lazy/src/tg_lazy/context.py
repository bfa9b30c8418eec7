"""Settings: environment variables, and a scope that overrides them."""

from __future__ import annotations

import os
from types import TracebackType
from typing import ClassVar, Generic, TypeVar, overload

T = TypeVar("T", int, str)


@overload
def getenv(key: str, default: str) -> str: ...
@overload
def getenv(key: str, default: int = 0) -> int: ...
def getenv(key: str, default: int | str = 0) -> int | str:
    """The environment variable ``key``, converted to the type of ``default``.

    Raises:
      ValueError: an integer is wanted and the variable holds something else.
    """
    raw = os.environ.get(key)
    if raw is None:
        return default
    if isinstance(default, str):
        return raw
    try:
        return int(raw)
    except ValueError:
        raise ValueError(f"the environment variable {key} must be an integer, got {raw!r}") from None


class ContextVar(Generic[T]):
    """A named setting, read from the environment once and overridden by :class:`Context`.

    Attributes:
      value: the value in force.
    """

    registry: ClassVar[dict[str, ContextVar[int] | ContextVar[str]]] = {}
    __slots__ = ("key", "value")

    def __init__(self, key: str, default: T) -> None:
        if key in ContextVar.registry:
            raise RuntimeError(f"the setting {key} is declared twice")
        self.key = key
        self.value: T = getenv(key, default)
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


class Context:
    """Overrides settings inside a ``with`` block.

    >>> with Context(DEBUG=2):
    ...     DEBUG.value
    2

    Raises:
      KeyError: a name is not a setting (the message lists those that are).
    """

    def __init__(self, **values: int | str) -> None:
        for key in values:
            if key not in ContextVar.registry:
                raise KeyError(f"{key} is not a setting; these are: {', '.join(sorted(ContextVar.registry))}")
        self._values = values
        self._saved: list[dict[str, int | str]] = []

    def __enter__(self) -> Context:
        self._saved.append({key: ContextVar.registry[key].value for key in self._values})
        for key, value in self._values.items():
            ContextVar.registry[key].value = value
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for key, value in self._saved.pop().items():
            ContextVar.registry[key].value = value


DEBUG: ContextVar[int] = ContextVar("DEBUG", 0)
STRICT: ContextVar[int] = ContextVar("STRICT", 0)
"""Whether sums of floats keep the order in which they are stated."""
