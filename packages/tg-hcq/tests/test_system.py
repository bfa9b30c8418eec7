"""The system: files, memory, fences, events, locks, and which one a ``DEV`` entry chooses."""

from __future__ import annotations

import gc
import mmap
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tg_hcq import MMIO, FileIO, SoftwareSystem, System, offer_system, system_for
from tg_hcq.core import system as system_module
from tg_hcq.core.fence import CODE, fence
from tg_hcq.core.system import HUGE_PAGE, real_system, software_interfaces
from tg_hcq.hostq import HostQueueDevice
from tg_runtime import BufferOptions, DevEntry, DeviceError, DeviceUnavailable, parse_dev

VISIBLE = BufferOptions(device_visible=True)

SYSTEM = System()
PAGE = mmap.PAGESIZE


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "name"
    path.write_text("gfx1100\n" * 20_000)
    assert SYSTEM.exists(str(path)) and not SYSTEM.exists(f"{path}x")
    assert SYSTEM.listdir(str(tmp_path)) == ["name"]
    assert SYSTEM.read_text(str(path)) == ("gfx1100\n" * 20_000).strip()
    with SYSTEM.open(str(path)) as file:
        assert file.read(7) == b"gfx1100"
    with pytest.raises(FileNotFoundError):
        SYSTEM.read_text(f"{path}x")


def mapped(address: int) -> bool:
    """Whether this process has memory there; a page that was unmapped cannot be locked."""
    try:
        SYSTEM.physical_pages(address, 1)
    except DeviceError as error:
        return "hidden" in str(error)
    return True


@pytest.mark.parametrize("nbytes", [1, 17, PAGE, PAGE + 1, 1_000_003])
def test_memory_is_zero_and_lives_as_long_as_a_view(nbytes: int) -> None:
    memory = SYSTEM.allocate(nbytes)
    assert memory.nbytes >= nbytes and memory.nbytes % PAGE == 0 and memory.address % PAGE == 0
    assert not any(memory.bytes()[:nbytes])
    part, address = memory.view(memory.nbytes - 8, 8, "Q"), memory.address
    part[0] = 2**64 - 1
    del memory
    gc.collect()
    assert part[0] == 2**64 - 1
    if sys.platform == "linux" and os.path.exists("/proc/self/maps"):
        assert f"{address:x}-" in maps() or mapped(part.address)
        del part
        gc.collect()


def maps() -> str:
    return Path("/proc/self/maps").read_text(encoding="ascii")


def test_memory_that_is_not_there() -> None:
    with pytest.raises(MemoryError, match="bytes of memory"):
        SYSTEM.allocate(1 << 62)


def test_a_reserved_range_is_filled_in() -> None:
    start = SYSTEM.reserve(8 * PAGE, alignment=1 << 21)
    assert start % (1 << 21) == 0
    with pytest.raises(DeviceError, match="not in memory"):
        SYSTEM.physical_pages(start, 1)
    part = SYSTEM.allocate(PAGE, address=start + 2 * PAGE)
    assert part.address == start + 2 * PAGE and part.view(0, 8, "Q")[0] == 0
    SYSTEM.unmap(start, 2 * PAGE)
    with pytest.raises(OSError, match="munmap"):
        SYSTEM.unmap(start + 1, PAGE)
    with pytest.raises(OSError, match="anonymous memory"):
        SYSTEM.map(0, 1 << 62)


@pytest.mark.skipif(sys.platform != "linux", reason="locked and huge pages are known for Linux")
def test_locked_and_huge_pages() -> None:
    try:
        locked = SYSTEM.allocate(3 * PAGE, locked=True)
    except MemoryError as error:
        assert "ulimit -l" in str(error)
    else:
        try:
            pages = SYSTEM.physical_pages(locked.address + PAGE - 1, 2)
        except DeviceError as error:
            assert "CAP_SYS_ADMIN" in str(error)
        else:
            assert len(pages) == len(set(pages)) == 2 and all(page and page % PAGE == 0 for page in pages)
    try:
        huge = SYSTEM.allocate(1, huge=True)
    except MemoryError as error:
        assert "nr_hugepages" in str(error)
    else:
        assert huge.nbytes == HUGE_PAGE and huge.address % HUGE_PAGE == 0


@pytest.mark.parametrize("kind", ["store", "full"])
def test_fences_return(kind: str) -> None:
    for _ in range(100):
        fence(kind)()
    SYSTEM.store_fence()
    SYSTEM.full_fence()


def test_fences_of_every_processor_are_the_manuals_words() -> None:
    arm, riscv = CODE["aarch64"], CODE["riscv64"]

    def word(code: bytes, at: int) -> int:
        return int.from_bytes(code[at : at + 4], "little")

    # DMB: 1101 0101 0000 0011 0011 CRm 1 01 11111, CRm 1110 for stores, 1111 for everything; RET
    assert [word(arm[kind], 0) for kind in ("store", "full")] == [0xD5033EBF, 0xD5033FBF]
    assert {word(arm[kind], 4) for kind in arm} == {0xD65F03C0}
    # FENCE: fm 0000, pred and succ iorw, rs1 0, funct3 0, rd 0, opcode 0001111; JALR x0, 0(x1)
    assert [word(riscv[kind], 0) for kind in ("store", "full")] == [0x0550000F, 0x0FF0000F]
    assert {word(riscv[kind], 4) for kind in riscv} == {0x00008067}


def test_a_processor_without_a_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    with pytest.raises(OSError, match="processor s390x"):
        fence.__wrapped__("store")


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="there are no eventfds here")
def test_events_end_a_poll() -> None:
    one, two = SYSTEM.event(), SYSTEM.event()
    assert SYSTEM.poll([one, two], 0) == [] and one.clear() == 0
    two.set()
    two.set()
    assert SYSTEM.poll([one, two], 1000) == [two] and two.clear() == 2 and SYSTEM.poll([one, two], 0) == []
    one.close()
    one.close()
    assert one.fd == -1


def test_the_clock_goes_forward() -> None:
    before = SYSTEM.clock_ns()
    SYSTEM.sleep(0.002)
    assert SYSTEM.clock_ns() - before >= 2_000_000 and SYSTEM.process_id == os.getpid()


def test_a_lock_is_one_processes(tmp_path: Path) -> None:
    path = str(tmp_path / "gpu0.lock")
    with SYSTEM.lock_file(path):
        with pytest.raises(DeviceError, match=f"gpu0.lock is locked by process {os.getpid()}"):
            SYSTEM.lock_file(path)
        code = f"from tg_hcq import System; System().lock_file({path!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert f"is locked by process {os.getpid()}" in done.stderr
    SYSTEM.lock_file(path).close()


class Node(FileIO):
    """A device node of a software system."""

    def _open(self, path: str, flags: int) -> int:
        return os.open(os.devnull, flags)


def test_a_software_system_has_what_was_put_there() -> None:
    machine = SoftwareSystem()
    machine.put_node("/dev/kfd", Node)
    machine.put_text("/sys/class/kfd/topology/nodes/1/properties", "simd_count 8\ngfx_target_version 110000\n")
    assert machine.exists("/dev") and machine.exists("/dev/kfd") and not machine.exists("/dev/null")
    assert machine.listdir("/") == ["dev", "sys"] and machine.listdir("/sys/class/kfd/topology/nodes/") == ["1"]
    assert machine.read_text("/sys/class/kfd/topology/nodes/1/properties").endswith("gfx_target_version 110000")
    assert isinstance(machine.open("/dev/kfd", os.O_RDWR), Node)
    for missing in ("/dev/null", "/dev"):
        with pytest.raises(FileNotFoundError):
            machine.open(missing)
    with pytest.raises(FileNotFoundError):
        machine.listdir("/dev/dri")
    machine.remove("/dev/kfd")
    with pytest.raises(FileNotFoundError):
        machine.remove("/dev/kfd")
    assert not machine.exists("/dev") and machine.allocate(1)[0] == 0


class Counting(System):
    """Counts the bytes that are asked of it."""

    def __init__(self) -> None:
        self.asked = 0

    def map(self, address: int, nbytes: int, prot: int = 3, flags: int = mmap.MAP_PRIVATE) -> int:
        self.asked += nbytes
        return super().map(address, nbytes, prot, flags)


def test_dev_chooses_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_module, "_offered", {})
    machine = Counting()
    offer_system("MOCKHOST+HOSTQ", lambda entry: machine)
    assert software_interfaces("hostq") == ["MOCKHOST"] and software_interfaces("CPU") == []
    (chosen,), (plain,) = parse_dev("mockhost+hostq"), parse_dev("HOSTQ")
    assert system_for(chosen) is machine and system_for(plain) is real_system()
    assert "MOCKHOST" in HostQueueDevice.facts(plain).interfaces and HostQueueDevice.meaningless(chosen) is None
    told = HostQueueDevice.meaningless(parse_dev("MOCKNVK+HOSTQ")[0])
    assert told is not None and "no interface MOCKNVK" in told
    device = HostQueueDevice("HOSTQ:6", chosen)
    before = machine.asked
    device.allocator.alloc(1 << 20, VISIBLE)
    assert machine.asked - before == 1 << 20 and device.system is machine
    device.close()


def test_a_system_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_module, "_offered", {})
    monkeypatch.setattr(
        system_module,
        "_points",
        lambda: {"MOCKTEST+AMD": "tg_hcq.simulate.amd.kfd:mock_kfd", "MOCKGONE+AMD": "tg_hcq.core.software:Gone"},
    )
    assert software_interfaces("AMD") == ["MOCKGONE", "MOCKTEST"]
    made = system_for(DevEntry("AMD", iface="MOCKTEST", arch="gfx1201"))
    assert isinstance(made, SoftwareSystem) and "gfx_target_version 120001" in made.read_text(
        "/sys/class/kfd/kfd/topology/nodes/1/properties"
    )
    with pytest.raises(DeviceUnavailable, match="Gone does not import"):
        system_for(DevEntry("AMD", iface="MOCKGONE"))


def test_a_view_of_allocated_memory_is_typed() -> None:
    words = SYSTEM.allocate(64).view(0, 64, "I")
    words[3] = 0x12345678
    assert isinstance(words, MMIO) and words.view(12, 2, "H")[0] == 0x5678
