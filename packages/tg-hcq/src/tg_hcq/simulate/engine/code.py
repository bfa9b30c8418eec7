"""Machine code as records: an instruction is decoded when a wave first comes to it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from . import state
from .memory import AddressSpace
from .native import Engine
from .state import Access, FaultKind


@dataclass(frozen=True, slots=True)
class Instruction:
    """A decoded instruction.

    Attributes:
      handler: its name in the instruction set.
      operands: offsets in a wave's state, results first, then sources.
      nbytes: how long it is.
      immediate: a literal, or the address that a branch leads to.
      text: as assembly, for traces and faults.
      parts: names of other handlers, whose addresses the handler finds at ``state.PARTS``.
    """

    handler: str
    operands: tuple[int, ...] = ()
    nbytes: int = 4
    immediate: int = 0
    text: str = ""
    parts: tuple[str, ...] = ()


class Undecodable(ValueError):
    """A word that is no instruction, or one that is not known."""


Decoder: TypeAlias = Callable[[int, bytes], Instruction]
"""Decodes what stands at an address; the bytes go on to the end of executable memory, 32 at most."""


REGION_BYTES = 1 << 18
"""Most bytes of code that get their records at once, which take 16 times as much memory."""


class _Region:
    """The records of a part of an executable mapping, a slot for each multiple of the granule."""

    def __init__(self, engine: Engine, start: int, end: int, granule: int) -> None:
        self.start, self.end = start, end
        slots = (end - start) // granule
        one = engine.undecoded.to_bytes(8, "little").ljust(state.RECORD_BYTES, b"\0")
        # behind the last slot stand a few more, into which an instruction at the end goes on
        self.memory = ctypes.create_string_buffer(one * (slots + 32), (slots + 32) * state.RECORD_BYTES)
        self.records, self.slots = ctypes.addressof(self.memory), slots
        self.instructions: dict[int, Instruction] = {}


class CodeFault(Exception):
    """No instruction can be executed at an address."""

    def __init__(self, kind: FaultKind, pc: int, why: str) -> None:
        super().__init__(why)
        self.kind, self.pc = kind, pc


class Code:
    """The decoded code of an address space: an instruction cache, which must be told when code changes.

    Args:
      engine: the handlers.
      space: where code is read from, through executable mappings.
      decode: of the instruction set.
      granule: instructions begin at multiples of it; a power of two.
    """

    def __init__(self, engine: Engine, space: AddressSpace, decode: Decoder, granule: int) -> None:
        self.engine, self.space, self._decode, self.granule = engine, space, decode, granule
        self._regions: list[_Region] = []

    def invalidate(self) -> None:
        """Forgets everything; a launch that is not over must :meth:`~tg_hcq.simulate.engine.Dispatch.refetch`."""
        self._regions.clear()

    def enter(self, pc: int) -> tuple[int, int, int, int]:
        """Decodes what stands at an address.

        Returns:
          its record; the records, the first address and the number of slots of its region.

        Raises:
          CodeFault: if nothing executable is mapped there, or it is no instruction.
        """
        region = self._region(pc)
        record = region.records + (pc - region.start) // self.granule * state.RECORD_BYTES
        if pc not in region.instructions:
            try:
                end = self.space.extent(pc, Access.EXECUTE, pc, pc + 32)[1]
                found = self._decode(pc, self.space.read(pc, end - pc))
                handler, *parts = (self.engine.addresses[name] for name in (found.handler, *found.parts))
            except (Undecodable, KeyError) as error:
                raise CodeFault(FaultKind.UNDECODABLE, pc, str(error)) from None
            words = (*found.operands, *[0] * (state.MOST_OPERANDS - len(found.operands)))
            distance = found.nbytes // self.granule * state.RECORD_BYTES
            immediate = found.immediate % (1 << 64)
            data = struct.pack(f"<Qi{state.MOST_OPERANDS}iQ", handler, distance, *words, immediate)
            ctypes.memmove(record, data, state.RECORD_BYTES)
            ctypes.memmove(record + state.PARTS, struct.pack(f"<{len(parts)}Q", *parts), 8 * len(parts))
            region.instructions[pc] = found
        return record, region.records, region.start, region.slots

    def pc(self, record: int, records: int, start: int) -> int:
        """The address of the instruction that a record is of."""
        return start + (record - records) // state.RECORD_BYTES * self.granule

    def text(self, pc: int) -> str:
        """The instruction at an address as assembly, if it was decoded."""
        for region in self._regions:
            if pc in region.instructions:
                found = region.instructions[pc]
                return found.text or found.handler
        return ""

    def instruction(self, pc: int) -> Instruction:
        """The instruction at an address.

        Raises:
          KeyError: if it was not decoded.
        """
        for region in self._regions:
            if pc in region.instructions:
                return region.instructions[pc]
        raise KeyError(f"{pc:#x} was not decoded")

    def _region(self, pc: int) -> _Region:
        for region in self._regions:
            if region.start <= pc < region.end and not (pc - region.start) % self.granule:
                return region
        refusal = self.space.refusal(pc, 1, Access.EXECUTE)
        if refusal is not None:
            raise CodeFault(refusal.kind, pc, f"{pc:#x} is {refusal.kind.name.lower()}")
        if pc % self.granule:
            raise CodeFault(FaultKind.MISALIGNED, pc, f"{pc:#x} is no multiple of {self.granule}")
        low = pc & -REGION_BYTES
        start, end = self.space.extent(pc, Access.EXECUTE, low, low + REGION_BYTES)
        region = _Region(self.engine, start, end, self.granule)
        self._regions.append(region)
        return region
