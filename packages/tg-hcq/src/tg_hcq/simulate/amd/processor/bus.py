"""Memory as packets reach it: each access is checked against what is mapped to the GPU, and for what."""

from __future__ import annotations

from ...engine import Access, AddressSpace
from .faults import MemoryFault, PacketFault, Refused


class Bus:
    """The way to memory.

    Args:
      space: what addresses mean.
    """

    def __init__(self, space: AddressSpace) -> None:
        self.space = space

    def _check(self, address: int, nbytes: int, access: Access, what: str) -> None:
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
        self._check(address, nbytes, Access.READ, what)
        return self.space.read(address, nbytes)

    def write(self, address: int, data: bytes, what: str) -> None:
        """Changes memory.

        Raises:
          MemoryFault: if it may not be written.
        """
        self._check(address, len(data), Access.WRITE, what)
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
        """Changes an aligned word.

        Raises:
          PacketFault: if the address is not aligned.
          MemoryFault: if it may not be written.
        """
        aligned(address, nbytes, what)
        self.write(address, (value % (1 << 8 * nbytes)).to_bytes(nbytes, "little"), what)


def aligned(address: int, nbytes: int, what: str) -> None:
    """Checks an address.

    Raises:
      PacketFault: if it is no multiple of the size.
    """
    if address % nbytes:
        raise PacketFault(f"{what} at {address:#x}, which is no multiple of {nbytes}")
