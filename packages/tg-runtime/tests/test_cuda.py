"""The CUDA device on a driver whose GPUs are the host."""

from __future__ import annotations

import pytest

from tg_runtime.dev import DevEntry
from tg_runtime.devices.cuda import CUDADevice
from tg_runtime.testing import DeviceConformance

MOCK = DevEntry("CUDA", renderer="PTX", iface="MOCK")
_PROBLEM = CUDADevice.unavailable(MOCK)
pytestmark = pytest.mark.skipif(_PROBLEM is not None, reason=_PROBLEM or "available")


class TestMock(DeviceConformance):
    """PTX, run on the host."""

    device = "CUDA"
    dev = "MOCK+CUDA:PTX"
