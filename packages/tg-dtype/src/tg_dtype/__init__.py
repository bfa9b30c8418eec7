"""Types of numbers: dtypes, promotion, exact casting of constants, and the names others have for them.

Example:
  >>> from tg_dtype import dtypes, least_upper_dtype, truncate
  >>> least_upper_dtype(dtypes.int32, dtypes.float16), truncate(1 / 3, dtypes.bfloat16)
  (dtypes.float16, 0.333984375)
"""

from __future__ import annotations

from . import interop
from .cast import as_const, bitcast_scalar, cast_scalar, from_bits, to_bits, truncate
from .catalog import dtypes
from .dtype import AddrSpace, DType, ImageDType, PtrDType
from .enumeration import fast_members
from .floats import FloatFormat
from .limits import ConstType, float_format
from .promotion import (
    can_safe_cast,
    complex_dtype,
    least_upper_dtype,
    least_upper_float,
    part_dtype,
    result_dtype,
    sum_acc_dtype,
    sum_dtype,
    weaker_dtype,
)

__all__ = [
    "AddrSpace",
    "ConstType",
    "DType",
    "FloatFormat",
    "ImageDType",
    "PtrDType",
    "as_const",
    "bitcast_scalar",
    "can_safe_cast",
    "cast_scalar",
    "complex_dtype",
    "dtypes",
    "fast_members",
    "float_format",
    "from_bits",
    "interop",
    "least_upper_dtype",
    "least_upper_float",
    "part_dtype",
    "result_dtype",
    "sum_acc_dtype",
    "sum_dtype",
    "to_bits",
    "truncate",
    "weaker_dtype",
]
