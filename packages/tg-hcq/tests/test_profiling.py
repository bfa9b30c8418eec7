"""Traces of hardware queues: timestamps of signals, on the host's clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from tg_dtype import dtypes
from tg_hcq.hostq import HostQueueDevice
from tg_lazy import LazyBuffer, Ops, Storage
from tg_runtime import Buffer, BufferOptions, DeviceError, ExecItem, capture, profile, realize
from tg_runtime.testing.trace import check_nesting, spans

VISIBLE = BufferOptions(device_visible=True)


def _work() -> LazyBuffer:
    data = Buffer("HOSTQ", 256, dtypes.float32).copyin(memoryview(bytes(1024)))
    x = LazyBuffer.from_storage(Storage("HOSTQ", 256, dtypes.float32, data), (256,))
    return x.alu(Ops.ADD, x).contiguous().reduce(Ops.ADD, (0,)).contiguous()


@pytest.fixture
def _compiled() -> None:
    from tg_runtime import Device

    if "HOSTQ" not in Device.available():
        pytest.skip("the device HOSTQ has no compiler here")


@pytest.mark.usefixtures("_compiled")
def test_kernels_and_graphs_are_on_the_host_clock(tmp_path: Path) -> None:
    from tg_runtime import Device

    items: list[ExecItem] = []
    out = _work()
    with profile(tmp_path / "t.json") as recorded:
        with capture(items):
            realize([out])
        make = Device["HOSTQ"].graph
        assert make is not None
        ExecItem(make([item for item in items if item.prg.self_timed]), []).run()
    trace = recorded.trace()
    check_nesting(trace)
    tracks = spans(trace)
    events = tracks["HOSTQ", "compute queue"]
    names = [item.prg.name for item in items if item.prg.self_timed]
    assert [event["name"] for event in events] == names * 2 and recorded.lost == 0
    launches = [event for event in tracks["host", "MainThread"] if event["cat"] == "launch"]
    graphs = [event for event in launches if event["name"].startswith("launch graph of")]
    kernels = [event for event in launches if event["name"].removeprefix("launch ") in names]
    assert len(graphs) == 1 and len(kernels) == len(names)
    for event, launched in zip(events, kernels + graphs * len(names), strict=True):
        assert event["ts"] >= launched["ts"], "a kernel began before its launch did"
        assert event["dur"] > 0 and event["args"]["line"].startswith(__file__)


def test_copies_have_a_track_of_their_own(tmp_path: Path) -> None:
    device = HostQueueDevice("HOSTQ:8")
    try:
        block = device.allocator.alloc(3 << 20, VISIBLE)
        with profile(tmp_path / "t.json") as recorded:
            device.allocator.copyin(block, memoryview(bytes(3 << 20)))
            device.allocator.copyout(memoryview(bytearray(100)), block)
        trace = recorded.trace()
        check_nesting(trace)
        events = spans(trace)["HOSTQ:8", "copy queue"]
        assert [event["name"] for event in events] == ["copyin"] * 3 + ["copyout"]
        assert [event["args"]["bytes"] for event in events] == [1 << 20] * 3 + [100]
    finally:
        device.close()


def test_a_launch_that_was_never_submitted_is_lost(tmp_path: Path) -> None:
    from tg_hcq.core.profiling import timed
    from tg_runtime.telemetry.profiler import Launch

    device = HostQueueDevice("HOSTQ:7")
    try:
        with profile(tmp_path / "t.json") as recorded, Launch("kernel", "HOSTQ:7", {}):
            with pytest.raises(DeviceError, match="no"), device.submission() as queue:
                with timed(device, queue, "compute queue"):
                    pass
                raise DeviceError("no")
        assert recorded.lost == 1 and {event.process for event in recorded.events} == {"host"}
    finally:
        device.close()
