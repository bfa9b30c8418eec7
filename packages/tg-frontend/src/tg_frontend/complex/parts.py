"""Operands as parts: the real one, and the imaginary one or None where that is zero throughout."""

from __future__ import annotations

from typing import NamedTuple

from tg_dtype import DType, complex_dtype, least_upper_dtype, part_dtype

from ..array.array import Array
from ..array.computing import copied
from ..array.operands import NUMBERS, common_dtype
from ..host import transfer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    T = Array


class Parts(NamedTuple):
    """A complex operand: tensors of floats, or numbers.

    Attributes:
      re: the real part.
      im: the imaginary part; None where it is zero.
    """

    re: Any
    im: Any


def plain_class(x: Any) -> type[Any]:
    """The class of real tensors to which a tensor, or its class, belongs."""
    kind = x if isinstance(x, type) else type(x)
    found: type[Any] = getattr(kind, "_beside", kind)
    return found


def is_complex(x: Any) -> bool:
    """Whether this is a complex tensor."""
    return isinstance(x, Array) and x.dtype.kind == "complex"


def tensor(x: Any, like: Any, what: str) -> T:
    """An operand that is a tensor or an array.

    Raises:
      TypeError: if it is neither.
    """
    if isinstance(x, Array):
        return x
    if transfer.is_array(x):
        return plain_class(like)(x, device=like.device)  # type: ignore[no-any-return]
    raise TypeError(f"{what}: a tensor of {like.dtype.name} and a {type(x).__name__}")


def parts_of(x: Any, like: Any, what: str) -> Parts:
    """The parts of a tensor, an array or a number."""
    if isinstance(x, complex):
        return Parts(x.real, x.imag)
    if isinstance(x, NUMBERS):
        return Parts(x, None)
    one: Any = tensor(x, like, what)
    return Parts(*one._parts) if is_complex(one) else Parts(one, None)


def meeting(values: tuple[Any, ...], like: Any, what: str) -> DType:
    """The complex dtype in which tensors, arrays and numbers meet."""
    return complex_dtype(common_dtype(*(x if isinstance(x, NUMBERS) else tensor(x, like, what) for x in values)))


def joint(tensors: tuple[Any, ...], what: str) -> DType:
    """The complex dtype of tensors that are put side by side, however many axes they have."""
    return complex_dtype(least_upper_dtype(*(tensor(x, tensors[0], what).dtype for x in tensors)))


def as_kind(parts: Parts, kind: DType) -> Parts:
    """Parts of a dtype; numbers stay numbers."""
    re, im = (part.cast(kind) if isinstance(part, Array) else part for part in parts)
    return Parts(re, im)


def operands(t: Any, x: Any, what: str, reverse: bool = False) -> tuple[Parts, Parts]:
    """Two operands of one dtype, in order (exchanged if ``reverse``); at least one of them is a tensor.

    Raises:
      TypeError: if one is neither a tensor, an array nor a number.
    """
    like = t if isinstance(t, Array) else x
    kind = part_dtype(meeting((t, x), like, what))
    a, b = as_kind(parts_of(t, like, what), kind), as_kind(parts_of(x, like, what), kind)
    return (b, a) if reverse else (a, b)


def composed(re: Any, im: Any) -> Any:
    """A complex tensor of parts that were computed: broadcast to one shape; a number stands for all elements.

    Neither part is to be an operand itself: who assigns to the result would write to that.
    """
    like: Any = re if isinstance(re, Array) else im
    re, im = (part if isinstance(part, Array) else like.const_like(part) for part in (re, im))
    if re.shape != im.shape:
        shape = (re.detach() + im.detach()).shape
        re, im = (part if part.shape == shape else copied(part.expand(shape)) for part in (re, im))
    return like._composed(re, im)


def whole(x: Any, what: str, dtype: DType | None = None) -> Parts:
    """Both parts of a tensor, of which neither is None; of ``dtype`` if that is given."""
    parts = parts_of(x, x, what)
    kind = part_dtype(dtype or complex_dtype(x.dtype))
    re, im = as_kind(parts, kind)
    return Parts(re, re.zeros_like() if im is None else im)


def made(parts: Parts) -> Any:
    """A complex tensor of computed parts."""
    return composed(parts.re, 0.0 if parts.im is None else parts.im)


def kept(x: Any) -> Any:
    """An operand's elements as a part of a result, in memory of its own."""
    return copied(x) if isinstance(x, Array) else x
