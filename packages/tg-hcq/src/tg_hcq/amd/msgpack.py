"""MessagePack, as the metadata of code objects uses it: maps, lists, texts, numbers. Everything is checked."""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

Value: TypeAlias = "bool | int | float | str | bytes | list[Value] | dict[str, Value] | None"

_DEEPEST: Final = 32
_NUMBERS: Final = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
    0xD3: ">q",
}  # fmt: skip
_LENGTHS: Final = {
    0xC4: ("bin", ">B"), 0xC5: ("bin", ">H"), 0xC6: ("bin", ">I"), 0xD9: ("str", ">B"), 0xDA: ("str", ">H"),
    0xDB: ("str", ">I"), 0xDC: ("list", ">H"), 0xDD: ("list", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I"),
}  # fmt: skip


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, nbytes: int) -> bytes:
        part = self.data[self.at : self.at + nbytes]
        if len(part) < nbytes:
            raise ValueError(f"MessagePack: {nbytes} bytes at {self.at} of {len(self.data)}")
        self.at += nbytes
        return part

    def number(self, code: str) -> int:
        value: int = struct.unpack(code, self.take(struct.calcsize(code)))[0]
        return value

    def value(self, depth: int) -> Value:
        if depth > _DEEPEST:
            raise ValueError(f"MessagePack: nested deeper than {_DEEPEST}")
        kind = self.take(1)[0]
        if kind < 0x80:
            return kind
        if kind >= 0xE0:
            return kind - 0x100
        if kind in (0xC0, 0xC2, 0xC3):
            return None if kind == 0xC0 else kind == 0xC3
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind in _LENGTHS:
            what, code = _LENGTHS[kind]
            return self.several(what, self.number(code), depth)
        if kind < 0xC0:
            what = "map" if kind < 0x90 else "list" if kind < 0xA0 else "str"
            return self.several(what, kind & (0x1F if what == "str" else 0xF), depth)
        raise ValueError(f"MessagePack: a value of type {kind:#x} at {self.at - 1}")

    def several(self, what: str, count: int, depth: int) -> Value:
        if what == "bin":
            return self.take(count)
        if what == "str":
            return self.take(count).decode(errors="replace")
        if count > len(self.data) - self.at:
            raise ValueError(f"MessagePack: {count} elements in the {len(self.data) - self.at} bytes that are left")
        if what == "list":
            return [self.value(depth + 1) for _ in range(count)]
        return {str(self.value(depth + 1)): self.value(depth + 1) for _ in range(count)}


def unpack(data: bytes) -> Value:
    """The first value in some bytes.

    Raises:
      ValueError: if they are damaged, or hold what metadata does not.

    Example:
      >>> unpack(bytes.fromhex("82a161 2a a162 92c3fe"))
      {'a': 42, 'b': [True, -2]}
    """
    return _Reader(data).value(0)
