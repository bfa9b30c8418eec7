"""Compiler: from a kernel's text to a binary, through the cache on disk."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from ..cache import diskcache
from ..errors import CompileError


class Compiler(ABC):
    """Turns source text into a device's binary.

    Attributes:
      cachekey: distinguishes compilers (kind, version, flags, machine) that give different binaries for one source;
        None keeps the binaries out of the cache.
      parallel: how many threads may compile at once to some use.
      compiled: how many binaries were made since :meth:`rest`, about.
    """

    parallel = 1

    def __init__(self, cachekey: str | None = None) -> None:
        self.cachekey = cachekey
        self.compiled = 0

    @abstractmethod
    def compile(self, src: str) -> bytes:
        """The binary of ``src``.

        Raises:
          CompileError: if the source is rejected; it is kept in a file that the message names.
        """

    def rest(self) -> None:
        """Returns memory that compiling freed, and ``malloc`` keeps, to the system: a batch is done."""
        if self.compiled:
            from ..host.libc import trim  # brings ctypes

            self.compiled = 0
            trim()

    def compile_cached(self, src: str) -> bytes:
        """As :meth:`compile`, but a binary that any process made before is taken from the disk."""
        key = None if self.cachekey is None else diskcache.digest(self.cachekey, src)
        found = None if key is None else diskcache.get("compile", key)
        if found is None:
            found = self.compile(src)
            self.compiled += 1
            if key is not None:
                diskcache.put("compile", key, found)
        return found

    def forget(self, src: str) -> None:
        """Drops the cached binary of ``src``, for one that turned out not to load."""
        if self.cachekey is not None:
            diskcache.delete("compile", diskcache.digest(self.cachekey, src))

    def disassemble(self, lib: bytes) -> str:
        """The binary as assembly text, or a line that says why there is none."""
        return f"no disassembler for {len(lib)} bytes of {type(self).__name__}"


_MOST_KEPT = 64  # files in the folder for temporary files, which a process leaves there

# How compilers name a place: "name:3:14: error" (and without a name), "name(3): error", "line 3, column 14".
_PLACES = re.compile(r":(\d+):\d+|^(\d+):\d+: |\((\d+)\): |\bline (\d+)\b", re.MULTILINE)


def rejected(what: str, detail: str, source: str, suffix: str) -> CompileError:
    """A CompileError whose source is kept in a file. It names the file, and the line if the compiler did.

    Args:
      what: the compiler.
      detail: what it says.
      source: the text that it rejects.
      suffix: of the file, ``.c``.

    Returns:
      The error, to be raised.

    Example:
      >>> error = rejected("C", "x.c:2:9: error: missing", "int main() {\\n  return x;\\n}\\n", ".c")
      >>> error.line, "line 2: return x;" in str(error)
      (2, True)
    """
    path = keep_source(source, suffix)
    lines, line, place = source.splitlines(), None, ""
    found = _PLACES.search(detail)
    if found is not None:
        line = int(next(filter(None, found.groups())))
        text = lines[line - 1].strip()[:120] if 0 < line <= len(lines) else ""
        place = f", line {line}: {text}" if text else f", line {line}"
    where = f"the source is kept in {path}{place}" if path else f"the source could not be kept in a file{place}"
    return CompileError(f"{what}: compilation failed; {where}\n{detail.strip()}", source, path, line)


_kept: dict[str, str] = {}  # sources that could be kept in the folder for temporary files only


def keep_source(source: str, suffix: str) -> str | None:
    """Writes a rejected source to a file and returns its path; None where no folder can be written."""
    name = f"{diskcache.digest(source)[:16]}{suffix}"
    path = diskcache.keep("failed", name, source.encode())
    if path is not None or len(_kept) >= _MOST_KEPT:
        return path
    if name not in _kept:
        import tempfile

        try:
            # others write to this folder: a new file, under a name that nobody knew before
            handle, _kept[name] = tempfile.mkstemp(suffix, "tinytg-")
            with open(handle, "w", encoding="utf-8") as file:
                file.write(source)
        except OSError:
            return None
    return _kept[name]
