"""A cache on disk that several processes share: one checksummed file an entry, put in place by an atomic rename.

An entry says which one it is: a file that is truncated, damaged, from another format or put in another's place is
deleted and counts as absent. Where there is no folder that is ours alone (:mod:`tg_runtime.cache.folder`), or it cannot
be written (a full disk), the cache is simply empty. Settings: ``CACHEDIR`` (default ``$XDG_CACHE_HOME/tinytg`` or
``~/.cache/tinytg``), ``CACHEMB`` (most MiB that it keeps; what was not used for longest goes first), and ``CCACHE=0``,
which turns it off.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import AbstractContextManager, nullcontext

from tg_lazy import ContextVar

from .folder import CACHEDIR, CACHEMB, NEW, Folder, cache_folder, kept_open, opened

__all__ = ["CACHEDIR", "CACHEMB", "CCACHE", "cache_folder", "delete", "digest", "get", "held", "keep", "put"]

CCACHE: ContextVar[int] = ContextVar("CCACHE", 1)

_MAGIC = b"tgc2"
_HEAD = len(_MAGIC) + 32
_USED_S = 3600.0  # resolution of the time at which an entry was last used
_OFTEN = 16  # the size of the cache is checked this often while as much is written as it may hold
_KEPT = 64  # most files of :func:`keep` in a table
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EIO)  # say nothing about an entry

_written = 0


def digest(*parts: str | bytes) -> str:
    """A key for :func:`get` and :func:`put`; parts that concatenate alike differ."""
    encoded = [part.encode() if isinstance(part, str) else part for part in parts]
    return _sha256(b"".join(len(data).to_bytes(8, "little") + data for data in encoded)).hex()


def _sha256(data: bytes) -> bytes:
    import hashlib  # loads OpenSSL, which would slow the start of every program

    return hashlib.sha256(data).digest()


def _name(table: str, key: str) -> str:
    return f"{table}/{key[:2]}/{key[2:]}"


def held() -> AbstractContextManager[None]:
    """Keeps the folder open for a block in which many entries are read and written, by its threads, too."""
    return kept_open() if CCACHE.value else nullcontext()


def get(table: str, key: str) -> bytes | None:
    """The entry's bytes, or None."""
    if not CCACHE.value:
        return None
    name = _name(table, key)
    with opened() as folder:
        if folder is None:
            return None
        try:
            content = _read(folder, name)
        except FileNotFoundError:
            return None
        except (OSError, MemoryError) as error:
            if not isinstance(error, OSError) or error.errno in _PASSING:
                return None
            content = b""
        body, mine = content[_HEAD:], f"{table}/{key}\n".encode()
        if content[:4] == _MAGIC and body.startswith(mine) and content[4:_HEAD] == _sha256(body):
            return body[len(mine) :]
        folder.remove(name)
    return None


def _read(folder: Folder, name: str) -> bytes:
    handle = folder.open(name)
    with open(handle, "rb") as file:
        content = file.read()
        if time.time() - os.fstat(handle).st_mtime > _USED_S and os.utime in os.supports_fd:
            try:
                os.utime(handle)
            except OSError:  # a read-only file system
                pass
        return content


def put(table: str, key: str, payload: bytes) -> bool:
    """Stores an entry; False if that failed, which is not an error."""
    if not CCACHE.value:
        return False
    body = f"{table}/{key}\n".encode() + payload
    stored = _write(_name(table, key), _MAGIC + _sha256(body) + body)
    if stored:
        _prune_now_and_then(key, len(body))
    return stored


def _write(name: str, content: bytes) -> bool:
    """Puts a file in place whole; False where that fails."""
    around, _, last = name.rpartition("/")
    new = f"{around}/{NEW}{os.getpid()}-{os.urandom(6).hex()}{os.path.splitext(last)[1]}"
    with opened(make=True) as folder:
        if folder is None:
            return False
        try:
            try:
                handle = _create(folder, around, new)
            except FileNotFoundError:  # the cache is being emptied
                handle = _create(folder, around, new)
            with open(handle, "wb", buffering=0) as file:
                if file.write(content) != len(content):
                    raise OSError(errno.ENOSPC, "not all of it was written")
            folder.rename(new, name)
        except OSError:
            folder.remove(new)
            return False
    return True


def _create(folder: Folder, around: str, name: str) -> int:
    try:
        return folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileNotFoundError:
        folder.make(around)
        return folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def keep(table: str, name: str, content: bytes) -> str | None:
    """Writes a file for a person to look at; the oldest are deleted when there are many.

    Args:
      table: the folder that it is in.
      name: 16 hexadecimal digits and a suffix.
      content: what is in it.

    Returns:
      its path; None where it could not be written.
    """
    if not _write(f"{table}/{name}", content):
        return None
    from .content import entries

    with opened() as folder:
        if folder is None:
            return None
        found = sorted(((status.st_mtime_ns, path) for path, status in entries(folder)
                        if path.startswith(f"{table}/")), reverse=True)
        for _, path in found[_KEPT:]:
            folder.remove(path)
        return os.path.join(folder.path, table, name)


def _prune_now_and_then(key: str, nbytes: int) -> None:
    global _written
    _written += nbytes
    if key.startswith("00") or _written > (CACHEMB.value << 20) // _OFTEN:
        _written = 0
        from .content import prune  # rarely needed, so not imported at the start

        prune()


def delete(table: str, key: str) -> None:
    """Drops an entry, if it is there."""
    with opened() as folder:
        if folder is not None:
            folder.remove(_name(table, key))
