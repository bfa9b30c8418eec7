"""The namespace of functions that a tensor names to programs for any library of arrays."""

from __future__ import annotations

import inspect
import sys

from ..array.array import A
from ..array.numpy_calls import check_written, on_host

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


WRITERS = {
    "copyto": ("dst", 1, "src"), "fill_diagonal": ("a", 1, "val"), "place": ("arr", 2, "vals"),
    "put": ("a", 2, "v"), "put_along_axis": ("arr", 2, "values"), "putmask": ("a", 2, "values"),
}  # fmt: skip
"""Functions of numpy that write into their first argument: its name, and place and name of what they write."""


def _given_out(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a function of numpy is to write its result to, by name or by position; None if nothing."""
    if "out" in kwargs:
        return kwargs["out"]
    try:
        names = list(inspect.signature(function).parameters)
    except ValueError:  # older versions do not tell that of functions in C
        return None
    place = names.index("out") if "out" in names else len(args)
    return args[place] if place < len(args) else None


def __array_function__(x: A, func: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """For numpy: ``np.mean(tensor)`` is a tensor, and ``np.put(tensor, …)`` writes into it.

    Functions that there are not here are computed by numpy on the host; the arrays that they give are tensors again.

    Raises:
      RuntimeError: if a tensor requires a gradient, which such a function would lose.
      OverflowError: if a number, or one in a list, is to be written that the dtype has not; arrays are cast, and wrap.
      TypeError: if a function would write into a tensor that is neither ``out`` nor the first argument of ``np.put``,
        ``np.place``, ``np.putmask``, ``np.put_along_axis``, ``np.copyto`` or ``np.fill_diagonal``, or that of
        ``np.nan_to_num(…, copy=False)``.
    """
    for handler in HANDLERS:
        found = handler(f"{func.__module__}.{func.__name__}", args, kwargs)
        if found is not NotImplemented:
            return found
    if func.__name__ in WRITERS:
        first, place, name = WRITERS[func.__name__]
        written = args[0] if args else kwargs.get(first)
        check_written(func.__name__, written, args[place] if place < len(args) else kwargs.get(name))
    else:
        written = _given_out(func, args, kwargs)
        if func.__name__ == "nan_to_num" and not (args[1] if len(args) > 1 else kwargs.get("copy", True)):
            written = args[0] if args else kwargs["x"]
        kwargs = {key: value for key, value in kwargs.items() if key != "overwrite_input"}  # which allows, no more
    return on_host(func.__name__, func, args, kwargs, written, x)
