"""The process that plays a GPU for another one: ``python -m tg_hcq.simulate.amd.kfd.server``.

It ends when the other process does, or closes the connection.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import sys
import threading

from ....core.fileio import FileIO
from .files import Node
from .messages import Answer, Call, Message, answer, receive
from .system import KfdSystem


class Server:
    """Answers the requests of one process.

    Args:
      system: which it makes them to.
    """

    def __init__(self, system: KfdSystem) -> None:
        self.system = system
        self._files: dict[int, FileIO] = {}

    def serve(self, channel: socket.socket) -> None:
        """Answers until the channel is closed."""
        with channel:
            while (found := receive(channel)) is not None:
                try:
                    said = self._do(found[0])
                except OSError as error:
                    said = Answer(error.errno or errno.EIO, 0, error.strerror or str(error))
                answer(channel, said)

    def _do(self, what: Message) -> Answer:
        system = self.system
        if what.call is Call.EXISTS:
            return Answer(0, int(system.exists(what.path)) | 2 * int(system.may_open(what.path)))
        if what.call is Call.LIST:
            return Answer(text="\n".join(system.listdir(what.path)))
        if what.call is Call.TEXT:
            return Answer(text=system.read_text(what.path))
        if what.call is Call.OPEN:
            opened = system.open(what.path, os.O_RDWR)
            if isinstance(opened, Node):
                system.name(opened, what.first)
            self._files[opened.fd] = opened
            return Answer(0, opened.fd)
        file = self._files.get(what.file)
        if not isinstance(file, Node):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if what.call is Call.IOCTL:
            return Answer(0, file.ioctl(what.first, what.second))
        if what.call is Call.MMAP:
            part = file.part(what.first, what.second)
            return Answer(0, part.place | int(part.inherit), descriptor=part.pool.memory.fd)
        self._files.pop(what.file).close()
        return Answer()


def main(arguments: list[str]) -> None:
    """Plays cards: their arch and how many, then descriptors: the connection, the caller and the caller's memory.

    The minor version of the kernel interface may follow.
    """
    arch, (gpus, connected, caller, memory, *version) = arguments[0], map(int, arguments[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller ends by it, and this process with the caller
    server = Server(KfdSystem(arch, gpus, *version, memory=memory))
    control = socket.socket(fileno=connected)
    poll = select.poll()
    for fd in (connected, caller):
        poll.register(fd, select.POLLIN)
    while all(fd != caller for fd, _ in poll.poll()) and (found := receive(control)) is not None:
        channel = socket.socket(fileno=found[1])
        threading.Thread(target=server.serve, args=(channel,), daemon=True).start()
    os._exit(0)  # whatever the queues are doing


if __name__ == "__main__":
    main(sys.argv[1:])
