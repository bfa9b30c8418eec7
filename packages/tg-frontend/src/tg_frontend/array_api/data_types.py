"""Dtypes: their names, kinds, limits, and where they meet."""

from __future__ import annotations

from typing import NamedTuple

from tg_dtype import DType, dtypes, least_upper_dtype

from ..array.operands import weak_dtype
from ..host.coerce import to_dtype
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

bool = dtypes.bool
int8, int16, int32, int64 = dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64
uint8, uint16, uint32, uint64 = dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64
float32, float64 = dtypes.float32, dtypes.float64
complex64, complex128 = dtypes.complex64, dtypes.complex128

KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (bool,),
    "signed integer": (int8, int16, int32, int64),
    "unsigned integer": (uint8, uint16, uint32, uint64),
    "real floating": (float32, float64),
    "complex floating": (complex64, complex128),
}
"""The dtypes of the standard by what it calls their kinds."""
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


class FloatInfo(NamedTuple):
    """What floats of a dtype can hold."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntegerInfo(NamedTuple):
    """What integers of a dtype can hold."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(value: Any) -> DType:
    return value.dtype if isinstance(value, Tensor) else to_dtype(value)


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating-point dtype, or of a tensor's.

    Raises:
      ValueError: if it is no floating-point dtype.
    """
    import numpy as np

    kind = _dtype_of(type)
    if kind not in KINDS["real floating"] + KINDS["complex floating"]:
        raise ValueError(f"finfo: {kind.name} is no floating-point dtype of the standard")
    real = {"complex64": float32, "complex128": float64}.get(kind.name, kind)
    info = np.finfo(real.name)
    return FloatInfo(
        info.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), real
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype, or of a tensor's.

    Raises:
      ValueError: if it is no integer dtype.
    """
    kind = _dtype_of(type)
    if kind not in KINDS["integral"]:
        raise ValueError(f"iinfo: {kind.name} is no integer dtype")
    return IntegerInfo(kind.bits, int(dtypes.max(kind)), int(dtypes.min(kind)), kind)


def isdtype(dtype: Any, kind: Any) -> object:
    """Whether a dtype is another one, or of a kind; of a tuple, whether it is any of them.

    Raises:
      ValueError: if there is no such kind.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, part) for part in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: {kind!r} is none of {', '.join(map(repr, KINDS))}")
        return dtype in KINDS[kind]
    return to_dtype(dtype) is to_dtype(kind)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype in which tensors, dtypes and numbers meet; numbers take that of the others, where they can.

    Raises:
      ValueError: if there are none, or only numbers.
    """
    numbers = [value for value in arrays_and_dtypes if isinstance(value, (int, float, complex))]
    known = [_dtype_of(value) for value in arrays_and_dtypes if not isinstance(value, (int, float, complex))]
    if not known:
        raise ValueError(f"result_type: a tensor or a dtype is wanted, got {arrays_and_dtypes}")
    found = least_upper_dtype(*known)
    for number in numbers:
        if not isinstance(number, complex):
            found = weak_dtype(found, number)
        elif found.kind != "complex":
            found = complex128 if found is float64 else complex64
    return found


def can_cast(from_: Any, to: Any, /) -> object:
    """Whether a dtype becomes another one where they meet."""
    target = to_dtype(to)
    return least_upper_dtype(_dtype_of(from_), target) is target


def astype(x: Tensor, dtype: Any, /, *, copy: object = True, device: str | None = None) -> Tensor:
    """The elements in another dtype: a copy, unless nothing changes and ``copy`` is False."""
    kind = to_dtype(dtype)
    out = x if device is None else x.to(device)
    if out.dtype is kind:
        return out.clone() if copy else out
    return out.cast(kind)
