"""The driver API of CUDA 13.5 that we use. Written by ``tools.cuda``."""

# fmt: off
# ruff: noqa: E501, RUF100
from __future__ import annotations

from ctypes import POINTER, Structure, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1
CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2
CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5
CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8
CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12
CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38
CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0
CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1
CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3
CU_FUNC_ATTRIBUTE_NUM_REGS = 4
CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
CU_STREAM_NON_BLOCKING = 1
CU_EVENT_DISABLE_TIMING = 2
CU_MEMHOSTALLOC_PORTABLE = 1
CU_JIT_ERROR_LOG_BUFFER = 5
CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6


class CUDA_KERNEL_NODE_PARAMS(Structure):
    func: int | None
    gridDimX: int
    gridDimY: int
    gridDimZ: int
    blockDimX: int
    blockDimY: int
    blockDimZ: int
    sharedMemBytes: int
    kernelParams: Any
    extra: Any
    _fields_ = [
        ("func", c_void_p),
        ("gridDimX", c_uint),
        ("gridDimY", c_uint),
        ("gridDimZ", c_uint),
        ("blockDimX", c_uint),
        ("blockDimY", c_uint),
        ("blockDimZ", c_uint),
        ("sharedMemBytes", c_uint),
        ("kernelParams", POINTER(c_void_p)),
        ("extra", POINTER(c_void_p)),
    ]


PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_void_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDeviceCanAccessPeer": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxEnablePeerAccess": (c_void_p, c_uint),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemHostAlloc": (POINTER(c_void_p), c_size_t, c_uint),
    "cuMemFreeHost": (c_void_p,),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_uint64, c_uint64, c_size_t, c_void_p),
    "cuMemcpyPeerAsync": (c_uint64, c_void_p, c_uint64, c_void_p, c_size_t, c_void_p),
    "cuStreamCreate": (POINTER(c_void_p), c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamQuery": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventQuery": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
    "cuModuleLoadDataEx": (POINTER(c_void_p), c_void_p, c_uint, POINTER(c_int), POINTER(c_void_p)),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (POINTER(c_int), c_void_p, c_int, c_size_t),
    "cuLaunchKernel": (c_void_p, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_void_p, POINTER(c_void_p), POINTER(c_void_p)),
    "cuGraphCreate": (POINTER(c_void_p), c_uint),
    "cuGraphAddKernelNode": (POINTER(c_void_p), c_void_p, POINTER(c_void_p), c_size_t, POINTER(CUDA_KERNEL_NODE_PARAMS)),
    "cuGraphInstantiateWithFlags": (POINTER(c_void_p), c_void_p, c_uint64),
    "cuGraphExecKernelNodeSetParams": (c_void_p, c_void_p, POINTER(CUDA_KERNEL_NODE_PARAMS)),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphExecDestroy": (c_void_p,),
    "cuGraphDestroy": (c_void_p,),
}
NEWER: dict[str, tuple[Any, ...]] = {
    "cuFuncGetParamInfo": (c_void_p, c_size_t, POINTER(c_size_t), POINTER(c_size_t)),
}
ERRORS = {
    0: "SUCCESS",
    1: "INVALID_VALUE",
    2: "OUT_OF_MEMORY",
    3: "NOT_INITIALIZED",
    4: "DEINITIALIZED",
    5: "PROFILER_DISABLED",
    6: "PROFILER_NOT_INITIALIZED",
    7: "PROFILER_ALREADY_STARTED",
    8: "PROFILER_ALREADY_STOPPED",
    34: "STUB_LIBRARY",
    36: "CALL_REQUIRES_NEWER_DRIVER",
    46: "DEVICE_UNAVAILABLE",
    47: "MULTICAST_RESOURCE_FULL",
    100: "NO_DEVICE",
    101: "INVALID_DEVICE",
    102: "DEVICE_NOT_LICENSED",
    200: "INVALID_IMAGE",
    201: "INVALID_CONTEXT",
    202: "CONTEXT_ALREADY_CURRENT",
    205: "MAP_FAILED",
    206: "UNMAP_FAILED",
    207: "ARRAY_IS_MAPPED",
    208: "ALREADY_MAPPED",
    209: "NO_BINARY_FOR_GPU",
    210: "ALREADY_ACQUIRED",
    211: "NOT_MAPPED",
    212: "NOT_MAPPED_AS_ARRAY",
    213: "NOT_MAPPED_AS_POINTER",
    214: "ECC_UNCORRECTABLE",
    215: "UNSUPPORTED_LIMIT",
    216: "CONTEXT_ALREADY_IN_USE",
    217: "PEER_ACCESS_UNSUPPORTED",
    218: "INVALID_PTX",
    219: "INVALID_GRAPHICS_CONTEXT",
    220: "NVLINK_UNCORRECTABLE",
    221: "JIT_COMPILER_NOT_FOUND",
    222: "UNSUPPORTED_PTX_VERSION",
    223: "JIT_COMPILATION_DISABLED",
    224: "UNSUPPORTED_EXEC_AFFINITY",
    225: "UNSUPPORTED_DEVSIDE_SYNC",
    226: "CONTAINED",
    227: "INSUFFICIENT_LOADER_VERSION",
    300: "INVALID_SOURCE",
    301: "FILE_NOT_FOUND",
    302: "SHARED_OBJECT_SYMBOL_NOT_FOUND",
    303: "SHARED_OBJECT_INIT_FAILED",
    304: "OPERATING_SYSTEM",
    400: "INVALID_HANDLE",
    401: "ILLEGAL_STATE",
    402: "LOSSY_QUERY",
    500: "NOT_FOUND",
    600: "NOT_READY",
    700: "ILLEGAL_ADDRESS",
    701: "LAUNCH_OUT_OF_RESOURCES",
    702: "LAUNCH_TIMEOUT",
    703: "LAUNCH_INCOMPATIBLE_TEXTURING",
    704: "PEER_ACCESS_ALREADY_ENABLED",
    705: "PEER_ACCESS_NOT_ENABLED",
    708: "PRIMARY_CONTEXT_ACTIVE",
    709: "CONTEXT_IS_DESTROYED",
    710: "ASSERT",
    711: "TOO_MANY_PEERS",
    712: "HOST_MEMORY_ALREADY_REGISTERED",
    713: "HOST_MEMORY_NOT_REGISTERED",
    714: "HARDWARE_STACK_ERROR",
    715: "ILLEGAL_INSTRUCTION",
    716: "MISALIGNED_ADDRESS",
    717: "INVALID_ADDRESS_SPACE",
    718: "INVALID_PC",
    719: "LAUNCH_FAILED",
    720: "COOPERATIVE_LAUNCH_TOO_LARGE",
    721: "TENSOR_MEMORY_LEAK",
    800: "NOT_PERMITTED",
    801: "NOT_SUPPORTED",
    802: "SYSTEM_NOT_READY",
    803: "SYSTEM_DRIVER_MISMATCH",
    804: "COMPAT_NOT_SUPPORTED_ON_DEVICE",
    805: "MPS_CONNECTION_FAILED",
    806: "MPS_RPC_FAILURE",
    807: "MPS_SERVER_NOT_READY",
    808: "MPS_MAX_CLIENTS_REACHED",
    809: "MPS_MAX_CONNECTIONS_REACHED",
    810: "MPS_CLIENT_TERMINATED",
    811: "CDP_NOT_SUPPORTED",
    812: "CDP_VERSION_MISMATCH",
    900: "STREAM_CAPTURE_UNSUPPORTED",
    901: "STREAM_CAPTURE_INVALIDATED",
    902: "STREAM_CAPTURE_MERGE",
    903: "STREAM_CAPTURE_UNMATCHED",
    904: "STREAM_CAPTURE_UNJOINED",
    905: "STREAM_CAPTURE_ISOLATION",
    906: "STREAM_CAPTURE_IMPLICIT",
    907: "CAPTURED_EVENT",
    908: "STREAM_CAPTURE_WRONG_THREAD",
    909: "TIMEOUT",
    910: "GRAPH_EXEC_UPDATE_FAILURE",
    911: "EXTERNAL_DEVICE",
    912: "INVALID_CLUSTER_SIZE",
    913: "FUNCTION_NOT_LOADED",
    914: "INVALID_RESOURCE_TYPE",
    915: "INVALID_RESOURCE_CONFIGURATION",
    916: "KEY_ROTATION",
    917: "STREAM_DETACHED",
    918: "GRAPH_RECAPTURE_FAILURE",
    919: "FABRIC_NOT_READY",
    999: "UNKNOWN",
}
