"""The functions of a WebGPU library as a device needs them: errors as exceptions, futures waited for.

Names, values and rules: the WebGPU specification (W3C) and ``webgpu.h`` of Dawn, Chromium 133.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from ctypes import byref
from dataclasses import dataclass
from typing import Any

from ..errors import DeviceError, DeviceUnavailable
from . import dawn, library

_SLICE_NS = 50_000_000  # between two looks at Python's signals while waiting
_MEMORY = dawn.ErrorFilter_OutOfMemory
_VALIDATION = dawn.ErrorFilter_Validation


class WebGPUError(DeviceError):
    """WebGPU refused what was asked of it; the message has its words."""


def text(view: dawn.StringView) -> str:
    """What a string of the library says."""
    if not view.data:
        return ""
    raw = ctypes.string_at(view.data) if view.length == 2**64 - 1 else ctypes.string_at(view.data, view.length)
    return raw.decode(errors="replace").strip()


def string(raw: bytes) -> dawn.StringView:
    """Bytes as the library takes a string; they must outlive it."""
    return dawn.StringView(ctypes.cast(ctypes.c_char_p(raw), ctypes.c_void_p), len(raw))


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
    kind: Any = dict((field[0], field[1]) for field in structure._fields_)["callback"]
    return kind(function)


class Driver:
    """A device of Dawn, with all limits and features of its adapter that kernels can use.

    Attributes:
      library: the functions.
      adapter: what it is.
      device: ``WGPUDevice``.
      queue: ``WGPUQueue``.
      lock: held around every use: the library does not synchronise.

    Raises:
      DeviceUnavailable: there is no adapter.
      DeviceError: the library does not load, or gives no device.
    """

    def __init__(self, kind: str = "DAWN") -> None:
        self.library: Any = library.load(kind)
        self.lock = threading.RLock()
        self._process = os.getpid()
        self._lost = ""
        self._failed: list[str] = []
        self._kept: list[object] = []
        features = dawn.InstanceFeatures(timedWaitAnyEnable=1, timedWaitAnyMaxCount=1)
        self._instance = self.library.wgpuCreateInstance(dawn.InstanceDescriptor(features=features))
        if not self._instance:
            raise DeviceError("WebGPU: the library gives no instance")
        handle = self._request_adapter()
        limits = dawn.SupportedLimits()
        self.library.wgpuAdapterGetLimits(handle, byref(limits))
        self.adapter = self._describe(handle, limits.limits)
        self.device: int = self._request_device(handle, limits.limits)
        self.library.wgpuAdapterRelease(handle)
        self.queue: int = self.library.wgpuDeviceGetQueue(self.device)

    # opening

    def _request_adapter(self) -> int:
        found: list[tuple[int | None, str]] = []
        structure = dawn.RequestAdapterCallbackInfo2
        callback = _callback(structure, lambda status, adapter, message, *_: found.append((adapter, text(message))))
        options = dawn.RequestAdapterOptions(powerPreference=dawn.PowerPreference_HighPerformance)
        self.wait(self.library.wgpuInstanceRequestAdapter2(
            self._instance, byref(options), structure(mode=dawn.CallbackMode_WaitAnyOnly, callback=callback)
        ))  # fmt: skip
        handle, message = found[0]
        info = dawn.AdapterInfo()
        if handle:
            self.library.wgpuAdapterGetInfo(handle, byref(info))
        if not handle or info.backendType == dawn.BackendType_Null:  # the last computes nothing
            raise DeviceUnavailable(
                f"WebGPU has no adapter here{f': {message}' if message else ''} (on Linux it needs a Vulkan driver; "
                "Debian: apt install libvulkan1 mesa-vulkan-drivers brings one that runs on the CPU)"
            )
        return handle

    def _describe(self, handle: int, limits: dawn.Limits) -> Adapter:
        info = dawn.AdapterInfo()
        self.library.wgpuAdapterGetInfo(handle, byref(info))

        def has(feature: int) -> bool:
            return bool(self.library.wgpuAdapterHasFeature(handle, feature))

        return Adapter(
            name=" ".join(part for part in (text(info.device), text(info.description)) if part) or "unnamed",
            is_cpu=info.adapterType == dawn.AdapterType_CPU,
            half=has(dawn.FeatureName_ShaderF16),
            timestamps=has(dawn.FeatureName_TimestampQuery),
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

    def _request_device(self, handle: int, limits: dawn.Limits) -> int:
        wanted = [
            feature
            for feature, there in (
                (dawn.FeatureName_ShaderF16, self.adapter.half),
                (dawn.FeatureName_TimestampQuery, self.adapter.timestamps),
            )
            if there
        ]
        features = (ctypes.c_uint32 * len(wanted))(*wanted)
        required = dawn.RequiredLimits(limits=limits)
        # Kernels write before they read; quantised timestamps are too coarse; that needs allow_unsafe_apis.
        enabled = (ctypes.c_char_p * 2)(b"allow_unsafe_apis", b"disable_workgroup_init")
        disabled = (ctypes.c_char_p * 1)(b"timestamp_quantization")
        toggles = dawn.DawnTogglesDescriptor(
            chain=dawn.ChainedStruct(sType=dawn.SType_DawnTogglesDescriptor),
            enabledToggleCount=len(enabled),
            enabledToggles=ctypes.cast(enabled, ctypes.c_void_p),
            disabledToggleCount=len(disabled),
            disabledToggles=ctypes.cast(disabled, ctypes.c_void_p),
        )
        lost, failed = dawn.DeviceLostCallbackInfo2, dawn.UncapturedErrorCallbackInfo2
        on_lost = _callback(lost, self._on_lost)
        on_error = _callback(failed, lambda _device, _kind, message, *_: self._failed.append(text(message)))
        self._kept += [on_lost, on_error]
        descriptor = dawn.DeviceDescriptor(
            nextInChain=ctypes.addressof(toggles),
            requiredFeatureCount=len(wanted),
            requiredFeatures=features,
            requiredLimits=ctypes.pointer(required),
            deviceLostCallbackInfo2=lost(mode=dawn.CallbackMode_AllowSpontaneous, callback=on_lost),
            uncapturedErrorCallbackInfo2=failed(callback=on_error),
        )
        found: list[tuple[int | None, str]] = []
        structure = dawn.RequestDeviceCallbackInfo2
        callback = _callback(structure, lambda status, device, message, *_: found.append((device, text(message))))
        self.wait(self.library.wgpuAdapterRequestDevice2(
            handle, byref(descriptor), structure(mode=dawn.CallbackMode_WaitAnyOnly, callback=callback)
        ))  # fmt: skip
        device, message = found[0]
        if not device:
            raise DeviceError(f"WebGPU: {self.adapter.name} gives no device: {message}")
        return device

    def _on_lost(self, _device: object, reason: int, message: dawn.StringView, *_: object) -> None:
        if reason != dawn.DeviceLostReason_Destroyed:
            self._lost = text(message) or f"reason {reason}"

    # errors and futures

    def check(self) -> None:
        """Does nothing if the device is well.

        Raises:
          DeviceError: it was lost, it belongs to the process that this one was forked from, or a command failed; the
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

    def wait(self, future: dawn.Future) -> None:
        """Waits for a future; a signal's handler runs in between."""
        info = dawn.FutureWaitInfo(future=future)
        while True:
            status = self.library.wgpuInstanceWaitAny(self._instance, 1, byref(info), _SLICE_NS)
            if status == dawn.WaitStatus_Success:
                return
            if status != dawn.WaitStatus_TimedOut:
                raise WebGPUError(f"WebGPU: waiting failed with status {status}")

    def attempt(self, what: str, create: Callable[[], int]) -> int:
        """Makes an object.

        Args:
          what: what it is, for messages.
          create: makes it.

        Raises:
          MemoryError: there is no memory for it.
          WebGPUError: the library refuses it.
        """
        with self.lock:
            self.check()
            for scope in (_VALIDATION, _MEMORY):
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
        found: list[str] = []
        structure = dawn.PopErrorScopeCallbackInfo2

        def note(_status: int, kind: int, message: dawn.StringView, *_: object) -> None:
            found.append("" if kind == dawn.ErrorType_NoError else text(message) or f"error {kind}")

        callback = _callback(structure, note)
        self.wait(self.library.wgpuDevicePopErrorScope2(
            self.device, structure(mode=dawn.CallbackMode_WaitAnyOnly, callback=callback)
        ))  # fmt: skip
        return found[0] if found else ""

    def finish(self) -> None:
        """Waits until everything that was submitted is done."""
        structure = dawn.QueueWorkDoneCallbackInfo2
        callback = _callback(structure, lambda *_: None)
        with self.lock:
            self.wait(self.library.wgpuQueueOnSubmittedWorkDone2(
                self.queue, structure(mode=dawn.CallbackMode_WaitAnyOnly, callback=callback)
            ))  # fmt: skip
            self.check()

    # objects

    def create_buffer(self, nbytes: int, usage: int) -> int:
        """A buffer.

        Raises:
          MemoryError: there is not so much memory.
        """
        descriptor = dawn.BufferDescriptor(usage=usage, size=nbytes)
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
          WebGPUError: the source is rejected.
        """
        code = source.encode()
        wgsl = dawn.ShaderSourceWGSL(chain=dawn.ChainedStruct(sType=dawn.SType_ShaderSourceWGSL), code=string(code))
        descriptor = dawn.ShaderModuleDescriptor(nextInChain=ctypes.addressof(wgsl))
        return self.attempt(
            "shader", lambda: self.library.wgpuDeviceCreateShaderModule(self.device, byref(descriptor))
        )

    def map_read(self, buffer: int, nbytes: int, dest: int) -> None:
        """Copies the beginning of a buffer that can be mapped to the address ``dest``, after what was submitted."""
        found: list[tuple[int, str]] = []
        structure = dawn.BufferMapCallbackInfo2
        callback = _callback(structure, lambda status, message, *_: found.append((status, text(message))))
        with self.lock:
            self.wait(self.library.wgpuBufferMapAsync2(
                buffer, dawn.MapMode_Read, 0, nbytes, structure(mode=dawn.CallbackMode_WaitAnyOnly, callback=callback)
            ))  # fmt: skip
            self.check()
            status, message = found[0]
            if status != dawn.Status_Success:
                raise WebGPUError(f"WebGPU: mapping {nbytes} bytes: {message or status}")
            address = self.library.wgpuBufferGetConstMappedRange(buffer, 0, nbytes)
            ctypes.memmove(dest, address, nbytes)
            self.library.wgpuBufferUnmap(buffer)
