"""The content of the cache on disk: how much of each kind there is, how it is pruned, how it is emptied."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass

from .folder import CACHEMB, NEW, Folder, opened

_OURS = re.compile(r"[a-z]+/([0-9a-f]{2}/[0-9a-f]{62}|([0-9a-f]{2}/)?\.new-[^/]+|[0-9a-f]{16}\.[a-z]+)")
_STALE_S = 3600.0  # a temporary file older than this was left behind by a process that died


def entries(folder: Folder) -> Iterator[tuple[str, os.stat_result]]:
    """The files of the cache, told by their names: the folder may hold others."""
    return ((name, status) for name, status in folder.files() if _OURS.fullmatch(name))


def prune() -> None:
    """Deletes the least recently used entries once there is more than ``CACHEMB`` MiB, until a quarter of that is free.

    What processes left half written when they ended goes, too.
    """
    with opened() as folder:
        if folder is None:
            return
        old, found = time.time() - _STALE_S, []
        for name, status in entries(folder):
            if name.rpartition("/")[2].startswith(NEW):
                if status.st_mtime < old:
                    folder.remove(name)
            else:
                found.append((status.st_mtime_ns, status.st_size, name))
        limit, total = CACHEMB.value << 20, sum(size for _, size, _ in found)
        if total <= limit:
            return
        for _, size, name in sorted(found):
            if total <= limit * 3 // 4:
                break
            if folder.remove(name):
                total -= size


@dataclass(frozen=True, slots=True)
class Share:
    """What a table of the cache takes.

    Attributes:
      table: its name.
      entries: how many files.
      nbytes: how many bytes these have.
    """

    table: str
    entries: int
    nbytes: int


def shares() -> list[Share]:
    """What each table takes, the largest first."""
    counts: dict[str, int] = {}
    nbytes: dict[str, int] = {}
    with opened() as folder:
        for name, status in () if folder is None else entries(folder):
            table = name.partition("/")[0]
            counts[table] = counts.get(table, 0) + 1
            nbytes[table] = nbytes.get(table, 0) + (status.st_size if stat.S_ISREG(status.st_mode) else 0)
    return sorted((Share(t, counts[t], nbytes[t]) for t in counts), key=lambda share: (-share.nbytes, share.table))


def clear() -> int:
    """Deletes every entry; processes that use the cache at the same time find it empty, and go on.

    Returns:
      how many files were deleted.
    """
    with opened() as folder:
        return 0 if folder is None else sum(folder.remove(name) for name, _ in entries(folder))
