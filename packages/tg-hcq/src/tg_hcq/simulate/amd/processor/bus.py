"""Memory as packets reach it: each access is checked against what is mapped to the GPU, and for what."""

from __future__ import annotations

from typing import Protocol

from ...engine import Access, AddressSpace
from .faults import MemoryFault, PacketFault, Refused


class HostPath(Protocol):
    """The host's way to the memory of cards, as packets meet it."""

    def take(self) -> None:
        """Sends on what the host stored, where it flushed."""

    def show(self) -> None:
        """Has the host see what cards stored."""


class Bus:
    """The way to memory.

    Args:
      space: what addresses mean.
      host: the host's way to the memory of cards, if it is not theirs.
    """

    def __init__(self, space: AddressSpace, host: HostPath | None = None) -> None:
        self.space, self._host = space, host

    def take(self) -> None:
        """Sees what the host sent on."""
        if self._host is not None:
            self._host.take()

    def show(self) -> None:
        """Has the host see what was stored."""
        if self._host is not None:
            self._host.show()

    def check(self, address: int, nbytes: int, access: Access, what: str) -> None:
        """Checks an access.

        Raises:
          MemoryFault: if it may not be done.
        """
        refusal = self.space.refusal(address, nbytes, access)
        if refusal is not None:
            verb = "reads" if access is Access.READ else "writes"
            why = f"{what} {verb} {nbytes} bytes at {address:#x}; {refusal.address:#x} is {refusal.kind.name.lower()}"
            raise MemoryFault(Refused.of(refusal.address, refusal.kind, access), why)

    def read(self, address: int, nbytes: int, what: str) -> bytes:
        """Bytes of memory.

        Raises:
          MemoryFault: if they may not be read.
        """
        self.check(address, nbytes, Access.READ, what)
        return self.space.read(address, nbytes)

    def write(self, address: int, data: bytes, what: str) -> None:
        """Changes memory.

        Raises:
          MemoryFault: if it may not be written.
        """
        self.check(address, len(data), Access.WRITE, what)
        self.space.write(address, data)

    def word(self, address: int, what: str, nbytes: int = 4) -> int:
        """An aligned word of memory.

        Raises:
          PacketFault: if the address is not aligned.
          MemoryFault: if it may not be read.
        """
        aligned(address, nbytes, what)
        return int.from_bytes(self.read(address, nbytes, what), "little")

    def store(self, address: int, value: int, what: str, nbytes: int = 4) -> None:
        """Changes an aligned word, which may tell the host that all before it is done.

        Raises:
          PacketFault: if the address is not aligned.
          MemoryFault: if it may not be written.
        """
        aligned(address, nbytes, what)
        self.show()
        self.write(address, (value % (1 << 8 * nbytes)).to_bytes(nbytes, "little"), what)
        self.show()


def aligned(address: int, nbytes: int, what: str) -> None:
    """Checks an address.

    Raises:
      PacketFault: if it is no multiple of the size.
    """
    if address % nbytes:
        raise PacketFault(f"{what} at {address:#x}, which is no multiple of {nbytes}")
