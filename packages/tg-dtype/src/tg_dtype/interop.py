"""The same types under the names of others: numpy, PyTorch, safetensors and DLPack. Names only; nothing is imported.

Sources: numpy's array-scalar names; ``torch.dtype`` names (PyTorch 2.x); the safetensors format README, "dtype";
DLPack 1.1 ``dlpack.h``, ``DLDataTypeCode``.
"""

from __future__ import annotations

from .catalog import dtypes
from .dtype import DType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

# one row a type: numpy, torch, safetensors, (DLPack code, bits)
_ROWS: tuple[tuple[DType, str | None, str, str | None, tuple[int, int]], ...] = (
    (dtypes.bool, "bool", "bool", "BOOL", (6, 8)),
    (dtypes.int8, "int8", "int8", "I8", (0, 8)),
    (dtypes.uint8, "uint8", "uint8", "U8", (1, 8)),
    (dtypes.int16, "int16", "int16", "I16", (0, 16)),
    (dtypes.uint16, "uint16", "uint16", "U16", (1, 16)),
    (dtypes.int32, "int32", "int32", "I32", (0, 32)),
    (dtypes.uint32, "uint32", "uint32", "U32", (1, 32)),
    (dtypes.int64, "int64", "int64", "I64", (0, 64)),
    (dtypes.uint64, "uint64", "uint64", "U64", (1, 64)),
    (dtypes.fp8e4m3, None, "float8_e4m3fn", "F8_E4M3", (10, 8)),
    (dtypes.fp8e5m2, None, "float8_e5m2", "F8_E5M2", (12, 8)),
    (dtypes.fp8e4m3fnuz, None, "float8_e4m3fnuz", "F8_E4M3FNUZ", (11, 8)),
    (dtypes.fp8e5m2fnuz, None, "float8_e5m2fnuz", "F8_E5M2FNUZ", (13, 8)),
    (dtypes.float16, "float16", "float16", "F16", (2, 16)),
    (dtypes.bfloat16, None, "bfloat16", "BF16", (4, 16)),
    (dtypes.float32, "float32", "float32", "F32", (2, 32)),
    (dtypes.float64, "float64", "float64", "F64", (2, 64)),
    (dtypes.complex64, "complex64", "complex64", "C64", (5, 64)),
    (dtypes.complex128, "complex128", "complex128", None, (5, 128)),
)

_TO_NUMPY = {row[0]: row[1] for row in _ROWS}
_FROM_NUMPY = {row[1]: row[0] for row in _ROWS if row[1] is not None}
_TO_TORCH = {row[0]: row[2] for row in _ROWS}
_FROM_TORCH = {row[2]: row[0] for row in _ROWS} | {
    "half": dtypes.float16,
    "float": dtypes.float32,
    "double": dtypes.float64,
    "short": dtypes.int16,
    "int": dtypes.int32,
    "long": dtypes.int64,
    "cfloat": dtypes.complex64,
    "cdouble": dtypes.complex128,
}
_TO_SAFETENSORS = {row[0]: row[3] for row in _ROWS}
_FROM_SAFETENSORS = {row[3]: row[0] for row in _ROWS if row[3] is not None}
_TO_DLPACK = {row[0]: row[4] for row in _ROWS}
_FROM_DLPACK = {row[4]: row[0] for row in _ROWS}


def to_numpy_name(dtype: DType) -> str | None:
    """The name for ``numpy.dtype(...)``; None for types numpy has not (bfloat16, fp8, vectors, pointers).

    Example:
      >>> from tg_dtype import dtypes, interop
      >>> interop.to_numpy_name(dtypes.float32), interop.to_numpy_name(dtypes.bfloat16)
      ('float32', None)
    """
    return _TO_NUMPY.get(dtype)


def from_numpy_name(name: str) -> DType:
    """The type of ``numpy.dtype.name``.

    Raises:
      TypeError: if there is none of that name (strings, objects, …).
    """
    return _look_up(_FROM_NUMPY, name, "numpy")


def to_torch_name(dtype: DType) -> str | None:
    """The attribute of ``torch`` that names the type, e.g. ``"bfloat16"``; None for vectors, pointers and void."""
    return _TO_TORCH.get(dtype)


def from_torch_name(name: str) -> DType:
    """The type of ``str(torch_dtype)``, with or without the prefix ``"torch."``.

    Raises:
      TypeError: if there is none of that name.
    """
    return _look_up(_FROM_TORCH, name.removeprefix("torch."), "torch")


def from_torch_dtype(dtype: object) -> DType:
    """The type that a ``torch.dtype`` stands for; PyTorch is not imported.

    Raises:
      TypeError: if it is no ``torch.dtype``, or one that we have not.
    """
    text = str(dtype)
    if type(dtype).__name__ != "dtype" or not text.startswith("torch."):
        raise TypeError(f"a torch.dtype is wanted, got {dtype!r}")
    return from_torch_name(text)


def to_safetensors_name(dtype: DType) -> str | None:
    """The ``dtype`` field of a safetensors header, e.g. ``"BF16"``; None for complex128, vectors, pointers and void."""
    return _TO_SAFETENSORS.get(dtype)


def from_safetensors_name(name: str) -> DType:
    """The type of a ``dtype`` field in a safetensors header.

    Raises:
      TypeError: if there is none of that name.
    """
    return _look_up(_FROM_SAFETENSORS, name, "safetensors")


def to_dlpack(dtype: DType) -> tuple[int, int, int]:
    """DLPack's (code, bits, lanes).

    Raises:
      TypeError: if the type is void, a pointer or an image.

    Example:
      >>> from tg_dtype import dtypes, interop
      >>> interop.to_dlpack(dtypes.float32.vec(4))
      (2, 32, 4)
    """
    code, bits = _look_up(_TO_DLPACK, dtype.scalar(), "DLPack")
    return code, bits, dtype.count


def from_dlpack(code: int, bits: int, lanes: int = 1) -> DType:
    """The type of DLPack's (code, bits, lanes).

    Raises:
      TypeError: if there is none.
      ValueError: if ``lanes < 1``.
    """
    return _look_up(_FROM_DLPACK, (code, bits), "DLPack").vec(lanes)


def _look_up(table: dict[K, V], key: K, whose: str) -> V:
    found = table.get(key)
    if found is None:
        raise TypeError(f"no {whose} counterpart of {key!r}; there are {', '.join(map(str, table))}")
    return found
