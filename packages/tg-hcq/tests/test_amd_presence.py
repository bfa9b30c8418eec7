"""What is missing for a card is told in words, without opening one; and DEV chooses cards, real and software ones."""

from __future__ import annotations

import os

import pytest

from tg_hcq import FileIO, System
from tg_hcq.amd import AMDDevice
from tg_hcq.amd.architecture import ARCHITECTURES
from tg_hcq.amd.kfd.kernels import OLDEST_LINUX, known, too_old
from tg_hcq.amd.kfd.presence import missing
from tg_hcq.core.system import real_system
from tg_hcq.simulate.amd.kfd import KfdSystem
from tg_lazy import Context
from tg_runtime import DevEntry, Device, DeviceUnavailable, parse_dev

CARD = DevEntry("AMD")


class Closed(KfdSystem):
    """A machine that says what is asked of it, but lets no device node be opened."""

    forbidden: tuple[str, ...] = ()
    linux = "6.12.1"

    def open(self, path: str, flags: int = os.O_RDONLY) -> FileIO:
        assert not path.startswith("/dev"), f"{path} was opened for a listing"
        return super().open(path, flags)

    def may_open(self, path: str) -> bool:
        return path not in self.forbidden and super().may_open(path)

    @property
    def release(self) -> str:
        return self.linux


def test_nothing_is_missing_on_a_machine_with_a_card() -> None:
    assert missing(Closed("gfx1030"), CARD) is None
    assert missing(Closed("gfx1201", gpus=2), parse_dev("KFD:1+AMD::gfx1201")[0]) is None


def test_there_is_no_kfd() -> None:
    machine = Closed()
    machine.remove("/dev/kfd")
    assert missing(machine, CARD) == "needs /dev/kfd, which the kernel's amdgpu module makes for a card that it knows"
    machine.put_text("/sys/module/amdgpu/refcnt", "1")
    assert "the kernel's amdgpu module is loaded, but without CONFIG_HSA_AMD" in (missing(machine, CARD) or "")


@pytest.mark.parametrize("path", ["/dev/kfd", "/dev/dri/renderD128"])
def test_there_is_no_permission(path: str) -> None:
    machine = Closed()
    machine.forbidden = (path,)
    told = missing(machine, CARD)
    assert told is not None and f"may not open {path}: it belongs to the group render" in told


def test_kfd_is_too_old() -> None:
    machine = Closed()
    machine.linux = "5.15.0-91-generic"
    assert missing(machine, CARD) == "the KFD of Linux 5.15 is too old: 1.11 is needed, which Linux 6.1 and later have"
    machine.put_text("/sys/module/amdgpu/version", "6.10.5")  # a module that is newer than its kernel
    assert missing(machine, CARD) is None


def test_there_is_no_such_card() -> None:
    machine = Closed("gfx1100")
    assert "  0: gfx1100" in (missing(machine, DevEntry("AMD", arch="gfx1201")) or "")
    assert "  0: gfx1100" in (missing(machine, parse_dev("KFD:3+AMD")[0]) or "")
    nodes = "/sys/class/kfd/kfd/topology/nodes"
    path = f"{nodes}/1/properties"
    text = machine.read_text(path).replace("gfx_target_version 110000", "gfx_target_version 90006")
    machine.put_text(path, text)
    assert "the card is a gfx906, which this driver does not know" in (missing(machine, CARD) or "")
    machine.put_text(f"{nodes}/1/gpu_id", "0")
    machine.linux = "7.2.0"
    assert missing(machine, CARD) == "the kernel lists no card in /sys/class/kfd"


@pytest.mark.parametrize(
    ("linux", "arch", "told"),
    [
        ("6.8.0-31-generic", "gfx1201", "this is Linux 6.8, which may be too old: KFD was seen with gfx1201 in Linux "
         "6.12, not yet in 6.10"),
        ("6.11.2", "gfx1200", "KFD was seen with gfx1200 in Linux 6.12, not yet in 6.10"),
        ("6.12.1", "gfx950", "KFD was seen with gfx950 in Linux 7.2, not yet in 6.12"),
        ("6.12.1", "gfx1201", None),
        ("6.1.0-9-amd64", "gfx1030", None),
        ("6.13.1", "", "KFD was seen with gfx950, gfx1153 in Linux 7.2, not yet in 6.12"),
        ("6.10.1", "", "in Linux 6.12, not yet in 6.4; gfx1150 in Linux 6.12, not yet in 6.6; gfx1151 in"),
        ("7.2.1", "", None),
        ("unknown", "", None),
    ],
)  # fmt: skip
def test_a_kernel_that_may_not_know_the_card(linux: str, arch: str, told: str | None) -> None:
    """Such a kernel lists no card, or another one: what it would have to be is said, and by opening, too."""
    other, entry = Closed("gfx1030" if arch != "gfx1030" else "gfx1100"), DevEntry("AMD", arch=arch)
    other.linux = linux
    if not arch:
        other.put_text("/sys/class/kfd/kfd/topology/nodes/1/gpu_id", "0")
    for said in (missing(other, entry) or "", opening(other, entry)):
        assert ("may be too old" in said) is (told is not None), said
        assert (told or "the kernel lists") in said
    other.put_text("/sys/module/amdgpu/version", "6.10.5")  # a module that is newer than its kernel
    assert "may be too old" not in (missing(other, entry) or "")


def opening(machine: Closed, entry: DevEntry) -> str:
    """What is said where a card is opened that is not there."""

    class Opened(KfdSystem):
        release = machine.linux

        def listdir(self, path: str) -> list[str]:
            return machine.listdir(path)

        def read_text(self, path: str) -> str:
            return machine.read_text(path)

    with pytest.raises(DeviceUnavailable) as error:
        AMDDevice("AMD", entry, system=Opened("gfx1030"))
    return str(error.value)


def test_every_architecture_has_a_kernel() -> None:
    for number, card in ARCHITECTURES.items():
        span = known(number)
        assert span.absent is None or OLDEST_LINUX <= span.absent < span.present, card.name
        assert too_old(span.present, {card.name: number}) is None
        assert card.name in (too_old((5, 0), {card.name: number}) or "")


def test_the_real_machine() -> None:
    system = real_system()
    assert system.group_of("/dev/null") in ("root", "0") and system.may_open("/dev/null")
    assert int(system.release.partition(".")[0]) >= 3
    assert not system.may_open("/dev/nothing")
    with pytest.raises(FileNotFoundError):
        system.group_of("/dev/nothing")


def test_settings_that_mean_nothing() -> None:
    assert "ARCH is one of gfx1030" in (AMDDevice.unavailable(DevEntry("AMD", arch="gfx906")) or "")
    told = AMDDevice.unavailable(DevEntry("AMD", "PTX", iface="MOCKKFD"))
    assert told == "it has no renderer PTX; there are LLVM and HIP"
    with Context(DEV="MOCKNVK+AMD"), pytest.raises(DeviceUnavailable, match="no interface MOCKNVK"):
        Device["AMD"]


def test_cards_of_one_setting_are_of_one_machine() -> None:
    pytest.importorskip("llvmlite", reason="LLVM compiles the kernels")
    with Context(DEV="MOCKKFD+AMD:LLVM:gfx1201"):
        one, other = Device["AMD"], Device["AMD:1"]
        assert isinstance(one, AMDDevice) and isinstance(other, AMDDevice)
        assert one.system is other.system and one.node.gpu_id != other.node.gpu_id
        assert one.architecture.name == "gfx1201"
        with pytest.raises(DeviceUnavailable, match="it is not there; the cards that the kernel lists"):
            Device["AMD:2"]
    with Context(DEV="MOCKKFD:1+AMD::gfx1201"):
        alone = Device["AMD"]
        assert isinstance(alone, AMDDevice) and alone.node.gpu_id == other.node.gpu_id


def test_limits_are_those_of_the_card() -> None:
    pytest.importorskip("llvmlite", reason="LLVM compiles the kernels")
    with Context(DEV="MOCKKFD+AMD::gfx1201"):
        device = Device["AMD"]
    assert isinstance(device, AMDDevice) and device.renderer is not None
    target = device.renderer.target
    assert (target.shared_bytes, target.local_max) == (device.node["lds_size_in_kb"] << 10, 1024)
    assert target.gpu is not None and target.gpu.groups == device.node.compute_units


def test_a_system_of_an_interface_lives_as_long_as_its_devices() -> None:
    from tg_hcq import system_for

    entry = DevEntry("AMD", arch="gfx1030", iface="MOCKKFD")
    first = system_for(entry)
    assert system_for(entry) is first
    assert isinstance(first, System) and system_for(DevEntry("AMD", arch="gfx1100", iface="MOCKKFD")) is not first
