"""How fast a file comes into memory: through its mapping, by calls, and past the system's cache.

    python -m bench.files [--mebibytes 512] [--folder FOLDER]

Each way is measured with the file in the system's cache and without. A file is written for it, and removed.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import os
import sys
import tempfile
import time
from collections.abc import Callable

TURNS = 3


def mapped(path: str, into: memoryview) -> None:
    """Copies out of a mapping."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as found:
        view = memoryview(found)
        into[:] = view
        view.release()


def called(path: str, into: memoryview, flags: int = 0, piece: int = 1 << 30) -> None:
    """Reads by calls."""
    handle = os.open(path, os.O_RDONLY | flags)
    try:
        done = 0
        while done < into.nbytes:
            done += os.preadv(handle, [into[done : done + piece]], done)
    finally:
        os.close(handle)


def direct(path: str, into: memoryview) -> None:
    """Reads past the cache, 8 MiB a call."""
    called(path, into, os.O_DIRECT, 8 << 20)


def forget(path: str) -> None:
    """Takes the file out of the system's cache."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


def rate(way: Callable[[str, memoryview], None], path: str, into: memoryview, cold: bool) -> float:
    """The best rate, in GB/s."""
    best = 0.0
    for _ in range(TURNS):
        if cold:
            forget(path)
        start = time.perf_counter()
        way(path, into)
        best = max(best, into.nbytes / (time.perf_counter() - start) / 1e9)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.files", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mebibytes", type=int, default=512)
    parser.add_argument("--folder", default=None, help="on the disk that is meant")
    arguments = parser.parse_args()
    size = arguments.mebibytes << 20
    block = mmap.mmap(-1, size)  # aligned to a page, as O_DIRECT wants it
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(block)), 1, size)
    with tempfile.NamedTemporaryFile(dir=arguments.folder) as file:
        for _ in range(arguments.mebibytes):
            file.write(os.urandom(1 << 20))
        file.flush()
        for name, way in (("mapping", mapped), ("calls", called), ("O_DIRECT", direct)):
            try:
                warm, cold = (rate(way, file.name, memoryview(block), cold) for cold in (False, True))
            except OSError as error:
                print(f"{name:<10} {error}")
            else:
                print(f"{name:<10} {warm:6.2f} GB/s from the cache {cold:6.2f} GB/s from the disk")
    return 0


if __name__ == "__main__":
    sys.exit(main())
