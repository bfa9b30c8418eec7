"""The class of complex tensors beside a class of real ones, and what real tensors do that meet complex ones."""

from __future__ import annotations

from functools import cache
from inspect import unwrap

from tg_dtype import complex_dtype

from ..array.array import Array
from ..host import coerce, transfer
from ..keywords import Beside, checked, no_complex
from . import gradients, reading, writing
from .componentwise import conj
from .parts import composed, is_complex
from .table import KEPT, KEPT_OPERATORS, OF_ELEMENTS, OPERATORS, RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_DEEPEST = 8
_TAKING_DTYPES = ("cast", "to", "type")
"""Methods whose first argument may be a dtype."""
_ENDING_IN_DTYPES = frozenset(
    "zeros ones empty full arange zeros_like ones_like empty_like full_like".split()
)
"""Methods behind whose arguments a dtype may stand."""
_WITHOUT_DTYPE = ("norm", "any", "all", "count_nonzero")
"""Methods of elements that take no dtype."""


def _refusing(name: str) -> Callable[..., Any]:
    def method(*args: Any, **kwargs: Any) -> Any:
        raise no_complex(name)

    method.__name__ = name
    return method


def _misplaced(name: str) -> Callable[..., Any]:
    def method(*args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{name}: an argument is complex that tells how, not what is computed with")

    method.__name__ = name
    return method


def _in_complex(name: str) -> Callable[..., Any]:
    def method(x: Any, *args: Any, dtype: Any, **kwargs: Any) -> Any:
        return getattr(x.cast(dtype), name)(*args, **kwargs)

    method.__name__ = name
    return method


def _no_node(z: Any) -> Any:
    raise TypeError(
        f"a tensor of {z.dtype.name} is two tensors of floats, .real and .imag, and no node itself: this is not "
        "defined for complex numbers"
    )


def _class_of(real: type[Any]) -> dict[str, Any]:
    """The content of the class beside ``real``."""
    from ..array import attributes
    from ..array.base import Base

    body: dict[str, Any] = {"__slots__": (), "__module__": real.__module__, "__doc__": "A tensor of complex numbers."}
    slots = [name for name in Base.__slots__ if name not in ("__weakref__", "_parts", "_parameter", "_transient")]
    body.update({name: property(_no_node) for name in (*slots, "lazydata")})
    for name in dir(real):
        found = getattr(real, name)
        own = getattr(unwrap(found), "__name__", name) if callable(found) else name
        if own in RULES and name.endswith("_") and not (name.startswith("_") or own.endswith("_")):
            if hasattr(found, "becomes_view"):
                body[name] = writing.becoming(name)
            else:
                body[name] = checked(writing.in_place(own, f"Tensor.{own}_"), "Tensor")
        elif own in RULES and not name.startswith("_"):
            body[name] = _offered(own, found)
        elif name in OPERATORS:
            body[name] = OPERATORS[name]
        elif name.startswith("__"):
            if name in vars(Array) and name not in KEPT_OPERATORS and name not in body and name != "__hash__":
                if callable(found) and name not in ("__init__", "__new__", "__slots__"):
                    body[name] = _refusing(name)
        elif name.startswith("_") or name in KEPT or own in KEPT:
            continue
        elif isinstance(found, property):
            body[name] = property(_refusing(name))
        else:
            body[name] = checked(_refusing(own), "Tensor")
    body.update(
        __new__=lambda cls, *args, **kwargs: real(*args, **kwargs),
        __init__=lambda self, *args, **kwargs: None,
        __hash__=real.__hash__,
        _beside=real,
        _wrap=real._wrap,
        _value=real._value,
        _composed=real._composed,
        _apply=lambda z, *args: _no_node(z),
        _floats=lambda z: z._parts,
        _of_floats=lambda z, parts: composed(*parts),
        _row_sparse=lambda z: None,
        _axis=lambda z, *args: z._parts[0]._axis(*args),
        _ints=lambda z: z._parts[0]._ints(),
        numel=lambda z: z._parts[0].numel(),
        shape=property(lambda z: z._parts[0].shape),
        ndim=property(lambda z: z._parts[0].ndim),
        device=property(lambda z: z._parts[0].device),
        dtype=property(lambda z: complex_dtype(z._parts[0].dtype)),
        _wish=property(gradients.wishes, gradients.set_wishes),
        requires_grad=property(attributes.requires_grad, attributes.set_requires_grad),
        grad=property(gradients.grad_of, gradients.set_grad),
        real=property(lambda z: z._parts[0], writing.set_real),
        imag=property(lambda z: z._parts[1], writing.set_imag),
        T=property(lambda z: composed(*(part.T for part in z._parts))),
        mT=property(lambda z: composed(*(part.mT for part in z._parts))),
        H=property(lambda z: conj(composed(*(part.H for part in z._parts)))),
        mH=property(lambda z: conj(composed(*(part.mH for part in z._parts)))),
        _elements=reading.data,
        is_leaf=property(lambda z: all(part.is_leaf for part in z._parts)),
        is_realized=property(lambda z: all(part.is_realized for part in z._parts)),
    )  # fmt: skip
    return body


def _offered(name: str, found: Any) -> Any:
    """A rule as a method: checked, and with the docstring of the method that it stands for."""
    rule = _rule(name)
    if isinstance(getattr(found, "__self__", None), type):
        return classmethod(rule)
    return rule


@cache
def _rule(name: str) -> Any:
    """The rule of a method, with other spellings of its arguments, and errors that name the method."""
    rule = RULES[name]

    def method(*args: Any, **kwargs: Any) -> Any:
        return rule(*args, **kwargs)

    if rule.__code__.co_flags & 0x0C and rule.__code__.co_argcount <= 1:  # takes what the method of the parts takes
        method.__name__ = name
        return checked(method, "Tensor")
    from types import FunctionType

    named = FunctionType(rule.__code__, rule.__globals__, name, rule.__defaults__, rule.__closure__)
    named.__kwdefaults__ = rule.__kwdefaults__
    named.__annotations__ = rule.__annotations__
    return checked(named, "Tensor")


def class_beside(real: type[Any]) -> type[Any]:
    """The class of complex tensors beside a class of real ones, of which it is a subclass."""
    kind: type[Any] = type(f"Complex{real.__name__}", (real,), _class_of(real))
    Beside.kinds.add(kind)
    return kind


def holds_complex(value: Any, depth: int = 0) -> bool:
    """Whether an argument is a complex number, tensor or array, a complex dtype, or a list that holds one."""
    if isinstance(value, (list, tuple)):
        return depth < _DEEPEST and any(holds_complex(item, depth + 1) for item in value)
    if isinstance(value, complex) or is_complex(value):
        return True
    if transfer.is_array(value):
        return bool(value.dtype.kind == "c")
    return (not isinstance(value, str) or len(value) > 1) and _is_complex_dtype(value)


def _is_complex_dtype(value: Any) -> bool:
    """Whether a value is a complex dtype, of whatever library; a letter, as numpy's F, is one where a dtype stands."""
    if not coerce.is_dtype(value):
        return False
    try:
        return coerce.to_dtype(value).kind == "complex"
    except (TypeError, ValueError):  # a class of something else
        return False


def instead(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """What a method does that failed with these arguments, if they are complex; None if they are not."""
    if not any(holds_complex(value) for value in (*args, *kwargs.values())):
        place = 1 if name in _TAKING_DTYPES else -1 if name in _ENDING_IN_DTYPES else len(args)
        dtype = args[place] if place < len(args) > 1 else kwargs.get("dtype")
        if not _is_complex_dtype(dtype):
            return None
    if name in ("__init__", *KEPT):
        return None
    if name in OPERATORS:
        name = name.strip("_")
        name = {"truediv": "div"}.get(name, name)
    if name not in RULES:
        return _refusing(name)
    if name in OF_ELEMENTS and isinstance(args[0], Array) and not is_complex(args[0]):
        if "dtype" in kwargs and name in _WITHOUT_DTYPE:
            return None
        how = {key: value for key, value in kwargs.items() if key != "dtype"}
        return _misplaced(name) if any(map(holds_complex, (*args, *how.values()))) else _in_complex(name)
    rule: Callable[..., Any] = _rule(name)
    return rule
