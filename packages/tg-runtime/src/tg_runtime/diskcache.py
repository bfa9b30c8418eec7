"""A cache on disk that several processes share: one checksummed file an entry, put in place by an atomic rename.

A file that is truncated, damaged or from another format is deleted and counts as absent. Where the folder cannot be
made or written (no home, a full disk), the cache is simply empty. Settings: ``CACHEDIR`` (default
``$XDG_CACHE_HOME/tinytg`` or ``~/.cache/tinytg``), ``CACHEMB`` (most MiB that a table keeps), and ``CCACHE=0``, which
turns it off.
"""

from __future__ import annotations

import os

from tg_lazy import ContextVar

CACHEDIR: ContextVar[str] = ContextVar("CACHEDIR", "")
CCACHE: ContextVar[int] = ContextVar("CCACHE", 1)
CACHEMB: ContextVar[int] = ContextVar("CACHEMB", 2048)

_MAGIC = b"tgc1"
_HEAD = len(_MAGIC) + 32


def cache_folder() -> str:
    """The folder of the cache; it need not exist."""
    if CACHEDIR.value:
        return CACHEDIR.value
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "tinytg")


def digest(*parts: str | bytes) -> str:
    """A key for :func:`get` and :func:`put`; parts that concatenate alike differ."""
    encoded = [part.encode() if isinstance(part, str) else part for part in parts]
    return _sha256(b"".join(len(data).to_bytes(8, "little") + data for data in encoded)).hex()


def _sha256(data: bytes) -> bytes:
    import hashlib  # loads OpenSSL, which is not for the start of every program

    return hashlib.sha256(data).digest()


def _path(table: str, key: str) -> str:
    return os.path.join(cache_folder(), table, key[:2], key[2:])


def get(table: str, key: str) -> bytes | None:
    """The entry's bytes, or None."""
    if not CCACHE.value:
        return None
    path = _path(table, key)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return None
    payload = content[_HEAD:]
    if content[:4] == _MAGIC and content[4:_HEAD] == _sha256(payload):
        return payload
    delete(table, key)
    return None


def put(table: str, key: str, payload: bytes) -> bool:
    """Stores an entry; False where it could not be, which is no error."""
    if not CCACHE.value:
        return False
    path = _path(table, key)
    folder = os.path.dirname(path)
    temporary = None
    try:
        os.makedirs(folder, exist_ok=True)
        temporary = os.path.join(folder, f".new-{os.getpid()}-{os.urandom(6).hex()}")
        with open(temporary, "xb") as file:
            file.write(_MAGIC + _sha256(payload) + payload)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            try:
                os.unlink(temporary)
            except OSError:
                pass
        return False
    if key.startswith("00"):  # now and then
        prune(table)
    return True


def prune(table: str) -> None:
    """Deletes a table's oldest entries once it has more than ``CACHEMB`` MiB, until a quarter of that is free."""
    found = []
    for folder, _, names in os.walk(os.path.join(cache_folder(), table)):
        for name in names:
            path = os.path.join(folder, name)
            try:
                status = os.stat(path)
            except OSError:
                continue
            found.append((status.st_mtime_ns, status.st_size, path))
    limit, total = CACHEMB.value << 20, sum(size for _, size, _ in found)
    if total <= limit:
        return
    for _, size, path in sorted(found):
        if total <= limit * 3 // 4:
            break
        try:
            os.unlink(path)
        except OSError:
            continue
        total -= size


def delete(table: str, key: str) -> None:
    """Drops an entry, if it is there."""
    try:
        os.unlink(_path(table, key))
    except OSError:
        pass
