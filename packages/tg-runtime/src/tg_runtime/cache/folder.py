"""The folder of the cache on disk: which one it is, and whether only its owner can write to it.

What is in it is run: so it is used only if it is ours and nobody else may write there. Names are looked up in the
opened folder, not by its path, which may lead elsewhere by then; files are opened without following links, and without
waiting for what is no regular file.
"""

from __future__ import annotations

import contextvars
import errno
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from weakref import ref

from tg_lazy import DEBUG, ContextVar

CACHEDIR: ContextVar[str] = ContextVar("CACHEDIR", "")
CACHEMB: ContextVar[int] = ContextVar("CACHEMB", 1024)

NEW = ".new-"
"""How the names of files begin that are being written."""

POSIX = os.name == "posix"
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_told: set[str] = set()
_held: contextvars.ContextVar[ref[Folder] | None] = contextvars.ContextVar("held", default=None)


def cache_folder() -> str:
    """The path of the cache; empty where there is none: neither the setting nor the home is an absolute path."""
    chosen = CACHEDIR.value
    if chosen:
        if os.path.isabs(chosen):
            return chosen
        _tell(chosen, "CACHEDIR is not an absolute path")
        return ""
    for base in (os.environ.get("XDG_CACHE_HOME", ""), os.path.join(os.path.expanduser("~"), ".cache")):
        if os.path.isabs(base):
            return os.path.join(base, "tinytg")
    _tell("~", "there is no home")
    return ""


def _tell(path: str, why: str) -> None:
    if path not in _told and DEBUG.value >= 1:
        _told.add(path)
        print(f"the cache {path} is not used: {why}")


def _warn(path: str, why: str) -> None:
    """Warns that a folder of ours is not used: without it each process compiles its kernels anew."""
    if path not in _told:
        _told.add(path)
        warnings.warn(f"the cache {path} is not used: {why}", RuntimeWarning, stacklevel=2)


class OthersMayWrite(PermissionError):
    """The folder is ours, and others may write to it: one that an old version made, or that is shared on purpose."""


class Folder:
    """The opened folder; names are relative to it, with ``/`` between the parts. It is closed when nobody has it.

    Attributes:
      path: where it was found.
    """

    __slots__ = ("__weakref__", "_handle", "path")

    def __init__(self, path: str, handle: int | None) -> None:
        self.path, self._handle = path, handle

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Gives the descriptor back, after which the folder is not to be used."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            os.close(handle)

    def open(self, name: str, flags: int = _READ) -> int:
        """A descriptor of a regular file of ours; a new one, with ``O_CREAT``, is for us alone.

        Raises:
          OSError: if there is none, or something else has that name.
        """
        flags |= _READ | getattr(os, "O_NONBLOCK", 0)
        handle = os.open(self._place(name), flags, 0o600, dir_fd=self._handle)
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or (POSIX and status.st_uid != os.geteuid()):
            os.close(handle)
            raise OSError(f"{os.path.join(self.path, name)} is not a file of ours")
        return handle

    def make(self, name: str) -> None:
        """Makes a folder, and its parents where they are missing, for their owner alone.

        Raises:
          OSError: if it cannot be made, as in the place of a link that leads nowhere.
        """
        try:
            self._make_one(name)
        except FileNotFoundError:
            around = name.rpartition("/")[0]
            if not around:
                raise
            self.make(around)
            self._make_one(name)

    def _make_one(self, name: str) -> None:
        with suppress(FileExistsError):
            os.mkdir(self._place(name), 0o700, dir_fd=self._handle)

    def rename(self, name: str, to: str) -> None:
        """Puts a file in the place of another."""
        os.replace(self._place(name), self._place(to), src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def remove(self, name: str) -> bool:
        """Deletes a file, or whatever else but a folder has that name; False where there is nothing to delete."""
        try:
            os.unlink(self._place(name), dir_fd=self._handle)
        except OSError:
            return False
        return True

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """The files in it and below, with their status; links are not followed."""
        pending = [""]
        while pending:
            here = pending.pop()
            for entry in self._entries(here):
                inside = f"{here}/{entry}" if here else entry
                try:
                    status = os.stat(self._place(inside), dir_fd=self._handle, follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    pending.append(inside)
                else:
                    yield inside, status

    def _entries(self, name: str) -> list[str]:
        try:
            if self._handle is None:
                return os.listdir(self._place(name))
            handle = os.open(name or ".", _READ | os.O_DIRECTORY, dir_fd=self._handle)
            try:
                return os.listdir(handle)
            finally:
                os.close(handle)
        except OSError:
            return []

    def _place(self, name: str) -> str:
        return name if self._handle is not None else os.path.join(self.path, *name.split("/"))


@contextmanager
def kept_open() -> Iterator[None]:
    """Opens the cache's folder once for all that is read and written in a block, by threads with its context, too.

    Each call of the system lets other threads into Python, and waits until they are out again. A thread that goes on
    after the block finishes with this folder what it has begun, and opens the folder itself from then on.
    """
    outside, path = _held.get(), cache_folder()
    folder = _kept(path) or _usable(path, make=True)
    try:
        _held.set(None if folder is None else ref(folder))
        yield
    finally:
        _held.set(outside)
        del folder  # which a traceback would hold


def _kept(path: str) -> Folder | None:
    """The folder of that path, if a block around this keeps it open."""
    held = _held.get()
    folder = None if held is None else held()
    return folder if folder is not None and folder.path == path else None


@contextmanager
def opened(make: bool = False) -> Iterator[Folder | None]:
    """The cache's folder for a block; None where there is none that may be used.

    Args:
      make: makes it where it is not there.
    """
    path = cache_folder()
    kept = _kept(path)
    if kept is not None:
        yield kept
        return
    folder = _usable(path, make)
    try:
        yield folder
    finally:
        if folder is not None:
            folder.close()


def _usable(path: str, make: bool) -> Folder | None:
    """The folder of that path; None where it may not be used, which is told."""
    if not path:
        return None
    if not POSIX:
        return Folder(path, None)  # Windows: homes are private, and folders have no descriptors
    try:
        return Folder(path, _descriptor(path, make))
    except OSError as error:
        if isinstance(error, OthersMayWrite):
            _warn(path, str(error.strerror))
        elif not isinstance(error, FileNotFoundError):
            _tell(path, error.strerror or str(error))
        return None


def unusable() -> str:
    """Why the folder is not used, though it is there; empty where it is used, or not there yet."""
    try:
        os.close(_descriptor(cache_folder(), False))
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _descriptor(path: str, make: bool) -> int:
    try:
        handle = os.open(path, _READ | os.O_DIRECTORY)
    except FileNotFoundError:
        if not make:
            raise
        _make_all(path)
        handle = os.open(path, _READ | os.O_DIRECTORY)
    status = os.fstat(handle)
    if status.st_uid != os.geteuid():
        os.close(handle)
        raise PermissionError(errno.EPERM, "somebody else owns it", path)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        os.close(handle)
        why = f"others may write there (mode {stat.S_IMODE(status.st_mode):o}); chmod go-w would make it yours alone"
        raise OthersMayWrite(errno.EPERM, why, path)
    return handle


def _make_all(path: str) -> None:
    """Makes a folder and its parents, for their owner alone, whatever the umask is."""
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            continue
