"""KFD's topology as Linux writes it, sizes of save areas by hand, and what is said of a machine that has no card."""

from __future__ import annotations

import ctypes
import errno
import os

import pytest

from tg_hcq import FileIO, SoftwareSystem
from tg_hcq.amd import AMDDevice
from tg_hcq.amd.architecture import architecture
from tg_hcq.amd.kfd.topology import NODES, Node, nodes, properties
from tg_hcq.headers.amd import kfd_ioctl
from tg_runtime import DevEntry, DeviceError, DeviceUnavailable

GFX1100 = {
    "cpu_cores_count": 0, "simd_count": 192, "simd_per_cu": 2, "array_count": 12, "simd_arrays_per_engine": 2,
    "max_slots_scratch_cu": 32, "gfx_target_version": 110000, "drm_render_minor": 128, "num_xcc": 1,
    "num_sdma_engines": 2, "lds_size_in_kb": 64,
}  # fmt: skip


def machine(*cards: dict[str, int], heap: int = 1) -> SoftwareSystem:
    system = SoftwareSystem()
    system.put_text(f"{NODES}/0/gpu_id", "0")
    system.put_text(f"{NODES}/0/properties", "cpu_cores_count 16\nsimd_count 0\n")
    for number, card in enumerate(cards, 1):
        folder = f"{NODES}/{number}"
        system.put_text(f"{folder}/gpu_id", str(1000 + number))
        system.put_text(f"{folder}/name", "plum_bonito")
        system.put_text(f"{folder}/properties", "\n".join(f"{name} {value}" for name, value in card.items()))
        system.put_text(f"{folder}/mem_banks/0/properties", f"heap_type {heap}\nsize_in_bytes 25753026560\n")
        system.put_text(f"{folder}/io_links/0/properties", "type 2\nnode_from 1\nnode_to 0\nweight 20\n")
    return system


class Kfd(FileIO):
    """A kfd file that tells a version and refuses everything else."""

    version = (1, 17)

    def _open(self, path: str, flags: int) -> int:
        return os.open(os.devnull, os.O_RDWR)

    def ioctl(self, request: int, argument: ctypes.Structure | ctypes.Array[ctypes.c_uint8] | int = 0) -> int:
        if request != kfd_ioctl.IOC_GET_VERSION:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), self.path)
        assert isinstance(argument, ctypes.Array)
        answer = kfd_ioctl.kfd_ioctl_get_version_args.pack(major_version=self.version[0], minor_version=self.version[1])
        ctypes.memmove(argument, bytes(answer), len(answer))
        return 0


def opened(system: SoftwareSystem, **entry: str) -> AMDDevice:
    return AMDDevice("AMD", DevEntry("AMD", **entry), system=system)  # type: ignore[arg-type]


def test_cards_are_the_nodes_with_compute_units() -> None:
    found = nodes(machine(GFX1100, {**GFX1100, "gfx_target_version": 120001}))
    assert [(node.number, node.gpu_id, node.architecture) for node in found] == [
        (1, 1001, "gfx1100"),
        (2, 1002, "gfx1201"),
    ]
    first = found[0]
    assert (first.compute_units, first.engines, first.xccs, first.large_bar) == (96, 6, 1, True)
    assert first.memory == 25753026560 and first.name == "plum_bonito" and first.links[0]["weight"] == 20
    assert first["never heard of"] == 0
    assert nodes(SoftwareSystem()) == []
    assert not nodes(machine(GFX1100, heap=2))[0].large_bar


def test_lines_that_are_no_properties_are_passed_over() -> None:
    assert properties("simd_count 4\nnonsense\n\nname gfx\nhive_id 18446744073709551615\n") == {
        "simd_count": 4,
        "hive_id": 2**64 - 1,
    }


def test_save_areas() -> None:
    def area(**card: int) -> tuple[int, int, int]:
        found = Node(1, 1, "", {**GFX1100, **card}, (), {}).save_area
        return found.control_stack, found.save, found.nbytes

    # 96 units: 3072 waves of 12 bytes, 48 bytes more, in pages; 0x75000 a unit; 32 bytes a wave for debuggers
    assert area() == (0xA000, 0xA000 + 96 * 0x75000, 0xA000 + 96 * 0x75000 + 0x18000)
    # gfx10.3 has at most 0x7000 of control stack, and 0x55000 a unit
    assert area(gfx_target_version=100300)[:2] == (0x7000, 0x7000 + 96 * 0x55000)
    # what the kernel tells is what counts
    assert area(ctl_stack_size=0x3000, cwsr_size=0x100000) == (0x3000, 0x100000, 0x100000 + 0x18000)
    # gfx942 with 8 dies of 38 units: 8 bytes a wave, and each die's area
    eight = {"gfx_target_version": 90402, "num_xcc": 8, "simd_count": 304 * 4, "simd_per_cu": 4}
    stack, save, nbytes = area(**eight, array_count=32, simd_arrays_per_engine=1)
    assert (stack, save) == (0x3000 + 0x1000 * (1520 * 8 + 48 > 0x3000), stack + 38 * 0x95000)
    assert nbytes == -(-(save + 1520 * 32) * 8 // 4096) * 4096


def test_no_kfd() -> None:
    with pytest.raises(DeviceUnavailable, match="needs /dev/kfd, which the kernel's amdgpu module makes"):
        opened(machine(GFX1100))


def test_no_permission() -> None:
    system = machine(GFX1100)

    def refuse(path: str, flags: int) -> FileIO:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    system.put_node("/dev/kfd", refuse)
    with pytest.raises(DeviceUnavailable, match=r"may not open /dev/kfd: add the user to the group render"):
        opened(system)


def test_a_kfd_that_is_too_old() -> None:
    system = machine(GFX1100)

    class Old(Kfd):
        version = (1, 6)

    system.put_node("/dev/kfd", Old)
    with pytest.raises(DeviceUnavailable, match=r"KFD has version 1\.6, and 1\.11 is needed: Linux 6\.1"):
        opened(system)


def test_no_card_and_a_card_that_is_not_known() -> None:
    for cards, wanted in (
        ((), "the kernel lists no card"),
        (({**GFX1100, "gfx_target_version": 90010},), "the card is a gfx90a, which this driver does not know"),
    ):
        system = machine(*cards)
        system.put_node("/dev/kfd", Kfd)
        with pytest.raises(DeviceUnavailable, match=wanted):
            opened(system)
    system = machine(GFX1100)
    system.put_node("/dev/kfd", Kfd)
    with pytest.raises(DeviceUnavailable, match=r"it is not there; the cards that the kernel lists:\n  0: gfx1100"):
        opened(system, arch="gfx1201")


def test_no_render_node_and_a_card_that_another_library_holds() -> None:
    system = machine(GFX1100)
    system.put_node("/dev/kfd", Kfd)
    with pytest.raises(DeviceUnavailable, match=r"cannot open /dev/dri/renderD128: No such file"):
        opened(system)
    system.put_node("/dev/dri/renderD128", lambda path, flags: Kfd(path, flags))
    with pytest.raises(DeviceUnavailable, match=r"KFD refuses ACQUIRE_VM: .*another library of this process holds"):
        opened(system)


def test_entries_that_cannot_be() -> None:
    assert "not 'sm_80'" in str(AMDDevice.unavailable(DevEntry("AMD", arch="sm_80")))
    assert "no interface PCI" in str(AMDDevice.unavailable(DevEntry("AMD", iface="PCI")))
    assert "no renderer PTX" in str(AMDDevice.unavailable(DevEntry("AMD", renderer="PTX")))
    with pytest.raises(DeviceError, match="gfx906, which this driver does not know; it knows gfx1030"):
        architecture(90006)
