"""Structures, values and functions of Dawn's webgpu.h (Chromium 133) that we use. Written by ``tools.webgpu dawn``."""

# fmt: off
# ruff: noqa: E501, RUF100
from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, Structure, c_double, c_uint32, c_uint64, c_void_p
from typing import Any

BufferBindingType_Storage = 2
BufferBindingType_Uniform = 1
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
FeatureName_ShaderF16 = 8
FeatureName_TimestampQuery = 3
MapMode_Read = 1
PowerPreference_HighPerformance = 2
QueryType_Timestamp = 2
SType_DawnTogglesDescriptor = 327690
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


class AdapterInfo(Structure):
    nextInChain: int | None
    vendor: StringView
    architecture: StringView
    device: StringView
    description: StringView
    backendType: int
    adapterType: int
    vendorID: int
    deviceID: int
    compatibilityMode: int
    _fields_ = [
        ("nextInChain", c_void_p),
        ("vendor", StringView),
        ("architecture", StringView),
        ("device", StringView),
        ("description", StringView),
        ("backendType", c_uint32),
        ("adapterType", c_uint32),
        ("vendorID", c_uint32),
        ("deviceID", c_uint32),
        ("compatibilityMode", c_uint32),
    ]


class Limits(Structure):
    maxTextureDimension1D: int
    maxTextureDimension2D: int
    maxTextureDimension3D: int
    maxTextureArrayLayers: int
    maxBindGroups: int
    maxBindGroupsPlusVertexBuffers: int
    maxBindingsPerBindGroup: int
    maxDynamicUniformBuffersPerPipelineLayout: int
    maxDynamicStorageBuffersPerPipelineLayout: int
    maxSampledTexturesPerShaderStage: int
    maxSamplersPerShaderStage: int
    maxStorageBuffersPerShaderStage: int
    maxStorageTexturesPerShaderStage: int
    maxUniformBuffersPerShaderStage: int
    maxUniformBufferBindingSize: int
    maxStorageBufferBindingSize: int
    minUniformBufferOffsetAlignment: int
    minStorageBufferOffsetAlignment: int
    maxVertexBuffers: int
    maxBufferSize: int
    maxVertexAttributes: int
    maxVertexBufferArrayStride: int
    maxInterStageShaderComponents: int
    maxInterStageShaderVariables: int
    maxColorAttachments: int
    maxColorAttachmentBytesPerSample: int
    maxComputeWorkgroupStorageSize: int
    maxComputeInvocationsPerWorkgroup: int
    maxComputeWorkgroupSizeX: int
    maxComputeWorkgroupSizeY: int
    maxComputeWorkgroupSizeZ: int
    maxComputeWorkgroupsPerDimension: int
    maxStorageBuffersInVertexStage: int
    maxStorageTexturesInVertexStage: int
    maxStorageBuffersInFragmentStage: int
    maxStorageTexturesInFragmentStage: int
    _fields_ = [
        ("maxTextureDimension1D", c_uint32),
        ("maxTextureDimension2D", c_uint32),
        ("maxTextureDimension3D", c_uint32),
        ("maxTextureArrayLayers", c_uint32),
        ("maxBindGroups", c_uint32),
        ("maxBindGroupsPlusVertexBuffers", c_uint32),
        ("maxBindingsPerBindGroup", c_uint32),
        ("maxDynamicUniformBuffersPerPipelineLayout", c_uint32),
        ("maxDynamicStorageBuffersPerPipelineLayout", c_uint32),
        ("maxSampledTexturesPerShaderStage", c_uint32),
        ("maxSamplersPerShaderStage", c_uint32),
        ("maxStorageBuffersPerShaderStage", c_uint32),
        ("maxStorageTexturesPerShaderStage", c_uint32),
        ("maxUniformBuffersPerShaderStage", c_uint32),
        ("maxUniformBufferBindingSize", c_uint64),
        ("maxStorageBufferBindingSize", c_uint64),
        ("minUniformBufferOffsetAlignment", c_uint32),
        ("minStorageBufferOffsetAlignment", c_uint32),
        ("maxVertexBuffers", c_uint32),
        ("maxBufferSize", c_uint64),
        ("maxVertexAttributes", c_uint32),
        ("maxVertexBufferArrayStride", c_uint32),
        ("maxInterStageShaderComponents", c_uint32),
        ("maxInterStageShaderVariables", c_uint32),
        ("maxColorAttachments", c_uint32),
        ("maxColorAttachmentBytesPerSample", c_uint32),
        ("maxComputeWorkgroupStorageSize", c_uint32),
        ("maxComputeInvocationsPerWorkgroup", c_uint32),
        ("maxComputeWorkgroupSizeX", c_uint32),
        ("maxComputeWorkgroupSizeY", c_uint32),
        ("maxComputeWorkgroupSizeZ", c_uint32),
        ("maxComputeWorkgroupsPerDimension", c_uint32),
        ("maxStorageBuffersInVertexStage", c_uint32),
        ("maxStorageTexturesInVertexStage", c_uint32),
        ("maxStorageBuffersInFragmentStage", c_uint32),
        ("maxStorageTexturesInFragmentStage", c_uint32),
    ]


class SupportedLimits(Structure):
    nextInChain: int | None
    limits: Limits
    _fields_ = [
        ("nextInChain", c_void_p),
        ("limits", Limits),
    ]


class RequiredLimits(Structure):
    nextInChain: int | None
    limits: Limits
    _fields_ = [
        ("nextInChain", c_void_p),
        ("limits", Limits),
    ]


class QueueDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
    ]


class DeviceLostCallbackInfo2(Structure):
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


class UncapturedErrorCallbackInfo2(Structure):
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


class DeviceDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    requiredFeatureCount: int
    requiredFeatures: Any
    requiredLimits: Any
    defaultQueue: QueueDescriptor
    deviceLostCallbackInfo2: DeviceLostCallbackInfo2
    uncapturedErrorCallbackInfo2: UncapturedErrorCallbackInfo2
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
        ("requiredFeatureCount", c_uint64),
        ("requiredFeatures", POINTER(c_uint32)),
        ("requiredLimits", POINTER(RequiredLimits)),
        ("defaultQueue", QueueDescriptor),
        ("deviceLostCallbackInfo2", DeviceLostCallbackInfo2),
        ("uncapturedErrorCallbackInfo2", UncapturedErrorCallbackInfo2),
    ]


class RequestDeviceCallbackInfo2(Structure):
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


class BufferMapCallbackInfo2(Structure):
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


class ComputePassTimestampWrites(Structure):
    querySet: int | None
    beginningOfPassWriteIndex: int
    endOfPassWriteIndex: int
    _fields_ = [
        ("querySet", c_void_p),
        ("beginningOfPassWriteIndex", c_uint32),
        ("endOfPassWriteIndex", c_uint32),
    ]


class ComputePassDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    timestampWrites: Any
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
        ("timestampWrites", POINTER(ComputePassTimestampWrites)),
    ]


class CommandBufferDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
    ]


class InstanceFeatures(Structure):
    nextInChain: int | None
    timedWaitAnyEnable: int
    timedWaitAnyMaxCount: int
    _fields_ = [
        ("nextInChain", c_void_p),
        ("timedWaitAnyEnable", c_uint32),
        ("timedWaitAnyMaxCount", c_uint64),
    ]


class InstanceDescriptor(Structure):
    nextInChain: int | None
    features: InstanceFeatures
    _fields_ = [
        ("nextInChain", c_void_p),
        ("features", InstanceFeatures),
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


class BindGroupLayoutEntry(Structure):
    nextInChain: int | None
    binding: int
    visibility: int
    buffer: BufferBindingLayout
    sampler: SamplerBindingLayout
    texture: TextureBindingLayout
    storageTexture: StorageTextureBindingLayout
    _fields_ = [
        ("nextInChain", c_void_p),
        ("binding", c_uint32),
        ("visibility", c_uint64),
        ("buffer", BufferBindingLayout),
        ("sampler", SamplerBindingLayout),
        ("texture", TextureBindingLayout),
        ("storageTexture", StorageTextureBindingLayout),
    ]


class BindGroupLayoutDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    entryCount: int
    entries: Any
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
        ("entryCount", c_uint64),
        ("entries", POINTER(BindGroupLayoutEntry)),
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


class PipelineLayoutDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    bindGroupLayoutCount: int
    bindGroupLayouts: int | None
    immediateDataRangeByteSize: int
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
        ("bindGroupLayoutCount", c_uint64),
        ("bindGroupLayouts", c_void_p),
        ("immediateDataRangeByteSize", c_uint32),
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


class PopErrorScopeCallbackInfo2(Structure):
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


class RequestAdapterOptions(Structure):
    nextInChain: int | None
    compatibleSurface: int | None
    featureLevel: int
    powerPreference: int
    backendType: int
    forceFallbackAdapter: int
    compatibilityMode: int
    _fields_ = [
        ("nextInChain", c_void_p),
        ("compatibleSurface", c_void_p),
        ("featureLevel", c_uint32),
        ("powerPreference", c_uint32),
        ("backendType", c_uint32),
        ("forceFallbackAdapter", c_uint32),
        ("compatibilityMode", c_uint32),
    ]


class RequestAdapterCallbackInfo2(Structure):
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


class FutureWaitInfo(Structure):
    future: Future
    completed: int
    _fields_ = [
        ("future", Future),
        ("completed", c_uint32),
    ]


class QueueWorkDoneCallbackInfo2(Structure):
    nextInChain: int | None
    mode: int
    callback: Any
    userdata1: int | None
    userdata2: int | None
    _fields_ = [
        ("nextInChain", c_void_p),
        ("mode", c_uint32),
        ("callback", CFUNCTYPE(None, c_uint32, c_void_p, c_void_p)),
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


class DawnTogglesDescriptor(Structure):
    chain: ChainedStruct
    enabledToggleCount: int
    enabledToggles: int | None
    disabledToggleCount: int
    disabledToggles: int | None
    _fields_ = [
        ("chain", ChainedStruct),
        ("enabledToggleCount", c_uint64),
        ("enabledToggles", c_void_p),
        ("disabledToggleCount", c_uint64),
        ("disabledToggles", c_void_p),
    ]


PROTOTYPES: dict[str, tuple[object, tuple[object, ...]]] = {
    "wgpuAdapterGetInfo": (c_uint32, (c_void_p, POINTER(AdapterInfo))),
    "wgpuAdapterGetLimits": (c_uint32, (c_void_p, POINTER(SupportedLimits))),
    "wgpuAdapterHasFeature": (c_uint32, (c_void_p, c_uint32)),
    "wgpuAdapterRelease": (None, (c_void_p,)),
    "wgpuAdapterRequestDevice2": (Future, (c_void_p, POINTER(DeviceDescriptor), RequestDeviceCallbackInfo2)),
    "wgpuBindGroupLayoutRelease": (None, (c_void_p,)),
    "wgpuBindGroupRelease": (None, (c_void_p,)),
    "wgpuBufferDestroy": (None, (c_void_p,)),
    "wgpuBufferGetConstMappedRange": (c_void_p, (c_void_p, c_uint64, c_uint64)),
    "wgpuBufferMapAsync2": (Future, (c_void_p, c_uint64, c_uint64, c_uint64, BufferMapCallbackInfo2)),
    "wgpuBufferRelease": (None, (c_void_p,)),
    "wgpuBufferUnmap": (None, (c_void_p,)),
    "wgpuCommandBufferRelease": (None, (c_void_p,)),
    "wgpuCommandEncoderBeginComputePass": (c_void_p, (c_void_p, POINTER(ComputePassDescriptor))),
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
    "wgpuCreateInstance": (c_void_p, (POINTER(InstanceDescriptor),)),
    "wgpuDeviceCreateBindGroup": (c_void_p, (c_void_p, POINTER(BindGroupDescriptor))),
    "wgpuDeviceCreateBindGroupLayout": (c_void_p, (c_void_p, POINTER(BindGroupLayoutDescriptor))),
    "wgpuDeviceCreateBuffer": (c_void_p, (c_void_p, POINTER(BufferDescriptor))),
    "wgpuDeviceCreateCommandEncoder": (c_void_p, (c_void_p, POINTER(CommandEncoderDescriptor))),
    "wgpuDeviceCreateComputePipeline": (c_void_p, (c_void_p, POINTER(ComputePipelineDescriptor))),
    "wgpuDeviceCreatePipelineLayout": (c_void_p, (c_void_p, POINTER(PipelineLayoutDescriptor))),
    "wgpuDeviceCreateQuerySet": (c_void_p, (c_void_p, POINTER(QuerySetDescriptor))),
    "wgpuDeviceCreateShaderModule": (c_void_p, (c_void_p, POINTER(ShaderModuleDescriptor))),
    "wgpuDeviceDestroy": (None, (c_void_p,)),
    "wgpuDeviceForceLoss": (None, (c_void_p, c_uint32, StringView)),
    "wgpuDeviceGetQueue": (c_void_p, (c_void_p,)),
    "wgpuDevicePopErrorScope2": (Future, (c_void_p, PopErrorScopeCallbackInfo2)),
    "wgpuDevicePushErrorScope": (None, (c_void_p, c_uint32)),
    "wgpuDeviceRelease": (None, (c_void_p,)),
    "wgpuInstanceProcessEvents": (None, (c_void_p,)),
    "wgpuInstanceRequestAdapter2": (Future, (c_void_p, POINTER(RequestAdapterOptions), RequestAdapterCallbackInfo2)),
    "wgpuInstanceWaitAny": (c_uint32, (c_void_p, c_uint64, POINTER(FutureWaitInfo), c_uint64)),
    "wgpuPipelineLayoutRelease": (None, (c_void_p,)),
    "wgpuQuerySetRelease": (None, (c_void_p,)),
    "wgpuQueueOnSubmittedWorkDone2": (Future, (c_void_p, QueueWorkDoneCallbackInfo2)),
    "wgpuQueueSubmit": (None, (c_void_p, c_uint64, c_void_p)),
    "wgpuQueueWriteBuffer": (None, (c_void_p, c_void_p, c_uint64, c_void_p, c_uint64)),
    "wgpuShaderModuleRelease": (None, (c_void_p,)),
}
