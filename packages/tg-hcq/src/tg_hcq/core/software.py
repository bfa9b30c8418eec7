"""SoftwareSystem: a system whose files are objects of this process. Memory, clock and events are the machine's."""

from __future__ import annotations

import os
from collections.abc import Callable

from .fileio import FileIO
from .system import System


class TextFile(FileIO):
    """A file that holds a text, as sysfs has them. It has a descriptor of its own, and can be read only."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path)
        self._data, self._at = text.encode(), 0

    def _open(self, path: str, flags: int) -> int:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def read(self, nbytes: int, offset: int | None = None) -> bytes:
        """At most ``nbytes`` bytes: from ``offset``, or from where the last read ended."""
        start = self._at if offset is None else offset
        part = self._data[start : start + nbytes]
        if offset is None:
            self._at += len(part)
        return part


class SoftwareSystem(System):
    """A machine of which only what is put there exists; nothing outside of the process is ever opened.

    Example:
      >>> machine = SoftwareSystem()
      >>> machine.put_text("/sys/class/kfd/topology/nodes/0/name", "gfx1100")
      >>> machine.put_node("/dev/kfd", lambda path, flags: TextFile(path, ""))
      >>> machine.listdir("/sys/class/kfd/topology/nodes"), machine.read_text("/sys/class/kfd/topology/nodes/0/name")
      (['0'], 'gfx1100')
      >>> machine.open("/dev/kfd", os.O_RDWR).path, machine.exists("/dev/null")
      ('/dev/kfd', False)
    """

    def __init__(self) -> None:
        self._nodes: dict[str, Callable[[str, int], FileIO]] = {}

    def put_node(self, path: str, opened: Callable[[str, int], FileIO]) -> None:
        """Puts a device node at an absolute path; ``opened(path, flags)`` makes each file that is opened there."""
        self._nodes[os.path.normpath(path)] = opened

    def put_text(self, path: str, text: str) -> None:
        """Puts a text file there."""
        self.put_node(path, lambda path, flags: TextFile(path, text))

    def remove(self, path: str) -> None:
        """Takes a node or file away.

        Raises:
          FileNotFoundError: if there is none.
        """
        if self._nodes.pop(os.path.normpath(path), None) is None:
            raise FileNotFoundError(2, os.strerror(2), path)

    def open(self, path: str, flags: int = os.O_RDONLY) -> FileIO:
        """Opens what was put there.

        Raises:
          FileNotFoundError: if nothing was.
        """
        opened = self._nodes.get(os.path.normpath(path))
        if opened is None:
            raise FileNotFoundError(2, os.strerror(2), path)
        return opened(path, flags)

    def exists(self, path: str) -> bool:
        """Whether something was put there, or beneath."""
        place = os.path.normpath(path)
        return place in self._nodes or any(node.startswith(f"{place}/") for node in self._nodes)

    def may_open(self, path: str) -> bool:
        """Whether something was put there."""
        return os.path.normpath(path) in self._nodes

    def group_of(self, path: str) -> str:
        """Everything belongs to ``render``.

        Raises:
          FileNotFoundError: if nothing was put there.
        """
        if not self.exists(path):
            raise FileNotFoundError(2, os.strerror(2), path)
        return "render"

    def listdir(self, path: str) -> list[str]:
        """The names beneath a path, sorted.

        Raises:
          FileNotFoundError: if there are none.
        """
        place = os.path.normpath(path).rstrip("/") + "/"
        names = {node[len(place) :].partition("/")[0] for node in self._nodes if node.startswith(place)}
        if not names:
            raise FileNotFoundError(2, os.strerror(2), path)
        return sorted(names)
