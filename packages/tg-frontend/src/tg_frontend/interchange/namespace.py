"""The namespace of functions that a tensor names to programs for any library of arrays."""

from __future__ import annotations

import sys

from ..array.array import A

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

_PROVIDED: dict[str, str] = {}
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
