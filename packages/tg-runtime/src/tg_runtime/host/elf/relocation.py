"""What a relocation is, whatever the processor, and what a processor's relocations are to the loader."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...errors import DeviceError


class ELFError(DeviceError):
    """An object file is damaged, or holds something that the loader does not know."""


class Refusal(Exception):
    """Why a relocation cannot be applied; the loader adds which one it is."""


class Patch(NamedTuple):
    """A relocation with everything that it refers to placed in memory.

    Attributes:
      at: where it is in the image.
      place: the address of that.
      type: the processor's number of it.
      symbol: address of the symbol.
      addend: what is added to it.
      stub: address of a jump to the symbol, or the symbol itself.
      entry: address of the table entry that holds the symbol's address; 0 if there is none.
      bias: how far the object was moved from the addresses that it was linked for.
      name: what to call the symbol in a message.
    """

    at: int
    place: int
    type: int
    symbol: int
    addend: int
    stub: int = 0
    entry: int = 0
    bias: int = 0
    name: str = ""

    @property
    def value(self) -> int:
        """The symbol's address with the addend."""
        return self.symbol + self.addend


def _everywhere(_: str) -> bool:
    return True


class Machine(NamedTuple):
    """A processor whose objects can be loaded.

    Attributes:
      name: for messages.
      number: ``e_machine``.
      types: name and size in bytes of the place of every relocation that is known, by number.
      apply: patches the image, given what ``pairs`` found; raises :class:`Refusal`.
      tables: the types that want a table entry with the symbol's address.
      stub_bytes: of the longest jump to any address.
      put_stub: writes such a jump to an image: at an offset, to an address; None where calls reach everything.
      pairs: what one relocation must know of others; asked once, before any is applied.
      implicit: the addend that stands in the place itself; None where relocations without addends are not used.
      placed: whether a section that asks for memory is loaded, by its name.
      executables: whether what is loaded are executable files (ET_EXEC), laid out by sections; relocatable ones must
        then be linked before.
    """

    name: str
    number: int
    types: Mapping[int, tuple[str, int]]
    apply: Callable[[bytearray, Patch, Mapping[int, int]], None]
    tables: frozenset[int] = frozenset()
    stub_bytes: int = 0
    put_stub: Callable[[bytearray, int, int], None] | None = None
    pairs: Callable[[Sequence[Patch]], Mapping[int, int]] | None = None
    implicit: Callable[[bytearray, int, int], int] | None = None
    placed: Callable[[str], bool] = _everywhere
    executables: bool = False


def put32(out: bytearray, p: Patch, value: int, signed: bool) -> None:
    """Stores 32 bits.

    Raises:
      Refusal: if the value does not fit.
    """
    low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
    if not low <= value <= high:
        raise Refusal(f"cannot reach {value:#x} with 32 bits")
    struct.pack_into("<I", out, p.at, value & 0xFFFFFFFF)


def put64(out: bytearray, p: Patch, value: int) -> None:
    """Stores 64 bits; addresses wrap."""
    struct.pack_into("<Q", out, p.at, value & 0xFFFFFFFFFFFFFFFF)


def reach(distance: int, bits: int, unit: int = 1) -> None:
    """Does nothing if a signed field of so many bits holds the distance.

    Raises:
      Refusal: if it does not, or the distance is no multiple of the unit that the field counts.
    """
    if not -(1 << (bits - 1)) <= distance < 1 << (bits - 1):
        raise Refusal(f"cannot reach {distance:#x} with {bits} bits")
    aligned(distance, unit)


def aligned(value: int, unit: int) -> None:
    """Does nothing if a value is a multiple of a unit.

    Raises:
      Refusal: if it is not.
    """
    if value % unit:
        raise Refusal(f"{value:#x} is misaligned: it is no multiple of {unit}")
