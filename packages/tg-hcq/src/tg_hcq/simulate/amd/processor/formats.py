"""Fields of packets: each word's bits have names, and a bit without one must be zero."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .faults import PacketFault


@dataclass(frozen=True)
class Word:
    """The fields of one word.

    Args:
      text: ``name@first:bits`` each, ``:1`` may be left out: ``"dst_sel@8:4 wr_confirm@20"``.
      whole: the name of the field that all bits belong to, instead.

    Example:
      >>> Word("event_type@0:6 event_index@8:4").read(0x514, 1)
      {'event_type': 20, 'event_index': 5}
    """

    text: str

    @cached_property
    def fields(self) -> dict[str, tuple[int, int]]:
        """The first bit and the number of bits of each."""
        found = {}
        for part in self.text.split():
            name, _, place = part.partition("@")
            first, _, bits = place.partition(":")
            found[name] = int(first or 0), int(bits or (1 if place else 32))
        return found

    @cached_property
    def mask(self) -> int:
        """The bits that have a name."""
        mask = 0
        for first, bits in self.fields.values():
            mask |= ((1 << bits) - 1) << first
        return mask

    def read(self, value: int, index: int) -> dict[str, int]:
        """The fields of a word.

        Raises:
          PacketFault: if a bit is set that has no name.
        """
        if value & ~self.mask:
            bits = ", ".join(str(bit) for bit in range(32) if value & ~self.mask & 1 << bit)
            raise PacketFault(f"{value:#010x} sets reserved bits: {bits}", index)
        return {name: value >> first & (1 << bits) - 1 for name, (first, bits) in self.fields.items()}


@dataclass(frozen=True)
class Packet:
    """A packet.

    Attributes:
      name: as the header spells it, without its prefix.
      words: after the header.
      more: whether any number of words follows.
    """

    name: str
    words: tuple[Word, ...] = ()
    more: bool = False

    def read(self, body: list[int]) -> dict[str, int]:
        """The fields of all its words.

        Raises:
          PacketFault: if there are too few or too many, or a reserved bit is set.
        """
        if len(body) < len(self.words) or (len(body) > len(self.words) and not self.more):
            wanted = f"{'at least ' if self.more else ''}{len(self.words)}"
            raise PacketFault(f"{self.name} has {len(body)} words after its header; it needs {wanted}")
        fields: dict[str, int] = {}
        for index, word in enumerate(self.words):
            fields |= word.read(body[index], index + 1)
        return fields


def packet(name: str, *words: str, more: bool = False) -> Packet:
    """A packet of words as :class:`Word` reads them."""
    return Packet(name, tuple(Word(word) for word in words), more)
