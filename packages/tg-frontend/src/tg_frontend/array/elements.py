"""The elements of a tensor without its graph: ``x.data`` as in PyTorch, and ``x.data()`` as in tinygrad."""

from __future__ import annotations

from functools import cache

from ..keywords import Beside
from .base import Base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _reduced(x: Any) -> Any:
    """For pickle and copy: a tensor of the class itself."""
    return x.detach().__reduce__()


@cache
def _kind(kind: Any) -> Any:
    """The class of what ``data`` gives of tensors of a class: results that are computed with it are of the class."""
    body: dict[str, Any] = {
        "__slots__": (), "__module__": kind.__module__, "__doc__": "The elements of a tensor, without its graph.",
        "__new__": lambda cls, *args, **kwargs: kind(*args, **kwargs), "__call__": lambda x: x._elements(),
        "__reduce__": _reduced, "_wrap": kind._wrap, "_value": kind._value,
        "_results": kind, "_composed": kind._composed, "_complex_class": kind._complex_class,
        "_beside": getattr(kind, "_beside", kind),
    }  # fmt: skip
    found = type(kind.__name__, (kind,), body)
    if kind in Beside.kinds:
        Beside.kinds.add(found)
    return found


def data(x: Any) -> Any:
    """What ``x.data`` is: see there."""
    out = x.detach()
    kind: Any = type(out)
    out.__class__ = _kind(kind)
    return out


def put(x: Any, value: Any) -> None:
    """Makes this tensor another name of a tensor, without its graph."""
    other: Any = value if isinstance(value, Base) else type(x)(value, device=x.device)
    x.replace(other.detach())
