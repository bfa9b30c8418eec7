"""What Dawn's webgpu.h and wgpu-native's say alike, of what we use. Written by ``tools.webgpu``."""

# fmt: off
# ruff: noqa: E501, F403, F405, RUF100
from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, Structure, c_double, c_uint32, c_uint64, c_void_p
from typing import Any

BufferUsage_CopyDst = 8
BufferUsage_CopySrc = 4
BufferUsage_MapRead = 1
BufferUsage_QueryResolve = 512
BufferUsage_Storage = 128
BufferUsage_Uniform = 64
CallbackMode_AllowProcessEvents = 2
CallbackMode_AllowSpontaneous = 3
CallbackMode_WaitAnyOnly = 1
DeviceLostReason_Destroyed = 2
DeviceLostReason_Unknown = 1
ErrorFilter_OutOfMemory = 2
ErrorFilter_Validation = 1
ErrorType_NoError = 1
MapMode_Read = 1
PowerPreference_HighPerformance = 2
QueryType_Timestamp = 2
SType_ShaderSourceWGSL = 2
ShaderStage_Compute = 4
AdapterType_CPU = 3
BackendType_Null = 1
BackendType_OpenGL = 7
BackendType_OpenGLES = 8
FeatureLevel_Core = 2
Status_Success = 1
WaitStatus_Success = 1
WaitStatus_TimedOut = 2


class StringView(Structure):
    data: int | None
    length: int
    _fields_ = [
        ("data", c_void_p),
        ("length", c_uint64),
    ]


class QueueDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
    ]


class DeviceLostCallbackInfo(Structure):
    nextInChain: int | None
    mode: int
    callback: Any
    userdata1: int | None
    userdata2: int | None
    _fields_ = [
        ("nextInChain", c_void_p),
        ("mode", c_uint32),
        ("callback", CFUNCTYPE(None, c_void_p, c_uint32, StringView, c_void_p, c_void_p)),
        ("userdata1", c_void_p),
        ("userdata2", c_void_p),
    ]


class UncapturedErrorCallbackInfo(Structure):
    nextInChain: int | None
    callback: Any
    userdata1: int | None
    userdata2: int | None
    _fields_ = [
        ("nextInChain", c_void_p),
        ("callback", CFUNCTYPE(None, c_void_p, c_uint32, StringView, c_void_p, c_void_p)),
        ("userdata1", c_void_p),
        ("userdata2", c_void_p),
    ]


class RequestDeviceCallbackInfo(Structure):
    nextInChain: int | None
    mode: int
    callback: Any
    userdata1: int | None
    userdata2: int | None
    _fields_ = [
        ("nextInChain", c_void_p),
        ("mode", c_uint32),
        ("callback", CFUNCTYPE(None, c_uint32, c_void_p, StringView, c_void_p, c_void_p)),
        ("userdata1", c_void_p),
        ("userdata2", c_void_p),
    ]


class Future(Structure):
    id: int
    _fields_ = [
        ("id", c_uint64),
    ]


class BufferMapCallbackInfo(Structure):
    nextInChain: int | None
    mode: int
    callback: Any
    userdata1: int | None
    userdata2: int | None
    _fields_ = [
        ("nextInChain", c_void_p),
        ("mode", c_uint32),
        ("callback", CFUNCTYPE(None, c_uint32, StringView, c_void_p, c_void_p)),
        ("userdata1", c_void_p),
        ("userdata2", c_void_p),
    ]


class CommandBufferDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
    ]


class BindGroupEntry(Structure):
    nextInChain: int | None
    binding: int
    buffer: int | None
    offset: int
    size: int
    sampler: int | None
    textureView: int | None
    _fields_ = [
        ("nextInChain", c_void_p),
        ("binding", c_uint32),
        ("buffer", c_void_p),
        ("offset", c_uint64),
        ("size", c_uint64),
        ("sampler", c_void_p),
        ("textureView", c_void_p),
    ]


class BindGroupDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    layout: int | None
    entryCount: int
    entries: Any
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
        ("layout", c_void_p),
        ("entryCount", c_uint64),
        ("entries", POINTER(BindGroupEntry)),
    ]


class BufferBindingLayout(Structure):
    nextInChain: int | None
    type: int
    hasDynamicOffset: int
    minBindingSize: int
    _fields_ = [
        ("nextInChain", c_void_p),
        ("type", c_uint32),
        ("hasDynamicOffset", c_uint32),
        ("minBindingSize", c_uint64),
    ]


class SamplerBindingLayout(Structure):
    nextInChain: int | None
    type: int
    _fields_ = [
        ("nextInChain", c_void_p),
        ("type", c_uint32),
    ]


class TextureBindingLayout(Structure):
    nextInChain: int | None
    sampleType: int
    viewDimension: int
    multisampled: int
    _fields_ = [
        ("nextInChain", c_void_p),
        ("sampleType", c_uint32),
        ("viewDimension", c_uint32),
        ("multisampled", c_uint32),
    ]


class StorageTextureBindingLayout(Structure):
    nextInChain: int | None
    access: int
    format: int
    viewDimension: int
    _fields_ = [
        ("nextInChain", c_void_p),
        ("access", c_uint32),
        ("format", c_uint32),
        ("viewDimension", c_uint32),
    ]


class BufferDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    usage: int
    size: int
    mappedAtCreation: int
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
        ("usage", c_uint64),
        ("size", c_uint64),
        ("mappedAtCreation", c_uint32),
    ]


class CommandEncoderDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
    ]


class ConstantEntry(Structure):
    nextInChain: int | None
    key: StringView
    value: float
    _fields_ = [
        ("nextInChain", c_void_p),
        ("key", StringView),
        ("value", c_double),
    ]


class ComputeState(Structure):
    nextInChain: int | None
    module: int | None
    entryPoint: StringView
    constantCount: int
    constants: Any
    _fields_ = [
        ("nextInChain", c_void_p),
        ("module", c_void_p),
        ("entryPoint", StringView),
        ("constantCount", c_uint64),
        ("constants", POINTER(ConstantEntry)),
    ]


class ComputePipelineDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    layout: int | None
    compute: ComputeState
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
        ("layout", c_void_p),
        ("compute", ComputeState),
    ]


class QuerySetDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    type: int
    count: int
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
        ("type", c_uint32),
        ("count", c_uint32),
    ]


class ShaderModuleDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
    ]


class PopErrorScopeCallbackInfo(Structure):
    nextInChain: int | None
    mode: int
    callback: Any
    userdata1: int | None
    userdata2: int | None
    _fields_ = [
        ("nextInChain", c_void_p),
        ("mode", c_uint32),
        ("callback", CFUNCTYPE(None, c_uint32, c_uint32, StringView, c_void_p, c_void_p)),
        ("userdata1", c_void_p),
        ("userdata2", c_void_p),
    ]


class RequestAdapterCallbackInfo(Structure):
    nextInChain: int | None
    mode: int
    callback: Any
    userdata1: int | None
    userdata2: int | None
    _fields_ = [
        ("nextInChain", c_void_p),
        ("mode", c_uint32),
        ("callback", CFUNCTYPE(None, c_uint32, c_void_p, StringView, c_void_p, c_void_p)),
        ("userdata1", c_void_p),
        ("userdata2", c_void_p),
    ]


class ChainedStruct(Structure):
    next: int | None
    sType: int
    _fields_ = [
        ("next", c_void_p),
        ("sType", c_uint32),
    ]


class ShaderSourceWGSL(Structure):
    chain: ChainedStruct
    code: StringView
    _fields_ = [
        ("chain", ChainedStruct),
        ("code", StringView),
    ]


SHARED: dict[str, tuple[object, tuple[object, ...]]] = {
    "wgpuAdapterHasFeature": (c_uint32, (c_void_p, c_uint32)),
    "wgpuAdapterRelease": (None, (c_void_p,)),
    "wgpuBindGroupLayoutRelease": (None, (c_void_p,)),
    "wgpuBindGroupRelease": (None, (c_void_p,)),
    "wgpuBufferDestroy": (None, (c_void_p,)),
    "wgpuBufferGetConstMappedRange": (c_void_p, (c_void_p, c_uint64, c_uint64)),
    "wgpuBufferRelease": (None, (c_void_p,)),
    "wgpuBufferUnmap": (None, (c_void_p,)),
    "wgpuCommandBufferRelease": (None, (c_void_p,)),
    "wgpuCommandEncoderCopyBufferToBuffer": (None, (c_void_p, c_void_p, c_uint64, c_void_p, c_uint64, c_uint64)),
    "wgpuCommandEncoderFinish": (c_void_p, (c_void_p, POINTER(CommandBufferDescriptor))),
    "wgpuCommandEncoderRelease": (None, (c_void_p,)),
    "wgpuCommandEncoderResolveQuerySet": (None, (c_void_p, c_void_p, c_uint32, c_uint32, c_void_p, c_uint64)),
    "wgpuComputePassEncoderDispatchWorkgroups": (None, (c_void_p, c_uint32, c_uint32, c_uint32)),
    "wgpuComputePassEncoderEnd": (None, (c_void_p,)),
    "wgpuComputePassEncoderRelease": (None, (c_void_p,)),
    "wgpuComputePassEncoderSetBindGroup": (None, (c_void_p, c_uint32, c_void_p, c_uint64, POINTER(c_uint32))),
    "wgpuComputePassEncoderSetPipeline": (None, (c_void_p, c_void_p)),
    "wgpuComputePipelineRelease": (None, (c_void_p,)),
    "wgpuDeviceCreateBindGroup": (c_void_p, (c_void_p, POINTER(BindGroupDescriptor))),
    "wgpuDeviceCreateBuffer": (c_void_p, (c_void_p, POINTER(BufferDescriptor))),
    "wgpuDeviceCreateCommandEncoder": (c_void_p, (c_void_p, POINTER(CommandEncoderDescriptor))),
    "wgpuDeviceCreateComputePipeline": (c_void_p, (c_void_p, POINTER(ComputePipelineDescriptor))),
    "wgpuDeviceCreateQuerySet": (c_void_p, (c_void_p, POINTER(QuerySetDescriptor))),
    "wgpuDeviceCreateShaderModule": (c_void_p, (c_void_p, POINTER(ShaderModuleDescriptor))),
    "wgpuDeviceDestroy": (None, (c_void_p,)),
    "wgpuDeviceGetQueue": (c_void_p, (c_void_p,)),
    "wgpuDevicePushErrorScope": (None, (c_void_p, c_uint32)),
    "wgpuDeviceRelease": (None, (c_void_p,)),
    "wgpuInstanceProcessEvents": (None, (c_void_p,)),
    "wgpuPipelineLayoutRelease": (None, (c_void_p,)),
    "wgpuQuerySetRelease": (None, (c_void_p,)),
    "wgpuQueueSubmit": (None, (c_void_p, c_uint64, c_void_p)),
    "wgpuQueueWriteBuffer": (None, (c_void_p, c_void_p, c_uint64, c_void_p, c_uint64)),
    "wgpuShaderModuleRelease": (None, (c_void_p,)),
}
