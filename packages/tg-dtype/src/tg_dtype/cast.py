"""Conversion of constants on the host, with the semantics that every device of the project must reproduce.

- to bool: ``value != 0``; NaN is True. In memory every byte but 0 is True; a bool that is written has the byte 1.
- int to int: wraps modulo 2**bits.
- float to int: truncates toward zero; what does not fit saturates; NaN is 0 (the rule of XLA and of LLVM's
  ``fptosi.sat``, where C leaves it undefined).
- to float: one rounding to nearest, ties to even, subnormals kept, also from 64-bit integers. Overflow is infinity; for
  fp8e4m3, which has none, it and the infinities become the largest finite value, 448 (as in PyTorch; JAX gives NaN);
  for the fp8 types "fnuz" they become NaN (as in PyTorch and JAX), and -0.0 becomes 0.
"""

from __future__ import annotations

import math
import struct

from .dtype import DType
from .limits import float_format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .limits import ConstType

_SINGLE = struct.Struct("<f")


def truncate(value: ConstType, dtype: DType) -> ConstType:
    """The exact Python value that is read back after ``value`` was stored as one lane of ``dtype``.

    Args:
      value: any number; a float going into an integer type is converted first, as ``cast_scalar`` does.
      dtype: type of the destination; a vector stands for its lane.

    Raises:
      TypeError: if ``dtype`` is void, a pointer or an image, or ``value`` is no number.

    Example:
      >>> from tg_dtype import dtypes, truncate
      >>> truncate(300, dtypes.uint8), truncate(0.1, dtypes.float16), truncate(1e6, dtypes.float16)
      (44, 0.0999755859375, inf)
    """
    if not isinstance(value, (int, float)):
        raise TypeError(f"truncate: {type(value).__name__} {value!r} is not a bool, int or float")
    kind = dtype.kind
    if kind == "float":
        return _to_float(value, dtype)
    if kind == "bool":
        return value != 0
    if kind == "void":
        raise TypeError(f"truncate: {dtype.name} holds no number")
    if kind == "complex":
        raise TypeError(f"truncate: {dtype.name} is two numbers, a real and an imaginary part")
    signed = kind == "int"
    if isinstance(value, float):
        return _saturate(value, dtype.bits, signed)
    return _wrap(int(value), dtype.bits, signed)


def cast_scalar(value: ConstType, src: DType, dst: DType) -> ConstType:
    """The value of ``value``, held as ``src``, converted to ``dst`` by the rules of this module.

    Raises:
      TypeError: if either type is void, a pointer or an image, or ``value`` is no number.

    Example:
      >>> from tg_dtype import cast_scalar, dtypes
      >>> cast_scalar(-1.9, dtypes.float32, dtypes.int32), cast_scalar(1e20, dtypes.float32, dtypes.int8)
      (-1, 127)
      >>> cast_scalar(-1, dtypes.int32, dtypes.uint16)
      65535
    """
    return truncate(truncate(value, src), dst)


def bitcast_scalar(value: ConstType, src: DType, dst: DType) -> ConstType:
    """The value of the bits of ``value``, held as ``src``, read as ``dst``. NaN payloads survive.

    Raises:
      TypeError: if the sizes of one lane differ, or either type holds no number.

    Example:
      >>> from tg_dtype import bitcast_scalar, dtypes
      >>> hex(bitcast_scalar(1.0, dtypes.float32, dtypes.uint32))
      '0x3f800000'
    """
    if src.scalar().itemsize != dst.scalar().itemsize:
        raise TypeError(f"bitcast: {src.name} and {dst.name} differ in size")
    return from_bits(to_bits(value, src), dst)


def to_bits(value: ConstType, dtype: DType) -> int:
    """The bit pattern, as an unsigned integer, of ``value`` stored as one lane of ``dtype``.

    Raises:
      TypeError: if ``dtype`` holds no number.
    """
    if dtype.kind == "float":
        return float_format(dtype).encode(value)
    if dtype.kind == "complex":
        raise TypeError(f"to_bits: {dtype.name} is two numbers, a real and an imaginary part")
    return int(truncate(value, dtype)) & ((1 << dtype.bits) - 1)


def from_bits(bits: int, dtype: DType) -> ConstType:
    """The value of a bit pattern, given as an unsigned integer, read as one lane of ``dtype``.

    A bool is true when any of its eight bits is set.

    Raises:
      TypeError: if ``dtype`` holds no number.
    """
    if dtype.kind == "float":
        return float_format(dtype).decode(bits)
    return truncate(bits, dtype)


def as_const(value: ConstType, dtype: DType) -> ConstType:
    """``value`` as a constant of ``dtype``: bool, int or float by its kind, and exactly what the type can hold.

    Raises:
      TypeError: if ``dtype`` holds no number, or ``value`` is no number.

    Example:
      >>> from tg_dtype import dtypes
      >>> dtypes.as_const(1, dtypes.float32), dtypes.as_const(2.7, dtypes.int32), dtypes.as_const(3, dtypes.bool)
      (1.0, 2, True)
    """
    return truncate(value, dtype)


def _wrap(value: int, bits: int, signed: bool) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def _saturate(value: float, bits: int, signed: bool) -> int:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if value != value:
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, int(value)))


def _to_float(value: ConstType, dtype: DType) -> float:
    if dtype.fmt == "d" and isinstance(value, float):
        return value
    if dtype.fmt == "f" and isinstance(value, float):
        try:
            single: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
            return single
        except OverflowError:
            return math.copysign(math.inf, value)
    return float_format(dtype).round(value)
