"""Caches that keep what they have until they are told: the oldest value that hardware may still show."""

from __future__ import annotations

from typing import Protocol

LINE = 64
"""Bytes of a line; a larger one would only show more old values."""


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
            line = self._line(base)
            out += line[offset : offset + nbytes - len(out)]
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

    def drop(self) -> None:
        """Forgets every line that holds no store of its own."""
        self._lines = {base: line for base, line in self._lines.items() if base in self._dirty}

    def flush(self) -> None:
        """Sends the bytes that were stored behind; lines stay."""
        for base, dirty in self._dirty.items():
            line, at = self._lines[base], 0
            while at < LINE:
                if not dirty[at]:
                    at += 1
                    continue
                end = at
                while end < LINE and dirty[end]:
                    end += 1
                self.behind.write(base * LINE + at, bytes(line[at:end]))
                at = end
        self._dirty.clear()

    def _line(self, base: int) -> bytearray:
        if base not in self._lines:
            self._lines[base] = bytearray(self.behind.read(base * LINE, LINE))
        return self._lines[base]
