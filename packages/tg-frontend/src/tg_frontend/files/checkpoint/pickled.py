"""Pickles of tensors, read without running anything that they name.

A pickle names what is to be called. What is known here are the few functions with which PyTorch puts tensors together,
as records without values; anything else is refused by its name. Sources: Python's ``pickletools``, and the functions
that ``torch.serialization`` and ``torch._utils`` of PyTorch 2 document as what a checkpoint holds.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from dataclasses import dataclass, field

from tg_dtype import DType, dtypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO

KINDS = {
    "Double": dtypes.float64, "Float": dtypes.float32, "Half": dtypes.float16, "BFloat16": dtypes.bfloat16,
    "Long": dtypes.int64, "Int": dtypes.int32, "Short": dtypes.int16, "Char": dtypes.int8, "Byte": dtypes.uint8,
    "Bool": dtypes.bool, "ComplexFloat": dtypes.complex64, "ComplexDouble": dtypes.complex128,
}  # fmt: skip
"""What PyTorch's classes of storages hold, by their names without ``Storage``."""
DTYPES = {
    "float64": dtypes.float64, "double": dtypes.float64, "float32": dtypes.float32, "float": dtypes.float32,
    "float16": dtypes.float16, "half": dtypes.float16, "bfloat16": dtypes.bfloat16, "int64": dtypes.int64,
    "long": dtypes.int64, "int32": dtypes.int32, "int": dtypes.int32, "int16": dtypes.int16, "short": dtypes.int16,
    "int8": dtypes.int8, "uint8": dtypes.uint8, "uint16": dtypes.uint16, "uint32": dtypes.uint32,
    "uint64": dtypes.uint64, "bool": dtypes.bool, "float8_e4m3fn": dtypes.fp8e4m3, "float8_e5m2": dtypes.fp8e5m2,
    "float8_e4m3fnuz": dtypes.fp8e4m3fnuz, "float8_e5m2fnuz": dtypes.fp8e5m2fnuz, "complex64": dtypes.complex64,
    "complex128": dtypes.complex128,
}  # fmt: skip
"""PyTorch's names of dtypes; of two names of one the usual one is first."""
_MARKS = frozenset({"conj", "neg"})
_ABSENT = {"ComplexHalfStorage": "complex32", "complex32": "complex32"}


class Refused(ValueError):
    """A pickle names something that is not loaded."""


@dataclass(frozen=True, slots=True)
class StorageKind:
    """The class of a storage.

    Attributes:
      dtype: of its elements; None for bytes, whose tensors say what they are.
    """

    dtype: DType | None


@dataclass(frozen=True, slots=True)
class StorageRecord:
    """A storage that a pickle speaks of; its bytes stand elsewhere.

    Attributes:
      key: its name.
      kind: what it holds.
      count: how many elements; bytes, if the kind has no dtype.
    """

    key: str
    kind: StorageKind
    count: int

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return self.count * (1 if self.kind.dtype is None else self.kind.dtype.itemsize)


@dataclass(slots=True)
class TensorRecord:
    """A tensor that a pickle speaks of.

    Attributes:
      storage: where its elements are.
      dtype: what they are.
      offset: of the first, in elements.
      size: its shape.
      stride: how far elements are apart along each axis.
      requires_grad: what it says of that.
      marks: what is still to be done with what the storage holds: ``conj``, ``neg``.
    """

    storage: StorageRecord
    dtype: DType
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool = field(default=False)
    marks: frozenset[str] = frozenset()


def _natural(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _tensor(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None, *rest: Any
) -> TensorRecord:
    if not isinstance(storage, StorageRecord):
        raise Refused(f"a tensor of {type(storage).__name__} rather than a storage")
    dtype = next((one for one in rest if isinstance(one, DType)), storage.kind.dtype)
    if dtype is None:
        raise Refused("a tensor of bytes that does not say its dtype")
    shapes = [size, stride]
    if not all(isinstance(one, tuple) and len(one) <= 64 and all(map(_natural, one)) for one in shapes):
        raise Refused(f"a tensor of sizes {size!r:.100} and strides {stride!r:.100}")
    if len(size) != len(stride) or not _natural(offset):
        raise Refused(f"a tensor of sizes {size}, strides {stride} and offset {offset!r:.50}")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1
    if 0 not in size and last * dtype.itemsize > storage.nbytes:
        raise Refused(
            f"a tensor of sizes {size}, strides {stride} and offset {offset} in a storage of {storage.count} elements")
    marks = frozenset(key for one in rest if isinstance(one, dict) for key, value in one.items() if value)
    if not marks <= (_MARKS if dtype.kind in ("float", "complex") else frozenset()):
        raise Refused(f"a tensor of {dtype.name} with the marks {', '.join(sorted(map(repr, marks))):.100}")
    return TensorRecord(storage, dtype, offset, size, stride, bool(requires_grad), marks)


def _parameter(data: Any, requires_grad: Any = True, *rest: Any) -> TensorRecord:
    if not isinstance(data, TensorRecord):
        raise Refused(f"a parameter of {type(data).__name__} rather than a tensor")
    data.requires_grad = bool(requires_grad)
    return data


def _from_type(function: Any, kind: Any, args: Any, state: Any) -> Any:
    if function is not _tensor or not isinstance(args, tuple):
        raise Refused("a tensor of a class of its own")
    return _tensor(*args)


def _size(sizes: Any = ()) -> tuple[Any, ...]:
    return tuple(sizes)


def _device(*names: Any) -> str:
    return ":".join(map(str, names))


def _default(*_: Any) -> dict[Any, Any]:
    return {}


_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict, ("collections", "defaultdict"): _default,
    ("builtins", "set"): set, ("__builtin__", "set"): set, ("builtins", "bytearray"): bytearray,
    ("builtins", "dict"): dict, ("builtins", "list"): list, ("builtins", "tuple"): tuple, ("builtins", "int"): int,
    ("torch._utils", "_rebuild_tensor"): _tensor, ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _tensor, ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter,
    ("torch._tensor", "_rebuild_from_type_v2"): _from_type, ("torch", "Tensor"): TensorRecord,
    ("torch.nn.parameter", "Parameter"): TensorRecord, ("torch", "Size"): _size, ("torch", "device"): _device,
    ("torch.storage", "UntypedStorage"): StorageKind(None), ("torch", "UntypedStorage"): StorageKind(None),
}  # fmt: skip


class Reader(pickle.Unpickler):
    """Reads a pickle of tensors.

    Args:
      file: where it stands.
      persistent: makes of what a pickle keeps elsewhere, as it names it, what it is.
    """

    def __init__(self, file: BinaryIO, persistent: Callable[[Any], Any]) -> None:
        super().__init__(file, encoding="utf-8")
        self._persistent = persistent

    def find_class(self, module: str, name: str) -> Any:
        """What a pickle names.

        Raises:
          Refused: if it is none of the things that tensors are made with.
        """
        known = _KNOWN.get((module, name))
        if known is not None:
            return known
        if module in ("torch", "torch.cuda", "torch.storage") and name in _ABSENT:
            raise Refused(f"it has tensors of {_ABSENT[name]}, which are not read")
        if module in ("torch", "torch.cuda") and name.endswith("Storage") and name[:-7] in KINDS:
            return StorageKind(KINDS[name[:-7]])
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        raise Refused(
            f"it names {module}.{name}: a checkpoint may hold tensors, containers and numbers; save the state_dict()")

    def persistent_load(self, pid: Any) -> Any:
        """What a pickle keeps elsewhere."""
        return self._persistent(pid)


def storage_record(pid: Any) -> StorageRecord:
    """What a name of a storage says.

    Raises:
      Refused: if it is no such name.
    """
    if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] not in ("storage", b"storage"):
        raise Refused(f"it keeps {pid!r:.100} elsewhere, which is no storage")
    _, kind, key, _, count = pid[:5]
    if not isinstance(kind, StorageKind) or not isinstance(key, str) or not _natural(count):
        raise Refused(f"it has a storage {key!r:.50} of {count!r:.50} elements")
    return StorageRecord(key, kind, count)


def read(file: BinaryIO, persistent: Callable[[Any], Any]) -> Any:
    """The next pickle of a file.

    Raises:
      ValueError: if it is damaged, or names anything else than tensors are made with.
    """
    try:
        return Reader(file, persistent).load()
    except Refused:
        raise
    except RecursionError:
        raise ValueError("the pickle is nested too deeply") from None
    except MemoryError:
        raise ValueError("the pickle asks for more memory than there is") from None
    except Exception as error:  # whatever bytes that are no pickle make of it
        raise ValueError(f"the pickle cannot be read: {type(error).__name__}: {error}") from None
