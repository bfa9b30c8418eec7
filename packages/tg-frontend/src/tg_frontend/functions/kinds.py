"""Dtypes and devices: what they hold, where they meet, and which is taken where none is given."""

from __future__ import annotations

from typing import NamedTuple

from tg_dtype import DType, dtypes, least_upper_dtype
from tg_dtype.limits import float_format
from tg_runtime import Device

from ..array.operands import NUMBERS, common_dtype
from ..host.coerce import to_dtype
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..array.base import DTypeLike


class FloatInfo(NamedTuple):
    """What floats of a dtype can hold; see :func:`finfo`."""

    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float
    dtype: str


class IntegerInfo(NamedTuple):
    """What integers of a dtype can hold; see :func:`iinfo`."""

    bits: int
    max: int
    min: int
    dtype: str


def _kind(value: Any) -> DType:
    return value.dtype if isinstance(value, Tensor) else to_dtype(value)


def finfo(type: Any = None) -> FloatInfo:
    """The limits of a dtype of floats; of complex numbers, those of their parts.

    Args:
      type: a dtype or its name, or a tensor; the default float if not given.

    Returns:
      ``bits``; ``eps``, the distance from 1 to the next number; ``max`` and ``min``, finite ones; ``tiny`` and
      ``smallest_normal``, the least number above 0 of full precision; ``resolution``, the decimal that is surely kept;
      ``dtype``, its name.

    Raises:
      TypeError: if they are no floats.

    Example:
      >>> from tg_frontend.functions import finfo
      >>> finfo("float16").max, finfo("bfloat16").eps
      (65504.0, 0.0078125)
    """
    kind = dtypes.default_float if type is None else _kind(type)
    real = {"complex64": dtypes.float32, "complex128": dtypes.float64}.get(kind.name, kind)
    if real.kind != "float":
        raise TypeError(f"finfo: {kind.name} is no dtype of floats; ask iinfo()")
    layout = float_format(real)
    eps, least = 2.0**-layout.mantissa, layout.smallest_normal
    digits = int(layout.mantissa * 0.30102999566398120)  # decimal ones: log10(2) for each bit
    return FloatInfo(real.bits, eps, layout.largest, -layout.largest, least, least, 10.0**-digits, real.name)


def iinfo(type: Any) -> IntegerInfo:
    """The limits of a dtype of integers.

    Args:
      type: a dtype or its name, or a tensor.

    Returns:
      ``bits``, ``max``, ``min`` and ``dtype``, its name.

    Raises:
      TypeError: if they are no integers.

    Example:
      >>> from tg_frontend.functions import iinfo
      >>> iinfo("int8").max, iinfo("uint16").bits
      (127, 16)
    """
    kind = _kind(type)
    if kind.kind not in ("int", "uint"):
        raise TypeError(f"iinfo: {kind.name} is no dtype of integers; ask finfo()")
    return IntegerInfo(kind.bits, int(dtypes.max(kind)), int(dtypes.min(kind)), kind.name)


def promote_types(type1: DTypeLike, type2: DTypeLike) -> DType:
    """The dtype in which tensors of two dtypes meet.

    Raises:
      TypeError: if one is nothing that stands for a dtype.

    Example:
      >>> from tg_frontend.functions import promote_types
      >>> promote_types("int32", "float16"), promote_types("uint8", "int8")
      (dtypes.float16, dtypes.int16)
    """
    return least_upper_dtype(to_dtype(type1), to_dtype(type2))


def result_type(*operands: Any) -> DType:
    """The dtype of what is computed from operands: tensors, numbers, and dtypes, which stand for tensors with axes.

    Raises:
      TypeError: if there are none, or one is something else.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import result_type
      >>> result_type(Tensor([1.0], dtype="float16"), 2.5), result_type("int8", "uint8", 1)
      (dtypes.float16, dtypes.int16)
    """
    if not operands:
        raise TypeError("result_type: tensors, numbers or dtypes are wanted, got none")
    known = (Tensor, *NUMBERS)
    return common_dtype(
        *(one if isinstance(one, known) and not isinstance(one, type) else Tensor.empty(0, dtype=to_dtype(one))
          for one in operands)
    )  # fmt: skip


_ORDER = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}


def can_cast(from_: Any, to: DTypeLike) -> bool:
    """Whether elements of a dtype may be written where another one is, as PyTorch has it.

    A dtype goes to its own category and those above it, in the order bool, integer, float, complex; digits may be lost.
    numpy's function of this name allows only what keeps every value.

    Raises:
      TypeError: if one is nothing that stands for a dtype.

    Example:
      >>> from tg_frontend.functions import can_cast
      >>> can_cast("float64", "float16"), can_cast("float32", "int64"), can_cast("int64", "float16")
      (True, False, True)
    """
    return _ORDER[_kind(from_).kind] <= _ORDER[to_dtype(to).kind]


def is_tensor(obj: object) -> bool:
    """Whether something is a tensor.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import is_tensor
      >>> is_tensor(Tensor([1.0])), is_tensor([1.0])
      (True, False)
    """
    return isinstance(obj, Tensor)


def iscomplexobj(x: Any) -> bool:
    """Whether a tensor, or a number, is of a complex kind, whatever its imaginary part.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import iscomplexobj
      >>> iscomplexobj(Tensor([1j])), iscomplexobj(Tensor([1.0]))
      (True, False)
    """
    return x.dtype.kind == "complex" if isinstance(x, Tensor) else isinstance(x, complex)


def isrealobj(x: Any) -> bool:
    """Whether a tensor, or a number, is of no complex kind.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import isrealobj
      >>> isrealobj(Tensor([1j])), isrealobj(Tensor([1.0]))
      (False, True)
    """
    return not iscomplexobj(x)


def typename(obj: object) -> str:
    """The name of the class of an object with its module, as in ``tinytg.Tensor``.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import typename
      >>> typename(Tensor([1.0])), typename(3)
      ('tinytg.Tensor', 'int')
    """
    kind = type(obj)
    home = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return "tinytg.Tensor" if isinstance(obj, Tensor) else f"{home}{kind.__qualname__}"


def get_default_dtype() -> DType:
    """The dtype of floats that are given none: ``dtypes.default_float``.

    Example:
      >>> from tg_frontend.functions import get_default_dtype
      >>> get_default_dtype()
      dtypes.float32
    """
    return dtypes.default_float


def set_default_dtype(d: DTypeLike) -> None:
    """Lets floats that are given no dtype be of this one: Python's, and those of ``zeros``, ``rand``, ….

    Raises:
      TypeError: if it is no dtype of floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import set_default_dtype
      >>> set_default_dtype("float64")
      >>> Tensor([1.0]).dtype
      dtypes.float64
      >>> set_default_dtype("float32")
    """
    kind = to_dtype(d)
    if kind.kind != "float":
        raise TypeError(f"set_default_dtype: {kind.name} is no dtype of floats")
    dtypes.default_float = kind


def get_default_device() -> str:
    """The device of tensors that are given none: ``Device.DEFAULT``.

    Example:
      >>> from tg_frontend.functions import get_default_device
      >>> isinstance(get_default_device(), str)
      True
    """
    return Device.DEFAULT
