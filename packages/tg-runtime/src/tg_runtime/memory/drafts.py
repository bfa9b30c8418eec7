"""Files that are written as a whole: the new content is there in the end, or the old one, whatever else happens."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from .files import require_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_FIRST, _LAST = ".tinytg-", ".draft"
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_UNNAMED = getattr(os, "O_TMPFILE", 0)
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS)


def target_of(path: str, what: str) -> tuple[str, os.stat_result | None]:
    """The file that a path leads to through symbolic links, and what ``stat`` tells of it; None if it is not there.

    Raises:
      IsADirectoryError: if it is a directory.
      PermissionError: if it may not be written.
      OSError: if it is a FIFO, a device or a socket; or the links lead in a circle.
    """
    target = os.path.realpath(path)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        if path.endswith((os.sep, os.altsep or os.sep)):
            raise IsADirectoryError(errno.EISDIR, f"{what} wants the name of a file", path) from None
        return target, None
    require_regular(found, path, what)
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, f"{what}: the file is read-only", path)
    return target, found


@contextmanager
def replacing(path: str, what: str) -> Iterator[BinaryIO]:
    """A file to be written, which takes the place of ``path`` at the end of the block, and is on the disk then.

    It keeps the permissions of the file that was there, and, where the system allows it, the owner. A symbolic link
    stays one: what it leads to is replaced. Other hard links to the old file keep the old content. Until the end the
    draft has no name, where the file system can do that; elsewhere it is locked, and what a process that was killed
    left behind is removed by the next one that writes to the folder.

    Args:
      path: where the file is to be.
      what: the operation, for messages.

    Raises:
      OSError: if the file cannot be written, or is no regular one; what was there stays.
    """
    target, before = target_of(path, what)
    folder = os.path.dirname(target)
    draft = _Draft(folder, 0o666 if before is None else 0o600)
    try:
        with open(draft.handle, "wb", closefd=False) as file:
            yield file
        if before is not None:
            _take_over(draft.handle, before)
        os.fsync(draft.handle)
        draft.publish(target)
    finally:
        draft.close()
    _flush_folder(folder)


class _Draft:
    """An open file, without a name, or with one that nobody guesses."""

    def __init__(self, folder: str, mode: int) -> None:
        self.folder, self.handle, self.name = folder, -1, ""
        _sweep(folder)
        if _UNNAMED and os.path.isdir("/proc/self/fd"):
            try:
                self.handle = os.open(folder, os.O_RDWR | _UNNAMED | _NOFOLLOW, mode)
                return
            except OSError as error:
                if error.errno not in _NO_UNNAMED:
                    raise
        while True:
            self._name()
            self.handle = os.open(self.name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NOFOLLOW, mode)
            _lock(self.handle)
            if os.fstat(self.handle).st_nlink:
                return
            self.close()  # swept before it was locked

    def _name(self) -> None:
        self.name = os.path.join(self.folder, f"{_FIRST}{os.urandom(8).hex()}{_LAST}")

    def publish(self, target: str) -> None:
        """Gives the file its name, in place of what has it."""
        if not self.name:
            _lock(self.handle)
            self._name()
            here = os.open(self.folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
            try:
                # a folder makes it a call that follows the link in /proc: os.link(follow_symlinks=True) does not
                os.link(f"/proc/self/fd/{self.handle}", self.name, src_dir_fd=here)
            finally:
                os.close(here)
        os.replace(self.name, target)
        self.name = ""

    def close(self) -> None:
        """Closes the file, which is gone then, unless it was published."""
        if self.name:
            try:
                os.unlink(self.name)
            except FileNotFoundError:
                pass
        if self.handle >= 0:
            os.close(self.handle)
        self.name, self.handle = "", -1


def _lock(handle: int) -> None:
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return  # a file system without locks: nobody sweeps there either


def _sweep(folder: str) -> None:
    """Removes drafts whose writers are gone: the lock of one that lives is taken."""
    if fcntl is None:
        return
    try:
        with os.scandir(folder or ".") as entries:
            names = [e.path for e in entries if e.name.startswith(_FIRST) and e.name.endswith(_LAST)]
    except OSError:
        return
    for name in names:
        try:
            handle = os.open(name, os.O_RDONLY | _NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            found = os.fstat(handle)
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name)
        except OSError:
            continue
        finally:
            os.close(handle)


def _take_over(handle: int, before: os.stat_result) -> None:
    """Gives a file the owner and the permissions of another."""
    if hasattr(os, "fchown"):
        now = os.fstat(handle)
        if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
            try:
                os.fchown(handle, before.st_uid, before.st_gid)
            except OSError:
                pass
    if hasattr(os, "fchmod"):
        os.fchmod(handle, stat.S_IMODE(before.st_mode))


def _flush_folder(folder: str) -> None:
    """Puts the folder's names on the disk."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    except OSError:
        return
    finally:
        os.close(handle)
