"""Complex elements written in place: both parts, from values that were made before either is written."""

from __future__ import annotations

from ..array.agreement import beside
from ..array.array import Array
from ..array.operands import NUMBERS
from ..array.writing import brings
from ..autograd.differentiation import MODE
from .componentwise import cast
from .creation import HALF
from .parts import is_complex, kept, tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _values(z: Any, value: Any, what: str) -> tuple[Any, Any]:
    """The parts that are to be written."""
    kind = z._parts[0].dtype
    if isinstance(value, NUMBERS):
        number = complex(value)  # type: ignore[arg-type]
        return number.real, number.imag
    if isinstance(value, (list, tuple)):
        value = type(z)(value, device=z.device, dtype=z.dtype)
    one: Any = tensor(value, z, what)
    if is_complex(one):
        # what is read of the memory that is about to be written is read first
        return tuple(kept(part).cast(kind) for part in one._parts)
    return one.cast(kind), 0.0


def _agree(z: Any) -> None:
    """Has a gradient of both parts of a tensor that was written to where there is one of either."""
    one, other = z._parts
    wishes = one._wish, other._wish
    if wishes[0] is not wishes[1] and True in wishes:
        _renew(*((other, one) if wishes[0] is True else (one, other)))


def _renew(part: Any, other: Any) -> None:
    """Makes a part what it is already, by a write: it is wanted where the other one is, and computed from none."""
    if MODE.recording:
        part.copy_(beside(part, other))


def assign(z: Any, value: Any) -> Any:
    if not is_complex(z):
        raise TypeError(f"assign: complex numbers into a tensor of {z.dtype.name}; cast them")
    values = _values(z, value, "assign")
    for part, new in zip(z._parts, values, strict=True):
        part.assign(new)
    return z


def setitem(z: Any, index: Any, value: Any) -> None:
    if not is_complex(z):
        raise TypeError(f"__setitem__: complex numbers into a tensor of {z.dtype.name}; cast them")
    values = _values(z, value, "__setitem__")
    for part, new in zip(z._parts, values, strict=True):
        part[index] = new
    _agree(z)


def replace(z: Any, other: Any) -> Any:
    if z.dtype is not other.dtype:
        raise TypeError(f"replace: a tensor of {other.dtype.name} for one of {z.dtype.name}")
    for part, new in zip(z._parts, other._parts, strict=True):
        part.replace(new)
    return z


def in_place(name: str, symbol: str) -> Any:
    """An operation that writes its result to its first operand, by an operator or by a name with an underscore."""

    def method(z: Any, *args: Any, **kwargs: Any) -> Any:
        result = getattr(z, name)(*args, **kwargs)
        if result.shape != z.shape or result.dtype.kind != "complex":
            raise ValueError(
                f"{symbol}: a result of shape {result.shape} and dtype {result.dtype.name} does not fit in place "
                f"into {z.shape} and {z.dtype.name}"
            )
        from ..array.writing import in_place as write

        for part, new in zip(z._parts, cast(result, z.dtype)._parts, strict=True):
            write(part, new, symbol)
        _agree(z)
        return z

    method.__name__ = symbol.removeprefix("Tensor.")  # of which errors speak
    return method


def becoming(name: str) -> Any:
    """A method that makes both parts the views that it makes of tensors of floats."""

    def method(z: Any, *args: Any, **kwargs: Any) -> Any:
        for part in z._parts:
            getattr(part, name)(*args, **kwargs)
        return z

    return method


def fill(z: Any, value: Any) -> Any:
    out: Any = z.full_like(complex(value))
    return out


def fill_(z: Any, value: Any) -> Any:
    return assign(z, value.item() if isinstance(value, Array) else value)


def copy_(z: Any, src: Any, non_blocking: Any = False) -> Any:
    if not is_complex(z):
        raise TypeError(f"copy_: complex numbers into a tensor of {z.dtype.name}; cast them")
    if src is None:
        raise TypeError(f"copy_: None is no value for a tensor of shape {z.shape}")
    values = _values(z, src.to(z.device) if isinstance(src, Array) else src, "copy_")
    for part, new in zip(z._parts, values, strict=True):
        part.copy_(new)
    _agree(z)
    return z


def _set_part(z: Any, place: int, value: Any) -> None:
    part, other = z._parts[place], z._parts[1 - place]
    part.copy_(value)
    if isinstance(value, Array) and brings(value):  # perhaps computed from the other part
        _renew(other, part)


def set_real(z: Any, value: Any) -> None:
    """``z.real = value``: writes one part, with real numbers."""
    _set_part(z, 0, value)


def set_imag(z: Any, value: Any) -> None:
    """``z.imag = value``, likewise."""
    _set_part(z, 1, value)


def fill_diagonal_(z: Any, fill_value: Any, wrap: Any = False) -> Any:
    if not is_complex(z):
        raise TypeError(f"fill_diagonal_: complex numbers into a tensor of {z.dtype.name}; cast them")
    number = complex(fill_value.item() if isinstance(fill_value, Array) else fill_value)
    for part, new in zip(z._parts, (number.real, number.imag), strict=True):
        part.fill_diagonal_(new, wrap)
    return z


def zero_(z: Any) -> Any:
    return assign(z, 0)


def normal_(z: Any, mean: Any = 0.0, std: Any = 1.0) -> Any:
    for part in z._parts:  # each with half of the variance
        part.normal_(mean, std * HALF)
    return z


def uniform_(z: Any, low: Any = 0.0, high: Any = 1.0) -> Any:
    for part in z._parts:
        part.uniform_(low, high)
    return z
