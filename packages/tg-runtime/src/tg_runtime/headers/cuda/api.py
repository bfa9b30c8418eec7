"""The functions of the CUDA driver API that we call, with their types; bound to ``libcuda`` or to anything like it.

Names, values and signatures are those of :mod:`tg_runtime.headers.cuda.bindings`, which ``tools.cuda`` writes from
``cuda.h``.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_void_p
from typing import Any

from ...errors import DeviceError
from ...host.library import not_loaded, open_first
from . import bindings

KernelNodeParams = bindings.CUDA_KERNEL_NODE_PARAMS
PROTOTYPES, NEWER = bindings.PROTOTYPES, bindings.NEWER
_CODES = {name: code for code, name in bindings.ERRORS.items()}

SUCCESS, INVALID_VALUE, NO_MEMORY, NO_DEVICE = map(
    _CODES.__getitem__, ("SUCCESS", "INVALID_VALUE", "OUT_OF_MEMORY", "NO_DEVICE"))
INVALID_DEVICE, INVALID_CONTEXT, INVALID_IMAGE, INVALID_PTX, UNSUPPORTED_PTX_VERSION = map(
    _CODES.__getitem__,
    ("INVALID_DEVICE", "INVALID_CONTEXT", "INVALID_IMAGE", "INVALID_PTX", "UNSUPPORTED_PTX_VERSION"))
INVALID_HANDLE, NOT_FOUND, NOT_READY, LAUNCH_OUT_OF_RESOURCES, PEER_ACCESS_ALREADY_ENABLED = map(
    _CODES.__getitem__,
    ("INVALID_HANDLE", "NOT_FOUND", "NOT_READY", "LAUNCH_OUT_OF_RESOURCES", "PEER_ACCESS_ALREADY_ENABLED"))
ILLEGAL_ADDRESS, MISALIGNED_ADDRESS, LAUNCH_FAILED, UNKNOWN = map(
    _CODES.__getitem__, ("ILLEGAL_ADDRESS", "MISALIGNED_ADDRESS", "LAUNCH_FAILED", "UNKNOWN"))
# after these every call fails: the process has lost its state on the device
LOST = frozenset(_CODES[name] for name in (
    "ECC_UNCORRECTABLE", "NVLINK_UNCORRECTABLE", "CONTAINED", "ILLEGAL_ADDRESS", "LAUNCH_TIMEOUT",
    "CONTEXT_IS_DESTROYED", "ASSERT", "HARDWARE_STACK_ERROR", "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS",
    "INVALID_ADDRESS_SPACE", "INVALID_PC", "LAUNCH_FAILED", "EXTERNAL_DEVICE", "SYSTEM_NOT_READY", "UNKNOWN",
) if name in _CODES)  # fmt: skip

MAX_THREADS_PER_BLOCK = bindings.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK
MAX_BLOCK_DIM_X = bindings.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X
MAX_GRID_DIM_X = bindings.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X
MAX_SHARED_PER_BLOCK = bindings.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK
MOST_SHARED_PER_BLOCK = bindings.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
REGISTERS_PER_BLOCK = bindings.CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK
MULTIPROCESSORS = bindings.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
L2_BYTES = bindings.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
CAPABILITY_MAJOR = bindings.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
CAPABILITY_MINOR = bindings.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
FUNC_MAX_THREADS = bindings.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
FUNC_SHARED_BYTES = bindings.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
FUNC_LOCAL_BYTES = bindings.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
FUNC_REGISTERS = bindings.CU_FUNC_ATTRIBUTE_NUM_REGS
FUNC_DYNAMIC_BYTES = bindings.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
STREAM_NON_BLOCKING = bindings.CU_STREAM_NON_BLOCKING
STREAM_LEGACY, STREAM_PER_THREAD = 1, 2  # CU_STREAM_LEGACY and CU_STREAM_PER_THREAD, which are handles
EVENT_DISABLE_TIMING = bindings.CU_EVENT_DISABLE_TIMING
HOSTALLOC_PORTABLE = bindings.CU_MEMHOSTALLOC_PORTABLE
JIT_ERROR_LOG = bindings.CU_JIT_ERROR_LOG_BUFFER
JIT_ERROR_LOG_BYTES = bindings.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
OLDEST = 11040  # CUDA 11.4, which has cuGraphInstantiateWithFlags
_NAMES = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")


class CUDAError(DeviceError):
    """A function of the driver failed.

    Attributes:
      code: its status.
    """

    def __init__(self, what: str, code: int, name: str) -> None:
        lost = "; the device is lost to this process: start another one" if code in LOST else ""
        super().__init__(f"CUDA: {what}: {name} ({code}){lost}")
        self.code = code


class Driver:
    """The functions of a driver as attributes, each as ctypes calls it: ``driver.cuInit(0)`` gives a status.

    Args:
      find: the function of a name, without declared types; AttributeError or KeyError if there is none.

    Raises:
      DeviceError: if functions are missing; the message names them.
    """

    def __init__(self, find: Callable[[str], Any]) -> None:
        missing = []
        for name, arguments in (*PROTOTYPES.items(), *NEWER.items()):
            try:
                function = find(name)
            except (AttributeError, KeyError):
                if name in PROTOTYPES:
                    missing.append(name)
                continue
            function.restype, function.argtypes = c_int, arguments
            setattr(self, name, function)
        if missing:
            raise DeviceError(f"CUDA: the driver library lacks {', '.join(missing)}; it must be for 11.4 or later")

    def __getattr__(self, name: str) -> Callable[..., int]:
        raise AttributeError(f"the CUDA driver API has no {name} here")

    def has(self, name: str) -> bool:
        """Whether the driver has a function that only newer ones have."""
        return name in self.__dict__

    def check(self, code: int, what: str) -> None:
        """Does nothing if the status is success.

        Raises:
          CUDAError: if it is not; the message says what was attempted.
        """
        if code != SUCCESS:
            raise CUDAError(what, code, self.error_name(code))

    def error_name(self, code: int) -> str:
        """What the driver calls a status."""
        text = c_char_p()
        if self.cuGetErrorName(code, ctypes.byref(text)) != SUCCESS or not text.value:
            return "unknown error"
        return text.value.decode().removeprefix("CUDA_ERROR_")

    def number(self, name: str, *arguments: object) -> int:
        """What a query with an integer as its first argument gives."""
        found = c_int()
        self.check(getattr(self, name)(ctypes.byref(found), *arguments), name)
        return found.value

    def object(self, name: str, *arguments: object) -> int:
        """The handle that a function with one as its first argument makes."""
        found = c_void_p()
        self.check(getattr(self, name)(ctypes.byref(found), *arguments), name)
        return found.value or 0


@functools.cache
def _open() -> ctypes.CDLL | None:
    return open_first("CUDA_LIBRARY", _NAMES)


def problem() -> str | None:
    """Why the driver cannot be used here, as far as is seen without starting it; None if it may work."""
    found = _open()
    if found is None:
        return not_loaded("CUDA_LIBRARY") or (
            f"no CUDA driver: {_NAMES[0]} is not there (NVIDIA's kernel driver brings it; or name it in CUDA_LIBRARY; "
            "DEV=MOCK+CUDA:PTX runs kernels on the host)"
        )
    missing = [name for name in PROTOTYPES if not hasattr(found, name)]
    return f"the CUDA driver is older than 11.4: it lacks {missing[0]}" if missing else None


@functools.cache
def system_driver() -> Driver:
    """The driver of the machine, initialised.

    Raises:
      DeviceError: if there is none, it is too old, or it does not start.
    """
    library, trouble = _open(), problem()
    if library is None or trouble is not None:
        raise DeviceError(f"CUDA: {trouble}")
    driver = Driver(lambda name: getattr(library, name))
    start(driver)
    return driver


def start(driver: Driver) -> None:
    """Initialises a driver.

    Raises:
      DeviceError: if it does not start, or is too old.
    """
    driver.check(driver.cuInit(0), "starting the driver")
    version = driver.number("cuDriverGetVersion")
    if version < OLDEST:
        raise DeviceError(
            f"CUDA: the driver is for CUDA {version // 1000}.{version % 1000 // 10}; it must be for 11.4 or later"
        )
