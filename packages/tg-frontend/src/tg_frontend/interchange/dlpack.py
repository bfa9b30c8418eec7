"""DLPack capsules: memory of the host or of a device, handed to and taken from other libraries without a copy.

Source: DLPack 1.1, ``dlpack.h``, and the Python specification of the data interchange protocol. A capsule holds the
address of a managed tensor; whoever takes it renames the capsule and calls the tensor's deleter once, when done. What
nobody took, the capsule deletes. Two kinds of managed tensor exist: the old one, and the versioned one, which can say
that the memory may only be read.
"""

from __future__ import annotations

import ctypes
from itertools import count

CPU, CPU_OF_CUDA = 1, 3  # kDLCPU, kDLCUDAHost: both memory of the host
CUDA, CUDA_MANAGED = 2, 13  # kDLCUDA, kDLCUDAManaged: memory of a device
ON_HOST = (CPU, 0)
READ_ONLY, IS_COPIED = 1, 2
VERSION = (1, 1)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_PLAIN, _USED = b"dltensor", b"used_dltensor"
_VERSIONED, _USED_VERSIONED = b"dltensor_versioned", b"used_dltensor_versioned"


class DLTensor(ctypes.Structure):
    """Where the elements are, and how they lie."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    """``DLManagedTensor``."""

    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class ManagedVersioned(ctypes.Structure):
    """``DLManagedTensorVersioned``."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DLTensor),
    ]  # fmt: skip


# functions of the C API with types of our own: those on ctypes.pythonapi belong to everybody in the process
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_GetName", ctypes.pythonapi))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)
# the deleter takes the lock of the interpreter by itself: its caller is any thread
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)

_exported: dict[int, tuple[object, ...]] = {}
_numbers = count(1)


def _plain_done(address: int) -> None:
    if address:
        _exported.pop(Managed.from_address(address).context, None)


def _versioned_done(address: int) -> None:
    if address:
        _exported.pop(ManagedVersioned.from_address(address).context, None)


def _destroyed(capsule: int) -> None:
    # the capsule is being freed: it is an address here, for an object would be revived
    if _is_valid(capsule, _PLAIN):
        _plain_done(_pointer(capsule, _PLAIN))
    elif _is_valid(capsule, _VERSIONED):
        _versioned_done(_pointer(capsule, _VERSIONED))


# C calls these at any time: they live as long as the process
_delete_plain, _delete_versioned, _destroy = _Deleter(_plain_done), _Deleter(_versioned_done), _Destructor(_destroyed)


def exported() -> int:
    """How many tensors are in the hands of others."""
    return len(_exported)


def export(
    address: int,
    dtype: tuple[int, int, int],
    shape: Sequence[int],
    strides: Sequence[int],
    owner: object,
    flags: int = 0,
    versioned: bool = True,
    device: tuple[int, int] = ON_HOST,
) -> object:
    """A capsule for memory.

    Args:
      address: of the first element.
      dtype: DLPack's (code, bits, lanes).
      shape: sizes.
      strides: in elements.
      owner: kept alive until the taker is done.
      flags: ``READ_ONLY``, ``IS_COPIED``; only a versioned capsule can say so.
      versioned: which kind of capsule.
      device: DLPack's (type, number) of what the memory is on.
    """
    managed: Managed | ManagedVersioned = ManagedVersioned() if versioned else Managed()
    if isinstance(managed, ManagedVersioned):
        managed.major, managed.minor, managed.flags = *VERSION, flags
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = (ctypes.c_int64 * max(len(shape), 1))(*strides)
    tensor = managed.tensor
    tensor.data, tensor.ndim = address, len(shape)
    tensor.device_type, tensor.device_id = device
    tensor.code, tensor.bits, tensor.lanes = dtype
    tensor.shape, tensor.strides, tensor.byte_offset = sizes, steps, 0
    number = next(_numbers)
    managed.context = number
    managed.deleter = ctypes.cast(_delete_versioned if versioned else _delete_plain, ctypes.c_void_p)
    _exported[number] = managed, sizes, steps, owner
    name = _VERSIONED if versioned else _PLAIN
    return _new(ctypes.addressof(managed), name, ctypes.cast(_destroy, ctypes.c_void_p))


def _no_tensor(capsule: int) -> str:
    """Why a capsule is not taken."""
    name = _name(capsule)
    if name in (_USED, _USED_VERSIONED):
        return "from_dlpack: the tensor of this capsule was taken before; call __dlpack__() again for another capsule"
    shown = "no name" if name is None else f"the name {name.decode(errors='replace')!r}"
    wanted = f"{_PLAIN.decode()!r} or {_VERSIONED.decode()!r}"
    return f"from_dlpack: a capsule of {shown} holds no tensor; that of one is {wanted}"


class Taken:
    """A tensor that was taken out of a capsule. Its deleter is called when this object goes.

    Attributes:
      address: of the first element; 0 where there are none.
      device: DLPack's (type, number).
      dtype: (code, bits, lanes).
      shape: sizes.
      strides: in elements.
      flags: see ``READ_ONLY``; 0 of the old kind.
    """

    def __init__(self, capsule: object) -> None:
        """Takes the tensor.

        Raises:
          BufferError: if the capsule holds none, was taken before, or has a version that is not known.
        """
        self._deleter, self._managed = 0, 0
        handle = id(capsule)
        if type(capsule).__name__ != "PyCapsule":
            raise BufferError(f"from_dlpack: a capsule is wanted, got a {type(capsule).__name__}")
        managed: Managed | ManagedVersioned
        if _is_valid(handle, _VERSIONED):
            managed = ManagedVersioned.from_address(_pointer(handle, _VERSIONED))
            _rename(handle, _USED_VERSIONED)
        elif _is_valid(handle, _PLAIN):
            managed = Managed.from_address(_pointer(handle, _PLAIN))
            _rename(handle, _USED)
        else:
            raise BufferError(_no_tensor(handle))
        self._managed, self._deleter = ctypes.addressof(managed), managed.deleter or 0
        self.flags = managed.flags if isinstance(managed, ManagedVersioned) else 0
        if isinstance(managed, ManagedVersioned) and managed.major > VERSION[0]:
            raise BufferError(f"from_dlpack: version {managed.major}.{managed.minor} of the format is not known")
        tensor = managed.tensor
        self.device = tensor.device_type, tensor.device_id
        self.dtype = tensor.code, tensor.bits, tensor.lanes
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        if tensor.strides:
            self.strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
        else:
            steps, step = [], 1
            for size in reversed(self.shape):
                steps.append(step)
                step *= size
            self.strides = tuple(reversed(steps))
        self.address = (tensor.data or 0) + tensor.byte_offset

    def __del__(self, call: Any = _Deleter) -> None:
        deleter, self._deleter = self._deleter, 0
        if deleter:
            call(deleter)(self._managed)
