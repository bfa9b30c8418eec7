"""What Dawn's webgpu.h (Chromium 133) says otherwise, of what we use. Written by ``tools.webgpu``."""

# fmt: off
# ruff: noqa: E501, F403, F405, RUF100
from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, Structure, c_uint32, c_uint64, c_void_p
from typing import Any

from .header import *
from .header import SHARED

BufferBindingType_Storage = 2
BufferBindingType_Uniform = 1
FeatureName_ShaderF16 = 8
FeatureName_TimestampQuery = 3
SType_DawnTogglesDescriptor = 327690


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


class DeviceDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    requiredFeatureCount: int
    requiredFeatures: Any
    requiredLimits: Any
    defaultQueue: QueueDescriptor
    deviceLostCallbackInfo2: DeviceLostCallbackInfo
    uncapturedErrorCallbackInfo2: UncapturedErrorCallbackInfo
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
        ("requiredFeatureCount", c_uint64),
        ("requiredFeatures", POINTER(c_uint32)),
        ("requiredLimits", POINTER(RequiredLimits)),
        ("defaultQueue", QueueDescriptor),
        ("deviceLostCallbackInfo2", DeviceLostCallbackInfo),
        ("uncapturedErrorCallbackInfo2", UncapturedErrorCallbackInfo),
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


class FutureWaitInfo(Structure):
    future: Future
    completed: int
    _fields_ = [
        ("future", Future),
        ("completed", c_uint32),
    ]


class QueueWorkDoneCallbackInfo(Structure):
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
    **SHARED,
    "wgpuAdapterGetInfo": (c_uint32, (c_void_p, POINTER(AdapterInfo))),
    "wgpuAdapterGetLimits": (c_uint32, (c_void_p, POINTER(SupportedLimits))),
    "wgpuAdapterRequestDevice2": (Future, (c_void_p, POINTER(DeviceDescriptor), RequestDeviceCallbackInfo)),
    "wgpuBufferMapAsync2": (Future, (c_void_p, c_uint64, c_uint64, c_uint64, BufferMapCallbackInfo)),
    "wgpuCommandEncoderBeginComputePass": (c_void_p, (c_void_p, POINTER(ComputePassDescriptor))),
    "wgpuCreateInstance": (c_void_p, (POINTER(InstanceDescriptor),)),
    "wgpuDeviceCreateBindGroupLayout": (c_void_p, (c_void_p, POINTER(BindGroupLayoutDescriptor))),
    "wgpuDeviceCreatePipelineLayout": (c_void_p, (c_void_p, POINTER(PipelineLayoutDescriptor))),
    "wgpuDeviceForceLoss": (None, (c_void_p, c_uint32, StringView)),
    "wgpuDevicePopErrorScope2": (Future, (c_void_p, PopErrorScopeCallbackInfo)),
    "wgpuInstanceRequestAdapter2": (Future, (c_void_p, POINTER(RequestAdapterOptions), RequestAdapterCallbackInfo)),
    "wgpuInstanceWaitAny": (c_uint32, (c_void_p, c_uint64, POINTER(FutureWaitInfo), c_uint64)),
    "wgpuQueueOnSubmittedWorkDone2": (Future, (c_void_p, QueueWorkDoneCallbackInfo)),
}
