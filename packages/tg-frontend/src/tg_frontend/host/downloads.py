"""Files from the web: kept in a folder of the user's cache, fetched once, whole or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

_TIMEOUT_S = 30
_PIECE = 1 << 18  # bytes


def cache_folder(name: str) -> Path:
    """A folder of the user's cache, which may not be there yet."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tinytg" / name


def kept(url: str, folder: Path, gunzip: bool) -> Path:
    """Where what an address gives is kept: named by the address, so that two of them never meet."""
    from hashlib import sha256

    name = url.partition("?")[0].rstrip("/").rpartition("/")[2][-60:] or "file"
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    return folder / f"{sha256(url.encode()).hexdigest()[:16]}{'-unpacked' if gunzip else ''}-{safe}"


def download(
    url: str, target: Path, what: str, *, gunzip: bool = False, sha256: str | None = None, progress: bool | None = None
) -> Path:
    """Fetches a file, unless it is there.

    Args:
      url: an address of http or https.
      target: where it is written to; its folder is made.
      what: the operation, for messages.
      gunzip: unpack it.
      sha256: the digest, in hexadecimal digits, that what was sent must have. It is also kept beside the file, and a
        file of another one is fetched again.
      progress: show at standard error how far it is; if None, where that is a terminal.

    Returns:
      ``target``.

    Raises:
      ValueError: if the address is another, or the digest is.
      OSError: if it cannot be fetched, is cut short, cannot be unpacked, or cannot be written.
    """
    if not isinstance(url, str) or not url.lower().startswith(("http://", "https://")):
        raise ValueError(f"{what}: an address of http or https is wanted, got {url!r}")
    wanted = None if sha256 is None else sha256.lower()
    seen = target.with_name(target.name + ".sha256")
    if target.exists() and (wanted is None or _is_kept(target, seen, wanted, gunzip)):
        return target
    from http.client import HTTPException
    from urllib.error import URLError
    from urllib.request import urlopen

    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    shown = sys.stderr if progress or (progress is None and sys.stderr.isatty()) else None
    try:
        try:
            with urlopen(url, timeout=_TIMEOUT_S) as answer, part.open("wb") as out:
                said = answer.headers.get("Content-Length")
                digest = _copied(answer, out, int(said) if said else None, url, shown)
        except (URLError, HTTPException, OSError) as error:
            raise OSError(f"{what}: {url} could not be fetched: {error}") from error
        if wanted not in (None, digest):
            raise ValueError(f"{what}: {url} gave a file with the SHA-256 digest {digest}, not {wanted}")
        if gunzip:
            _unpack(part, url, what)
        seen.write_text(digest, encoding="ascii")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target


def _is_kept(target: Path, seen: Path, wanted: str, unpacked: bool) -> bool:
    """Whether a file is the one of a digest; of an unpacked one only what was sent is known."""
    from hashlib import sha256

    if not seen.exists() or seen.read_text(encoding="ascii") != wanted:
        return False
    if unpacked:
        return True
    digest = sha256()
    with target.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest() == wanted


def _copied(answer: IO[bytes], out: IO[bytes], size: int | None, url: str, shown: IO[str] | None) -> str:
    """The digest of what was copied."""
    from hashlib import sha256

    digest, done = sha256(), 0
    while piece := answer.read(_PIECE):
        digest.update(piece)
        out.write(piece)
        done += len(piece)
        if shown is not None:
            of = "" if not size else f" of {size / 1e6:.1f}"
            shown.write(f"\r{url}: {done / 1e6:.1f}{of} MB")
            shown.flush()
    if shown is not None:
        shown.write("\n")
    if size is not None and done != size:
        raise OSError(f"it was cut short: {done} of {size} bytes came")
    return digest.hexdigest()


def _unpack(part: Path, url: str, what: str) -> None:
    import gzip
    import shutil
    import zlib

    whole = part.with_name(part.name + ".unpacked")
    try:
        with gzip.open(part, "rb") as packed, whole.open("wb") as out:
            shutil.copyfileobj(packed, out)
        whole.replace(part)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise OSError(f"{what}: what {url} gave cannot be unpacked: {error}") from error
    finally:
        whole.unlink(missing_ok=True)
