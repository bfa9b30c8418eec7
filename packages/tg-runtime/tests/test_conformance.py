"""The devices of this package against the conformance class."""

from __future__ import annotations

import platform

import pytest

from tg_dtype import dtypes
from tg_lazy import Context
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


@pytest.mark.usefixtures("some_dtypes")
class Sampled(DeviceConformance):
    """Some dtypes, as TestLLVM has every one; with ``-m slow`` elementwise ops of all of them."""

    __test__ = False

    @pytest.mark.slow
    def test_elementwise_of_every_dtype(self) -> None:
        self.dtypes = dtypes.all
        self.test_elementwise()


@pytest.mark.skipif(bool(missing("CPU:LLVM")), reason=missing("CPU:LLVM") or "available")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the extensions are x86-64's")
class TestOlderProcessor(Sampled):
    """Another level of the processor."""

    __test__ = True
    device = "CPU"
    dev = "CPU:LLVM:native,-avx,-avx2,-avx512f"


@pytest.mark.usefixtures("some_dtypes")
class Guarded(TestLLVM):
    """The same kernels, of some dtypes, with every buffer against a page that may not be touched."""

    __test__ = False
    guard = 0

    def setup_method(self) -> None:
        super().setup_method()
        self._guard = Context(CPU_GUARD=self.guard)
        self._guard.__enter__()

    def teardown_method(self) -> None:
        self._guard.__exit__(None, None, None)
        super().teardown_method()


@pytest.mark.alike
class TestNothingBehindBuffers(Guarded):
    __test__ = True
    guard = 1


@pytest.mark.alike
class TestNothingBeforeBuffers(Guarded):
    __test__ = True
    guard = 2


@pytest.mark.skipif(bool(missing("CPU:CLANG")), reason=missing("CPU:CLANG") or "available")
class TestClang(Sampled):
    """Each kernel is a process of the compiler."""

    __test__ = True
    device = "CPU"
    dev = "CPU:CLANG"

    @pytest.mark.slow
    def test_reductions_of_every_dtype(self) -> None:
        self.dtypes = dtypes.all
        self.test_reductions()
