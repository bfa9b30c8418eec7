"""The devices of this package against the conformance class."""

from __future__ import annotations

import pytest

from tg_runtime import Device, parse_dev
from tg_runtime.testing import DeviceConformance


def missing(setting: str) -> str:
    """Why a device cannot be tested here; empty if it can."""
    (entry,) = parse_dev(setting)
    return Device.load(entry.device).unavailable(entry) or ""


class TestNumpy(DeviceConformance):
    device = "NUMPY"


@pytest.mark.skipif(bool(missing("CPU:LLVM")), reason=missing("CPU:LLVM") or "available")
class TestLLVM(DeviceConformance):
    device = "CPU"
    dev = "CPU:LLVM"


@pytest.mark.skipif(bool(missing("CPU:CLANG")), reason=missing("CPU:CLANG") or "available")
class TestClang(DeviceConformance):
    device = "CPU"
    dev = "CPU:CLANG"
