"""What takes turns when a workload is measured: the libraries, and the machine, which reaches the workload's limit."""

from __future__ import annotations

from typing import Protocol

from .case import Case
from .libraries import Library, open_library
from .workload import Workload

MACHINE = "machine"
"""What takes turns with the libraries, and reaches the machine's limit."""


class Turn(Protocol):
    """A library, or the machine.

    Attributes:
      version: of the library.
    """

    version: str

    def open(self, workload: Workload) -> Case:
        """A workload, ready to run.

        Raises:
          Unsupported: if it cannot be expressed; the message says what is lacking.
        """


class LibraryTurn:
    """A library that takes its turn.

    Attributes:
      library: the library.
      version: of the library.
    """

    def __init__(self, library: Library) -> None:
        self.library, self.version = library, library.version

    def open(self, workload: Workload) -> Case:
        """The workload in this library."""
        return workload.build(self.library)


def open_turn(name: str, threads: int) -> Turn:
    """Imports a library, or prepares :data:`MACHINE`.

    Raises:
      ImportError: if the library is not installed.
    """
    if name == MACHINE:
        from .limits import Machine  # brings our runtime, which a process of another library never imports

        return Machine(threads)
    return LibraryTurn(open_library(name, threads))
