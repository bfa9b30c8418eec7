"""FaultReport: what is known of a device that stopped, and for each part of it where it was read.

Two sources are open to a driver: the interfaces of the kernel and the hardware, and what this process noted itself. A
report names one of them for every fact, so that what was measured and what was concluded can be told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

RINGS = "memory of the ring"
ALLOCATIONS = "allocations noted by this process"
CODE = "code uploaded by this process"


@dataclass(frozen=True)
class Known(Generic[T]):
    """A fact, and where it was read."""

    value: T
    source: str

    def __str__(self) -> str:
        return f"{self.value} [{self.source}]"


class Near(NamedTuple):
    """The allocation that lies nearest to an address.

    Attributes:
      address: its first byte.
      nbytes: its size.
      distance: bytes from it to the address that faulted: negative before it, 0 inside, else from its end on.
      allocated: where in the user's program, and on which thread.
      freed: the same, or an empty text while it is in use.
    """

    address: int
    nbytes: int
    distance: int
    allocated: str
    freed: str

    def __str__(self) -> str:
        where = (
            "inside of" if self.distance == 0
            else f"{-self.distance} bytes before" if self.distance < 0
            else f"{self.distance} bytes after the end of"
        )  # fmt: skip
        freed = f", freed by {self.freed}" if self.freed else ", in use"
        return f"{where} {self.nbytes} bytes at {self.address:#x}, allocated by {self.allocated}{freed}"


class RingTail(NamedTuple):
    """The last packets that were put in a ring.

    Attributes:
      name: the ring.
      read: the read pointer.
      write: the write pointer.
      packets: the last ones, the oldest first: words, as text where the driver can say what they mean.
    """

    name: str
    read: int
    write: int
    packets: tuple[str, ...]

    def __str__(self) -> str:
        lines = "".join(f"\n    {packet}" for packet in self.packets)
        return f"{self.name}: read {self.read}, written {self.write}{lines}"


@dataclass(frozen=True)
class FaultReport:
    """What is known of a fault. A driver fills in what its interfaces tell; the core adds what the process knows.

    Attributes:
      device: the device's name.
      what: what happened, in words.
      address: the address that was accessed.
      access: ``"read"``, ``"write"`` or ``"execute"``.
      pc: where in a kernel's code.
      kernel: the kernel.
      registers: by name.
      near: the allocation nearest to the address.
      rings: the last packets of each ring.

    Example:
      >>> print(FaultReport("AMD", Known("page fault", "KFD event"), Known(0x1000, "KFD event")).text())
      AMD: page fault [KFD event]
        address: 0x1000 [KFD event]
    """

    device: str
    what: Known[str]
    address: Known[int] | None = None
    access: Known[str] | None = None
    pc: Known[int] | None = None
    kernel: Known[str] | None = None
    registers: Known[Mapping[str, int]] | None = None
    near: Known[Near] | None = None
    rings: tuple[Known[RingTail], ...] = field(default=())

    def text(self) -> str:
        """All of it, a fact a line."""
        lines = [f"{self.device}: {self.what}"]
        for name, fact in (("address", self.address), ("pc", self.pc)):
            if fact is not None:
                lines.append(f"  {name}: {fact.value:#x} [{fact.source}]")
        for name, told in (("access", self.access), ("kernel", self.kernel), ("nearest memory", self.near)):
            if told is not None:
                lines.append(f"  {name}: {told}")
        if self.registers is not None:
            values = ", ".join(f"{name} {value:#x}" for name, value in self.registers.value.items())
            lines.append(f"  registers: {values} [{self.registers.source}]")
        for tail in self.rings:
            first, *rest = str(tail.value).split("\n")
            lines += [f"  ring {first} [{tail.source}]", *rest]
        return "\n".join(lines)
