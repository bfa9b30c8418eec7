"""PyTorch's names with an underscore: an operation whose result is written to the tensor's own memory.

The result is broadcast to no other shape and cast to the tensor's dtype, unless it is of a higher kind: those are
refused, as PyTorch refuses them. Gradients flow through what was written.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING

from ..array import becoming, writing
from ..array.array import A, Array
from ..domains import NUMBERS
from ..keywords import Beside, checked, no_complex

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Concatenate, ParamSpec

    P = ParamSpec("P")


def _named(function: Any) -> Any:
    """The function under its name with an underscore, with checked arguments and errors of that name."""
    name = f"{function.__name__}_"
    copy = FunctionType(
        function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    copy.__wrapped__ = function  # type: ignore[attr-defined]
    return checked(copy, "Tensor", True, NUMBERS.get(function.__name__, "real"))


def _presented(method: Callable[Concatenate[A, P], A], compute: Any, text: str) -> Callable[Concatenate[A, P], A]:
    """A method with the name and the signature of what it computes with."""
    method.__name__, method.__qualname__ = compute.__name__, compute.__qualname__
    method.__doc__, method.__wrapped__ = text, compute  # type: ignore[attr-defined]
    return method


def _is_complex(x: Any) -> bool:
    """Whether the class of a tensor has another method of the name: ``Tensor.mul_(z, 2)`` is ``z.mul_(2)``."""
    return type(x) in Beside.kinds and isinstance(x, Array)


def _of_complex(z: Any, name: str) -> Any:
    """The method of a complex tensor.

    Raises:
      TypeError: if there is none of the name, as of ``lshift_``, which is ``bitwise_left_shift_`` of tensors.
    """
    found = getattr(z, name, None)
    if found is None:
        raise no_complex(f"Tensor.{name}")
    return found


def in_place(function: Callable[Concatenate[A, P], Any]) -> Callable[Concatenate[A, P], A]:
    """A method that computes what ``function`` does and writes it to the memory of its tensor, which it returns."""
    compute = _named(function)
    name = compute.__name__

    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_complex(x):
            return _of_complex(x, name)(*args, **kwargs)
        given = (arg for arg in (*args, *kwargs.values())
                 if isinstance(arg, Array) and arg.dtype.kind == "float" and writing.brings(arg))  # fmt: skip
        kept, _ = writing.kept_for(x, next(given, None), always=True)
        others = tuple(kept if arg is x else arg for arg in args) if kept is not x else args
        return writing.in_place(x, compute(kept, *others, **kwargs), f"Tensor.{name}")

    return _presented(method, compute, f":meth:`{function.__name__}`, written to this tensor's memory. Returns it.")


def view_in_place(function: Callable[Concatenate[A, P], A]) -> Callable[Concatenate[A, P], A]:
    """A method that makes its tensor the view that ``function`` gives of it: other tensors stay as they are."""
    compute = _named(function)
    name = compute.__name__

    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_complex(x):
            return _of_complex(x, name)(*args, **kwargs)
        return becoming.become(x, lambda whole: compute(whole, *args, **kwargs), f"Tensor.{name}")

    method.becomes_view = True  # type: ignore[attr-defined]
    text = f"Makes this tensor its own :meth:`{function.__name__}`, of the same memory. Returns it."
    return _presented(method, compute, text)
