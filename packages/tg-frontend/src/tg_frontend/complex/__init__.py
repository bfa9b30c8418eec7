"""Complex numbers: what methods of tensors do with two tensors of floats, a real and an imaginary part.

What it is made of is imported when the first complex number is met.
"""

from __future__ import annotations

from ..keywords import Beside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def complex_class(cls: type[Any]) -> type[Any]:
    """The class of complex tensors beside a class of real ones."""
    found = cls.__dict__.get("_complex")
    if found is None:
        from .kind import class_beside

        found = cls._complex = class_beside(cls)
    return found


def _instead(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    from .kind import instead

    return instead(name, args, kwargs)


Beside.find = _instead
