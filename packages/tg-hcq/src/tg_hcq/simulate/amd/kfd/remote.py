"""RemoteKfd: a machine whose cards another process plays; descriptors, bytes and shared pages pass between them."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import subprocess
import sys
import weakref
from typing import Final

from ....core.fileio import FileIO
from ....core.software import TextFile
from ....core.system import System
from ..settings import passed_on
from .cards import CARDS
from .messages import Answer, Call, Message, answered, connection, send

_DONTFORK: Final = 10  # MADV_DONTFORK (asm-generic/mman-common.h)
_PATIENCE_S: Final = 5


class _Pages(FileIO):
    """A descriptor of pages that was sent, to map parts of them."""

    def __init__(self, descriptor: int) -> None:
        self._sent = descriptor
        super().__init__("software memory")

    def _open(self, path: str, flags: int) -> int:
        return self._sent


class RemoteFile(FileIO):
    """A device node that was opened in the other process.

    Args:
      path: of the node.
      system: whose.
    """

    def __init__(self, path: str, system: RemoteKfd) -> None:
        self._system = system
        super().__init__(path)
        self._file, self._opener = system.ask(Message(Call.OPEN, first=self.fd, path=path)).result, os.getpid()

    def _open(self, path: str, flags: int) -> int:
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)

    def _ask(self, call: Call, first: int = 0, second: int = 0) -> Answer:
        if self.fd < 0 or self._opener != os.getpid():
            raise OSError(errno.EBADF, f"{self.path} was opened by another process, or closed", self.path)
        try:
            return self._system.ask(Message(call, self._file, first, second))
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from None

    def ioctl(self, request: int, argument: ctypes.Structure | ctypes.Array[ctypes.c_uint8] | int = 0) -> int:
        """Has the request executed; its argument is read from this process' memory, and changed there.

        Raises:
          OSError: as the kernel refuses it, or if the other process is gone (ENODEV).
        """
        address = argument if isinstance(argument, int) else ctypes.addressof(argument)
        return self._ask(Call.IOCTL, request, address).result

    def mmap(self, address: int, nbytes: int, prot: int, flags: int, offset: int = 0) -> int:
        """Maps pages that both processes share.

        Raises:
          OSError: as the kernel refuses it, or if the other process is gone (ENODEV).
        """
        found = self._ask(Call.MMAP, nbytes, offset)
        with _Pages(found.descriptor) as pages:
            mapped = pages.mmap(address, nbytes, prot, flags, found.result & ~1)
        if not found.result & 1:
            ctypes.CDLL(None).madvise(ctypes.c_void_p(mapped), ctypes.c_size_t(nbytes), _DONTFORK)
        return mapped

    def close(self) -> None:
        """Closes it. Closing twice does nothing."""
        if self.fd >= 0 and self.__dict__.get("_opener") == os.getpid():
            try:
                self._ask(Call.CLOSE)
            except OSError:
                pass  # with the other process, its files are gone
        super().close()


class RemoteKfd(System):
    """A machine with cards of AMD's, all of one kind, which a process of their own plays.

    Memory of the host's cannot be made a GPU's (USERPTR): no other process shares it.

    Args:
      arch: of the cards.
      gpus: how many.

    Attributes:
      server: the other process.

    Raises:
      ValueError: if the arch is none that is played.

    Example:
      >>> machine = RemoteKfd("gfx1100")
      >>> machine.listdir("/dev/dri"), machine.read_text("/sys/class/kfd/kfd/topology/nodes/0/gpu_id")
      (['renderD128'], '0')
      >>> machine.close()
    """

    def __init__(self, arch: str = "gfx1100", gpus: int = 1) -> None:
        if arch not in CARDS:
            raise ValueError(f"no card of {arch!r} is played; {', '.join(CARDS)} are")
        self._files: weakref.WeakSet[RemoteFile] = weakref.WeakSet()
        self._owner = os.getpid()
        self._control, theirs = connection()
        caller, memory = os.pidfd_open(self._owner), os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
        given = theirs.fileno(), caller, memory
        try:
            self.server = subprocess.Popen(
                [sys.executable, "-m", "tg_hcq.simulate.amd.kfd.server", arch, str(gpus), *map(str, given)],
                env={**os.environ, **passed_on()}, pass_fds=given, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        finally:
            theirs.close()
            os.close(caller)
            os.close(memory)
        self._idle: list[socket.socket] = []
        self._end = weakref.finalize(self, _end, self._control, self._idle, self.server, self._owner)

    def ask(self, what: Message) -> Answer:
        """Has the other process execute a system call. Several threads may at once.

        Raises:
          OSError: as it refuses, or if it is gone (ENODEV).
        """
        if self._owner != os.getpid():
            raise OSError(errno.EBADF, "the software GPU is the parent's")
        try:
            channel = self._idle.pop()
        except IndexError:
            channel = self._channel()
        try:
            send(channel, what)
            found = answered(channel)
        except OSError:
            found = None
        if found is None:
            channel.close()
            raise _gone()
        self._idle.append(channel)
        if found.error:
            raise OSError(found.error, found.text, what.path or None)
        return found

    def _channel(self) -> socket.socket:
        ours, theirs = connection()
        with theirs:
            try:
                send(self._control, Message(Call.CHANNEL), theirs.fileno())
            except OSError:
                ours.close()
                raise _gone() from None
        return ours

    def open(self, path: str, flags: int = os.O_RDONLY) -> FileIO:
        """Opens a device node, or a text of sysfs.

        Raises:
          OSError: if there is none, or the other process is gone.
        """
        if path.startswith("/sys/"):
            return TextFile(path, self.ask(Message(Call.TEXT, path=path)).text)
        file = RemoteFile(path, self)
        self._files.add(file)
        return file

    def exists(self, path: str) -> bool:
        """Whether the machine has it."""
        return bool(self.ask(Message(Call.EXISTS, path=path)).result & 1)

    def may_open(self, path: str) -> bool:
        """Whether it is a file of the machine."""
        return bool(self.ask(Message(Call.EXISTS, path=path)).result & 2)

    def group_of(self, path: str) -> str:
        """Everything belongs to ``render``.

        Raises:
          FileNotFoundError: if the machine does not have it.
        """
        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return "render"

    def listdir(self, path: str) -> list[str]:
        """The names beneath a path, sorted.

        Raises:
          FileNotFoundError: if there are none.
        """
        return self.ask(Message(Call.LIST, path=path)).text.split("\n")

    def close(self) -> None:
        """Ends the other process, and closes its files. Closing twice does nothing."""
        self._end()
        for file in list(self._files):
            file.close()


def _gone() -> OSError:
    return OSError(errno.ENODEV, "the process of the software GPU is gone")


def _end(control: socket.socket, idle: list[socket.socket], server: subprocess.Popen[bytes], owner: int) -> None:
    control.close()
    while idle:
        idle.pop().close()
    if os.getpid() != owner:
        return
    try:
        server.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
