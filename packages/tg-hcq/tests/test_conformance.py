"""HOSTQ passes what every device must."""

from __future__ import annotations

import pytest

from tg_hcq.hostq import HostQueueDevice
from tg_runtime import DevEntry
from tg_runtime.testing import DeviceConformance

PROBLEM = HostQueueDevice.unavailable(DevEntry("HOSTQ"))


@pytest.mark.usefixtures("some_dtypes")
@pytest.mark.skipif(PROBLEM is not None, reason=f"HOSTQ compiles with what the CPU has: {PROBLEM}")
class TestHostQueue(DeviceConformance):
    device = "HOSTQ"
