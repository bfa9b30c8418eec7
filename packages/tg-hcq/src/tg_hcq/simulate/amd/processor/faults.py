"""What command processors stop on, and what they tell the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from ...engine import Access, FaultKind


@dataclass(frozen=True)
class Refused:
    """An access that the GPU's page tables do not allow.

    Attributes:
      address: the first byte.
      unmapped: whether nothing is there.
      write: whether it was to be written.
      execute: whether it was to be executed.
    """

    address: int
    unmapped: bool
    write: bool
    execute: bool

    @classmethod
    def of(cls, address: int, kind: FaultKind, access: Access) -> Refused:
        """From what the engine says."""
        return cls(address, kind is FaultKind.UNMAPPED, bool(access & Access.WRITE), bool(access & Access.EXECUTE))


@dataclass(frozen=True)
class Interrupt:
    """What a GPU tells its kernel driver.

    Attributes:
      text: for the kernel's log.
      context: of an interrupt that a packet asked for.
      refusal: of a fault of virtual memory; without it and a context, the GPU hangs.
    """

    text: str = ""
    context: int | None = None
    refusal: Refused | None = None


class PacketFault(Exception):
    """A packet, register or bit that the hardware does not know, or that this one does not know to be right.

    Args:
      why: what is wrong.
      word: which word of the packet, where one is.
    """

    def __init__(self, why: str, word: int | None = None) -> None:
        super().__init__(why if word is None else f"word {word}: {why}")


class MemoryFault(Exception):
    """An access of a packet's or a wave's that is not allowed."""

    def __init__(self, refusal: Refused, text: str) -> None:
        super().__init__(text)
        self.refusal = refusal
