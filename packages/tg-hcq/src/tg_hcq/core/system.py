"""System: everything that a driver asks of the operating system, as one object that it is given.

The interface part of a ``DEV`` entry says which: ``DEV=MOCKKFD+AMD`` opens the device AMD on the system that a package
offers under the name ``MOCKKFD+AMD`` (entry points of the group ``tg.systems``); any other entry gets the real one. The
driver does not know which it has.
"""

from __future__ import annotations

import mmap
import os
import select
import struct
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Final, TypeVar, cast
from weakref import WeakValueDictionary

from tg_runtime import DevEntry, DeviceError, DeviceUnavailable
from tg_runtime.host.libc import address_of
from tg_runtime.host.locks import fork_safe_lock

from .fence import fence
from .fileio import MMIO, FileIO, map_pages, unmap_pages

Kept = TypeVar("Kept")

GROUP: Final = "tg.systems"
HUGE_PAGE: Final = 2 << 20
"""Bytes of a huge page: 2 MiB on x86-64, and on AArch64 with pages of 4 KiB."""

_PROT_NONE, _BOTH = 0, mmap.PROT_READ | mmap.PROT_WRITE
_FIXED, _NORESERVE, _LOCKED, _POPULATE, _HUGE = 0x10, 0x4000, 0x2000, 0x8000, 0x40000  # asm-generic/mman.h
# Documentation/admin-guide/mm/pagemap.rst: bits 0 to 54 are the frame, bit 63 says that there is one
_FRAME, _PRESENT = (1 << 55) - 1, 1 << 63


class Pages:
    """A mapping, given back when nobody uses it."""

    __slots__ = ("__weakref__", "address", "nbytes")

    def __init__(self, address: int, nbytes: int, unmap: Callable[[int, int], None]) -> None:
        self.address, self.nbytes = address, nbytes
        # at exit the system takes everything back, and threads may still look at it
        weakref.finalize(self, unmap, address, nbytes).atexit = False


class Event:
    """A counter in the kernel that a wait can end on (``eventfd``).

    Attributes:
      fd: the descriptor, which a driver hands to its kernel interface.
    """

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def set(self) -> None:
        """Adds one."""
        os.eventfd_write(self.fd, 1)

    def clear(self) -> int:
        """Takes what was added; 0 if nothing was."""
        try:
            return os.eventfd_read(self.fd)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """Closes the descriptor. Closing twice does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        if getattr(self, "fd", -1) >= 0:
            self.close()


class System:
    """The machine that this process runs on. A software device subclasses it and answers what it wants.

    Attributes:
      page_nbytes: size of a page.

    Example:
      >>> system = System()
      >>> memory = system.allocate(100)
      >>> memory.view(0, 8, "Q")[0], memory.nbytes % system.page_nbytes, system.exists("/dev/null")
      (0, 0, True)
    """

    page_nbytes: int = mmap.PAGESIZE
    _getpid = staticmethod(os.getpid)  # kept: modules are gone when the interpreter ends, and devices are closed then

    # files

    def open(self, path: str, flags: int = os.O_RDONLY) -> FileIO:
        """Opens a file, device node or directory.

        Raises:
          OSError: if it cannot be opened.
        """
        return FileIO(path, flags)

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return os.path.exists(path)

    def may_open(self, path: str) -> bool:
        """Whether this process may read and write a file that there is; nothing is opened."""
        return os.access(path, os.R_OK | os.W_OK)

    def group_of(self, path: str) -> str:
        """The group that a file belongs to: its name, or its number where it has none.

        Raises:
          OSError: if there is no such file.
        """
        import grp  # not on every system

        number = os.stat(path).st_gid
        try:
            return grp.getgrgid(number).gr_name
        except KeyError:
            return str(number)

    @property
    def release(self) -> str:
        """The release of the kernel, as ``uname -r`` prints it."""
        return os.uname().release

    def listdir(self, path: str) -> list[str]:
        """The names in a directory, sorted.

        Raises:
          OSError: if it is none.
        """
        return sorted(os.listdir(path))

    def read_text(self, path: str) -> str:
        """All of a text file, as sysfs has them, without the white space at its ends.

        Raises:
          OSError: if it cannot be read.
        """
        with self.open(path) as file:
            parts = []
            while part := file.read(1 << 16):
                parts.append(part)
        return b"".join(parts).decode(errors="replace").strip()

    def lock_file(self, path: str) -> FileIO:
        """Takes the lock of a file, made if need be, until it is closed or the process ends; it says who holds it.

        Raises:
          DeviceError: if another process holds it, or this one by another file.
          OSError: if the file cannot be written.
        """
        import fcntl  # not on every system

        file = self.open(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = file.read(32, 0).decode(errors="replace").strip()
            file.close()
            raise DeviceError(f"{path} is locked by {f'process {holder}' if holder else 'another process'}") from None
        os.ftruncate(file.fd, 0)
        file.write(str(self.process_id).encode(), 0)
        return file

    # memory

    def reserve(self, nbytes: int, alignment: int = mmap.PAGESIZE) -> int:
        """A range of addresses with nothing behind it, which mappings at fixed addresses fill in.

        Args:
          nbytes: its size.
          alignment: of its first address: a power of two, at least a page.

        Returns:
          The address; given back by :meth:`unmap`.

        Raises:
          OSError: if there is no such range.
        """
        found = map_pages(0, nbytes + alignment - self.page_nbytes, _PROT_NONE, mmap.MAP_PRIVATE | _NORESERVE)
        address = -(-found // alignment) * alignment
        if address > found:
            self.unmap(found, address - found)
        end = found + nbytes + alignment - self.page_nbytes
        if end > address + nbytes:
            self.unmap(address + nbytes, end - address - nbytes)
        return address

    def map(self, address: int, nbytes: int, prot: int = _BOTH, flags: int = mmap.MAP_PRIVATE) -> int:
        """Maps memory that belongs to no file, zeroed; ``address`` is a hint, or binding with MAP_FIXED.

        Returns:
          The address of the mapping; given back by :meth:`unmap`.

        Raises:
          OSError: if there is no memory.
        """
        return map_pages(address, nbytes, prot, flags)

    def unmap(self, address: int, nbytes: int) -> None:
        """Takes a mapping back.

        Raises:
          OSError: if the range is none.
        """
        unmap_pages(address, nbytes)

    def allocate(self, nbytes: int, *, locked: bool = False, huge: bool = False, address: int = 0) -> MMIO:
        """Zeroed memory in whole pages, given back when nobody uses the view or a part of it.

        Args:
          nbytes: how much; at least a page is taken.
          locked: it has its physical pages from the beginning and keeps them.
          huge: each piece of 2 MiB is contiguous in physical memory.
          address: where, in a range that was reserved; 0 for anywhere.

        Raises:
          MemoryError: if there is not so much, or not of this kind; the message says which limit to look at.
        """
        page = HUGE_PAGE if huge else self.page_nbytes
        size = -(-max(nbytes, 1) // page) * page
        flags = mmap.MAP_SHARED if locked else mmap.MAP_PRIVATE
        flags |= (_LOCKED | _POPULATE if locked else 0) | (_HUGE if huge else 0) | (_FIXED if address else 0)
        if (locked or huge) and sys.platform != "linux":
            raise MemoryError(f"locked and huge pages are known for Linux, not for {sys.platform}")
        try:
            start = self.map(address, size, _BOTH, flags)
        except (OSError, OverflowError) as error:
            hint = "; see /proc/sys/vm/nr_hugepages" if huge else "; see ulimit -l" if locked else ""
            raise MemoryError(f"{size} bytes of memory: {error}{hint}") from None
        return MMIO(start, size, "B", Pages(start, size, self.unmap))

    def physical_pages(self, address: int, nbytes: int) -> list[int]:
        """The physical address of each page of a range of locked memory.

        Raises:
          DeviceError: if a page is not in memory, or the process may not know (that takes CAP_SYS_ADMIN).
        """
        first, last = address // self.page_nbytes, (address + nbytes - 1) // self.page_nbytes
        with self.open("/proc/self/pagemap") as pagemap:
            raw = pagemap.read(8 * (last + 1 - first), 8 * first)
        found = []
        for page, (entry,) in enumerate(struct.iter_unpack("<Q", raw), first):
            if not entry & _PRESENT:
                raise DeviceError(f"the page at {page * self.page_nbytes:#x} is not in memory: lock it first")
            if not entry & _FRAME:
                raise DeviceError("physical addresses are hidden from this process: it needs CAP_SYS_ADMIN")
            found.append((entry & _FRAME) * self.page_nbytes)
        return found

    def store_fence(self) -> None:
        """Has everybody see the stores before it before the stores after it, write-combined memory included."""
        fence("store")()

    def full_fence(self) -> None:
        """As :meth:`store_fence`, for loads too."""
        fence("full")()

    # time, events, process

    def clock_ns(self) -> int:
        """A clock that only goes forward, in nanoseconds."""
        return time.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        """Passes some time."""
        time.sleep(seconds)

    def event(self) -> Event:
        """A new event, not set.

        Raises:
          OSError: if the system has none.
        """
        if address_of("eventfd") is None:
            raise OSError(f"there are no eventfds on {sys.platform}")
        return Event()

    def poll(self, files: Sequence[FileIO | Event], timeout_ms: int) -> list[FileIO | Event]:
        """Waits until one of the files or events can be read; which can, or none after ``timeout_ms``."""
        poll = select.poll()
        by_fd = {file.fd: file for file in files}
        for fd in by_fd:
            poll.register(fd, select.POLLIN)
        return [by_fd[fd] for fd, _ in poll.poll(timeout_ms)]

    @property
    def process_id(self) -> int:
        """The number of this process."""
        return self._getpid()

    def kept(self, key: str, make: Callable[[], Kept]) -> Kept:
        """What a driver has of this machine once, for all of its devices; it lives as long as this object.

        Args:
          key: the driver's.
          make: makes it when it is first asked for, and once more in a forked child.
        """
        held: dict[str, tuple[int, object]] = vars(self).setdefault("_kept", {})
        process, found = held.get(key, (-1, None))
        if process != self.process_id:
            found = make()
            held[key] = self.process_id, found
        return cast(Kept, found)


@cache
def real_system() -> System:
    """The machine itself: what a driver gets that is given none."""
    return System()


_offered: dict[str, Callable[[DevEntry], System]] = {}
_made: WeakValueDictionary[tuple[Callable[[DevEntry], System], str], System] = WeakValueDictionary()
_making = fork_safe_lock()


def offer_system(name: str, make: Callable[[DevEntry], System]) -> None:
    """Lets ``DEV`` choose a software system, without an entry point.

    Args:
      name: the interface and the device, as ``DEV`` says them: ``"MOCKKFD+AMD"``.
      make: makes the system for a device that is opened; its entry may say which hardware is there.
    """
    _offered[name.upper()] = make


def software_interfaces(device: str) -> list[str]:
    """The interfaces of a device that stand for software systems."""
    names = [*_offered, *_points()]
    return sorted({name.partition("+")[0] for name in names if name.partition("+")[2] == device.upper()})


def system_for(entry: DevEntry) -> System:
    """The system that a ``DEV`` entry chooses: a software one by its interface, else the real one.

    As long as somebody holds a software system, whoever asks for it gets the same one: ``AMD`` and ``AMD:1`` are cards
    of one machine.

    Raises:
      DeviceUnavailable: if the package that offers the software system cannot be imported.
    """
    make = _maker(entry)
    if make is None:
        return real_system()
    key = make, entry.arch
    with _making:
        found = _made.get(key)
        if found is None:
            found = _made[key] = make(entry)
    return found


@contextmanager
def systems_apart() -> Iterator[None]:
    """Software systems that are asked for inside are others than those outside: for who breaks what he asks for."""
    with _making:
        outside = dict(_made)
        _made.clear()
    try:
        yield
    finally:
        with _making:
            _made.clear()
            _made.update(outside)


def _maker(entry: DevEntry) -> Callable[[DevEntry], System] | None:
    name = f"{entry.iface}+{entry.device}".upper()
    if name in _offered:
        return _offered[name]
    point = _points().get(name)
    if point is None:
        return None
    from importlib.metadata import EntryPoint

    try:
        found: Callable[[DevEntry], System] = EntryPoint(name, point, GROUP).load()
    except (ImportError, AttributeError) as error:
        raise DeviceUnavailable.here(entry.device, f"the system {point} does not import: {error}") from error
    return found


@cache
def _points() -> dict[str, str]:
    from importlib.metadata import entry_points

    return {point.name.upper(): point.value for point in entry_points(group=GROUP)}
