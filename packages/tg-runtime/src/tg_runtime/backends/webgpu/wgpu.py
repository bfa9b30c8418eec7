"""What webgpu.h and wgpu.h of wgpu-native 29 says otherwise, of what we use. Written by ``tools.webgpu``."""

# fmt: off
# ruff: noqa: E501, F403, F405, RUF100
from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, Structure, c_float, c_uint32, c_uint64, c_void_p
from typing import Any

from .header import *
from .header import SHARED

BufferBindingType_Storage = 3
BufferBindingType_Uniform = 2
FeatureName_ShaderF16 = 11
FeatureName_TimestampQuery = 9


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
    subgroupMinSize: int
    subgroupMaxSize: int
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
        ("subgroupMinSize", c_uint32),
        ("subgroupMaxSize", c_uint32),
    ]


class Limits(Structure):
    nextInChain: int | None
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
    maxInterStageShaderVariables: int
    maxColorAttachments: int
    maxColorAttachmentBytesPerSample: int
    maxComputeWorkgroupStorageSize: int
    maxComputeInvocationsPerWorkgroup: int
    maxComputeWorkgroupSizeX: int
    maxComputeWorkgroupSizeY: int
    maxComputeWorkgroupSizeZ: int
    maxComputeWorkgroupsPerDimension: int
    maxImmediateSize: int
    _fields_ = [
        ("nextInChain", c_void_p),
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
        ("maxInterStageShaderVariables", c_uint32),
        ("maxColorAttachments", c_uint32),
        ("maxColorAttachmentBytesPerSample", c_uint32),
        ("maxComputeWorkgroupStorageSize", c_uint32),
        ("maxComputeInvocationsPerWorkgroup", c_uint32),
        ("maxComputeWorkgroupSizeX", c_uint32),
        ("maxComputeWorkgroupSizeY", c_uint32),
        ("maxComputeWorkgroupSizeZ", c_uint32),
        ("maxComputeWorkgroupsPerDimension", c_uint32),
        ("maxImmediateSize", c_uint32),
    ]


class DeviceDescriptor(Structure):
    nextInChain: int | None
    label: StringView
    requiredFeatureCount: int
    requiredFeatures: Any
    requiredLimits: Any
    defaultQueue: QueueDescriptor
    deviceLostCallbackInfo: DeviceLostCallbackInfo
    uncapturedErrorCallbackInfo: UncapturedErrorCallbackInfo
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
        ("requiredFeatureCount", c_uint64),
        ("requiredFeatures", POINTER(c_uint32)),
        ("requiredLimits", POINTER(Limits)),
        ("defaultQueue", QueueDescriptor),
        ("deviceLostCallbackInfo", DeviceLostCallbackInfo),
        ("uncapturedErrorCallbackInfo", UncapturedErrorCallbackInfo),
    ]


class PassTimestampWrites(Structure):
    nextInChain: int | None
    querySet: int | None
    beginningOfPassWriteIndex: int
    endOfPassWriteIndex: int
    _fields_ = [
        ("nextInChain", c_void_p),
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
        ("timestampWrites", POINTER(PassTimestampWrites)),
    ]


class InstanceLimits(Structure):
    nextInChain: int | None
    timedWaitAnyMaxCount: int
    _fields_ = [
        ("nextInChain", c_void_p),
        ("timedWaitAnyMaxCount", c_uint64),
    ]


class InstanceDescriptor(Structure):
    nextInChain: int | None
    requiredFeatureCount: int
    requiredFeatures: Any
    requiredLimits: Any
    _fields_ = [
        ("nextInChain", c_void_p),
        ("requiredFeatureCount", c_uint64),
        ("requiredFeatures", POINTER(c_uint32)),
        ("requiredLimits", POINTER(InstanceLimits)),
    ]


class BindGroupLayoutEntry(Structure):
    nextInChain: int | None
    binding: int
    visibility: int
    bindingArraySize: int
    buffer: BufferBindingLayout
    sampler: SamplerBindingLayout
    texture: TextureBindingLayout
    storageTexture: StorageTextureBindingLayout
    _fields_ = [
        ("nextInChain", c_void_p),
        ("binding", c_uint32),
        ("visibility", c_uint64),
        ("bindingArraySize", c_uint32),
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
    immediateSize: int
    _fields_ = [
        ("nextInChain", c_void_p),
        ("label", StringView),
        ("bindGroupLayoutCount", c_uint64),
        ("bindGroupLayouts", c_void_p),
        ("immediateSize", c_uint32),
    ]


class RequestAdapterOptions(Structure):
    nextInChain: int | None
    featureLevel: int
    powerPreference: int
    forceFallbackAdapter: int
    backendType: int
    compatibleSurface: int | None
    _fields_ = [
        ("nextInChain", c_void_p),
        ("featureLevel", c_uint32),
        ("powerPreference", c_uint32),
        ("forceFallbackAdapter", c_uint32),
        ("backendType", c_uint32),
        ("compatibleSurface", c_void_p),
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
        ("callback", CFUNCTYPE(None, c_uint32, StringView, c_void_p, c_void_p)),
        ("userdata1", c_void_p),
        ("userdata2", c_void_p),
    ]


PROTOTYPES: dict[str, tuple[object, tuple[object, ...]]] = {
    **SHARED,
    "wgpuAdapterGetInfo": (c_uint32, (c_void_p, POINTER(AdapterInfo))),
    "wgpuAdapterGetLimits": (c_uint32, (c_void_p, POINTER(Limits))),
    "wgpuAdapterRequestDevice": (Future, (c_void_p, POINTER(DeviceDescriptor), RequestDeviceCallbackInfo)),
    "wgpuBufferMapAsync": (Future, (c_void_p, c_uint64, c_uint64, c_uint64, BufferMapCallbackInfo)),
    "wgpuCommandEncoderBeginComputePass": (c_void_p, (c_void_p, POINTER(ComputePassDescriptor))),
    "wgpuCreateInstance": (c_void_p, (POINTER(InstanceDescriptor),)),
    "wgpuDeviceCreateBindGroupLayout": (c_void_p, (c_void_p, POINTER(BindGroupLayoutDescriptor))),
    "wgpuDeviceCreatePipelineLayout": (c_void_p, (c_void_p, POINTER(PipelineLayoutDescriptor))),
    "wgpuDevicePoll": (c_uint32, (c_void_p, c_uint32, POINTER(c_uint64))),
    "wgpuDevicePopErrorScope": (Future, (c_void_p, PopErrorScopeCallbackInfo)),
    "wgpuGetVersion": (c_uint32, ()),
    "wgpuInstanceRequestAdapter": (Future, (c_void_p, POINTER(RequestAdapterOptions), RequestAdapterCallbackInfo)),
    "wgpuQueueGetTimestampPeriod": (c_float, (c_void_p,)),
    "wgpuQueueOnSubmittedWorkDone": (Future, (c_void_p, QueueWorkDoneCallbackInfo)),
}
