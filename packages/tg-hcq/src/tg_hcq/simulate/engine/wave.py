"""The state of one wave, as Python sees it."""

from __future__ import annotations

import ctypes
import random
import struct
from array import array
from typing import Final

from . import state
from .state import Layout, Status

_LINE: Final = 64

def rubbish(nbytes: int, rng: random.Random) -> bytes:
    """What is left where something was: the same random line again and again, for it is read by mistake only."""
    return (rng.randbytes(_LINE) * -(-nbytes // _LINE))[:nbytes]


class Wave:
    """A wave's registers, and what the engine keeps of it.

    Args:
      layout: of the instruction set.
      rng: fills all registers with garbage; they are zero if omitted.

    Attributes:
      address: of the state.
      group: the number of its workgroup.
      index: its number in the workgroup.
      unit: the compute unit that it runs on, where the machine has several.
      slot: a number that no other wave has that runs at the same time.
      mappings: the version of the address space that it was told last.
    """

    def __init__(self, layout: Layout, group: int = 0, index: int = 0, rng: random.Random | None = None) -> None:
        self.layout, self.group, self.index = layout, group, index
        self._place()
        if rng is not None:
            self.view[state.SCALARS :] = rng.randbytes(layout.nbytes - state.SCALARS)
        self.exec = (1 << layout.lanes) - 1
        self.status = Status.BUDGET
        self.unit = self.mappings = self.slot = 0

    def _place(self) -> None:
        self._memory = ctypes.create_string_buffer(self.layout.nbytes + 64)
        start = -ctypes.addressof(self._memory) % 64
        self.address = ctypes.addressof(self._memory) + start
        self.view = memoryview(self._memory).cast("B")[start : start + self.layout.nbytes]

    def move(self, rng: random.Random) -> None:
        """Takes the state to other memory and leaves garbage behind: the wave's queue was unmapped and resumed."""
        saved = bytes(self.view)
        self.view[:] = rubbish(len(saved), rng)
        self._place()
        self.view[:] = saved

    def map(self, table: array[int], count: int) -> None:
        """Tells the table of mappings, which must live while the wave runs, and forgets what was found in another."""
        self.put(state.RANGES, table.buffer_info()[0], 2)
        self.put(state.RANGE_COUNT, count, 2)
        self.view[state.RANGE : state.RANGE + state.RANGE_BYTES] = bytes(state.RANGE_BYTES)

    def get(self, offset: int, words: int = 1) -> int:
        """A field of 32-bit words, unsigned."""
        return int.from_bytes(self.view[offset : offset + 4 * words], "little")

    def put(self, offset: int, value: int, words: int = 1) -> None:
        """Changes a field of 32-bit words."""
        self.view[offset : offset + 4 * words] = (value % (1 << 32 * words)).to_bytes(4 * words, "little")

    @property
    def exec(self) -> int:
        """The execution mask, a bit a lane."""
        return self.get(state.EXEC, 2)

    @exec.setter
    def exec(self, mask: int) -> None:
        self.put(state.EXEC, mask, 2)

    @property
    def executed(self) -> int:
        """How many instructions it has executed."""
        return self.get(state.EXECUTED, 2)

    def scalar(self, name: str, index: int = 0, words: int = 1) -> int:
        """A scalar register, or several as one number."""
        return self.get(self.layout.scalar(name, index), words)

    def set_scalar(self, name: str, value: int, index: int = 0, words: int = 1) -> None:
        """Changes a scalar register, or several."""
        self.put(self.layout.scalar(name, index), value, words)

    def row(self, register: int) -> tuple[int, ...]:
        """The lanes of a vector register."""
        return struct.unpack_from(f"<{self.layout.lanes}I", self.view, self.layout.vector(register))

    def set_row(self, register: int, lanes: list[int] | tuple[int, ...]) -> None:
        """Changes the lanes of a vector register."""
        struct.pack_into(f"<{self.layout.lanes}I", self.view, self.layout.vector(register), *lanes)

    def addresses(self) -> dict[int, int]:
        """The address that each active lane accessed last."""
        found = struct.unpack_from(f"<{self.layout.lanes}Q", self.view, state.LANE_ADDRESSES)
        return {lane: found[lane] for lane in range(self.layout.lanes) if self.exec >> lane & 1}
