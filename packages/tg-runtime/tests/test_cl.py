"""The CL device on whatever OpenCL drivers the loader finds."""

from __future__ import annotations

import functools
import threading

import pytest
from tg_codegen.conformance import Case, cases
from tg_codegen.render_opencl import OpenCLRenderer
from tg_dtype import dtypes
from tg_runtime import Buffer, CompileError, DevEntry, Device, DeviceUnavailable
from tg_runtime.devices.cl import CLDevice
from tg_runtime.opencl import api
from tg_runtime.opencl.discovery import physical_devices
from tg_runtime.testing import DeviceConformance

_PROBLEM = api.problem()
pytestmark = pytest.mark.skipif(_PROBLEM is not None, reason=f"OpenCL: {_PROBLEM}")
MODES = ["", "buffers"]


@functools.cache
def opened(arch: str) -> CLDevice:
    return CLDevice("CL", DevEntry("CL", arch=arch))


@pytest.fixture(params=MODES, ids=["shared", "buffers"])
def cl(request: pytest.FixtureRequest) -> CLDevice:
    return opened(request.param)


# Which dtypes there are depends on the device, which collecting tests must not open.
NAMES = [case.name for case in cases(OpenCLRenderer(half=True))]


@functools.cache
def device_cases() -> dict[str, Case]:
    renderer = opened("").renderer
    assert renderer is not None
    return {case.name: case for case in cases(renderer, lanes=4, relaxed=1e-6)}


def run(device: CLDevice, case: Case) -> list[bytearray]:
    assert device.renderer is not None and device.compiler is not None and device.runtime is not None
    program = device.runtime(case.name, device.compiler.compile(device.renderer.render(case.name, case.uops)))
    host = case.buffers()
    memory = [device.allocator.alloc(len(raw)) for raw in host]
    for block, raw in zip(memory, host, strict=True):
        device.allocator.copyin(block, memoryview(raw))
    program(*memory, vals=case.vals)
    for block, raw in zip(memory, host, strict=True):
        device.allocator.copyout(memoryview(raw), block)
        device.allocator.free(block, len(raw))
    return host


@pytest.mark.parametrize("name", NAMES)
def test_renderer_conforms(name: str) -> None:
    case = device_cases().get(name)
    if case is None:
        pytest.skip(f"OpenCL: {opened('').physical.name} has no {name.split('_')[1].split('x')[0]}")
    case.check(run(opened(""), case))


class TestShared(DeviceConformance):
    device = "CL"
    dtypes = tuple(d for d in dtypes.all)


class TestBuffers(DeviceConformance):
    device = "CL"
    dev = "CL::buffers"
