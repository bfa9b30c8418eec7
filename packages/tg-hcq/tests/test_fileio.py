"""The boundary to the operating system: real files and anonymous memory, and a software device behind it."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from pathlib import Path

import pytest

from tg_hcq import MMIO, FileIO, SoftwareSystem, System
from tg_hcq.core.fileio import memory_at, unmap_pages

FIONREAD = 0x541B


def test_views_of_each_width() -> None:
    memory = bytearray(range(16))
    for fmt, unit in (("B", "B"), ("H", "H"), ("I", "I"), ("Q", "Q")):
        view = MMIO.of(memory, fmt)  # type: ignore[arg-type]
        assert view.read(0, len(view)) == list(struct.unpack(f"={16 // struct.calcsize(unit)}{unit}", memory))
    view = MMIO.of(memory, "I")
    view[3] = 0xDEADBEEF
    assert memory[12:] == struct.pack("=I", 0xDEADBEEF)
    part = view.view(8, 8, "H")
    assert (part.address - view.address, part.nbytes, len(part)) == (8, 8, 4)
    part.write(1, b"\x01\x02\x03\x04")
    assert memory[10:14] == b"\x01\x02\x03\x04"
    assert bytes(view.bytes()) == bytes(memory)


def test_a_view_keeps_its_memory() -> None:
    view = MMIO.of(bytearray(b"abcd" * 1000), "B").view(4, 4)
    other = [bytearray(4000) for _ in range(100)]
    assert bytes(view.bytes()) == b"abcd" and other


def test_views_refuse_what_is_outside_or_crooked() -> None:
    view = MMIO.of(bytearray(16), "I")
    with pytest.raises(IndexError):
        view[4]
    for start, nbytes in ((-4, 4), (8, 12), (20, 0)):
        with pytest.raises(ValueError, match="of 16"):
            view.view(start, nbytes)
    with pytest.raises(ValueError, match="whole units of 4"):
        view.view(2, 4, "I")
    with pytest.raises(ValueError, match="whole units of 8"):
        view.view(0, 4, "Q")
    with pytest.raises(ValueError, match="format 'x'"):
        MMIO(view.address, 4, "x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="address 0x0"):
        memory_at(0, 1)
    with pytest.raises(ValueError):
        view[0] = 1 << 32


def test_file_read_write_and_ioctl(tmp_path: Path) -> None:
    path = str(tmp_path / "node")
    with FileIO(path, os.O_RDWR | os.O_CREAT) as file:
        assert file.write(b"0123456789") == 10 and file.write(b"ab", offset=2) == 2
        assert file.read(4, offset=0) == b"01ab" and file.read(4) == b""
        waiting = (ctypes.c_uint8 * 4)()
        os.lseek(file.fd, 3, os.SEEK_SET)
        assert file.ioctl(FIONREAD, waiting) == 0
        assert int.from_bytes(bytes(waiting), "little") == 7
        with pytest.raises(OSError, match=r"ioctl 0xdead: .*node"):
            file.ioctl(0xDEAD, waiting)
        with pytest.raises(OSError, match="ioctl 0xdead"):
            file.ioctl(0xDEAD, (ctypes.c_uint8 * 4096)())
    with pytest.raises(OSError):
        file.read(1)
    file.close()
    with pytest.raises(FileNotFoundError):
        FileIO(path + "x")


def test_file_mapped_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "bar"
    path.write_bytes(bytes(2 * mmap.PAGESIZE))
    with FileIO(str(path), os.O_RDWR) as file:
        both = mmap.PROT_READ | mmap.PROT_WRITE
        address = file.mmap(0, mmap.PAGESIZE, both, mmap.MAP_SHARED, offset=mmap.PAGESIZE)
        registers = MMIO(address, mmap.PAGESIZE, "I", file)
        registers[2] = 0x01020304
        assert file.read(4, offset=mmap.PAGESIZE + 8) == struct.pack("=I", 0x01020304)
        file.write(b"\xff" * 4, offset=mmap.PAGESIZE)
        assert registers[0] == 0xFFFFFFFF
        unmap_pages(address, mmap.PAGESIZE)
        with pytest.raises(OSError, match="bar"):
            file.mmap(0, mmap.PAGESIZE, both, mmap.MAP_SHARED, offset=1)


class SoftwareNode(FileIO):
    """A device node that exists in this class alone."""

    def _open(self, path: str, flags: int) -> int:
        return os.open(os.devnull, flags)

    def ioctl(self, request: int, argument: ctypes.Structure | ctypes.Array[ctypes.c_uint8] | int = 0) -> int:
        assert isinstance(argument, ctypes.Array)
        argument[0] = request & 0xFF
        return 0


def driver(system: System) -> int:
    """Code that does not know what is behind the boundary."""
    with system.open("/dev/software0", os.O_RDWR) as node:
        version = (ctypes.c_uint8 * 4)()
        node.ioctl(0xC0044B07, version)
        return version[0]


def test_a_software_device_stands_behind_the_boundary() -> None:
    machine = SoftwareSystem()
    machine.put_node("/dev/software0", SoftwareNode)
    assert driver(machine) == 7
    with pytest.raises(FileNotFoundError):
        driver(System())
