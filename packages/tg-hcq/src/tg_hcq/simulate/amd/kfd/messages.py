"""What passes between a process and the one that plays its GPU: numbers, bytes and descriptors.

A request is a system call: its numbers, and a path where it has one. An answer is an error number and a result, with
the text of a file or of an error, and the descriptor of the pages that a mapping is of.
"""

from __future__ import annotations

import os
import socket
import struct
from enum import IntEnum
from typing import Final, NamedTuple

_REQUEST: Final = struct.Struct("<IIQQ")
_ANSWER: Final = struct.Struct("<IIQ")
MOST: Final = 1 << 16
"""Bytes of a message."""


class Call(IntEnum):
    """The system calls, with what their numbers are: those of a request, then the answer's."""

    CHANNEL = 0  # a descriptor comes along, on which one thread's requests will come
    EXISTS = 1  # path; 1 if it is there, 2 more if it may be opened
    LIST = 2  # path; the names, one to a line
    TEXT = 3  # path; what is in the file
    OPEN = 4  # path, descriptor of the caller's; the file
    IOCTL = 5  # file, request, address of the argument in the caller's memory
    MMAP = 6  # file, bytes, offset; the place in the pages that come along, with its lowest bit if a child inherits
    CLOSE = 7  # file


class Message(NamedTuple):
    """A request.

    Attributes:
      call: which.
      file: as OPEN answered.
      first: the first number.
      second: the second one.
      path: what it is of.
    """

    call: Call
    file: int = 0
    first: int = 0
    second: int = 0
    path: str = ""


class Answer(NamedTuple):
    """What came of a request.

    Attributes:
      error: ``errno``, or 0.
      result: a number.
      text: of the file, or of the error.
      descriptor: of pages; -1 for none.
    """

    error: int = 0
    result: int = 0
    text: str = ""
    descriptor: int = -1


def connection() -> tuple[socket.socket, socket.socket]:
    """Two ends of one."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(to: socket.socket, what: Message, descriptor: int = -1) -> None:
    """Sends a request, and a descriptor with it."""
    data = _REQUEST.pack(what.call, what.file, what.first % (1 << 64), what.second % (1 << 64))
    socket.send_fds(to, [data, os.fsencode(what.path)], [descriptor] if descriptor >= 0 else [])


def receive(source: socket.socket) -> tuple[Message, int] | None:
    """The next request with its descriptor, or -1; None when there will be none."""
    data, descriptors, _, _ = socket.recv_fds(source, MOST, 1)
    if not data:
        return None
    call, file, first, second = _REQUEST.unpack_from(data)
    message = Message(Call(call), file, first, second, os.fsdecode(data[_REQUEST.size :]))
    return message, descriptors[0] if descriptors else -1


def answer(to: socket.socket, what: Answer) -> None:
    """Sends an answer."""
    data = [_ANSWER.pack(what.error, 0, what.result % (1 << 64)), what.text.encode()]
    socket.send_fds(to, data, [what.descriptor] if what.descriptor >= 0 else [])


def answered(source: socket.socket) -> Answer | None:
    """The next answer; None if nobody answers any more."""
    data, descriptors, _, _ = socket.recv_fds(source, MOST, 1)
    if not data:
        return None
    error, _, result = _ANSWER.unpack_from(data)
    return Answer(error, result, data[_ANSWER.size :].decode(), descriptors[0] if descriptors else -1)
