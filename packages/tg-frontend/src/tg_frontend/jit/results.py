"""The tensors in what a function returns."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from ..tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _is_record(value: Any) -> bool:
    return hasattr(type(value), "__dataclass_fields__")  # as dataclasses.is_dataclass, which no import needs for this


def _names(record: Any) -> list[str]:
    """The fields of a dataclass that the object has."""
    from dataclasses import fields

    return [field.name for field in fields(record) if hasattr(record, field.name)]


def parts(value: Any) -> Iterator[Any]:
    """What is directly in a list, tuple, dict or dataclass; nothing of others."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, (list, tuple)):
        yield from value
    elif _is_record(value):
        yield from (getattr(value, name) for name in _names(value))


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors in nested lists, tuples, dicts and dataclasses; the parts of those that are complex."""
    found: list[Tensor] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Tensor):
            found.extend(item._floats())
        else:
            stack.extend(reversed(list(parts(item))))
    return found


def others_in(value: Any) -> list[Any]:
    """What is neither a tensor nor a container in nested lists, tuples, dicts and dataclasses."""
    found, stack = [], [value]
    while stack:
        item = stack.pop()
        if isinstance(item, (dict, list, tuple)) or _is_record(item):
            stack.extend(parts(item))
        elif not isinstance(item, Tensor):
            found.append(item)
    return found


def rebuilt(value: Any, replace: Callable[[Tensor], Any], made: dict[int, Tensor] | None = None) -> Any:
    """The same nesting with other tensors, of which one is once more itself where it stands twice.

    Args:
      value: the nesting.
      replace: gives another tensor for one of real numbers, or for a part of a complex one.
      made: the tensors so far, by what they replace.
    """
    made = {} if made is None else made
    if isinstance(value, Tensor):
        found = made.get(id(value))
        if found is None:
            floats = value._floats()
            others = [replace(part) for part in floats]
            kept = all(one is other for one, other in zip(floats, others, strict=True))
            found = made[id(value)] = value if kept else value._of_floats(others)
        return found
    if type(value) is dict:
        return {key: rebuilt(item, replace, made) for key, item in value.items()}
    if isinstance(value, dict):
        out = copy(value)
        for key, item in value.items():
            out[key] = rebuilt(item, replace, made)
        return out
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(rebuilt(item, replace, made) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(rebuilt(item, replace, made) for item in value)
    if _is_record(value) and tensors_in(value):
        out = copy(value)
        for name in _names(value):
            object.__setattr__(out, name, rebuilt(getattr(value, name), replace, made))
        return out
    return value
