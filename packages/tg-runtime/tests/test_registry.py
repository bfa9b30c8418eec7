"""The registry: names, entry points, the DEV setting, and what it says about devices that are not there."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tg_runtime import Context, DevEntry, Device, DeviceError, DeviceUnavailable, DevSyntaxError, UnknownDevice
from tg_runtime.backends.numpy.device import NumpyDevice
from tg_runtime.device.registry import Registry


class Elsewhere(NumpyDevice):
    """A device that another package offers."""

    opened = 0

    def __init__(self, device: str, entry: DevEntry) -> None:
        super().__init__(device, entry)
        Elsewhere.opened += 1


class Absent(NumpyDevice):
    """A device whose hardware is not here."""

    @classmethod
    def unavailable(cls, entry: DevEntry) -> str | None:
        return "there is no /dev/absent"


def point(name: str, target: object, distribution: str) -> importlib.metadata.EntryPoint:
    """An entry point of a distribution that is not really installed."""

    class Point(importlib.metadata.EntryPoint):
        def load(self) -> object:
            if isinstance(target, Exception):
                raise target
            return target

    found = Point(name, f"{distribution}:{name.title()}", "tg.devices")
    vars(found)["dist"] = SimpleNamespace(name=distribution)
    return found


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A registry that finds made-up devices beside the real ones."""
    real = importlib.metadata.entry_points

    def entry_points(**selection: str) -> list[importlib.metadata.EntryPoint]:
        return [
            *real(**selection),
            point("elsewhere", Elsewhere, "tg-elsewhere"),
            point("ABSENT", Absent, "tg-absent"),
            point("TWICE", Elsewhere, "tg-one"),
            point("TWICE", Elsewhere, "tg-two"),
            point("SAME", Elsewhere, "tg-same"),
            point("SAME", Elsewhere, "tg-same"),
            point("BROKEN", ImportError("no module named gpu"), "tg-broken"),
            point("WRONG", 7, "tg-wrong"),
        ]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    Elsewhere.opened = 0
    yield Registry()


@pytest.mark.parametrize(
    ("name", "canonical"),
    [("cpu", "CPU"), ("CPU:0", "CPU"), ("cpu:01", "CPU:1"), ("Disk:/tmp/A.bin", "DISK:/tmp/A.bin"), ("x", "X")],
)
def test_canonicalize(name: str, canonical: str) -> None:
    assert Device.canonicalize(name) == canonical
    assert Device.canonicalize(canonical) == canonical


@pytest.mark.parametrize("name", ["", ":", ":1", "CPU:-1"])
def test_canonicalize_refuses(name: str) -> None:
    with pytest.raises(ValueError, match="not a device name"):
        Device.canonicalize(name)


@pytest.mark.parametrize("name", ["CPU:CLANG", "cpu:", "CPU:foo bar", "NULL:CUDA", "NUMPY:x", "CPU:1:2", "CPU:²"])
def test_what_follows_a_name_is_a_number(name: str) -> None:
    for use in (Device.canonicalize, Device.__getitem__):
        with pytest.raises(ValueError, match=r"after (CPU|NULL|NUMPY): comes a number.*Context\(DEV='CPU:CLANG'\)"):
            use(name)
    assert Device.canonicalize("shm:A.b") == "SHM:A.b"
    with pytest.raises(UnknownDevice, match="there is no device TPU"):
        Device.canonicalize("TPU:x")


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("NUMPY:X", "it has no renderer X; it has none"),
        ("NUMPY::x", "it has no ARCH, so 'x' means nothing"),
        ("FOO+NUMPY", "it has no interface FOO; it has none"),
        ("FOO+CPU", "it has no interface FOO; there are HOST, QEMU"),
        ("HOST:0,2+CPU", "there is one such device, so the numbers 0,2 choose nothing"),
        ("FOO+NULL", "it has no interface FOO"),
        (":1+NULL", "there is one such device"),
        ("NULL:FOO", "it has no renderer FOO"),
    ],
)
def test_nothing_in_the_setting_is_ignored(setting: str, problem: str) -> None:
    name = setting.partition(":")[0] if "+" not in setting else setting.partition("+")[2]
    with Context(DEV=setting):
        with pytest.raises(DeviceUnavailable) as caught:
            Device[name]
        assert problem in str(caught.value)
        assert problem in {row.name: row.problem or "" for row in Device.table()}[name]


@pytest.mark.parametrize("setting", ["CPU:LLVM:foo", "CPU:LLVM:native,-foo", "CPU:CLANG:foo", "CPU:CLANG:native,-foo"])
def test_a_processor_that_the_compiler_does_not_know(setting: str) -> None:
    missing = Device.load("CPU").renderers()[setting.split(":")[1]]
    if missing:
        pytest.skip(missing)
    with Context(DEV=setting):
        with pytest.raises(DevSyntaxError, match=r"CPU arch: .*foo"):
            Device["CPU"]
        row = next(row for row in Device.table() if row.name == "CPU")
        assert "foo" in (row.problem or "") and "LLVM" in row.renderers and row.facts.memory


def test_every_entry_names_a_device_that_there_is() -> None:
    with Context(DEV="CPU;FOO"), pytest.raises(UnknownDevice, match=r"DEV='CPU;FOO': there is no device FOO"):
        Device.DEFAULT  # noqa: B018 - the property reads the setting
    with Context(DEV=":0+CPU;CPU;"), pytest.raises(DevSyntaxError):
        Device.table()
    with Context(DEV="CPU;NUMPY;NULL:CUDA:sm_90"):
        assert Device["NULL"].renderer is not None and Device.DEFAULT == "CPU"


def test_a_setting_that_is_refused_leaves_no_trace(registry: Registry) -> None:
    with Context(DEV=""):
        assert registry.DEFAULT == "CPU"
        with Context(DEV="NUMPY:X;TPU"), pytest.raises(UnknownDevice):
            registry.DEFAULT  # noqa: B018 - the property reads the setting
        assert registry.entry("NUMPY") == DevEntry("NUMPY")


def test_default_follows_the_setting() -> None:
    with Context(DEV=""):
        assert Device.DEFAULT == "CPU"
        assert Device.canonicalize(None) == "CPU"
        with Context(DEV="numpy;CPU:LLVM"):
            assert Device.DEFAULT == "NUMPY"
            assert Device.entry("CPU").renderer == "LLVM"
        assert Device.DEFAULT == "CPU"
        assert Device.entry("CPU").renderer == ""
        with Context(DEV=":LLVM"):
            assert Device.DEFAULT == "CPU"
            assert Device.entry("CPU").renderer == "LLVM"


def test_a_device_is_opened_once() -> None:
    assert Device["NUMPY"] is Device["numpy"] is Device["NUMPY:0"]
    assert Device["NUMPY"] is not Device["NUMPY:1"]
    assert Device["NUMPY"] in Device.opened()


def test_unknown_device_lists_what_there_is(registry: Registry) -> None:
    with pytest.raises(UnknownDevice) as caught:
        registry["TPU"]
    text = str(caught.value)
    assert "there is no device TPU" in text
    assert "NUMPY" in text
    assert "ABSENT   there is no /dev/absent" in text


def test_unknown_default(registry: Registry) -> None:
    with Context(DEV="TPU"):
        with pytest.raises(UnknownDevice, match=r"DEV='TPU'.*no device TPU"):
            registry.DEFAULT  # noqa: B018 - the property reads the setting
        with pytest.raises(UnknownDevice, match="no device TPU"):
            registry["CPU"]


def test_bad_setting_is_refused(registry: Registry) -> None:
    with Context(DEV="CPU:0"), pytest.raises(DevSyntaxError):
        registry.DEFAULT  # noqa: B018 - the property reads the setting


def test_device_of_another_package(registry: Registry) -> None:
    assert "ELSEWHERE" in registry.available()
    assert Elsewhere.opened == 0
    assert isinstance(registry["elsewhere"], Elsewhere)
    assert Elsewhere.opened == 1
    with Context(DEV="ELSEWHERE"):
        assert registry.DEFAULT == "ELSEWHERE"
        assert registry["ELSEWHERE"] is registry["elsewhere"]
        assert Elsewhere.opened == 1


def test_absent_device_says_why(registry: Registry) -> None:
    with pytest.raises(DeviceUnavailable, match="ABSENT is not available on this machine: there is no /dev/absent"):
        registry["ABSENT"]
    assert "ABSENT" not in registry.available()


def test_two_claims_on_one_name(registry: Registry) -> None:
    with pytest.raises(DeviceError, match=r"TWICE is claimed by tg-one .* and tg-two"):
        registry["TWICE"]
    row = next(r for r in registry.table() if r.name == "TWICE")
    assert row.problem is not None
    assert "claimed by" in row.problem


def test_one_package_found_twice_is_no_conflict(registry: Registry) -> None:
    assert isinstance(registry["SAME"], Elsewhere)


def test_device_that_does_not_import(registry: Registry) -> None:
    with pytest.raises(DeviceError, match="BROKEN of tg-broken does not import: no module named gpu"):
        registry["BROKEN"]
    with pytest.raises(DeviceError, match="not a subclass"):
        registry["WRONG"]


def test_table_has_every_device_and_opens_none(registry: Registry) -> None:
    rows = {row.name: row for row in registry.table()}
    assert {"CPU", "CL", "NUMPY", "NULL", "DISK"} <= rows.keys()
    assert set(rows["CPU"].renderers) == {"LLVM", "CLANG"}
    assert rows["NULL"].problem is None
    assert "tg-runtime" in rows["CPU"].source
    assert registry.opened() == []


def test_unknown_renderer_and_interface() -> None:
    with Context(DEV="CPU:FORTRAN"), pytest.raises(DeviceUnavailable, match="no renderer FORTRAN; there are LLVM, CLA"):
        Device["CPU"]
    with Context(DEV="KFD+CPU"), pytest.raises(DeviceUnavailable, match="no interface KFD"):
        Device["CPU"]
    with Context(DEV="NULL:NAK"), pytest.raises(DeviceUnavailable, match="no renderer NAK"):
        Device["NULL"]


def test_cpu_without_compilers_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from tg_runtime.backends.cpu import device as cpu
    from tg_runtime.compilers import llvm

    monkeypatch.setattr(llvm, "available", lambda: False)
    monkeypatch.setattr(cpu, "c_compiler", lambda: None)
    text = cpu.CPUDevice.unavailable(DevEntry("CPU"))
    assert text is not None
    for hint in ("pip install 'tg-runtime[llvm]'", "install clang", "DEV=NUMPY"):
        assert hint in text
    with pytest.raises(DeviceUnavailable, match="install clang"):
        cpu.CPUDevice("CPU", DevEntry("CPU"))


def test_cpu_falls_back_to_clang_and_needs_no_numpy() -> None:
    from tg_runtime.host.tools import c_compiler

    if c_compiler() is None:
        pytest.skip("no clang on the PATH")
    code = """
import sys
sys.modules["llvmlite"] = sys.modules["numpy"] = None
from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_runtime import Device, buffer_of, realize
x = LazyBuffer.iota(100_000, dtypes.int32, "CPU")
y = x.alu(Ops.ADD, x)
realize([y])
assert buffer_of(y.storage).as_buffer().cast("i").tolist() == list(range(0, 200_000, 2))
print(Device["CPU"].renderer.name, "NUMPY" in Device.available(), Device.load("NUMPY").unavailable(None))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["CLANG", "False", *"numpy is not installed; pip install 'tg-runtime[numpy]'".split()]
    assert done.stderr == ""


def test_import_loads_no_device_and_nothing_heavy() -> None:
    heavy = ("numpy", "llvmlite", "ctypes", "importlib.metadata", "asyncio", "subprocess", "tempfile", "json")
    code = (
        "import sys; before = set(sys.modules); import tg_runtime; new = set(sys.modules) - before;"
        f"print([m for m in {heavy!r} if m in new], [m for m in new if m.startswith('tg_runtime.backends')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"
