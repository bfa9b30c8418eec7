"""What stands before the tensors of a GGUF file: metadata, and where each tensor is. Everything is checked.

The header has no length of its own, so it is read piece by piece. A count is believed only as far as the bytes that are
left could hold it. Source: ggml's ``docs/gguf.md``, versions 2 and 3.
"""

from __future__ import annotations

import struct

from ..source import Source
from .kinds import KINDS, Kind

Value = bool | int | float | str | list["Value"]
"""A value of metadata."""
Entry = tuple[str, Kind, tuple[int, ...], int, int]
"""Name, kind, shape (the last axis is the one that lies in order), and where the bytes begin and end in the file."""

MAGIC = b"GGUF"
ALIGNMENT = "general.alignment"
DEFAULT_ALIGNMENT = 32
STRING, ARRAY, BOOL = 8, 9, 7
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""``struct``'s letters of the types of metadata."""
_VERSIONS = (2, 3)
_PIECE = 1 << 20
_MAX_AXES = 4
_MAX_DEPTH = 8
_MAX_BYTES = 1 << 62
_LENGTH = struct.Struct("<Q")
_LEAST_KEY, _LEAST_TENSOR = 13, 24  # bytes of the shortest entries


class _Reader:
    """Reads a header from the front."""

    def __init__(self, source: Source) -> None:
        self.source, self.at = source, 0
        self._piece, self._begin = b"", 0

    def take(self, count: int, what: str) -> bytes:
        """The next bytes.

        Raises:
          ValueError: if there are fewer.
        """
        end = self.at + count
        if end > self.source.nbytes:
            raise ValueError(
                f"{self.source.what}: {what} needs {count} bytes at {self.at} of {self.source.nbytes}: "
                "the file is truncated or damaged"
            )
        if end > self._begin + len(self._piece):
            self._piece = self.source.read(self.at, min(self.source.nbytes, max(end, self.at + _PIECE)))
            self._begin = self.at
        out = self._piece[self.at - self._begin : end - self._begin]
        self.at = end
        return out

    def number(self, letter: str, what: str) -> int:
        out = struct.unpack("<" + letter, self.take(struct.calcsize("<" + letter), what))[0]
        assert isinstance(out, int)
        return out

    def count(self, least: int, what: str) -> int:
        """A number of things that take at least some bytes each."""
        count, left = self.number("Q", what), self.source.nbytes - self.at
        if count * least > left:
            raise ValueError(f"{self.source.what}: {count} {what} in the {left} bytes that are left")
        return count

    def text(self, what: str) -> str:
        data = self.take(self.count(1, f"bytes of {what}"), what)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.source.what}: {what} is not UTF-8: {error}") from None

    def value(self, kind: int, what: str, depth: int = 0) -> Value:
        if kind == STRING:
            return self.text(what)
        if kind == ARRAY:
            return self._array(what, depth)
        return self._numbers(kind, 1, what)[0]

    def _array(self, what: str, depth: int) -> list[Value]:
        if depth == _MAX_DEPTH:
            raise ValueError(f"{self.source.what}: {what} is an array nested more than {_MAX_DEPTH} times")
        kind = self.number("I", what)
        if kind not in (STRING, ARRAY):
            letter = self._letter(kind, what)
            return self._numbers(kind, self.count(struct.calcsize("<" + letter), f"elements of {what}"), what)
        count = self.count(8 if kind == STRING else 12, f"elements of {what}")
        if kind == STRING:
            return self._texts(count, what)
        return [self.value(kind, what, depth + 1) for _ in range(count)]

    def _texts(self, count: int, what: str) -> list[Value]:
        """As many texts one behind another. There are hundreds of thousands: most are cut out of the piece at once."""
        out: list[Value] = []
        piece, place, end, length = b"", 0, 0, _LENGTH.unpack_from
        for _ in range(count):
            if place + 8 <= end and place + 8 + (size := length(piece, place)[0]) <= end:
                place += 8 + size
                try:
                    out.append(piece[place - size : place].decode("utf-8"))
                    continue
                except UnicodeDecodeError:
                    place -= 8 + size  # told by the careful way
            if end:
                self.at = self._begin + place
            out.append(self.text(what))
            piece, place, end = self._piece, self.at - self._begin, len(self._piece)
        if end:
            self.at = self._begin + place
        return out

    def _letter(self, kind: int, what: str) -> str:
        if kind not in NUMBERS:
            raise ValueError(f"{self.source.what}: {what} has the unknown type {kind}")
        return NUMBERS[kind]

    def _numbers(self, kind: int, count: int, what: str) -> list[Value]:
        letters = f"<{count}{self._letter(kind, what)}"
        return list(struct.unpack(letters, self.take(struct.calcsize(letters), what)))


def read_header(source: Source) -> tuple[dict[str, Value], list[Entry]]:
    """The metadata and the tensors of a file.

    Raises:
      ValueError: if the file is truncated, damaged or hostile, or a tensor is of an unknown kind.
    """
    reader, what = _Reader(source), source.what
    if reader.take(4, "the magic number") != MAGIC:
        raise ValueError(f"{what}: this is no GGUF file: it does not begin with GGUF")
    version = reader.number("I", "the version")
    if version not in _VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        kind = f"big-endian, version {swapped}" if swapped in _VERSIONS else f"version {version}"
        raise ValueError(f"{what}: {kind}; little-endian files of the versions 2 and 3 are read")
    tensors = reader.count(_LEAST_TENSOR, "tensors")
    keys = reader.count(_LEAST_KEY, "entries of metadata")
    metadata: dict[str, Value] = {}
    for _ in range(keys):
        key = reader.text("a key of metadata")
        if key in metadata:
            raise ValueError(f"{what}: the key {key!r} stands twice")
        metadata[key] = reader.value(reader.number("I", f"metadata {key!r}"), f"metadata {key!r}")
    alignment = metadata.get(ALIGNMENT, DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment <= 0 or alignment % 8:
        raise ValueError(f"{what}: {ALIGNMENT} is {alignment!r:.50}, no positive multiple of 8")
    rows = [_entry(reader) for _ in range(tensors)]
    begin = reader.at + -reader.at % alignment
    return metadata, _placed(rows, begin, alignment, source)


def _entry(reader: _Reader) -> Entry:
    """A tensor, whose place is still relative to the beginning of the data."""
    name = reader.text("the name of a tensor")
    label = f"{reader.source.what}: tensor {name!r}"
    axes = reader.number("I", f"tensor {name!r}")
    if axes > _MAX_AXES:
        raise ValueError(f"{label} has {axes} axes; at most {_MAX_AXES} are read")
    shape = tuple(reader.number("Q", f"tensor {name!r}") for _ in range(axes))[::-1]
    number, begin = reader.number("I", f"tensor {name!r}"), reader.number("Q", f"tensor {name!r}")
    if number not in KINDS:
        raise ValueError(f"{label} is of kind {number}, a quantisation that is not known here")
    kind = KINDS[number]
    elements = most = 1
    for dim in shape:
        elements, most = elements * dim, most * max(dim, 1)
        if most > _MAX_BYTES:
            raise ValueError(f"{label}: {shape} has more elements than a file could hold")
    if kind.decode is not None and (not shape or shape[-1] % kind.elements):
        raise ValueError(f"{label}: rows of {shape} are no whole blocks of {kind.elements}, as {kind.name} wants")
    return name, kind, shape, begin, begin + elements // kind.elements * kind.nbytes


def _placed(rows: list[Entry], begin: int, alignment: int, source: Source) -> list[Entry]:
    """The tensors at their places in the file, which do not overlap."""
    what, size, names = source.what, source.nbytes, set()
    place, last = 0, ""
    for name, _, _, start, end in sorted(rows, key=lambda row: row[3:]):
        if name in names:
            raise ValueError(f"{what}: the tensor {name!r} stands twice")
        names.add(name)
        if start % alignment:
            raise ValueError(f"{what}: tensor {name!r} begins at {start}, no multiple of {alignment}")
        if begin + end > size:
            raise ValueError(
                f"{what}: tensor {name!r} ends at {begin + end} of {size} bytes: the file is truncated or damaged"
            )
        if start < place:
            raise ValueError(f"{what}: tensor {name!r} at {start} overlaps tensor {last!r}, which ends at {place}")
        place, last = end, name
    return [(name, kind, shape, begin + start, begin + end) for name, kind, shape, start, end in rows]
