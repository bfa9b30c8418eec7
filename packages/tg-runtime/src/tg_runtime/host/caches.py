"""The caches of a processor: this machine's where its system tells them, and those of an instruction set's usual core.

Linux describes each cache in a folder of files (``Documentation/ABI/testing/sysfs-devices-system-cpu`` in its sources);
macOS answers ``sysctlbyname`` (``man 3 sysctl``, under ``hw``).
"""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

SYSFS = Path("/sys/devices/system/cpu/cpu0/cache")
MOST_LAST_BYTES = 32 << 20
"""The greatest part of a third-level cache that one processor has: AMD EPYC 9175F, 512 MB for 16 cores. A guest is told
the whole cache of its host, and only its own processors as those that share it."""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Cache(NamedTuple):
    """A data cache.

    Attributes:
      nbytes: its size.
      ways: how many lines each of its sets holds; 0 if that is not known.
      sharers: how many processors, as the system counts them, share it.
    """

    nbytes: int
    ways: int = 0
    sharers: int = 1


class Caches(NamedTuple):
    """The data caches that a core reads through.

    Attributes:
      l1_bytes: the first-level data cache.
      l1_ways: how many lines each of its sets holds.
      l2_bytes: a core's share of the second-level cache.
      l2_ways: how many lines each of its sets holds.
      last_bytes: all of the third-level cache, as far as those that are known to share it can have it; 0 if there is
        none, or if it is not known.
      line_bytes: a line of the first-level cache.
    """

    l1_bytes: int = 32 << 10
    l1_ways: int = 8
    l2_bytes: int = 512 << 10
    l2_ways: int = 16
    last_bytes: int = 0
    line_bytes: int = 64


def _text(path: Path) -> str:
    """What a file says; empty where there is none."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _size(text: str) -> int:
    """Bytes of a size as Linux writes it: ``48K``; 0 where it says nothing.

    >>> _size("48K"), _size("")
    (49152, 0)
    """
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match[1]) * _UNITS[match[2]] if match else 0


def _count(cpus: str) -> int:
    """How many processors a list as Linux writes it names; 1 where it says nothing.

    >>> _count("0-3,8"), _count("")
    (5, 1)
    """
    ranges = [re.fullmatch(r"(\d+)(?:-(\d+))?", part) for part in cpus.split(",")]
    return max(1, sum(int(r[2] or r[1]) - int(r[1]) + 1 for r in ranges if r))


def from_sysfs(folder: Path, usual: Caches) -> Caches:
    """The caches that Linux describes in a folder; those of ``usual`` that it does not.

    Args:
      folder: of the first processor, with a folder ``index0``, ``index1`` … for each cache.
      usual: what is taken where a file is missing, is empty or says nothing sensible, as in some guests.
    """
    found: dict[int, Cache] = {}
    line = 0
    for index in sorted(folder.glob("index*")):
        level, kind, nbytes = (_text(index / name) for name in ("level", "type", "size"))
        if level in ("1", "2", "3") and kind in ("Data", "Unified") and _size(nbytes):
            ways, sharers = _text(index / "ways_of_associativity"), _text(index / "shared_cpu_list")
            found[int(level)] = Cache(_size(nbytes), int(ways) if ways.isdigit() else 0, _count(sharers))
            if level == "1":
                line = _size(_text(index / "coherency_line_size"))
    return _joined(found, line, usual)


def from_sysctl(ask: Callable[[str], int], usual: Caches) -> Caches:
    """The caches that macOS tells of its fast cores; those of ``usual`` that it does not.

    Args:
      ask: the value of a name, 0 where there is none.
      usual: what is taken then.
    """
    fast = "hw.perflevel0."
    l1 = ask(fast + "l1dcachesize") or ask("hw.l1dcachesize")
    l2 = ask(fast + "l2cachesize") or ask("hw.l2cachesize")
    sizes = {1: Cache(l1), 2: Cache(l2, sharers=ask(fast + "cpusperl2") or 1), 3: Cache(ask("hw.l3cachesize"))}
    return _joined({level: cache for level, cache in sizes.items() if cache.nbytes}, ask("hw.cachelinesize"), usual)


def _joined(found: dict[int, Cache], line: int, usual: Caches) -> Caches:
    """What is known, and what is usual of the rest."""
    l1 = found.get(1, Cache(usual.l1_bytes, usual.l1_ways))
    l2 = found.get(2, Cache(usual.l2_bytes, usual.l2_ways, l1.sharers))
    cores = max(1, l2.sharers // l1.sharers)  # threads of a core also share its first-level cache
    return Caches(
        l1_bytes=l1.nbytes,
        l1_ways=l1.ways or max(1, l1.nbytes * usual.l1_ways // usual.l1_bytes),  # more, not longer ways
        l2_bytes=max(l2.nbytes // cores, min(l2.nbytes, 2 * l1.nbytes)),  # some virtual machines call it shared
        l2_ways=l2.ways or usual.l2_ways,
        last_bytes=min(found[3].nbytes, found[3].sharers * MOST_LAST_BYTES) if 3 in found else usual.last_bytes,
        line_bytes=line or usual.line_bytes,
    )


def _sysctl(name: str) -> int:
    """What macOS knows under a name; 0 for nothing."""
    value, nbytes = ctypes.c_int64(0), ctypes.c_size_t(8)
    failed = ctypes.CDLL(None).sysctlbyname(name.encode(), ctypes.byref(value), ctypes.byref(nbytes), None, 0)
    return 0 if failed else value.value


@functools.cache
def this_machine(usual: Caches) -> Caches:
    """The caches of the machine that this process runs on, and what is ``usual`` where it does not tell."""
    return from_sysctl(_sysctl, usual) if sys.platform == "darwin" else from_sysfs(SYSFS, usual)
