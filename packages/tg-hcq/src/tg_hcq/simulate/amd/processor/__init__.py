"""What executes the queues of a software AMD GPU: it watches rings and doorbells, which are memory."""

from __future__ import annotations

from .dispatch import MachineMaker
from .faults import Interrupt, MemoryFault, PacketFault, Refused
from .processor import Processor
from .queue import Queue, QueueKind, Ring

__all__ = [
    "Interrupt", "MachineMaker", "MemoryFault", "PacketFault", "Processor", "Queue", "QueueKind", "Refused", "Ring",
]  # fmt: skip
