"""The tensors in what a function returns."""

from __future__ import annotations

from copy import copy
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _is_record(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def parts(value: Any) -> Iterator[Any]:
    """What is directly in a list, tuple, dict or dataclass; nothing of others."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, (list, tuple)):
        yield from value
    elif _is_record(value):
        yield from (getattr(value, field.name) for field in fields(value) if hasattr(value, field.name))


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors in nested lists, tuples, dicts and dataclasses."""
    found, stack = [], [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Tensor):
            found.append(item)
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


def rebuilt(value: Any, replace: Callable[[Tensor], Any]) -> Any:
    """The same nesting with other tensors."""
    if isinstance(value, Tensor):
        return replace(value)
    if type(value) is dict:
        return {key: rebuilt(item, replace) for key, item in value.items()}
    if isinstance(value, dict):
        out = copy(value)
        for key, item in value.items():
            out[key] = rebuilt(item, replace)
        return out
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(rebuilt(item, replace) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(rebuilt(item, replace) for item in value)
    if _is_record(value) and tensors_in(value):
        out = copy(value)
        for field in fields(value):
            if hasattr(value, field.name):
                object.__setattr__(out, field.name, rebuilt(getattr(value, field.name), replace))
        return out
    return value
