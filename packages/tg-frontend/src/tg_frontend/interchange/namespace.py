"""The namespace of functions that a tensor names to programs for any library of arrays."""

from __future__ import annotations

import sys

from ..array.array import A
from ..array.base import Base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_PROVIDED: dict[str, str] = {}
HANDLERS: list[Callable[[str, Any, dict[str, Any]], Any]] = []
"""What computes a function of numpy with tensors, given its name, or NotImplemented."""
_OLDER = ("2021.12", "2022.12", "2023.12")
"""Versions of the standard whose functions are all in the one that is provided."""


def provide(version: str, module: str) -> None:
    """Names the module that has the functions of a version of the standard."""
    _PROVIDED[version] = module


def __array_namespace__(x: A, /, *, api_version: str | None = None) -> ModuleType:
    """The functions of the array API standard for this tensor: ``tinytg.array_api``.

    Args:
      api_version: of the standard, such as ``"2024.12"``; None is the newest that is there.

    Raises:
      ValueError: if there is no such version.
    """
    newest = max(_PROVIDED)
    if api_version is not None and api_version not in (*_PROVIDED, *_OLDER):
        raise ValueError(f"__array_namespace__: version {api_version!r} of the standard is not there; {newest} is")
    return sys.modules[_PROVIDED[newest]]


def _arrays(value: Any) -> Any:
    """Arguments with arrays for tensors."""
    if isinstance(value, Base):
        return value.numpy()  # type: ignore[attr-defined]
    if type(value) in (list, tuple):
        return type(value)(map(_arrays, value))
    return {key: _arrays(one) for key, one in value.items()} if type(value) is dict else value


def __array_function__(x: A, func: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """For numpy: ``np.mean(tensor)`` is a tensor; functions that there are not here get arrays, and give arrays.

    Raises:
      TypeError: if a result is to be written into a tensor.
    """
    if isinstance(kwargs.get("out"), Base):
        raise TypeError(f"{func.__name__}: numpy cannot write into a tensor; assign the result")
    for handler in HANDLERS:
        found = handler(f"{func.__module__}.{func.__name__}", args, kwargs)
        if found is not NotImplemented:
            return found
    return func(*_arrays(args), **_arrays(kwargs))
