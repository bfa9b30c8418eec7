"""What is launched: waves in workgroups, and the memories that workgroups have."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from . import state
from .wave import Wave, rubbish

NO_LIMIT = 1 << 62
"""As many as there are."""


@dataclass(frozen=True)
class Launch:
    """Waves to be run.

    Attributes:
      entry: the address of the first instruction.
      groups: how many workgroups.
      waves: how many waves each has.
      setup: gives a wave its first registers; called with the wave, which knows its workgroup and number.
      shared_bytes: shared memory of a workgroup.
      scratch_bytes: scratch memory of a lane.
      name: of the kernel, for messages.
      budget: most instructions of a wave.
      waves_of: how many waves a workgroup has, by its number, where they differ.
      resident: most workgroups that run at the same time.
      whole_barriers: whether it is a fault when a wave ends to whose workgroup's barrier others come: languages forbid
        that, and hardware lets it pass.

    Raises:
      ValueError: if a workgroup has no wave, or a number is negative.
    """

    entry: int
    groups: int = 1
    waves: int = 1
    setup: Callable[[Wave], None] = lambda wave: None
    shared_bytes: int = 0
    scratch_bytes: int = 0
    name: str = "kernel"
    budget: int = 1 << 40
    whole_barriers: bool = False
    waves_of: Callable[[int], int] | None = None
    resident: int = NO_LIMIT

    def __post_init__(self) -> None:
        if self.waves < 1 or min(self.groups, self.shared_bytes, self.scratch_bytes, self.budget) < 0:
            raise ValueError(f"{self} has no waves, or less than nothing")


Block: TypeAlias = "ctypes.Array[ctypes.c_char]"
"""Memory of a workgroup."""


@dataclass(eq=False)
class Group:
    """A workgroup that runs.

    Attributes:
      number: which of the launch.
      waves: its waves.
      shared: their shared memory.
      scratch: each wave's scratch memory.
      waiting: the waves that are at the barrier, by their number.
      ended: those that ended.
      slot: a number that no other workgroup has that runs at the same time.
    """

    number: int
    waves: list[Wave]
    shared: Block
    scratch: list[Block]
    waiting: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    slot: int = 0

    def place(self) -> None:
        """Tells the waves where their memories are."""
        for wave, scratch in zip(self.waves, self.scratch, strict=True):
            wave.put(state.SHARED, ctypes.addressof(self.shared), 2)
            wave.put(state.SCRATCH, ctypes.addressof(scratch), 2)

    def move(self, rng: random.Random) -> None:
        """Takes all that it has to other memory and leaves garbage behind."""
        for wave in self.waves:
            wave.move(rng)
        self.shared, *self.scratch = (_moved(old, rng) for old in (self.shared, *self.scratch))
        self.place()


def block(nbytes: int, rng: random.Random | None) -> Block:
    """Memory with garbage in it, or zeros."""
    new = ctypes.create_string_buffer(max(nbytes, 1))
    if rng is not None:
        new.raw = rng.randbytes(len(new))
    return new


def _moved(old: Block, rng: random.Random) -> Block:
    """The content in other memory; garbage is left behind."""
    new = block(len(old), None)
    new.raw, old.raw = old.raw, rubbish(len(old), rng)
    return new
