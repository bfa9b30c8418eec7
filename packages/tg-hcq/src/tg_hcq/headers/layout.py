"""How the bits of a header's tables lie: structs, registers, packets. Each is plain data with an encoder."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_NBYTES: Final = {"B": 1, "H": 2, "I": 4, "i": 4, "Q": 8, "q": 8}


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct of C: where each number in it lies. Fields of structs within are named ``outer.inner``.

    Attributes:
      name: as the header says.
      nbytes: its size.
      fields: offset and letter of the module ``struct``, by name; a name with ``[i]`` is an element of an array.

    Example:
      >>> pair = Struct("pair", 8, {"low": (0, "I"), "high": (4, "I")})
      >>> bytes(pair.pack(low=1, high=2)).hex(), pair.get(pair.pack(high=7), "high")
      ('0100000002000000', 7)
    """

    name: str
    nbytes: int
    fields: Mapping[str, tuple[int, str]]

    def pack(self, values: Mapping[str, int] | None = None, /, **fields: int) -> bytearray:
        """Its bytes; what is not named is 0.

        Raises:
          ValueError: if there is no such field, or a value does not fit.
        """
        data = bytearray(self.nbytes)
        for field, value in {**(values or {}), **fields}.items():
            self.put(data, field, value)
        return data

    def put(self, data: bytearray | memoryview, field: str, value: int) -> None:
        """Stores one field.

        Raises:
          ValueError: if there is no such field, or the value does not fit.
        """
        offset, code = self._field(field)
        try:
            struct.pack_into(f"<{code}", data, offset, value)
        except struct.error:
            raise ValueError(f"{self.name}.{field}: {value:#x} does not fit {8 * _NBYTES[code]} bits") from None

    def get(self, data: bytes | bytearray | memoryview, field: str) -> int:
        """Reads one field."""
        offset, code = self._field(field)
        value: int = struct.unpack_from(f"<{code}", data, offset)[0]
        return value

    def unpack(self, data: bytes | bytearray | memoryview) -> dict[str, int]:
        """Reads all fields."""
        return {field: self.get(data, field) for field in self.fields}

    def _field(self, field: str) -> tuple[int, str]:
        found = self.fields.get(field)
        if found is None:
            raise ValueError(f"{self.name} has no field {field!r}")
        return found


@dataclass(frozen=True, slots=True)
class Register:
    """A register of 32 bits.

    Attributes:
      name: as the header says.
      address: its number, in registers of 32 bits from the beginning of the register space.
      fields: first bit and number of bits, by name.

    Example:
      >>> sizes = Register("SIZES", 0x2E18, {"WAVES": (0, 12), "WAVESIZE": (12, 15)})
      >>> hex(sizes.encode(WAVES=3, WAVESIZE=1)), sizes.decode(0x1003)
      ('0x1003', {'WAVES': 3, 'WAVESIZE': 1})
    """

    name: str
    address: int
    fields: Mapping[str, tuple[int, int]]

    def encode(self, **fields: int) -> int:
        """A value; what is not named is 0.

        Raises:
          ValueError: if there is no such field, or a value does not fit.
        """
        word = 0
        for field, value in fields.items():
            if field not in self.fields:
                raise ValueError(f"{self.name} has no field {field!r}")
            shift, bits = self.fields[field]
            word |= _fitting(f"{self.name}.{field}", value, bits) << shift
        return word

    def decode(self, word: int) -> dict[str, int]:
        """The fields of a value."""
        return {field: word >> shift & (1 << bits) - 1 for field, (shift, bits) in self.fields.items()}

    @property
    def known(self) -> int:
        """The bits that belong to a field."""
        return _union(self.fields.values())


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet of a queue, in words of 32 bits.

    Attributes:
      name: as the header says.
      nwords: its length; what follows a field that says how long the packet is, is not counted.
      fields: word, first bit and number of bits, by name.

    Example:
      >>> fence = Packet("FENCE", 4, {"op": (0, 0, 8), "addr_31_0": (1, 0, 32), "data": (3, 0, 32)})
      >>> [hex(word) for word in fence.encode(op=5, addr_31_0=0x1000, data=9)]
      ['0x5', '0x1000', '0x0', '0x9']
    """

    name: str
    nwords: int
    fields: Mapping[str, tuple[int, int, int]]

    def encode(self, **fields: int) -> list[int]:
        """Its words; what is not named is 0.

        Raises:
          ValueError: if there is no such field, or a value does not fit.
        """
        words = [0] * self.nwords
        for field, value in fields.items():
            if field not in self.fields:
                raise ValueError(f"{self.name} has no field {field!r}")
            word, shift, bits = self.fields[field]
            words[word] |= _fitting(f"{self.name}.{field}", value, bits) << shift
        return words

    def decode(self, words: Sequence[int]) -> dict[str, int]:
        """The fields of a packet."""
        return {field: words[word] >> shift & (1 << bits) - 1 for field, (word, shift, bits) in self.fields.items()}

    def known(self, word: int) -> int:
        """The bits of a word that belong to a field."""
        return _union((shift, bits) for at, shift, bits in self.fields.values() if at == word)


def _fitting(what: str, value: int, bits: int) -> int:
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{what}: {value:#x} does not fit {bits} bits")
    return value


def _union(fields: Iterable[tuple[int, int]]) -> int:
    word = 0
    for shift, bits in fields:
        word |= (1 << bits) - 1 << shift
    return word
