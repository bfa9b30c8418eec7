"""Caches that keep what they have until they are told: the oldest value that hardware may still show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from .memory import LINE
from .state import Scope


class Backing(Protocol):
    """What is behind a cache: another one, or memory."""

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes at an address."""

    def write(self, address: int, data: bytes) -> None:
        """Stores bytes."""


class Cache:
    """Lines that are filled once, and never change by what others store behind them.

    Args:
      behind: where lines come from and go to.
      write_back: whether stores stay here until :meth:`flush`; else they go on at once.

    Example:
      >>> class Words(dict):
      ...     def read(self, address, nbytes): return bytes(self.get(address + i, 0) for i in range(nbytes))
      ...     def write(self, address, data): self.update({address + i: byte for i, byte in enumerate(data)})
      >>> memory = Words()
      >>> cache = Cache(memory)
      >>> cache.read(0, 2), memory.write(0, b"ab"), cache.read(0, 2)
      (b'\\x00\\x00', None, b'\\x00\\x00')
      >>> cache.drop()
      >>> cache.read(0, 2)
      b'ab'
    """

    def __init__(self, behind: Backing, write_back: bool = False) -> None:
        self.behind, self.write_back = behind, write_back
        self._lines: dict[int, bytearray] = {}
        self._dirty: dict[int, bytearray] = {}  # of each line, which bytes were stored

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes at an address."""
        out = bytearray()
        while len(out) < nbytes:
            base, offset = divmod(address + len(out), LINE)
            out += self._line(base)[offset : offset + nbytes - len(out)]
        return bytes(out)

    def write(self, address: int, data: bytes) -> None:
        """Stores bytes: here, where the line is here or stores stay here, and behind unless they do."""
        done = 0
        while done < len(data):
            base, offset = divmod(address + done, LINE)
            part = data[done : done + LINE - offset]
            if self.write_back:
                self._line(base)
                dirty = self._dirty.setdefault(base, bytearray(LINE))
                dirty[offset : offset + len(part)] = b"\1" * len(part)
            if base in self._lines:
                self._lines[base][offset : offset + len(part)] = part
            done += len(part)
        if not self.write_back:
            self.behind.write(address, data)

    def drop(self, lines: Iterable[int] | None = None) -> None:
        """Forgets all but the bytes that were stored here; of all lines, or of some by their numbers."""
        for base in list(self._lines) if lines is None else lines:
            line, dirty = self._lines.pop(base, None), self._dirty.get(base)
            if line is not None and dirty is not None:
                fresh = self._line(base)
                for at, stored in enumerate(dirty):
                    if stored:
                        fresh[at] = line[at]

    def flush(self, lines: Iterable[int] | None = None) -> None:
        """Sends the bytes that were stored behind, of all lines or of some; lines stay."""
        for base in list(self._dirty) if lines is None else lines:
            dirty, at = self._dirty.pop(base, b""), 0
            while (at := dirty.find(1, at)) >= 0:
                end = dirty.find(0, at) % (LINE + 1)  # of the bytes beside one another: not found is the line's end
                self.behind.write(base * LINE + at, bytes(self._lines[base][at:end]))
                at = end

    def _line(self, base: int) -> bytearray:
        if base not in self._lines:
            self._lines[base] = bytearray(self.behind.read(base * LINE, LINE))
        return self._lines[base]


class Caches:
    """What stands between waves and memory: a cache for each compute unit, and behind them one that all share.

    Args:
      memory: what is behind them all.
      units: how many compute units there are.

    Attributes:
      shared: keeps stores until it is flushed.
      vectors: of each unit's vector accesses; stores go on at once.
      scalars: of each unit's scalar loads, which see no store.
    """

    def __init__(self, memory: Backing, units: int) -> None:
        self.shared = Cache(memory, write_back=True)
        self.vectors = [Cache(self.shared) for _ in range(units)]
        self.scalars = [Cache(self.shared) for _ in range(units)]

    def load(self, cache: Cache, address: int, nbytes: int, scope: Scope) -> bytes:
        """Bytes at an address, through one of the units' caches.

        Args:
          cache: one of ``vectors`` or ``scalars``.
          address: where they are.
          nbytes: how many.
          scope: whose stores are seen, whatever the caches hold.
        """
        lines = lines_of(address, nbytes)
        if scope is Scope.SYSTEM:
            self.shared.drop(lines)
        if scope is not Scope.UNIT:
            cache.drop(lines)
        return cache.read(address, nbytes)

    def store(self, unit: int, address: int, data: bytes, scope: Scope) -> None:
        """Stores bytes.

        Args:
          unit: where the wave is.
          address: where they go.
          data: the bytes.
          scope: who sees them at once, unless an own cache keeps an older value.
        """
        self.vectors[unit].write(address, data)
        if scope is Scope.SYSTEM:
            self.shared.flush(lines_of(address, len(data)))

    def drop_unit(self, unit: int) -> None:
        """Drops the caches of a compute unit."""
        self.vectors[unit].drop()
        self.scalars[unit].drop()

    def drop(self, scope: Scope) -> None:
        """Drops every cache that is nearer to waves than a scope: what a packet at the start of a kernel asks for."""
        if scope is Scope.SYSTEM:
            self.shared.drop()
        if scope is not Scope.UNIT:
            for unit in range(len(self.vectors)):
                self.drop_unit(unit)

    def flush(self) -> None:
        """Sends all stores to memory, where the host sees them: what a packet at the end of a kernel asks for."""
        self.shared.flush()


def lines_of(address: int, nbytes: int) -> range:
    """The numbers of the lines in which bytes lie."""
    return range(address // LINE, (address + nbytes - 1) // LINE + 1)
