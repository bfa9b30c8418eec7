"""The OpenCL functions that we call, bound with ctypes to the ICD loader or to a vendor's library.

Names, values and signatures: the OpenCL 3.0 API specification (Khronos), ``CL/cl.h`` of OpenCL-Headers.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import sys
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

from ...errors import DeviceError
from ...host.library import not_loaded, open_first

# Objects are opaque pointers.
_OBJECTS, _SIZES, _STATUS = POINTER(c_void_p), POINTER(c_size_t), POINTER(c_int32)
_EVENT_LIST = (c_uint32, c_void_p, c_void_p)  # events to wait for, and the one to return
_PROTOTYPES: dict[str, tuple[object, tuple[object, ...]]] = {
    "clGetPlatformIDs": (c_int32, (c_uint32, _OBJECTS, POINTER(c_uint32))),
    "clGetPlatformInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, _SIZES)),
    "clGetDeviceIDs": (c_int32, (c_void_p, c_uint64, c_uint32, _OBJECTS, POINTER(c_uint32))),
    "clGetDeviceInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, _SIZES)),
    "clCreateContext": (c_void_p, (c_void_p, c_uint32, _OBJECTS, c_void_p, c_void_p, _STATUS)),
    "clCreateCommandQueue": (c_void_p, (c_void_p, c_void_p, c_uint64, _STATUS)),
    "clCreateBuffer": (c_void_p, (c_void_p, c_uint64, c_size_t, c_void_p, _STATUS)),
    "clCreateSubBuffer": (c_void_p, (c_void_p, c_uint64, c_uint32, c_void_p, _STATUS)),
    "clReleaseMemObject": (c_int32, (c_void_p,)),
    "clEnqueueReadBuffer": (c_int32, (c_void_p, c_void_p, c_uint32, c_size_t, c_size_t, c_void_p, *_EVENT_LIST)),
    "clEnqueueWriteBuffer": (c_int32, (c_void_p, c_void_p, c_uint32, c_size_t, c_size_t, c_void_p, *_EVENT_LIST)),
    "clEnqueueCopyBuffer": (
        c_int32,
        (c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, *_EVENT_LIST),
    ),
    "clCreateProgramWithSource": (c_void_p, (c_void_p, c_uint32, POINTER(c_char_p), _SIZES, _STATUS)),
    "clCreateProgramWithBinary": (
        c_void_p,
        (c_void_p, c_uint32, _OBJECTS, _SIZES, POINTER(c_char_p), _STATUS, _STATUS),
    ),
    "clBuildProgram": (c_int32, (c_void_p, c_uint32, _OBJECTS, c_char_p, c_void_p, c_void_p)),
    "clGetProgramBuildInfo": (c_int32, (c_void_p, c_void_p, c_uint32, c_size_t, c_void_p, _SIZES)),
    "clGetProgramInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, _SIZES)),
    "clReleaseProgram": (c_int32, (c_void_p,)),
    "clCreateKernel": (c_void_p, (c_void_p, c_char_p, _STATUS)),
    "clReleaseKernel": (c_int32, (c_void_p,)),
    "clSetKernelArg": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p)),
    "clEnqueueNDRangeKernel": (c_int32, (c_void_p, c_void_p, c_uint32, _SIZES, _SIZES, _SIZES, *_EVENT_LIST)),
    "clFlush": (c_int32, (c_void_p,)),
    "clFinish": (c_int32, (c_void_p,)),
    "clEnqueueMarkerWithWaitList": (c_int32, (c_void_p, *_EVENT_LIST)),
    "clGetEventInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, _SIZES)),
    "clWaitForEvents": (c_int32, (c_uint32, _OBJECTS)),
    "clGetEventProfilingInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, _SIZES)),
    "clReleaseEvent": (c_int32, (c_void_p,)),
    "clRetainEvent": (c_int32, (c_void_p,)),
    "clRetainMemObject": (c_int32, (c_void_p,)),
    "clGetMemObjectInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
    "clCreateImage": (c_void_p, (c_void_p, c_uint64, c_void_p, c_void_p, c_void_p, _STATUS)),
    "clGetImageInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
    "clEnqueueReadImage": (
        c_int32,
        (c_void_p, c_void_p, c_uint32, _SIZES, _SIZES, c_size_t, c_size_t, c_void_p, *_EVENT_LIST),
    ),
    "clEnqueueWriteImage": (
        c_int32,
        (c_void_p, c_void_p, c_uint32, _SIZES, _SIZES, c_size_t, c_size_t, c_void_p, *_EVENT_LIST),
    ),
    "clEnqueueCopyImage": (c_int32, (c_void_p, c_void_p, c_void_p, _SIZES, _SIZES, _SIZES, *_EVENT_LIST)),
    "clEnqueueCopyImageToBuffer": (c_int32, (c_void_p, c_void_p, c_void_p, _SIZES, _SIZES, c_size_t, *_EVENT_LIST)),
    "clEnqueueCopyBufferToImage": (c_int32, (c_void_p, c_void_p, c_void_p, c_size_t, _SIZES, _SIZES, *_EVENT_LIST)),
    "clEnqueueMapBuffer": (
        c_void_p,
        (c_void_p, c_void_p, c_uint32, c_uint64, c_size_t, c_size_t, *_EVENT_LIST, _STATUS),
    ),
}
# The extension cl_khr_command_buffer, as of its revisions 0.9.0 to 1.0.0.
_COMMAND_BUFFERS: dict[str, tuple[object, tuple[object, ...]]] = {
    "clCreateCommandBufferKHR": (c_void_p, (c_uint32, _OBJECTS, c_void_p, _STATUS)),
    "clCommandNDRangeKernelKHR": (
        c_int32,
        (c_void_p, c_void_p, c_void_p, c_void_p, c_uint32, _SIZES, _SIZES, _SIZES, *_EVENT_LIST, c_void_p),
    ),
    "clFinalizeCommandBufferKHR": (c_int32, (c_void_p,)),
    "clEnqueueCommandBufferKHR": (c_int32, (c_uint32, _OBJECTS, c_void_p, *_EVENT_LIST)),
    "clReleaseCommandBufferKHR": (c_int32, (c_void_p,)),
}
# Since OpenCL 2.0; a library may lack them.
_SINCE_2_0: dict[str, tuple[object, tuple[object, ...]]] = {
    "clSVMAlloc": (c_void_p, (c_void_p, c_uint64, c_size_t, c_uint32)),
    "clSVMFree": (None, (c_void_p, c_void_p)),
    "clEnqueueSVMMemcpy": (c_int32, (c_void_p, c_uint32, c_void_p, c_void_p, c_size_t, *_EVENT_LIST)),
    "clSetKernelArgSVMPointer": (c_int32, (c_void_p, c_uint32, c_void_p)),
}

PLATFORM_VERSION, PLATFORM_NAME = 0x0901, 0x0902
DEVICE_TYPE, DEVICE_MAX_COMPUTE_UNITS = 0x1000, 0x1002
DEVICE_MAX_WORK_GROUP_SIZE, DEVICE_MAX_MEM_ALLOC_SIZE = 0x1004, 0x1010
DEVICE_MAX_PARAMETER_SIZE, DEVICE_MEM_BASE_ADDR_ALIGN, DEVICE_SINGLE_FP_CONFIG = 0x1017, 0x1019, 0x101B
DEVICE_IMAGE2D_MAX_WIDTH, DEVICE_IMAGE2D_MAX_HEIGHT, DEVICE_IMAGE_SUPPORT = 0x1011, 0x1012, 0x1016
DEVICE_GLOBAL_MEM_SIZE, DEVICE_LOCAL_MEM_SIZE = 0x101F, 0x1023
DEVICE_NAME, DEVICE_DRIVER_VERSION, DEVICE_VERSION, DEVICE_EXTENSIONS = 0x102B, 0x102D, 0x102F, 0x1030
DEVICE_DOUBLE_FP_CONFIG, DEVICE_SVM_CAPABILITIES = 0x1032, 0x1053
PROGRAM_BINARY_SIZES, PROGRAM_BINARIES, PROGRAM_BUILD_LOG = 0x1165, 0x1166, 0x1183
PROFILING_COMMAND_QUEUED, PROFILING_COMMAND_START, PROFILING_COMMAND_END = 0x1280, 0x1282, 0x1283
DEVICE_TYPE_ALL, DEVICE_TYPE_CPU = 0xFFFFFFFF, 1 << 1
MEM_READ_WRITE, MEM_ALLOC_HOST_PTR, MEM_SVM_FINE_GRAIN_BUFFER = 1, 1 << 4, 1 << 10
MAP_READ_WRITE = 3
BUFFER_CREATE_TYPE_REGION = 0x1220
MEM_SIZE, MEM_CONTEXT, MEM_OBJECT_IMAGE2D = 0x1102, 0x1106, 0x10F1
IMAGE_FORMAT, IMAGE_WIDTH, IMAGE_HEIGHT = 0x1110, 0x1114, 0x1115
RGBA, HALF_FLOAT, FLOAT = 0x10B5, 0x10DD, 0x10DE
QUEUE_PROFILING_ENABLE = 1 << 1
FP_FMA = 1 << 5
SVM_FINE_GRAIN_BUFFER = 1 << 1

_VENDORS = "/etc/OpenCL/vendors"
_LARGEST_LOADER = 1 << 20  # bytes; a driver is larger

SUCCESS, DEVICE_NOT_FOUND, PLATFORM_NOT_FOUND = 0, -1, -1001
EVENT_STATUS, COMPLETE = 0x11D3, 0
NO_MEMORY = frozenset({-4, -5, -6, -61})  # allocation failed, no resources, no host memory, larger than allowed
_ERRORS = {
    -1: "DEVICE_NOT_FOUND", -2: "DEVICE_NOT_AVAILABLE", -3: "COMPILER_NOT_AVAILABLE",
    -4: "MEM_OBJECT_ALLOCATION_FAILURE", -5: "OUT_OF_RESOURCES", -6: "OUT_OF_HOST_MEMORY",
    -10: "IMAGE_FORMAT_NOT_SUPPORTED", -11: "BUILD_PROGRAM_FAILURE", -13: "MISALIGNED_SUB_BUFFER_OFFSET",
    -14: "EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", -30: "INVALID_VALUE", -33: "INVALID_DEVICE",
    -34: "INVALID_CONTEXT", -36: "INVALID_COMMAND_QUEUE", -38: "INVALID_MEM_OBJECT",
    -39: "INVALID_IMAGE_FORMAT_DESCRIPTOR", -40: "INVALID_IMAGE_SIZE", -42: "INVALID_BINARY",
    -43: "INVALID_BUILD_OPTIONS", -44: "INVALID_PROGRAM", -45: "INVALID_PROGRAM_EXECUTABLE",
    -46: "INVALID_KERNEL_NAME", -48: "INVALID_KERNEL", -49: "INVALID_ARG_INDEX", -50: "INVALID_ARG_VALUE",
    -51: "INVALID_ARG_SIZE", -52: "INVALID_KERNEL_ARGS", -53: "INVALID_WORK_DIMENSION",
    -54: "INVALID_WORK_GROUP_SIZE", -55: "INVALID_WORK_ITEM_SIZE", -56: "INVALID_GLOBAL_OFFSET", -58: "INVALID_EVENT",
    -59: "INVALID_OPERATION", -61: "INVALID_BUFFER_SIZE", -63: "INVALID_GLOBAL_WORK_SIZE",
    -1001: "PLATFORM_NOT_FOUND",
}  # fmt: skip

_NAMES = {
    "darwin": ("/System/Library/Frameworks/OpenCL.framework/OpenCL",),
    "win32": ("OpenCL.dll",),
}.get(sys.platform, ("libOpenCL.so.1", "libOpenCL.so"))
LOADER_MISSING = (
    f"no OpenCL loader: {' nor '.join(_NAMES)} found (Debian: apt install ocl-icd-libopencl1; "
    "or name the library in OPENCL_LIBRARY)"
)


class CLError(DeviceError):
    """An OpenCL function failed.

    Attributes:
      code: its status.
    """

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"OpenCL: {what}: {_ERRORS.get(code, 'error')} ({code})")
        self.code = code


def check(code: int, what: str) -> None:
    """Does nothing if the status is success.

    Raises:
      CLError: if it is not; the message says what was attempted.
    """
    if code != SUCCESS:
        raise CLError(what, code)


METHOD = "POCL_WORK_GROUP_METHOD"
"""The variable of the environment by which PoCL is told how to run a work-group's items one after another."""


@functools.cache
def _open() -> ctypes.CDLL | None:
    # By its default, "loopvec", PoCL 3.1 loses values that items keep across a barrier. It reads this when it starts.
    os.environ.setdefault(METHOD, "loops")
    return open_first("OPENCL_LIBRARY", _NAMES)


def problem() -> str | None:
    """Why OpenCL cannot be used here, as far as is seen without asking a driver; None if it may work."""
    found = _open()
    if found is None:
        return not_loaded("OPENCL_LIBRARY") or LOADER_MISSING
    if not _is_loader(found):
        return None  # a vendor's own library
    folder = os.environ.get("OCL_ICD_VENDORS") or os.environ.get("OPENCL_VENDOR_PATH") or _VENDORS
    if os.environ.get("OCL_ICD_FILENAMES") or _registers(folder):
        return None
    return f"no OpenCL driver is registered: {folder} has no .icd file (Debian: apt install pocl-opencl-icd)"


class _Place(ctypes.Structure):
    """``Dl_info`` of ``dlfcn.h``: what the dynamic linker knows of an address."""

    _fields_ = [("file", c_char_p), ("base", c_void_p), ("symbol", c_char_p), ("address", c_void_p)]


def _is_loader(found: ctypes.CDLL) -> bool:
    """Whether the library looks for drivers, rather than being one."""
    if hasattr(found, "clGetICDLoaderInfoOCLICD"):
        return True
    if sys.platform != "linux" or not hasattr(found, "clGetPlatformIDs"):
        return False
    # some builds of ocl-icd only tell once drivers are started; the variable that they read gives them away
    place = _Place()
    if not ctypes.CDLL(None).dladdr(ctypes.cast(found.clGetPlatformIDs, c_void_p), ctypes.byref(place)):
        return False
    try:
        with open(place.file, "rb") as file:
            return b"OCL_ICD_VENDORS" in file.read(_LARGEST_LOADER)
    except OSError:
        return False


def _registers(place: str) -> bool:
    """Whether a driver is registered there: a folder of .icd files, one such file, or a library."""
    if os.path.isdir(place):
        return bool(glob.glob(f"{glob.escape(place)}/*.icd"))
    if place.endswith(".icd") or os.sep in place:
        return os.path.exists(place) or os.path.exists(os.path.join(_VENDORS, place))
    return True  # a name that the dynamic linker looks for


@functools.cache
def library() -> ctypes.CDLL:
    """The library with its prototypes declared.

    Raises:
      DeviceError: if it is absent, or too old.
    """
    found = _open()
    if found is None:
        raise DeviceError(problem() or LOADER_MISSING)
    for name, (result, arguments) in {**_PROTOTYPES, **_SINCE_2_0}.items():
        if not hasattr(found, name):
            if name in _SINCE_2_0:
                continue
            raise DeviceError(f"the OpenCL library {found._name} has no {name}: it is older than OpenCL 1.2")
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


class Functions:
    """Functions of an extension, by name."""

    def __init__(self, platform: int, prototypes: dict[str, tuple[object, tuple[object, ...]]]) -> None:
        self._platform, self._prototypes = platform, prototypes
        address = library().clGetExtensionFunctionAddressForPlatform
        address.restype, address.argtypes = c_void_p, (c_void_p, c_char_p)
        self._address = address

    def __getattr__(self, name: str) -> Callable[..., int]:
        result, arguments = self._prototypes[name]
        address = self._address(self._platform, name.encode())
        if not address:
            raise DeviceError(f"OpenCL: the platform has no {name}")
        function: Callable[..., int] = ctypes.CFUNCTYPE(result, *arguments)(address)  # type: ignore[arg-type]
        setattr(self, name, function)
        return function


@functools.cache
def command_buffers(platform: int) -> Functions:
    """The functions of ``cl_khr_command_buffer``."""
    return Functions(platform, _COMMAND_BUFFERS)


def info(function: str, handles: tuple[int, ...], parameter: int) -> bytes:
    """The raw value of a ``clGet…Info`` parameter; empty where the library does not know it."""
    get, size = getattr(library(), function), c_size_t()
    if get(*handles, parameter, 0, None, ctypes.byref(size)) != SUCCESS or size.value == 0:
        return b""
    raw = ctypes.create_string_buffer(size.value)
    check(get(*handles, parameter, size.value, raw, None), f"{function} {parameter:#x}")
    return raw.raw


def info_text(function: str, handles: tuple[int, ...], parameter: int) -> str:
    """A text parameter."""
    return info(function, handles, parameter).split(b"\0")[0].decode(errors="replace").strip()


def info_number(function: str, handles: tuple[int, ...], parameter: int) -> int:
    """An integer parameter, 0 where the library does not know it."""
    return int.from_bytes(info(function, handles, parameter), sys.byteorder)
