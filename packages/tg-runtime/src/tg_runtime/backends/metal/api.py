"""The part of Metal that we use: its messages, its constants, and where it is.

Source: "Metal" (Apple's documentation), and the headers of ``Metal.framework`` for the values of constants.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from ctypes import c_void_p
from typing import Any

from ...errors import DeviceError
from .objc import ObjC

# Results and arguments in the encoding of :mod:`.objc`.
MESSAGES = {
    "new": "@", "count": "Q", "objectAtIndex:": "@Q",
    # NSProcessInfo
    "processInfo": "@", "isOperatingSystemAtLeastVersion:": "B{Version}",
    # MTLDevice
    "name": "@", "supportsFamily:": "Bq", "hasUnifiedMemory": "B", "maxBufferLength": "Q",
    "maxThreadgroupMemoryLength": "Q", "recommendedMaxWorkingSetSize": "Q", "newCommandQueue": "@",
    "newBufferWithLength:options:": "@QQ", "newBufferWithBytesNoCopy:length:options:deallocator:": "@^vQQ@",
    "newLibraryWithSource:options:error:": "@@@^@",
    "newComputePipelineStateWithDescriptor:options:reflection:error:": "@@Q^@^@",
    "newIndirectCommandBufferWithDescriptor:maxCommandCount:options:": "@@QQ",
    # MTLCompileOptions
    "setFastMathEnabled:": "vB", "setMathMode:": "vq",
    # MTLLibrary, MTLComputePipelineDescriptor, MTLComputePipelineState
    "newFunctionWithName:": "@@", "setComputeFunction:": "v@", "setSupportIndirectCommandBuffers:": "vB",
    "maxTotalThreadsPerThreadgroup": "Q",
    # MTLBuffer
    "contents": "^v",
    # MTLCommandQueue, MTLCommandBuffer
    "commandBuffer": "@", "computeCommandEncoder": "@", "blitCommandEncoder": "@", "commit": "v",
    "waitUntilCompleted": "v", "status": "Q", "error": "@", "GPUStartTime": "d", "GPUEndTime": "d",
    # MTLCommandEncoder
    "endEncoding": "v", "setComputePipelineState:": "v@", "setBuffer:offset:atIndex:": "v@QQ",
    "setBytes:length:atIndex:": "v^vQQ", "dispatchThreadgroups:threadsPerThreadgroup:": "v{Size}{Size}",
    "useResources:count:usage:": "v^vQQ", "executeCommandsInBuffer:withRange:": "v@{Range}",
    "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:": "v@Q@QQ",
    # MTLIndirectCommandBufferDescriptor, MTLIndirectCommandBuffer, MTLIndirectComputeCommand
    "setCommandTypes:": "vQ", "setInheritBuffers:": "vB", "setInheritPipelineState:": "vB",
    "setMaxKernelBufferBindCount:": "vQ", "indirectComputeCommandAtIndex:": "@Q",
    "setKernelBuffer:offset:atIndex:": "v@QQ", "setBarrier": "v",
    "concurrentDispatchThreadgroups:threadsPerThreadgroup:": "v{Size}{Size}",
}  # fmt: skip

APPLE6, APPLE7, APPLE9, METAL3 = 1006, 1007, 1009, 5001  # MTLGPUFamily
STORAGE_SHARED = 0  # MTLResourceStorageModeShared, with the default cache mode
MATH_SAFE = 0  # MTLMathModeSafe
STATUS_COMPLETED, STATUS_ERROR = 4, 5  # MTLCommandBufferStatus
CONCURRENT_DISPATCH = 1 << 5  # MTLIndirectCommandTypeConcurrentDispatch
USAGE_READ_WRITE = 3  # MTLResourceUsageRead | MTLResourceUsageWrite
LARGEST_BYTES = 4096  # of setBytes:length:atIndex:
CONSTANT_ALIGNMENT = 256  # bytes: the strictest alignment of offsets into constant memory
BFLOAT_SYSTEM = (14, 0, 0)  # macOS whose compiler knows version 3.1 of the language

_FRAMEWORKS = (
    "/usr/lib/libobjc.A.dylib",
    "/System/Library/Frameworks/Foundation.framework/Foundation",
    # without it a process without windows finds no device
    "/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics",
    "/System/Library/Frameworks/Metal.framework/Metal",
)
_SYSTEMS = {"linux": "Linux", "win32": "Windows", "darwin": "macOS"}


class MetalError(DeviceError):
    """Metal refused, or a command buffer failed. The message says what was attempted, and what Metal says."""


@functools.cache
def _libraries() -> list[ctypes.CDLL] | str:
    """The libraries, or why there are none."""
    chosen = os.environ.get("METAL_LIBRARY")
    if not chosen and sys.platform != "darwin":
        return f"Metal is a part of macOS, and this is {_SYSTEMS.get(sys.platform, sys.platform)}"
    try:
        return [ctypes.CDLL(name) for name in ([chosen] if chosen else _FRAMEWORKS)]
    except OSError as error:
        if chosen:
            return f"the library that METAL_LIBRARY names cannot be loaded: {chosen}"
        return f"Metal does not load: {error}"


def problem() -> str | None:
    """Why Metal cannot be used here, as far as is seen without asking for a device; None if it may work."""
    found = _libraries()
    if isinstance(found, str):
        return found
    missing = [name for name in ("objc_msgSend", "MTLCreateSystemDefaultDevice") if _find(found, name) is None]
    return f"what loads as Metal lacks {missing[0]}" if missing else None


def _find(libraries: list[ctypes.CDLL], name: str) -> Any:
    return next((getattr(library, name) for library in libraries if hasattr(library, name)), None)


def function(name: str) -> Any:
    """A function of the libraries, its types undeclared.

    Raises:
      DeviceError: if there is no Metal.
      AttributeError: if there is no such function.
    """
    found = _libraries()
    if isinstance(found, str):
        raise DeviceError(f"Metal: {found}")
    result = _find(found, name)
    if result is None:
        raise AttributeError(name)
    return result


@functools.cache
def runtime() -> ObjC:
    """The Objective-C runtime with the messages above.

    Raises:
      DeviceError: if there is no Metal.
    """
    return ObjC(function, MESSAGES)


def devices() -> list[int]:
    """The ``MTLDevice`` objects of the machine, the default one first. They live as long as the process.

    Raises:
      DeviceError: if there is no Metal.
    """
    objc = runtime()
    create = function("MTLCreateSystemDefaultDevice")
    create.restype, create.argtypes = c_void_p, ()
    with objc.pool():
        first: int | None = create()
        if not first:
            return []
        copy = function("MTLCopyAllDevices")
        copy.restype, copy.argtypes = c_void_p, ()
        every: int | None = copy()
        found = [objc.send(every, "objectAtIndex:", i) for i in range(objc.send(every, "count"))] if every else []
        others = [device for device in found if device != first]
        for device in others:
            objc.send(device, "retain")
        if every:
            objc.send(every, "release")
    return [first, *others]
