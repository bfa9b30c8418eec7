"""Which OpenCL devices there are, and what each can do."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass

from tg_codegen import Target

from . import api


@dataclass(frozen=True, slots=True)
class PhysicalDevice:
    """One device of one platform.

    Attributes:
      handle: ``cl_device_id``.
      platform_handle: ``cl_platform_id``.
      platform: the platform's name.
      name: the device's name.
      version: its OpenCL version, as ``(3, 0)``.
      driver: platform, driver and device versions, for keys of caches.
      extensions: names of its extensions.
      is_cpu: whether it is the host's processor.
    """

    handle: int
    platform_handle: int
    platform: str
    name: str
    version: tuple[int, int]
    driver: str
    extensions: frozenset[str]
    is_cpu: bool

    def number(self, parameter: int) -> int:
        """An integer parameter of ``clGetDeviceInfo``."""
        return api.info_number("clGetDeviceInfo", (self.handle,), parameter)

    @property
    def half(self) -> bool:
        """Whether float16 can be computed with."""
        return "cl_khr_fp16" in self.extensions

    @property
    def images(self) -> bool:
        """Whether there are images."""
        return self.number(api.DEVICE_IMAGE_SUPPORT) != 0

    @property
    def double(self) -> bool:
        """Whether float64 can be computed with."""
        return "cl_khr_fp64" in self.extensions or self.number(api.DEVICE_DOUBLE_FP_CONFIG) != 0

    @property
    def records(self) -> bool:
        """Whether a sequence of launches can be recorded as one command."""
        return "cl_khr_command_buffer" in self.extensions

    @property
    def shares_memory(self) -> bool:
        """Whether host and device may use the same memory with no copy and no mapping."""
        capabilities = self.number(api.DEVICE_SVM_CAPABILITIES) if self.version >= (2, 0) else 0
        return bool(capabilities & api.SVM_FINE_GRAIN_BUFFER) and hasattr(api.library(), "clSVMAlloc")

    def target(self) -> Target:
        """The device as the code generator sees it."""
        return Target(
            kind="gpu",
            vector_bytes=16,
            registers=128,
            shared_bytes=self.number(api.DEVICE_LOCAL_MEM_SIZE),
            local_max=min(self.number(api.DEVICE_MAX_WORK_GROUP_SIZE), 1024),
            global_max=(2**31 - 1, 2**31 - 1, 2**31 - 1),
            fused_multiply_add=bool(self.number(api.DEVICE_SINGLE_FP_CONFIG) & api.FP_FMA),
            max_params=max(self.number(api.DEVICE_MAX_PARAMETER_SIZE), 256) // 8,
        )


def _describe(platform: int, handle: int) -> PhysicalDevice:
    def text(parameter: int) -> str:
        return api.info_text("clGetDeviceInfo", (handle,), parameter)

    version = text(api.DEVICE_VERSION)  # "OpenCL 3.0 vendor's words"
    major, _, minor = version.removeprefix("OpenCL ").split(" ")[0].partition(".")
    family = api.info_text("clGetPlatformInfo", (platform,), api.PLATFORM_VERSION)
    kind = api.info_number("clGetDeviceInfo", (handle,), api.DEVICE_TYPE)
    return PhysicalDevice(
        handle=handle,
        platform_handle=platform,
        platform=api.info_text("clGetPlatformInfo", (platform,), api.PLATFORM_NAME),
        name=text(api.DEVICE_NAME),
        version=(int(major or 1), int(minor or 0)),
        driver=f"{family}|{text(api.DEVICE_DRIVER_VERSION)}|{version}",
        extensions=frozenset(text(api.DEVICE_EXTENSIONS).split()),
        is_cpu=bool(kind & api.DEVICE_TYPE_CPU),
    )


def _handles(function: str, *leading: int) -> list[int]:
    get, count = getattr(api.library(), function), ctypes.c_uint32()
    status = get(*leading, 0, None, ctypes.byref(count))
    if status in (api.PLATFORM_NOT_FOUND, api.DEVICE_NOT_FOUND) or count.value == 0:
        return []
    api.check(status, function)
    found = (ctypes.c_void_p * count.value)()
    api.check(get(*leading, count.value, found, None), function)
    return [handle for handle in found if handle]


@functools.cache
def physical_devices() -> tuple[PhysicalDevice, ...]:
    """Every device of every platform, in the order in which the loader names them. Starts the drivers.

    Raises:
      DeviceError: if there is no OpenCL library, or a driver fails.
    """
    return tuple(
        _describe(platform, handle)
        for platform in _handles("clGetPlatformIDs")
        for handle in _handles("clGetDeviceIDs", platform, api.DEVICE_TYPE_ALL)
    )
