"""Caches that keep what they have until they are told: the oldest value that hardware may still show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from .memory import LINE
from .state import Scope

FETCHED_AGAIN = 32
"""Lines that a cache fetches again at once when it was told to forget them."""


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

    def refetch(self) -> None:
        """Forgets what was not stored here, and fetches the latest lines again at once, as whoever reads ahead does."""
        lines = list(self._lines)[-FETCHED_AGAIN:]
        self.drop()
        for base in lines:
            try:
                self._line(base)
            except KeyError:  # it is not mapped any more
                continue

    def forget(self) -> None:
        """Forgets everything, what was stored here as well."""
        self._lines.clear()
        self._dirty.clear()

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
    """What stands between waves and memory: a cache for each compute unit, and behind them one that all of a die share.

    Args:
      memory: what is behind them all.
      units: how many compute units there are.
      arrays: between the units of a part and what is shared, vector accesses have another cache, in so many parts; 0
        for none.
      dies: how many parts of the units have a shared cache of their own. The caches of several dies hide from one
        another what they keep, so nobody but the host's own memory is common to all waves.

    Attributes:
      dies: caches that keep stores until they are flushed.
      arrays: those in between.
      vectors: of each unit's vector accesses; stores go on at once.
      scalars: of each unit's scalar loads, which see no store.
    """

    def __init__(self, memory: Backing, units: int, arrays: int = 0, dies: int = 1) -> None:
        self.units = units
        self.dies = [Cache(memory, write_back=True) for _ in range(dies)]
        self.arrays = [Cache(self.die(n * units // arrays)) for n in range(arrays)]
        self.vectors = [Cache(self.array(n) or self.die(n)) for n in range(units)]
        self.scalars = [Cache(self.die(n)) for n in range(units)]

    def die(self, unit: int) -> Cache:
        """The cache that a unit shares with all units of its die."""
        return self.dies[unit * len(self.dies) // self.units]

    def array(self, unit: int) -> Cache | None:
        """The cache in between, if there is one."""
        return self.arrays[unit * len(self.arrays) // self.units] if self.arrays else None

    def near(self, unit: int) -> list[Cache]:
        """The caches of a unit's vector accesses before the shared one, the farther ones first."""
        between = self.array(unit)
        return [self.vectors[unit]] if between is None else [between, self.vectors[unit]]

    def load(self, unit: int, address: int, nbytes: int, scope: Scope, scalar: bool = False) -> bytes:
        """Bytes at an address, through a unit's caches.

        Args:
          unit: which.
          address: where they are.
          nbytes: how many.
          scope: whose stores are seen, whatever the caches hold.
          scalar: whether it is a scalar load.
        """
        lines, near = lines_of(address, nbytes), [self.scalars[unit]] if scalar else self.near(unit)
        if scope is Scope.SYSTEM or (scope is Scope.DEVICE and len(self.dies) > 1):
            self.die(unit).drop(lines)
        if scope is not Scope.UNIT:
            for cache in near:
                cache.drop(lines)
        return near[-1].read(address, nbytes)

    def store(self, unit: int, address: int, data: bytes, scope: Scope) -> None:
        """Stores bytes.

        Args:
          unit: where the wave is.
          address: where they go.
          data: the bytes.
          scope: who sees them at once, unless an own cache keeps an older value.
        """
        self.vectors[unit].write(address, data)
        if scope is Scope.SYSTEM or (scope is Scope.DEVICE and len(self.dies) > 1):
            self.die(unit).flush(lines_of(address, len(data)))

    def drop_unit(self, unit: int) -> None:
        """Drops the caches of a compute unit."""
        for cache in (*self.near(unit), self.scalars[unit]):
            cache.drop()

    def drop(self, scope: Scope) -> None:
        """Drops every cache that is nearer to waves than a scope: what a packet at the start of a kernel asks for."""
        if scope is Scope.SYSTEM:
            for shared in self.dies:
                shared.drop()
        if scope is not Scope.UNIT:
            for unit in range(len(self.vectors)):
                self.drop_unit(unit)

    def flush(self) -> None:
        """Sends all stores to memory, where the host sees them: what a packet at the end of a kernel asks for."""
        for shared in self.dies:
            shared.flush()


def lines_of(address: int, nbytes: int) -> range:
    """The numbers of the lines in which bytes lie."""
    return range(address // LINE, (address + nbytes - 1) // LINE + 1)
