"""The functions of a WebGPU library as a device needs them: errors as exceptions, futures waited for.

Names, values and rules: the WebGPU specification (W3C), ``webgpu.h`` of Dawn (Chromium 133), ``webgpu.h`` and
``wgpu.h`` of wgpu-native 29. :class:`Driver` has what is common; :class:`Dawn` and :class:`WgpuNative` what each does
its own way.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from ctypes import byref
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

from ...errors import DeviceError, DeviceUnavailable
from . import dawn, library, wgpu

_SLICE_NS = 50_000_000  # nanoseconds of waiting between checks for signals
_INFOS = {
    "InstanceRequestAdapter": "RequestAdapterCallbackInfo",
    "AdapterRequestDevice": "RequestDeviceCallbackInfo",
    "BufferMapAsync": "BufferMapCallbackInfo",
    "DevicePopErrorScope": "PopErrorScopeCallbackInfo",
    "QueueOnSubmittedWorkDone": "QueueWorkDoneCallbackInfo",
}


class WebGPUError(DeviceError):
    """WebGPU refused a call; the message quotes it."""


def text(view: Any) -> str:
    """What a string of the library says."""
    if not view.data:
        return ""
    raw = ctypes.string_at(view.data) if view.length == 2**64 - 1 else ctypes.string_at(view.data, view.length)
    return raw.decode(errors="replace").strip()


@dataclass(frozen=True, slots=True)
class Adapter:
    """What an adapter is and can do.

    Attributes:
      name: of the device and its driver.
      is_cpu: whether it is software.
      half: whether shaders can compute with f16.
      timestamps: whether a pass can be timed on the device.
      buffers: most storage buffers of a shader.
      binding_bytes: largest range of a buffer that a shader can see.
      buffer_bytes: largest buffer.
      alignment: bytes at multiples of which such a range may begin.
      shared_bytes: workgroup memory.
      group_items: most invocations of a workgroup.
      group_sizes: most of them along x, y, z.
      groups: most workgroups along one dimension.
    """

    name: str
    is_cpu: bool
    half: bool
    timestamps: bool
    buffers: int
    binding_bytes: int
    buffer_bytes: int
    alignment: int
    shared_bytes: int
    group_items: int
    group_sizes: tuple[int, int, int]
    groups: int


def _callback(structure: type[ctypes.Structure], function: Callable[..., None]) -> Any:
    """A Python function as the callback that a structure has a field for."""
    kind: Any = {field[0]: field[1] for field in structure._fields_}["callback"]
    return kind(function)


class Driver(ABC):
    """A device, with all limits and features of its adapter that kernels can use.

    Attributes:
      api: structures and values of the library's headers.
      library: the functions.
      adapter: what it is.
      device: ``WGPUDevice``.
      queue: ``WGPUQueue``.
      lock: held around every use: the library does not synchronise.
      tick_s: the unit of timestamps.
      cast_half: whether its WGSL has ``bitcast`` from and to ``vec2<f16>``.

    Raises:
      DeviceUnavailable: if there is no adapter.
      DeviceError: if the library does not load, or gives no device.
    """

    kind: ClassVar[str]
    api: ClassVar[ModuleType]
    suffix: ClassVar[str] = ""
    tick_s = 1e-9
    cast_half: ClassVar[bool] = True

    def __init__(self) -> None:
        self.library: Any = library.load(self.kind)
        self.lock = threading.RLock()
        self.device = 0
        self._process = os.getpid()
        self._lost = ""
        self._failed: list[str] = []
        self._kept: list[object] = []
        self._instance: int = self.library.wgpuCreateInstance(self._instance_descriptor())
        if not self._instance:
            raise DeviceError("WebGPU: the library gives no instance")
        handle = self._request_adapter()
        limits = self._limits(handle)
        self.adapter = self._describe(handle, limits)
        self.device = self._request_device(handle, limits)
        self.library.wgpuAdapterRelease(handle)
        self.queue: int = self.library.wgpuDeviceGetQueue(self.device)

    # what the libraries differ in

    @abstractmethod
    def _instance_descriptor(self) -> object:
        """What to make an instance with."""

    @abstractmethod
    def _limits(self, adapter: int) -> Any:
        """The limits of an adapter."""

    @abstractmethod
    def _device_descriptor(self, limits: Any, on_lost: Callable[..., None], on_error: Callable[..., None]) -> Any:
        """What to ask for a device with, but for features; keeps what it points to."""

    @abstractmethod
    def _complete(self, future: Any, answer: Sequence[object]) -> None:
        """Waits until a future's callback has put something into ``answer``; a signal's handler runs in between."""

    @abstractmethod
    def timestamp_writes(self, queries: int) -> Any:
        """Has a pass write the time of its begin to query 0, and of its end to query 1."""

    # opening

    def _request_adapter(self) -> int:
        api = self.api
        options = api.RequestAdapterOptions(
            powerPreference=api.PowerPreference_HighPerformance, featureLevel=api.FeatureLevel_Core
        )
        _, handle, message, *_ = self._ask("InstanceRequestAdapter", self._instance, byref(options))
        info = api.AdapterInfo()
        if handle:
            self.library.wgpuAdapterGetInfo(handle, byref(info))
        # Null computes nothing; adapters over OpenGL lack parts of compute shaders.
        if not handle or info.backendType in (api.BackendType_Null, api.BackendType_OpenGL, api.BackendType_OpenGLES):
            raise DeviceUnavailable(
                f"WebGPU has no adapter here{f': {message}' if message else ''} (on Linux it needs a Vulkan driver; "
                "Debian: apt install libvulkan1 mesa-vulkan-drivers brings one that runs on the CPU)"
            )
        found: int = handle
        return found

    def _describe(self, handle: int, limits: Any) -> Adapter:
        info = self.api.AdapterInfo()
        self.library.wgpuAdapterGetInfo(handle, byref(info))

        def has(feature: int) -> bool:
            return bool(self.library.wgpuAdapterHasFeature(handle, feature))

        return Adapter(
            name=", ".join(part for part in (text(info.device), text(info.description)) if part) or "unnamed",
            is_cpu=info.adapterType == self.api.AdapterType_CPU,
            half=has(self.api.FeatureName_ShaderF16),
            timestamps=has(self.api.FeatureName_TimestampQuery),
            buffers=limits.maxStorageBuffersPerShaderStage,
            binding_bytes=limits.maxStorageBufferBindingSize & ~3,
            buffer_bytes=limits.maxBufferSize & ~3,
            alignment=limits.minStorageBufferOffsetAlignment,
            shared_bytes=limits.maxComputeWorkgroupStorageSize,
            group_items=limits.maxComputeInvocationsPerWorkgroup,
            group_sizes=(
                limits.maxComputeWorkgroupSizeX, limits.maxComputeWorkgroupSizeY, limits.maxComputeWorkgroupSizeZ,
            ),
            groups=limits.maxComputeWorkgroupsPerDimension,
        )  # fmt: skip

    def _request_device(self, handle: int, limits: Any) -> int:
        wanted = [
            feature
            for feature, there in (
                (self.api.FeatureName_ShaderF16, self.adapter.half),
                (self.api.FeatureName_TimestampQuery, self.adapter.timestamps),
            )
            if there
        ]
        features = (ctypes.c_uint32 * len(wanted))(*wanted)
        descriptor = self._device_descriptor(
            limits, self._on_lost, lambda _device, _kind, message, *_: self._failed.append(text(message))
        )
        descriptor.requiredFeatureCount, descriptor.requiredFeatures = len(wanted), features
        _, device, message, *_ = self._ask("AdapterRequestDevice", handle, byref(descriptor))
        if not device:
            raise DeviceError(f"WebGPU: {self.adapter.name} gives no device: {message}")
        found: int = device
        return found

    def _on_lost(self, _device: object, reason: int, message: object, *_: object) -> None:
        if reason != self.api.DeviceLostReason_Destroyed:
            self._lost = text(message) or f"reason {reason}"

    def _keep_callback(self, structure: type[ctypes.Structure], function: Callable[..., None]) -> Any:
        callback = _callback(structure, function)
        self._kept.append(callback)
        return callback

    def string(self, raw: bytes) -> Any:
        """Bytes as the library takes a string; they must outlive it."""
        return self.api.StringView(ctypes.cast(ctypes.c_char_p(raw), ctypes.c_void_p), len(raw))

    # errors and futures

    def check(self) -> None:
        """Raises unless the device can still be used.

        Raises:
          DeviceError: if it was lost, it belongs to the process that this one was forked from, or a command failed; the
            message says which, and has the library's words.
        """
        if self._lost:
            raise DeviceError(
                f"WebGPU: the device was lost ({self.adapter.name}): {self._lost}; what it held is gone, and it serves "
                "again only in a new process"
            )
        if os.getpid() != self._process:
            raise DeviceError("WebGPU: the device was opened before a fork; open it in the process that uses it")
        if self._failed:
            failed, self._failed = self._failed, []
            raise WebGPUError("WebGPU: " + "\n".join(failed))

    def _ask(self, function: str, *arguments: object) -> tuple[Any, ...]:
        """Calls a function that answers through a callback; returns the callback's arguments, strings as text."""
        answer: list[tuple[Any, ...]] = []
        views = self.api.StringView

        def note(*given: Any) -> None:
            answer.append(tuple(text(g) if isinstance(g, views) else g for g in given))

        structure = getattr(self.api, _INFOS[function])
        info = structure(mode=self.api.CallbackMode_WaitAnyOnly, callback=_callback(structure, note))
        self._complete(getattr(self.library, f"wgpu{function}{self.suffix}")(*arguments, info), answer)
        return answer[0]

    def attempt(self, what: str, create: Callable[[], int]) -> int:
        """Makes an object.

        Args:
          what: what it is, for messages.
          create: makes it.

        Raises:
          MemoryError: if there is no memory for it.
          WebGPUError: if the library refuses it.
        """
        with self.lock:
            self.check()
            for scope in (self.api.ErrorFilter_Validation, self.api.ErrorFilter_OutOfMemory):
                self.library.wgpuDevicePushErrorScope(self.device, scope)
            handle = create()
            no_memory, refused = self._pop_error(), self._pop_error()
            self.check()
        if no_memory:
            raise MemoryError(f"{what}: {no_memory}")
        if refused or not handle:
            raise WebGPUError(f"WebGPU: {what}: {refused or 'no object'}")
        return handle

    def _pop_error(self) -> str:
        _, kind, message, *_ = self._ask("DevicePopErrorScope", self.device)
        return "" if kind == self.api.ErrorType_NoError else message or f"error {kind}"

    def finish(self) -> None:
        """Waits until everything that was submitted is done."""
        with self.lock:
            self.check()
            self._ask("QueueOnSubmittedWorkDone", self.queue)
            self.check()

    # objects

    def create_buffer(self, nbytes: int, usage: int) -> int:
        """A buffer.

        Raises:
          MemoryError: if there is not so much memory.
        """
        descriptor = self.api.BufferDescriptor(usage=usage, size=nbytes)
        return self.attempt(
            f"a buffer of {nbytes} bytes", lambda: self.library.wgpuDeviceCreateBuffer(self.device, byref(descriptor))
        )

    def release_buffer(self, handle: int) -> None:
        """Gives a buffer's memory back once what was submitted is done with it."""
        with self.lock:
            self.library.wgpuBufferRelease(handle)

    def create_shader(self, source: str) -> int:
        """A shader module.

        Raises:
          WebGPUError: if the source is rejected.
        """
        api, code = self.api, source.encode()
        chain = api.ChainedStruct(sType=api.SType_ShaderSourceWGSL)
        wgsl = api.ShaderSourceWGSL(chain=chain, code=self.string(code))
        descriptor = api.ShaderModuleDescriptor(nextInChain=ctypes.addressof(wgsl))
        return self.attempt(
            "shader", lambda: self.library.wgpuDeviceCreateShaderModule(self.device, byref(descriptor))
        )

    def map_read(self, buffer: int, nbytes: int, dest: int) -> None:
        """Copies the beginning of a buffer that can be mapped to the address ``dest``, after what was submitted."""
        with self.lock:
            status, message, *_ = self._ask("BufferMapAsync", buffer, self.api.MapMode_Read, 0, nbytes)
            self.check()
            if status != self.api.Status_Success:
                raise WebGPUError(f"WebGPU: mapping {nbytes} bytes: {message or status}")
            address = self.library.wgpuBufferGetConstMappedRange(buffer, 0, nbytes)
            ctypes.memmove(dest, address, nbytes)
            self.library.wgpuBufferUnmap(buffer)


class Dawn(Driver):
    """A device of Dawn."""

    kind: ClassVar[str] = "DAWN"
    api: ClassVar[ModuleType] = dawn
    suffix: ClassVar[str] = "2"

    def _instance_descriptor(self) -> object:
        features = dawn.InstanceFeatures(timedWaitAnyEnable=1, timedWaitAnyMaxCount=1)
        return dawn.InstanceDescriptor(features=features)

    def _limits(self, adapter: int) -> dawn.Limits:
        limits = dawn.SupportedLimits()
        self.library.wgpuAdapterGetLimits(adapter, byref(limits))
        return limits.limits

    def _device_descriptor(
        self, limits: dawn.Limits, on_lost: Callable[..., None], on_error: Callable[..., None]
    ) -> dawn.DeviceDescriptor:
        required = dawn.RequiredLimits(limits=limits)
        # Kernels write before they read, so memory need not be cleared; exact timestamps count as "unsafe".
        enabled = (ctypes.c_char_p * 2)(b"allow_unsafe_apis", b"disable_workgroup_init")
        disabled = (ctypes.c_char_p * 1)(b"timestamp_quantization")
        toggles = dawn.DawnTogglesDescriptor(
            chain=dawn.ChainedStruct(sType=dawn.SType_DawnTogglesDescriptor),
            enabledToggleCount=len(enabled),
            enabledToggles=ctypes.cast(enabled, ctypes.c_void_p),
            disabledToggleCount=len(disabled),
            disabledToggles=ctypes.cast(disabled, ctypes.c_void_p),
        )
        self._kept += [required, enabled, disabled, toggles]
        lost, failed = dawn.DeviceLostCallbackInfo, dawn.UncapturedErrorCallbackInfo
        return dawn.DeviceDescriptor(
            nextInChain=ctypes.addressof(toggles),
            requiredLimits=ctypes.pointer(required),
            deviceLostCallbackInfo2=lost(
                mode=dawn.CallbackMode_AllowSpontaneous, callback=self._keep_callback(lost, on_lost)
            ),
            uncapturedErrorCallbackInfo2=failed(callback=self._keep_callback(failed, on_error)),
        )

    def _complete(self, future: dawn.Future, answer: Sequence[object]) -> None:
        info = dawn.FutureWaitInfo(future=future)
        while True:
            status = self.library.wgpuInstanceWaitAny(self._instance, 1, byref(info), _SLICE_NS)
            if status == dawn.WaitStatus_Success:
                return
            if status != dawn.WaitStatus_TimedOut:
                raise WebGPUError(f"WebGPU: waiting failed with status {status}")

    def timestamp_writes(self, queries: int) -> dawn.ComputePassTimestampWrites:
        """Has a pass write the time of its begin to query 0, and of its end to query 1."""
        return dawn.ComputePassTimestampWrites(
            querySet=queries, beginningOfPassWriteIndex=0, endOfPassWriteIndex=1
        )


class WgpuNative(Driver):
    """A device of wgpu-native."""

    kind: ClassVar[str] = "WGPU"
    api: ClassVar[ModuleType] = wgpu
    cast_half: ClassVar[bool] = False

    def __init__(self) -> None:
        found: int = library.load(self.kind).wgpuGetVersion() >> 24
        if found != library.WGPU_VERSION:
            raise DeviceError(
                f"WebGPU: wgpu-native {found} has structures of its own; {library.WGPU_VERSION} is needed: "
                f"pip install {library.WHEELS[self.kind][1]}"
            )
        super().__init__()
        self.tick_s = 1e-9 * self.library.wgpuQueueGetTimestampPeriod(self.queue)

    def _instance_descriptor(self) -> object:
        return wgpu.InstanceDescriptor()

    def _limits(self, adapter: int) -> wgpu.Limits:
        limits = wgpu.Limits()
        self.library.wgpuAdapterGetLimits(adapter, byref(limits))
        return limits

    def _device_descriptor(
        self, limits: wgpu.Limits, on_lost: Callable[..., None], on_error: Callable[..., None]
    ) -> wgpu.DeviceDescriptor:
        self._kept.append(limits)
        lost, failed = wgpu.DeviceLostCallbackInfo, wgpu.UncapturedErrorCallbackInfo
        return wgpu.DeviceDescriptor(
            requiredLimits=ctypes.pointer(limits),
            deviceLostCallbackInfo=lost(
                mode=wgpu.CallbackMode_AllowSpontaneous, callback=self._keep_callback(lost, on_lost)
            ),
            uncapturedErrorCallbackInfo=failed(callback=self._keep_callback(failed, on_error)),
        )

    def _complete(self, future: object, answer: Sequence[object]) -> None:
        # There is no wgpuInstanceWaitAny; callbacks run while a device is polled, or at once.
        pause = 0.0
        while not answer:
            if self.device:
                self.library.wgpuDevicePoll(self.device, False, None)
            else:
                self.library.wgpuInstanceProcessEvents(self._instance)
            if not answer:
                time.sleep(pause)
                pause = min(pause + 1e-5, 1e-3)

    def timestamp_writes(self, queries: int) -> wgpu.PassTimestampWrites:
        """Has a pass write the time of its begin to query 0, and of its end to query 1."""
        return wgpu.PassTimestampWrites(querySet=queries, beginningOfPassWriteIndex=0, endOfPassWriteIndex=1)


DRIVERS: dict[str, type[Driver]] = {driver.kind: driver for driver in (Dawn, WgpuNative)}
