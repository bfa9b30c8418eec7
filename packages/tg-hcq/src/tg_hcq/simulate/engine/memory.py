"""A software GPU's memory, and what its addresses mean: every access is checked against a table of mappings."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import threading
import weakref
from array import array
from bisect import bisect_right
from dataclasses import dataclass

from ...core.fileio import FileIO, unmap_pages
from .state import Access, FaultKind

LINE = 64
"""Bytes of a cache's line, of which mappings are made."""


class _File(FileIO):
    """A file without a name."""

    def _open(self, path: str, flags: int) -> int:
        return os.memfd_create(path, os.MFD_CLOEXEC)


class Memory:
    """Memory of the GPU's own: a file without a name, so that whoever is given its descriptor can map parts of it.

    It has one descriptor, and where it is mapped it lives on without that.

    Args:
      nbytes: how much.
      seed: what fills it with garbage; zeros if omitted.

    Attributes:
      address: where the GPU itself sees it, which is no address of the GPU's.
      view: its bytes there.
    """

    def __init__(self, nbytes: int, seed: int | None = None) -> None:
        self.nbytes = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        self._file = _File("software-gpu")
        os.ftruncate(self.fd, self.nbytes)
        self.address = self.map(0, self.nbytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, 0)
        whole = (ctypes.c_char * self.nbytes).from_address(self.address)
        # views keep it; at exit threads may still look at it
        weakref.finalize(whole, unmap_pages, self.address, self.nbytes).atexit = False
        self.view = memoryview(whole).cast("B")
        if seed is not None:
            self.view[:] = random.Random(seed).randbytes(self.nbytes)

    @property
    def fd(self) -> int:
        """The descriptor; -1 once it is closed."""
        return self._file.fd

    def map(self, address: int, nbytes: int, prot: int, flags: int, offset: int) -> int:
        """Maps a part once more; where.

        Raises:
          OSError: if it cannot be mapped.
        """
        return self._file.mmap(address, nbytes, prot, flags, offset)

    def close(self) -> None:
        """Closes the descriptor, which happens at the latest when nobody refers to this."""
        self._file.close()


@dataclass(frozen=True, slots=True)
class Refusal:
    """An access that the table of mappings does not allow."""

    kind: FaultKind
    address: int
    access: Access


class AddressSpace:
    """Which addresses are mapped to which memory, and for what; another thread may change it while waves run.

    Attributes:
      table: rows of four words for native code, ordered; see ``RANGE_BYTES``.
      count: how many rows.
      version: grows with every change.
      lock: held by whoever accesses memory, and by whoever changes what is mapped.

    Example:
      >>> space, memory = AddressSpace(), Memory(4096)
      >>> space.map(0x7000_0000, memory, 0, 4096, Access.READ | Access.WRITE)
      >>> space.write(0x7000_0010, b"ok")
      >>> bytes(memory.view[16:18])
      b'ok'
      >>> space.refusal(0x6fff_ffff, 1, Access.READ).kind.name
      'UNMAPPED'
    """

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int]] = []
        self._memories: dict[int, Memory] = {}
        self.table: array[int] = array("Q", bytes(32))
        self.count = self.version = 0
        self.lock = threading.Lock()

    def map(self, address: int, memory: Memory, offset: int, nbytes: int, access: Access) -> None:
        """Maps a part of a memory.

        Raises:
          ValueError: if the part lies outside the memory, or something is mapped there already.
        """
        if nbytes <= 0 or offset < 0 or offset + nbytes > memory.nbytes:
            raise ValueError(f"{nbytes:#x} bytes at {offset:#x} of a memory of {memory.nbytes:#x}")
        self.map_host(address, memory.address + offset, nbytes, access)
        self._memories[address] = memory

    def map_host(self, address: int, host: int, nbytes: int, access: Access) -> None:
        """Maps memory of this process, which the caller keeps: pages that it registered with the GPU.

        Raises:
          ValueError: if something is mapped there already, or it is not made of lines of 64 bytes below 2**64.
        """
        if address % LINE or nbytes % LINE or host % LINE or not 0 < address + nbytes < 1 << 64:
            raise ValueError(f"{nbytes:#x} bytes at {address:#x}, the host's {host:#x}, are no lines of {LINE} bytes")
        with self.lock:
            for start, end, _, _ in self._rows:
                if start < address + nbytes and address < end:
                    raise ValueError(f"{start:#x} to {end:#x} is mapped already")
            self._set([*self._rows, (address, address + nbytes, (host - address) % (1 << 64), int(access))])

    def unmap(self, address: int) -> None:
        """Takes the mapping away that begins at an address; no wave accesses it when this returns.

        Raises:
          KeyError: if none does.
        """
        with self.lock:
            kept = [row for row in self._rows if row[0] != address]
            if len(kept) == len(self._rows):
                raise KeyError(f"no mapping begins at {address:#x}")
            self._set(kept)
        self._memories.pop(address, None)

    def _set(self, rows: list[tuple[int, int, int, int]]) -> None:
        self._rows = sorted(rows)
        # native code sees neighbours that continue one another as one: an access may go from the one into the next
        merged: list[tuple[int, int, int, int]] = []
        for row in self._rows:
            if merged and merged[-1][1] == row[0] and merged[-1][2:] == row[2:]:
                row = (merged.pop()[0], *row[1:])
            merged.append(row)
        self.count, self.version = len(merged), self.version + 1
        self.table = array("Q", [word for row in merged for word in row] or bytes(32))

    def _row(self, address: int) -> tuple[int, int, int, int] | None:
        rows = self._rows
        index = bisect_right(rows, (address, 1 << 65, 0, 0)) - 1
        return rows[index] if index >= 0 and address < rows[index][1] else None

    def _mapped(self, address: int) -> tuple[int, int, int, int]:
        row = self._row(address)
        if row is None:
            raise KeyError(f"{address:#x} is not mapped")
        return row

    def access(self, address: int) -> Access:
        """What the mapping that an address is in allows.

        Raises:
          KeyError: if it is in none.
        """
        return Access(self._mapped(address)[3])

    def refusal(self, address: int, nbytes: int, access: Access) -> Refusal | None:
        """Why an access is not allowed, at the first byte that is not; None if it is."""
        end = address + nbytes
        while address < end:
            row = self._row(address)
            if row is None:
                return Refusal(FaultKind.UNMAPPED, address, access)
            if row[3] & access != access:
                return Refusal(FaultKind.PROTECTED, address, access)
            address = row[1]
        return None

    def extent(self, address: int, access: Access, low: int, high: int) -> tuple[int, int]:
        """The addresses around one that allow an access, through any number of mappings beside one another.

        Args:
          address: which allows it.
          access: what must be allowed.
          low: what comes before is of no interest.
          high: nor is what comes from there on.

        Returns:
          the first of them, and the one after the last.
        """
        rows = self._rows
        first = last = bisect_right(rows, (address, 1 << 65, 0, 0)) - 1

        def continues(index: int) -> bool:
            return rows[index - 1][1] == rows[index][0] and rows[index - 1][3] & rows[index][3] & access == access

        while first > 0 and rows[first][0] > low and continues(first):
            first -= 1
        while last + 1 < len(rows) and rows[last][1] < high and continues(last + 1):
            last += 1
        return max(rows[first][0], low), min(rows[last][1], high)

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes at an address, as whoever does not look at flags sees them.

        Raises:
          KeyError: if one of them is not mapped.
        """
        out = bytearray()
        with self.lock:
            while len(out) < nbytes:
                at = address + len(out)
                row = self._mapped(at)
                out += ctypes.string_at((at + row[2]) % (1 << 64), min(row[1] - at, nbytes - len(out)))
        return bytes(out)

    def write(self, address: int, data: bytes) -> None:
        """Stores bytes at an address, as whoever does not look at flags does.

        Raises:
          KeyError: if one of them is not mapped; those before it are stored.
        """
        done = 0
        with self.lock:
            while done < len(data):
                at = address + done
                row = self._mapped(at)
                part = data[done : done + row[1] - at]
                ctypes.memmove((at + row[2]) % (1 << 64), part, len(part))
                done += len(part)
