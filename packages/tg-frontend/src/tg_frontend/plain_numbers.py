"""Arguments that tell sizes, axes and bounds as numbers of numpy or as tensors of one integer: Python's numbers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NESTED = 3  # lists in lists of arguments
_ARGUMENTS = 64  # elements of a list of arguments, at the most, whose own elements may be arguments: more are data


def without_numpy(value: Any, depth: int = _NESTED) -> Any:
    """What numpy's numbers stand for in an argument, in lists too: Python's numbers; all else as it is.

    Example:
      >>> import numpy as np
      >>> from tg_frontend.plain_numbers import without_numpy
      >>> without_numpy((np.int64(2), [np.float32(0.5)], "axis"))
      (2, [0.5], 'axis')
    """
    kind = type(value)
    if kind is tuple or kind is list:
        inside = depth - 1 if len(value) <= _ARGUMENTS else 0
        parts = [without_numpy(part, inside) for part in value] if depth else value
        return kind(parts) if any(a is not b for a, b in zip(parts, value, strict=True)) else value
    if kind.__module__ == "numpy" and getattr(value, "shape", None) == () and value.dtype.kind in "biufc":
        return value if value.dtype.char in "gG" else value.item()  # of a long double that is a long double
    return value


def with_python_numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
    """Arguments :func:`without_numpy`'s numbers; None if there are none in them."""
    positional, named = without_numpy(args), {name: without_numpy(value) for name, value in kwargs.items()}
    if positional is args and all(named[name] is value for name, value in kwargs.items()):
        return None
    return positional, named


def _number_within(value: Any, depth: int = _NESTED) -> Any:
    """The integers that tensors without axes hold, which are computed now, in lists too; all else as it is."""
    kind = type(value)
    if hasattr(kind, "lazydata"):
        return int(value.item()) if value.shape == () and value.dtype.kind in ("int", "uint") else value
    if kind in (tuple, list) and depth and len(value) <= _ARGUMENTS:
        parts = [_number_within(part, depth - 1) for part in value]
        return kind(parts) if any(a is not b for a, b in zip(parts, value, strict=True)) else value
    return value


def with_integers(args: tuple[Any, ...], kwargs: dict[str, Any], first: int) -> tuple[Any, dict[str, Any]] | None:
    """Arguments from a place on, with :func:`_number_within` for each; None if there are no such tensors in them."""
    positional = (*args[:first], *(_number_within(value) for value in args[first:]))
    named = {name: _number_within(value) for name, value in kwargs.items()}
    given = (*zip(positional, args, strict=True), *((named[name], value) for name, value in kwargs.items()))
    return (positional, named) if any(a is not b for a, b in given) else None
