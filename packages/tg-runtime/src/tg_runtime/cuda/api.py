"""The functions of the CUDA driver API that we call, with their types; bound to ``libcuda`` or to anything like it.

Names, values and signatures: ``cuda.h`` of CUDA 13. Where a function has versions, the oldest that has what we need is
taken: a driver keeps them all.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from ..errors import DeviceError

_OBJECT, _SIZE = POINTER(c_void_p), POINTER(c_size_t)
_DEVICE = c_int
_ADDRESS = c_uint64


class KernelNodeParams(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS_v1``."""

    _fields_ = [
        ("func", c_void_p), ("grid", c_uint * 3), ("block", c_uint * 3), ("shared_bytes", c_uint),
        ("params", c_void_p), ("extra", c_void_p),
    ]  # fmt: skip


PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(_DEVICE), c_int),
    "cuDeviceGetName": (c_void_p, c_int, _DEVICE),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, _DEVICE),
    "cuDeviceTotalMem_v2": (_SIZE, _DEVICE),
    "cuDeviceCanAccessPeer": (POINTER(c_int), _DEVICE, _DEVICE),
    "cuDevicePrimaryCtxRetain": (_OBJECT, _DEVICE),
    "cuDevicePrimaryCtxRelease_v2": (_DEVICE,),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxEnablePeerAccess": (c_void_p, c_uint),
    "cuMemAlloc_v2": (POINTER(_ADDRESS), c_size_t),
    "cuMemFree_v2": (_ADDRESS,),
    "cuMemHostAlloc": (_OBJECT, c_size_t, c_uint),
    "cuMemFreeHost": (c_void_p,),
    "cuMemcpyHtoDAsync_v2": (_ADDRESS, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, _ADDRESS, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (_ADDRESS, _ADDRESS, c_size_t, c_void_p),
    "cuMemcpyPeerAsync": (_ADDRESS, c_void_p, _ADDRESS, c_void_p, c_size_t, c_void_p),
    "cuStreamCreate": (_OBJECT, c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuEventCreate": (_OBJECT, c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
    "cuModuleLoadDataEx": (_OBJECT, c_void_p, c_uint, POINTER(c_int), _OBJECT),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (_OBJECT, c_void_p, c_char_p),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, c_void_p, c_void_p),
    "cuGraphCreate": (_OBJECT, c_uint),
    "cuGraphAddKernelNode": (_OBJECT, c_void_p, c_void_p, c_size_t, POINTER(KernelNodeParams)),
    "cuGraphInstantiateWithFlags": (_OBJECT, c_void_p, c_uint64),
    "cuGraphExecKernelNodeSetParams": (c_void_p, c_void_p, POINTER(KernelNodeParams)),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphExecDestroy": (c_void_p,),
    "cuGraphDestroy": (c_void_p,),
}

SUCCESS, INVALID_VALUE, NO_MEMORY, NO_DEVICE = 0, 1, 2, 100
INVALID_IMAGE, INVALID_PTX, UNSUPPORTED_PTX_VERSION, INVALID_HANDLE, NOT_FOUND = 200, 218, 222, 400, 500
LAUNCH_OUT_OF_RESOURCES, PEER_ACCESS_ALREADY_ENABLED, MISALIGNED_ADDRESS, LAUNCH_FAILED = 701, 704, 716, 719
MAX_THREADS_PER_BLOCK, MAX_BLOCK_DIM_X, MAX_GRID_DIM_X, MAX_SHARED_PER_BLOCK = 1, 2, 5, 8
REGISTERS_PER_BLOCK, MULTIPROCESSORS, L2_BYTES = 12, 16, 38
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
FUNC_MAX_THREADS, FUNC_SHARED_BYTES, FUNC_LOCAL_BYTES, FUNC_REGISTERS = 0, 1, 3, 4
STREAM_NON_BLOCKING, EVENT_DISABLE_TIMING, HOSTALLOC_PORTABLE = 1, 2, 1
JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES = 5, 6
OLDEST = 11040  # CUDA 11.4, which has cuGraphInstantiateWithFlags
_NAMES = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")


class CUDAError(DeviceError):
    """A function of the driver failed.

    Attributes:
      code: its status.
    """

    def __init__(self, what: str, code: int, name: str) -> None:
        super().__init__(f"CUDA: {what}: {name} ({code})")
        self.code = code


class Driver:
    """The functions of a driver as attributes, each as ctypes calls it: ``driver.cuInit(0)`` gives a status.

    Args:
      find: the function of a name, without declared types; AttributeError or KeyError if there is none.

    Raises:
      DeviceError: functions are missing; the message names them.
    """

    def __init__(self, find: Callable[[str], Any]) -> None:
        missing = []
        for name, arguments in PROTOTYPES.items():
            try:
                function = find(name)
            except (AttributeError, KeyError):
                missing.append(name)
                continue
            function.restype, function.argtypes = c_int, arguments
            setattr(self, name, function)
        if missing:
            raise DeviceError(f"CUDA: the driver library lacks {', '.join(missing)}; it must be for 11.4 or later")

    def __getattr__(self, name: str) -> Callable[..., int]:
        raise AttributeError(f"the CUDA driver API has no {name} here")

    def check(self, code: int, what: str) -> None:
        """Does nothing if the status is success.

        Raises:
          CUDAError: it is not; the message says what was attempted.
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
    chosen = os.environ.get("CUDA_LIBRARY")
    for name in (chosen,) if chosen else _NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def problem() -> str | None:
    """Why the driver cannot be used here, as far as is seen without starting it; None if it may work."""
    found = _open()
    if found is None:
        chosen = os.environ.get("CUDA_LIBRARY")
        if chosen:
            return f"the library that CUDA_LIBRARY names cannot be loaded: {chosen}"
        return (
            f"no CUDA driver: {_NAMES[0]} is not there (NVIDIA's kernel driver brings it; or name it in CUDA_LIBRARY; "
            "DEV=MOCK+CUDA:PTX runs kernels on the host)"
        )
    missing = [name for name in PROTOTYPES if not hasattr(found, name)]
    return f"the CUDA driver is older than 11.4: it lacks {missing[0]}" if missing else None


@functools.cache
def system_driver() -> Driver:
    """The driver of the machine, initialised.

    Raises:
      DeviceError: there is none, it is too old, or it does not start.
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
      DeviceError: it does not start, or is too old.
    """
    driver.check(driver.cuInit(0), "starting the driver")
    version = driver.number("cuDriverGetVersion")
    if version < OLDEST:
        raise DeviceError(
            f"CUDA: the driver is for CUDA {version // 1000}.{version % 1000 // 10}; it must be for 11.4 or later"
        )
