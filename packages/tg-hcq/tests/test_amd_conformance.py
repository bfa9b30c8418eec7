"""AMD's cards pass what every device must, on software cards: each launch is executed instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import pytest

from tg_hcq.amd import AMDDevice
from tg_hcq.amd.program import AMDProgram
from tg_hcq.simulate.engine import Dispatch
from tg_runtime import Device
from tg_runtime.compilers import comgr
from tg_runtime.testing import DeviceConformance

pytest.importorskip("llvmlite", reason="LLVM compiles the kernels")


class Counts(NamedTuple):
    """What the driver launched by itself, and what the software cards executed.

    Attributes:
      launches: of programs, outside of graphs.
      dispatches: that a card began.
      instructions: that waves executed.
    """

    launches: int
    dispatches: int
    instructions: int


@pytest.fixture(scope="module")
def counts() -> Iterator[Callable[[], Counts]]:
    """Counts from now on; programs keep what launches them, so that it is not changed for one test."""
    numbers = [0, 0, 0]
    launch, begin, advance = AMDProgram.launch, Dispatch.__init__, Dispatch.advance

    def launched(program: AMDProgram, bufs: Any, how: Any) -> float | None:
        numbers[0] += how.runs("")
        return launch(program, bufs, how)

    def dispatched(dispatch: Dispatch, *args: Any, **options: Any) -> None:
        numbers[1] += 1
        begin(dispatch, *args, **options)

    def advanced(dispatch: Dispatch) -> bool:
        before = dispatch.executed
        more = advance(dispatch)
        numbers[2] += dispatch.executed - before
        return more

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AMDProgram, "launch", launched)
        patch.setattr(Dispatch, "__init__", dispatched)
        patch.setattr(Dispatch, "advance", advanced)
        yield lambda: Counts(*numbers)


class AMDConformance(DeviceConformance):
    """The class, for an architecture; it fails if a launch did not pass through the decoder."""

    device = "AMD"
    arch: ClassVar[str] = ""
    renderer: ClassVar[str] = "LLVM"
    launches = 200
    replays = 30

    @pytest.fixture(autouse=True)
    def _executed(self, counts: Callable[[], Counts]) -> Iterator[None]:
        before = counts()
        yield
        device = Device[self.device]
        assert isinstance(device, AMDDevice) and device.architecture.name == self.arch
        if device.error_state is None:
            device.synchronize()
            launches, dispatches, instructions = (b - a for a, b in zip(before, counts(), strict=True))
            assert dispatches >= launches, "a launch was executed by nobody"
            assert instructions >= 2 * dispatches, "a launch executed no instructions"

    def setup_method(self) -> None:
        self.dev = f"MOCKKFD+AMD:{self.renderer}:{self.arch}"
        super().setup_method()


@pytest.mark.usefixtures("some_dtypes")
class TestGfx1100(AMDConformance):
    arch = "gfx1100"


@pytest.mark.alike
@pytest.mark.slow
class TestGfx1030(AMDConformance):
    arch = "gfx1030"


@pytest.mark.alike
@pytest.mark.slow
class TestGfx1201(AMDConformance):
    arch = "gfx1201"


@pytest.mark.alike
@pytest.mark.slow
class TestGfx942(AMDConformance):
    """Eight compute dies, by a queue of AQL packets."""

    arch = "gfx942"


@pytest.mark.alike
@pytest.mark.slow
class TestGfx950(AMDConformance):
    arch = "gfx950"


@pytest.mark.alike
@pytest.mark.slow
@pytest.mark.skipif(comgr.missing() is not None, reason=f"COMGR: {comgr.missing()}")
class TestHIP(AMDConformance):
    """HIP C++ by COMGR; Debian's knows gfx10.3."""

    arch = "gfx1030"
    renderer = "HIP"


def test_a_launch_that_is_not_executed_is_seen(
    counts: Callable[[], Counts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a driver that computes nothing, and says that it is done."""
    monkeypatch.setattr(AMDProgram, "dispatch", lambda self, queue, args, groups, items: None)
    case = TestGfx1100()
    case.setup_method()
    before = counts()
    try:
        with pytest.raises(AssertionError, match="element 0 is"):
            case.test_iota()
        after = counts()
        assert after.launches > before.launches and after.dispatches == before.dispatches
    finally:
        case.teardown_method()
