"""Traces: their spans nest and are in order, on every device, and recording is off unless it is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tg_dtype import dtypes
from tg_lazy import Context, LazyBuffer, Ops, Storage
from tg_runtime import PROFILE, Buffer, Device, DeviceUnavailable, ExecItem, capture, parse_dev, profile, realize
from tg_runtime.telemetry import profiler
from tg_runtime.testing.trace import check_nesting, spans


def work(device: str, elements: int = 64) -> LazyBuffer:
    """A graph of two kernels and two copies."""
    source = Buffer("NUMPY", elements, dtypes.float32).copyin(memoryview(bytes(4 * elements)))
    x = LazyBuffer.from_storage(Storage("NUMPY", elements, dtypes.float32, source), (elements,)).copy_to(device)
    doubled = x.alu(Ops.ADD, x).contiguous()
    return doubled.reduce(Ops.ADD, (0,)).contiguous().copy_to("NUMPY")


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The device that a setting of ``DEV`` names, while that is in force."""
    (entry,) = parse_dev(request.param)
    what = "WebGPU" if entry.device == "WEBGPU" else f"the device {entry.device} is not available here"
    with Context(DEV=request.param):
        problem = Device.load(entry.device).unavailable(entry)
        if problem is not None:
            pytest.skip(f"{what}: {problem}")
        try:
            Device[entry.device]
        except DeviceUnavailable as error:  # a library, but no adapter
            pytest.skip(str(error))
        yield entry.device


@pytest.mark.parametrize("device", ["NUMPY", "CPU", "CL", "NULL", "MOCK+CUDA:PTX", "WEBGPU"], indirect=True)
def test_a_trace_of_every_device(device: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    out = work(device)  # kept: what nobody holds is computed by nobody
    with profile(path):
        realize([out])
        Device[device].synchronize()
    trace = json.loads(path.read_text(encoding="utf-8"))
    check_nesting(trace)
    assert trace["otherData"]["lost"] == 0
    tracks = spans(trace)
    host = [event for (process, _), events in tracks.items() if process == "host" for event in events]
    assert {"realize", "schedule", "lower"} <= {event["name"] for event in host}
    assert any(event["cat"] == "launch" for event in host)
    on_device = [event for (process, _), events in tracks.items() if process == device for event in events]
    kernels = [event for event in on_device if event["args"].get("flops")]
    assert kernels, tracks
    for event in kernels:
        assert event["args"]["bytes"] > 0 and event["args"]["line"].startswith(__file__)
        if event["dur"] > 0:
            rate = event["args"]["flops"] / event["dur"] / 1e3
            assert event["args"]["GFLOP/s"] == pytest.approx(rate, abs=6e-4, rel=1e-3)
    # a kernel begins after its launch began: both are on one clock
    first_launch = min(event["ts"] for event in host if event["cat"] == "launch")
    assert min(event["ts"] for event in on_device) >= first_launch - 0.01


@pytest.mark.parametrize("device", ["CPU", "MOCK+CUDA:PTX", "WEBGPU"], indirect=True)
def test_copies_and_kernels_are_on_one_clock(device: str, tmp_path: Path) -> None:
    """A device that is waited for: copy in, two kernels and copy out follow one another, within their launches."""
    out = work(device, 5000)
    with profile(tmp_path / "trace.json") as recorded:
        realize([out])
    tracks = spans(recorded.trace())
    kernels = tracks[device, "kernels"]
    (copied_in,), (copied_out,) = tracks[device, "copies"], tracks["NUMPY", "copies"]
    assert copied_in["args"]["bytes"] == 20_000 and copied_out["args"]["bytes"] == 4
    assert len(kernels) == 2 and all(event["dur"] > 0 and event["args"]["flops"] > 0 for event in kernels)
    steps = [copied_in, *kernels, copied_out]
    for earlier, later in pairwise(steps):
        assert later["ts"] >= earlier["ts"] + earlier["dur"] - 0.01, (earlier, later)
    launches = [event for event in tracks["host", "MainThread"] if event["cat"] == "launch"]
    assert [event["name"] for event in launches] == [f"launch {event['name']}" for event in steps]
    for step, launch in zip(steps, launches, strict=True):
        assert launch["ts"] - 0.01 <= step["ts"], (step, launch)
        assert step["ts"] + step["dur"] <= launch["ts"] + launch["dur"] + 0.01, (step, launch)


@pytest.mark.parametrize("device", ["MOCK+CUDA:PTX", "WEBGPU"], indirect=True)
def test_the_setting_records_launches_of_a_device(device: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from test_profiler import work
from tg_runtime import realize
out = work(sys.argv[2])
realize([out])
"""
    path = tmp_path / "trace.json"
    env = {**os.environ, "PROFILE": "1", "PROFILE_FILE": str(path), "PYTHONPATH": os.pathsep.join(sys.path)}
    env["DEV"] = request.node.callspec.params["device"]
    arguments = [sys.executable, "-c", program, str(Path(__file__).parent), device]
    done = subprocess.run(arguments, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    trace = json.loads(path.read_text(encoding="utf-8"))
    check_nesting(trace)
    tracks = spans(trace)
    assert trace["otherData"]["lost"] == 0
    assert len(tracks[device, "kernels"]) == 2 and len(tracks[device, "copies"]) == len(tracks["NUMPY", "copies"]) == 1


def test_kernels_of_a_graph_have_spans_of_their_own(tmp_path: Path) -> None:
    if Device.load("CPU").unavailable(Device.entry("CPU")) is not None:
        pytest.skip("the device CPU is not available here")
    items: list[ExecItem] = []
    out = work("CPU")
    with capture(items):
        realize([out])
    kernels = [item for item in items if item.prg.device == "CPU" and item.prg.self_timed is False and item.origin]
    compiled = [item for item in kernels if type(item.prg).__name__ == "CompiledRunner"]
    assert len(compiled) == 2
    make = Device["CPU"].graph
    assert make is not None
    graph = ExecItem(make(compiled), [])
    with profile(tmp_path / "trace.json") as recorded:
        graph.run()
    events = spans(recorded.trace())["CPU", "kernels"]
    assert [event["name"] for event in events] == [item.prg.name for item in compiled]
    assert all(event["args"]["line"] == item.origin for event, item in zip(events, compiled, strict=True))


def test_nothing_is_recorded_unless_asked() -> None:
    before = len(profiler.recorder().events) if profiler._written_at_exit else 0
    realize([work("NUMPY")])
    assert not PROFILE.value and len(profiler._whole.events) == before
    assert profiler.span("x") is profiler.span("y") and profiler.launch() is None


def test_an_error_closes_its_spans(tmp_path: Path) -> None:
    with profile(tmp_path / "t.json") as recorded, pytest.raises(ZeroDivisionError), profiler.span("outer"):
        with profiler.span("inner", number=1):
            raise ZeroDivisionError("no")
    inner, outer = recorded.events
    assert (inner.name, outer.name) == ("inner", "outer") and inner.args["error"] == "ZeroDivisionError: no"
    check_nesting(recorded.trace())


def test_blocks_do_not_nest(tmp_path: Path) -> None:
    with profile(tmp_path / "a.json"), pytest.raises(RuntimeError, match="another block"):
        with profile(tmp_path / "b.json"):
            pass
    assert (tmp_path / "a.json").exists() and not (tmp_path / "b.json").exists()


def test_a_device_that_cannot_tell_any_more_loses_its_spans_only(tmp_path: Path) -> None:
    def gone() -> None:
        raise RuntimeError("the device is gone")

    with profile(tmp_path / "t.json") as recorded:
        with profiler.span("kept"):
            recorded.later("GONE", gone)
    trace: dict[str, Any] = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert trace["otherData"]["lost"] == 1 and list(spans(trace)) == [("host", "MainThread")]


def test_many_pending_launches_are_asked_for_in_between(tmp_path: Path) -> None:
    asked: list[int] = []
    with profile(tmp_path / "t.json") as recorded:
        for i in range(3000):
            recorded.later("X", lambda i=i: asked.append(i))  # type: ignore[misc]
        assert len(asked) >= 1024
    assert asked == list(range(3000))


def test_clocks() -> None:
    clock = profiler.DeviceClock()
    assert clock.host(7) == 7
    clock.sample(1000, 0, None)
    assert clock.host(7) == 1007
    clock.sample(1100, 90, 1120)
    clock.sample(2000, 980, 2100)
    assert (clock.low, clock.high) == (1020, 1030) and clock.host(0) == 1025
    assert clock.error_ns == 5
    clock.sample(5000, 3000, 5003)  # the device's clock is slower than the host's
    assert (clock.low, clock.high, clock.error_ns) == (2000, 2003, 2)


def test_a_trace_says_how_well_clocks_are_known(tmp_path: Path) -> None:
    clock = profiler.DeviceClock()
    clock.sample(1000, 0, 4000)
    with profile(tmp_path / "trace.json") as recorded, profiler.Launch("step", "FAR", {}) as launch:
        launch.on_device("queue", 0, 10, clock)
    labels = [row["args"] for row in recorded.trace()["traceEvents"] if row["name"] == "process_labels"]  # type: ignore[attr-defined]
    assert labels == [{"labels": "clock within 1.5 us of the host's"}]


def test_a_step_is_as_long_as_was_measured_but_not_longer_than_its_call(tmp_path: Path) -> None:
    for seconds in (0.0, 1e-6, 1e-3, 3600.0):
        with profile(tmp_path / "trace.json") as recorded, profiler.Launch("step", "NUMPY", {}) as launch:
            time.sleep(0.002)
            launch.seconds = seconds
        step, call = recorded.events
        assert (step.category, call.category) == ("device", "launch")
        assert step.start >= call.start and step.end == call.end >= call.start + 2_000_000
        assert step.end - step.start == min(int(seconds * 1e9), call.end - call.start)


PROGRAM = """
from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, Storage
from tg_runtime import Buffer, realize
x = LazyBuffer.from_storage(Storage("NUMPY", 4, dtypes.float32, Buffer("NUMPY", 4, dtypes.float32).allocate()), (4,))
y = x.alu(Ops.ADD, x)
realize([y])
"""


@pytest.mark.parametrize("named", [True, False])
def test_the_setting_writes_at_exit(named: bool, tmp_path: Path) -> None:
    path = tmp_path / "at exit.json"
    env = {**os.environ, "PROFILE": "1", "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    if named:
        env["PROFILE_FILE"] = str(path)
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = path if named else next(tmp_path.glob("tinytg-profile-*.json"))
    assert str(found) in done.stdout
    assert named or found.stat().st_mode & 0o077 == 0  # a new file of ours, whatever else has names like it there
    trace = json.loads(found.read_text(encoding="utf-8"))
    check_nesting(trace)
    assert ("NUMPY", "kernels") in spans(trace)


def test_the_setting_off_writes_nothing(tmp_path: Path) -> None:
    env = {**os.environ, "PROFILE": "0", "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, list(tmp_path.glob("*.json"))) == (0, "", []), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_writes_a_file_of_its_own(tmp_path: Path) -> None:
    program = f"""
import os, sys
{PROGRAM}
if os.fork() == 0:
    z = x.alu(Ops.MUL, x)
    realize([z])
    sys.exit(0)
os.wait()
"""
    env = {**os.environ, "PROFILE": "1", "PROFILE_FILE": str(tmp_path / "t.json")}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    traces = sorted(tmp_path.glob("*.json"), key=lambda path: len(path.name))
    assert len(traces) == 2 and traces[0].name == "t.json"
    counts = [len(spans(json.loads(path.read_text(encoding="utf-8")))["NUMPY", "kernels"]) for path in traces]
    assert counts == [1, 1]


def test_settings_in_force_only_for_a_block() -> None:
    with Context(PROFILE=0):
        assert isinstance(profiler.span("x"), profiler._Nothing)
