"""What a type is and which values it has: predicates, float layouts, least and greatest values."""

from __future__ import annotations

from .dtype import LIMITS, DType
from .floats import FloatFormat

ConstType = int | float | bool

_FORMATS: dict[str, FloatFormat] = {
    "fp8e4m3": FloatFormat(4, 3, has_inf=False),
    "fp8e5m2": FloatFormat(5, 2),
    "fp8e4m3fnuz": FloatFormat(4, 3, has_inf=False, signed_zero=False),
    "fp8e5m2fnuz": FloatFormat(5, 2, has_inf=False, signed_zero=False),
    "float16": FloatFormat(5, 10),
    "bfloat16": FloatFormat(8, 7),
    "float32": FloatFormat(8, 23),
    "float64": FloatFormat(11, 52),
}


def is_int(dtype: DType) -> bool:
    """True for signed and unsigned integers, scalar or vector; bool is not one."""
    return dtype.kind in ("int", "uint")


def is_float(dtype: DType) -> bool:
    """True for floats, scalar or vector."""
    return dtype.kind == "float"


def is_unsigned(dtype: DType) -> bool:
    """True for unsigned integers, scalar or vector."""
    return dtype.kind == "uint"


def is_bool(dtype: DType) -> bool:
    """True for bool, scalar or vector."""
    return dtype.kind == "bool"


def is_complex(dtype: DType) -> bool:
    """True for complex numbers."""
    return dtype.kind == "complex"


def float_format(dtype: DType) -> FloatFormat:
    """The bit layout of a float type.

    Raises:
      TypeError: if ``dtype`` is not a float.
    """
    if dtype.kind != "float":
        raise TypeError(f"float_format: {dtype.name} is not a float")
    return _FORMATS[dtype.scalar().name]


def finfo(dtype: DType) -> tuple[int, int]:
    """(exponent bits, stored mantissa bits) of a float type.

    Raises:
      TypeError: if ``dtype`` is not a float.

    Example:
      >>> from tg_dtype import dtypes
      >>> dtypes.finfo(dtypes.bfloat16)
      (8, 7)
    """
    layout = float_format(dtype)
    return layout.exponent, layout.mantissa


def minimum(dtype: DType) -> ConstType:
    """The least value, and the identity of a running maximum: -inf for floats that have infinities.

    Raises:
      TypeError: if ``dtype`` is void, a pointer or an image.
    """
    if dtype.kind == "int":
        return -(1 << (dtype.bits - 1))
    if dtype.kind == "uint":
        return 0
    if dtype.kind == "bool":
        return False
    if dtype.kind == "float":
        layout = float_format(dtype)
        return float("-inf") if layout.has_inf else -layout.largest
    raise TypeError(f"min: {dtype.name} has no values to order")


def maximum(dtype: DType) -> ConstType:
    """The greatest value; +inf for floats that have infinities.

    Raises:
      TypeError: if ``dtype`` is void, a pointer or an image.
    """
    if dtype.kind == "int":
        return (1 << (dtype.bits - 1)) - 1
    if dtype.kind == "uint":
        return (1 << dtype.bits) - 1
    if dtype.kind == "bool":
        return True
    if dtype.kind == "float":
        return -minimum(dtype)
    raise TypeError(f"max: {dtype.name} has no values to order")


LIMITS.update(min=minimum, max=maximum)
